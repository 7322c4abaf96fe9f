/* SPDX-License-Identifier: GPL-2.0 */
/* Seats that requests in flight have, packet by packet: when they are taken, and when given back. */
#include "seats.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char ok_head[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";

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

/* What comes behind takes only what it wants more, and gives it back if another limit refuses it. */
static void test_a_wider_one_behind(void **state)
{
	struct datapath_limit limit = limit_on_seats(0, 10);
	__u32 n = strlen(get_pod);

	(void)state;
	limit.flags = WEIR_LIMIT_WIDE_LISTS;
	slot_set(&limit);
	lists_set(10, 0);
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

ATTACHED_TESTS
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
		SEATS(subjects_go_with_their_last_seat),
		SEATS(a_limit_that_goes),
	};

	return cmocka_run_group_tests_name("seats", tests, attached_open, attached_close);
}
