/* SPDX-License-Identifier: GPL-2.0 */
/* Seats that requests in flight have, packet by packet: when they are taken, and when given back. */
#include "limited.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "weir.skel.h"

static const char ok_head[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";

static struct datapath_limit limit_on_seats(__u8 key, __u32 seats)
{
	return (struct datapath_limit){ .kind = WEIR_LIMIT_IN_FLIGHT,
					.reason = WEIR_SHED_IN_FLIGHT,
					.key = key,
					.epoch = 7,
					.amount = { .set = true, .seats = seats } };
}

static __u64 taken(void)
{
	__u64 seats[WEIR_SERVER_LIMITS] = {};

	done(datapath_in_flight(dp, 0, 1, seats, &error));
	return seats[SLOT];
}

/* Seats that all connections in the table have. */
static __u64 kept(void)
{
	__u32 key, next, *at = NULL;
	struct weir_busy busy;
	__u64 n = 0;

	while (!bpf_map_get_next_key(dp->maps.busy, at, &next)) {
		key = next;
		at = &key;
		assert_int_equal(bpf_map_lookup_elem(dp->maps.busy, &key, &busy), 0);
		for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
			n += busy.seats[i].taken;
	}
	return n;
}

static void forget(void)
{
	struct weir_forget forget = { .reason = WEIR_CONN_SWEPT };

	packet_flow(false, &forget.flow);
	assert_int_equal(datapath_run(bpf_program__fd(dp->skeleton->progs.weir_forget), &forget, sizeof(forget)), 0);
}

static int setup(void **state)
{
	struct datapath_limit limit = limit_on_seats(0, 1);

	attached_setup(state);
	slot_set(&limit);
	rule_set("{\"long_running\": false}");
	return 0;
}

static void test_until_the_answer_is_sent(void **state)
{
	(void)state;
	assert_true(passes(false, get_pod));
	assert_int_equal(taken(), 1);
	assert_false(passes(true, get_pod));
	assert_int_equal(counter(WEIR_SHED_IN_FLIGHT), 1);

	assert_int_equal(server_says(false, 0, strlen(get_pod), ACK, ok_head), PASS);
	assert_int_equal(taken(), 1);
	assert_int_equal(server_says(false, strlen(ok_head), strlen(get_pod), ACK, "hi"), PASS);
	assert_int_equal(taken(), 0);
	assert_int_equal(kept(), 0);
	/* Said again it frees nothing again. */
	assert_true(passes(true, get_pod));
	server_says(false, strlen(ok_head), strlen(get_pod), ACK, "hi");
	assert_int_equal(taken(), 1);
}

static void test_until_the_server_ends(void **state)
{
	(void)state;
	assert_true(passes(false, get_pod));
	server_says(false, 0, strlen(get_pod), FIN_ACK, "HTTP/1.1 200 OK\r\n\r\nas long as it lasts");
	assert_int_equal(taken(), 0);

	assert_true(passes(false, get_pod));
	server_says(false, 0, strlen(get_pod), WEIR_TCP_RST | ACK, NULL);
	assert_int_equal(taken(), 0);
	assert_int_equal(kept(), 0);
}

static void test_until_the_connection_is_forgotten(void **state)
{
	(void)state;
	assert_true(passes(false, get_pod));
	forget();
	assert_int_equal(taken(), 0);
	assert_int_equal(kept(), 0);
}

/* A connection is translated, and its client has gone: for a while numbers are needed, seats are not. */
static void test_until_the_sweep(void **state)
{
	struct weir_conn conn;
	struct weir_flow flow;

	(void)state;
	assert_true(passes(false, get_pod));
	packet_flow(false, &flow);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &flow, &conn), 0);
	conn.dying = 1;
	conn.splice.cuts = 1;
	conn.last_ns = datapath_now_ns() - 9 * WEIR_NS_PER_S;
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &conn, BPF_EXIST), 0);
	assert_int_equal(datapath_sweep(dp, 120 * WEIR_NS_PER_S, &error), 0);
	assert_int_equal(taken(), 1);

	conn.last_ns -= 2 * WEIR_NS_PER_S;
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &conn, BPF_EXIST), 0);
	assert_int_equal(datapath_sweep(dp, 120 * WEIR_NS_PER_S, &error), 0);
	assert_int_equal(taken(), 0);
	assert_int_equal(kept(), 0);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &flow, &conn), 0);
}

static void test_an_upgrade_keeps_its_seat(void **state)
{
	static const char upgrade[] = "GET /x HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
	static const char switching[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";

	(void)state;
	assert_true(passes(false, upgrade));
	server_says(false, 0, strlen(upgrade), ACK, switching);
	server_says(false, strlen(switching), strlen(upgrade), ACK, "frames");
	assert_int_equal(taken(), 1);
	forget();
	assert_int_equal(taken(), 0);
}

/* The server works on one of them at a time. */
static void test_pipelined_ones_have_one_together(void **state)
{
	__u32 n = strlen(get_pod);
	char both[256];

	(void)state;
	connect_ends(false);
	snprintf(both, sizeof(both), "%s%s", get_pod, get_pod);
	assert_int_equal(client_says(false, 0, both), PASS);
	assert_int_equal(client_says(false, 2 * n, get_pod), PASS);
	assert_int_equal(counter(WEIR_PASSED), 3);
	assert_int_equal(taken(), 1);
	assert_false(passes(true, get_pod));
	server_says(false, 0, 3 * n, ACK, ok);
	server_says(false, strlen(ok), 3 * n, ACK, ok);
	assert_int_equal(taken(), 1);
	assert_false(passes(true, get_pod));
	server_says(false, 2 * strlen(ok), 3 * n, ACK, ok);
	assert_int_equal(taken(), 0);
	assert_int_equal(kept(), 0);
	assert_true(passes(true, get_pod));
	assert_int_equal(counts(SLOT).highest, 1);
}

static void pod_of(char *text, size_t size, int namespace)
{
	snprintf(text, size, "GET /api/v1/namespaces/n%d/pods HTTP/1.1\r\n\r\n", namespace);
}

/* Each limit and subject has its seat until the last request that wants it is done. */
static void test_pipelined_ones_of_others(void **state)
{
	struct datapath_limit limit = limit_on_seats(WEIR_KEY_NAMESPACE, 1);
	char text[128], all[512];
	__u32 n;

	(void)state;
	slot_set(&limit);
	pod_of(text, sizeof(text), 1);
	n = snprintf(all, sizeof(all), "%s%s", text, text);
	pod_of(text, sizeof(text), 2);
	n += snprintf(all + n, sizeof(all) - n, "%s", text);
	connect_ends(false);
	assert_int_equal(client_says(false, 0, all), PASS);
	assert_int_equal(taken(), 2);
	server_says(false, 0, n, ACK, ok);
	assert_int_equal(taken(), 2);
	server_says(false, strlen(ok), n, ACK, ok);
	assert_int_equal(taken(), 1);
	assert_false(passes(true, text));
	pod_of(text, sizeof(text), 1);
	assert_true(passes(true, text));
	server_says(true, 0, strlen(text), ACK, ok);
	server_says(false, 2 * strlen(ok), n, ACK, ok);
	assert_int_equal(taken(), 0);
}

/* A connection has seats of so many at one time; the next one waits for those before it. */
static void test_more_subjects_than_a_connection_has_slots(void **state)
{
	struct datapath_limit limit = limit_on_seats(WEIR_KEY_NAMESPACE, 1);
	__u32 at = 0, length;
	char text[128];

	(void)state;
	slot_set(&limit);
	connect_ends(false);
	for (int i = 0; i < WEIR_SEAT_SLOTS; i++) {
		pod_of(text, sizeof(text), i);
		assert_int_equal(client_says(false, at, text), PASS);
		at += strlen(text);
	}
	pod_of(text, sizeof(text), WEIR_SEAT_SLOTS);
	length = strlen(text);
	assert_int_equal(client_says(false, at, text), DROP);
	assert_int_equal(taken(), WEIR_SEAT_SLOTS);
	server_says(false, 0, at, ACK, ok);
	assert_int_equal(taken(), WEIR_SEAT_SLOTS - 1);
	assert_int_equal(client_says(false, at, text), PASS);
	assert_int_equal(taken(), WEIR_SEAT_SLOTS);
	for (int i = 1; i <= WEIR_SEAT_SLOTS; i++)
		server_says(false, i * strlen(ok), at + length, ACK, ok);
	assert_int_equal(taken(), 0);
	assert_int_equal(kept(), 0);
}

static void server_set(__u32 list_width, __u32 object_bytes)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE,
				      .swallow_max = 65536,
				      .list_width = list_width,
				      .object_bytes = object_bytes };

	weir_reading_default(&server.reading);
	done(datapath_server_set(dp, 0, &server, &listen, 1, NULL, 0, &error));
}

/* What comes behind takes only what it wants more, and gives it back if another limit refuses it. */
static void test_a_wider_one_behind(void **state)
{
	struct datapath_limit limit = limit_on_seats(0, 10);
	__u32 n = strlen(get_pod);

	(void)state;
	limit.flags = WEIR_LIMIT_WIDE_LISTS;
	slot_set(&limit);
	server_set(10, 0);
	connect_ends(false);
	assert_int_equal(client_says(false, 0, get_pod), PASS);
	assert_int_equal(client_says(false, n, "GET /api/v1/pods?limit=450 HTTP/1.1\r\n\r\n"), PASS);
	assert_int_equal(taken(), 5);
	forget();
	assert_int_equal(taken(), 0);

	connect_ends(false);
	assert_int_equal(client_says(false, 0, get_pod), PASS);
	limit.amount.seats = 4;
	slot_set(&limit);
	assert_true(passes(true, get_pod));
	assert_int_equal(taken(), 2);
	assert_int_equal(client_says(false, n, "GET /api/v1/pods?limit=450 HTTP/1.1\r\n\r\n"), DROP);
	assert_int_equal(taken(), 2);
	assert_int_equal(kept(), 2);
}

static void test_another_limit_refuses(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	assert_false(passes(false, get_pod));
	assert_int_equal(taken(), 0);
	assert_int_equal(kept(), 0);
	assert_int_equal(counts(SLOT).admitted, 0);
}

static void test_long_running_is_not_counted(void **state)
{
	(void)state;
	assert_true(passes(false, "GET /api/v1/pods?watch=1 HTTP/1.1\r\n\r\n"));
	assert_int_equal(taken(), 0);
}

#define PODS "GET /api/v1/namespaces/a/pods HTTP/1.1\r\n\r\n"

/* A level of 30 seats. */
static void level_set(void)
{
	struct datapath_limit limit = limit_on_seats(0, 30);

	limit.flags = WEIR_LIMIT_WIDE_LISTS;
	limit.reason = WEIR_SHED_LEVEL;
	slot_set(&limit);
}

/* The server says, from byte `at` on, the head of an answer with so many bytes, or in chunks, and none of the body. */
static void answer_begins(const char *request, __u32 at, const char *status, __u32 bytes)
{
	char head[128];

	snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %u\r\n\r\n", status, bytes);
	server_says(false, at, strlen(request), ACK, head);
}

/* On a connection of its own: what the request takes, and gives back at once. */
static __u64 seats_of(const char *request)
{
	__u64 before = taken(), seats;

	assert_true(passes(true, request));
	seats = taken() - before;
	server_says(true, 0, strlen(request), FIN_ACK, "HTTP/1.1 503 Service Unavailable\r\n\r\n");
	assert_int_equal(taken(), before);
	return seats;
}

/* The request is answered, and its seats are free. */
static void answered(const char *request, const char *status, __u32 bytes)
{
	assert_true(passes(false, request));
	answer_begins(request, 0, status, bytes);
	server_says(false, 128 + bytes, strlen(request), WEIR_TCP_RST | ACK, NULL);
	assert_int_equal(taken(), 0);
}

static void test_lists_take_one_seat_until_they_are_wide(void **state)
{
	(void)state;
	level_set();
	assert_int_equal(seats_of(PODS), 1);
	answered(PODS, "200 OK", 90000);
	assert_int_equal(seats_of(PODS), 1);
	answered(PODS, "200 OK", 450000);
	assert_int_equal(seats_of(PODS), 5);
	/* Of this namespace's pods alone. */
	assert_int_equal(seats_of("GET /api/v1/namespaces/b/pods HTTP/1.1\r\n\r\n"), 1);
	assert_int_equal(seats_of("GET /api/v1/pods HTTP/1.1\r\n\r\n"), 1);
	assert_int_equal(seats_of("GET /apis/x/v1/namespaces/a/pods HTTP/1.1\r\n\r\n"), 1);
	assert_int_equal(seats_of(list_secrets), 1);
	assert_int_equal(seats_of("GET /api/v1/namespaces/a/pods?resourceVersion=0&limit=1 HTTP/1.1\r\n\r\n"), 5);
	/* Who asks for fewer objects takes fewer seats. */
	assert_int_equal(seats_of("GET /api/v1/namespaces/a/pods?limit=250 HTTP/1.1\r\n\r\n"), 3);
	assert_int_equal(seats_of("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name=x HTTP/1.1\r\n\r\n"), 1);
	assert_int_equal(seats_of(get_pod), 1);
}

static void test_the_latest_answers_say_how_wide(void **state)
{
	(void)state;
	level_set();
	answered(PODS, "200 OK", 5000000);
	assert_int_equal(seats_of(PODS), 10);
	for (int i = 0; i < 40; i++)
		answered(PODS, "200 OK", 20000);
	assert_int_equal(seats_of(PODS), 1);
}

/* Whatever is asked for, a list does not look narrower than it is. */
static void test_parts_do_not_make_a_list_narrow(void **state)
{
	static const char *const parts[] = {
		"GET /api/v1/namespaces/a/pods?limit=1 HTTP/1.1\r\n\r\n",
		"GET /api/v1/namespaces/a/pods?limit=1&resourceVersion=0 HTTP/1.1\r\n\r\n",
		"GET /api/v1/namespaces/a/pods?labelSelector=x%3Dy HTTP/1.1\r\n\r\n",
		"GET /api/v1/namespaces/a/pods?fieldSelector=spec.nodeName=x HTTP/1.1\r\n\r\n",
		"GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name=x HTTP/1.1\r\n\r\n",
		"HEAD /api/v1/namespaces/a/pods HTTP/1.1\r\n\r\n",
	};

	(void)state;
	level_set();
	answered(PODS, "200 OK", 450000);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		for (int n = 0; n < 10; n++)
			answered(parts[i], "200 OK", 2000);
	for (int n = 0; n < 10; n++) {
		answered(PODS, "304 Not Modified", 0);
		answered(PODS, "403 Forbidden", 200);
		answered(get_pod, "200 OK", 200);
	}
	assert_int_equal(seats_of(PODS), 5);
	/* But wider they may. */
	answered(parts[2], "200 OK", 1250000);
	assert_int_equal(seats_of(PODS), 6);
}

static void test_what_is_not_served_makes_no_list_wide(void **state)
{
	(void)state;
	level_set();
	answered(PODS, "403 Forbidden", 5000000);
	answered(get_pod, "200 OK", 5000000);
	answered("GET /api/v1/namespaces/a/pods?watch=1 HTTP/1.1\r\n\r\n", "200 OK", 5000000);
	answered("POST /api/v1/namespaces/a/pods HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "200 OK", 5000000);
	assert_int_equal(seats_of(PODS), 1);
}

/* Each of several answers is that of its own request, in whatever packets they come; one list at a time is learned. */
static void test_answers_to_pipelined_lists(void **state)
{
	char both[512], text[4096];
	__u32 length;

	(void)state;
	level_set();
	connect_ends(false);
	snprintf(both, sizeof(both), "%s%s%s", get_pod, list_secrets, PODS);
	assert_int_equal(client_says(false, 0, both), PASS);
	length = snprintf(text, sizeof(text),
			  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
			  "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n");
	server_says(false, 0, strlen(both), ACK, text);
	server_says(false, length + 300000, strlen(both), ACK, "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n");
	assert_int_equal(seats_of(PODS), 1);
	assert_int_equal(seats_of(list_secrets), 4); /* the head is counted, too */
}

/* A body in chunks, or one that the end of the connection ends: what has been sent of it is known. */
static void test_a_body_that_does_not_say_its_length(void **state)
{
	static const char *const heads[] = { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n",
					     "HTTP/1.0 200 OK\r\n\r\n" };

	(void)state;
	level_set();
	for (int i = 0; i < 2; i++) {
		const char *request = i ? list_secrets : PODS;
		__u32 at = strlen(heads[i]);

		assert_true(passes(false, request));
		server_says(false, 0, strlen(request), ACK, heads[i]);
		/* 0x186a0, a chunk's, are 100,000; then it goes on with another one. */
		for (__u32 sent = 0; i && sent < 100000; sent += 1000) {
			char body[1001];

			memset(body, 'x', 1000);
			body[1000] = 0;
			server_says(false, at + sent, strlen(request), ACK, body);
		}
		at += 100000;
		server_says(false, at, strlen(request), ACK, i ? "x" : "\r\n186a0\r\n");
		server_says(false, at + (i ? 1 : 9), strlen(request), FIN_ACK, "more of it");
		assert_int_equal(seats_of(request), 2);
	}
}

static void test_what_the_server_is_said_to_be(void **state)
{
	(void)state;
	level_set();
	answered(PODS, "200 OK", 450000);
	server_set(0, 2000);
	assert_int_equal(seats_of(PODS), 3);
	server_set(4, 0);
	assert_int_equal(seats_of(PODS), 4);
	assert_int_equal(seats_of(list_secrets), 4);
	assert_int_equal(seats_of("GET /api/v1/namespaces/a/pods?limit=100 HTTP/1.1\r\n\r\n"), 1);
	server_set(10, 0);
	assert_int_equal(seats_of(list_secrets), 10);
}

/* Subjects that are always new leave nothing behind. */
static void test_subjects_go_with_their_last_seat(void **state)
{
	struct datapath_limit limit = limit_on_seats(WEIR_KEY_NAMESPACE, 1);
	struct weir_in_flight_key key;
	char text[128];

	(void)state;
	slot_set(&limit);
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "GET /api/v1/namespaces/n%d/pods HTTP/1.1\r\n\r\n", i);
		assert_true(passes(false, text));
		server_says(false, 0, strlen(text), ACK, ok);
	}
	assert_int_equal(bpf_map_get_next_key(dp->maps.in_flight, NULL, &key), -ENOENT);
	assert_int_equal(counts(SLOT).highest, 1);
}

static void test_a_limit_that_goes(void **state)
{
	struct datapath_limit limit = limit_on_seats(0, 1);

	(void)state;
	assert_true(passes(false, get_pod));
	done(datapath_limit_delete(dp, 0, SLOT, &error));
	limit.epoch++;
	slot_set(&limit);
	assert_true(passes(true, get_pod));
	/* The answer to a request that the old limit admitted frees no seat of the new one. */
	server_says(false, 0, strlen(get_pod), ACK, ok);
	assert_int_equal(taken(), 1);
	server_says(true, 0, strlen(get_pod), ACK, ok);
	assert_int_equal(taken(), 0);
}

#define SEATS(name) cmocka_unit_test_setup_teardown(test_##name, setup, attached_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SEATS(until_the_answer_is_sent),
		SEATS(until_the_server_ends),
		SEATS(until_the_connection_is_forgotten),
		SEATS(until_the_sweep),
		SEATS(an_upgrade_keeps_its_seat),
		SEATS(pipelined_ones_have_one_together),
		SEATS(pipelined_ones_of_others),
		SEATS(more_subjects_than_a_connection_has_slots),
		SEATS(a_wider_one_behind),
		SEATS(another_limit_refuses),
		SEATS(long_running_is_not_counted),
		SEATS(lists_take_one_seat_until_they_are_wide),
		SEATS(the_latest_answers_say_how_wide),
		SEATS(parts_do_not_make_a_list_narrow),
		SEATS(what_is_not_served_makes_no_list_wide),
		SEATS(answers_to_pipelined_lists),
		SEATS(a_body_that_does_not_say_its_length),
		SEATS(what_the_server_is_said_to_be),
		SEATS(subjects_go_with_their_last_seat),
		SEATS(a_limit_that_goes),
	};

	return cmocka_run_group_tests_name("seats", tests, attached_open, attached_close);
}
