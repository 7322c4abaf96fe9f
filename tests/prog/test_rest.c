/* SPDX-License-Identifier: GPL-2.0 */
/* Connections that rest after a silence, and wake with the next packet that brings something. */
#include "attached.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "weir/conn/rest.h"

#define HALF "GET /api/v1/namespaces/a"

static const struct spec first = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a };

static struct weir_flow flow(void)
{
	struct weir_flow flow;

	packet_flow(false, &flow);
	return flow;
}

static unsigned int entries(int map)
{
	struct weir_flow key, next, *at = NULL;
	unsigned int n = 0;

	for (; !bpf_map_get_next_key(map, at, &next); n++) {
		key = next;
		at = &key;
	}
	return n;
}

static bool rests(void)
{
	bool rests = entries(dp->maps.resting);

	assert_int_equal(entries(dp->maps.conns), !rests);
	return rests;
}

static struct weir_conn awake(void)
{
	struct weir_flow key = flow();
	struct weir_conn c;

	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &key, &c), 0);
	return c;
}

static void conn_put(struct weir_conn c)
{
	struct weir_flow key = flow();

	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &key, &c, BPF_ANY), 0);
}

static void forget(__u32 reason, __u64 id)
{
	struct weir_forget forget = { .flow = flow(), .reason = reason, .id = id };

	assert_int_equal(datapath_run(dp->forget_fd, &forget, sizeof(forget)), 0);
}

/* What the agent's sweep does, after a silence of the connection's. */
static void sweep(__u64 silence_ns)
{
	struct weir_conn c = awake();

	c.last_ns = datapath_now_ns() - silence_ns;
	conn_put(c);
	forget(WEIR_REASON_NONE, 0);
}

/* A connection that has been open for a while, with an id. */
static void connect_resting(void)
{
	struct weir_conn c;

	connect_ends(false);
	c = awake();
	c.id = 7;
	conn_put(c);
	sweep(WEIR_REST_NS);
	assert_true(rests());
}

static __u32 after(const char *text)
{
	return CLIENT_NEXT + strlen(text);
}

static int answer(void)
{
	struct spec spec = {
		.seq = SERVER_NEXT, .ack = after(get_a), .flags = PSH_ACK, .text = ok, .from_server = true
	};

	return run(egress, &spec);
}

static int acknowledges(bool from_server, __u32 seq, __u32 ack)
{
	struct spec spec = { .seq = seq, .ack = ack, .flags = ACK, .from_server = from_server };

	return run(from_server ? egress : ingress, &spec);
}

static void test_rests_after_a_silence(void **state)
{
	(void)state;
	connect_ends(false);
	assert_untouched(ingress, &first);
	assert_int_equal(answer(), PASS);
	assert_int_equal(acknowledges(false, after(get_a), SERVER_NEXT + strlen(ok)), PASS);
	sweep(WEIR_REST_NS - WEIR_NS_PER_S);
	assert_false(rests());
	sweep(WEIR_REST_NS);
	assert_true(rests());
	assert_int_equal(counter(WEIR_CONN_CLOSED), 0);
}

/* What is not read passes without its time being noted: only a second sweep finds that nothing has come since the first. */
static void test_rests_unread_after_two_sweeps(void **state)
{
	static const char hello[] = "\x16\x03\x01\x02";
	struct spec spec = first;

	(void)state;
	connect_ends(false);
	spec.text = hello;
	assert_untouched(ingress, &spec);
	assert_int_equal(acknowledges(true, SERVER_NEXT, after(hello)), PASS);
	assert_int_equal(awake().phase, WEIR_PHASE_OPAQUE);
	sweep(WEIR_REST_NS);
	assert_false(rests());
	sweep(WEIR_REST_NS);
	assert_true(rests());
}

static void test_wakes_with_a_request(void **state)
{
	const struct spec next = {
		.seq = after(get_a), .ack = SERVER_NEXT + strlen(ok), .flags = PSH_ACK, .text = get_a
	};

	(void)state;
	connect_resting();
	assert_untouched(ingress, &first);
	assert_false(rests());
	assert_int_equal(awake().id, 7);
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(answer(), PASS);
	assert_int_equal(awake().responses, 1);
	assert_int_equal(acknowledges(false, after(get_a), SERVER_NEXT + strlen(ok)), PASS);
	sweep(WEIR_REST_NS);
	assert_true(rests());
	assert_untouched(ingress, &next);
	assert_int_equal(awake().requests, 2);
	assert_int_equal(counter(WEIR_PASSED), 2);
}

static void test_wakes_with_what_the_server_says(void **state)
{
	const struct spec fin = { .seq = SERVER_NEXT, .ack = CLIENT_NEXT, .flags = FIN_ACK, .from_server = true };

	(void)state;
	connect_resting();
	assert_untouched(egress, &fin);
	assert_false(rests());
	assert_int_equal(awake().splice.fins, WEIR_SPLICE_SERVER_FIN);
}

static void test_sleeps_through_acknowledgements(void **state)
{
	(void)state;
	connect_resting();
	assert_int_equal(acknowledges(false, CLIENT_NEXT - 1, SERVER_NEXT), PASS);
	assert_int_equal(acknowledges(true, SERVER_NEXT, CLIENT_NEXT), PASS);
	assert_true(rests());
}

/* With the urgent mark it says what the server will leave out of what comes next. */
static void test_nothing_is_urgent(void **state)
{
	const struct spec urgent = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = ACK | WEIR_TCP_URG, .urgent = 5 };
	struct seen seen;

	(void)state;
	connect_resting();
	assert_int_equal(run(ingress, &urgent), PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.flags, ACK);
	assert_int_equal(seen.urgent, 0);
	assert_int_equal(counter(WEIR_URGENT_REMOVED), 1);
}

static void test_does_not_rest_while_something_is_under_way(void **state)
{
	const struct spec half = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = HALF };

	(void)state;
	connect_ends(false);
	assert_untouched(ingress, &half);
	acknowledges(true, SERVER_NEXT, after(HALF));
	sweep(100 * WEIR_REST_NS);
	assert_false(rests());
	connect_ends(false);
	assert_untouched(ingress, &first);
	acknowledges(true, SERVER_NEXT, after(get_a));
	sweep(100 * WEIR_REST_NS);
	assert_false(rests());
	assert_int_equal(answer(), PASS); /* and is not acknowledged */
	sweep(100 * WEIR_REST_NS);
	assert_false(rests());
}

/* Its numbers are translated as before, and the next cut adds to them. */
static void test_rests_after_a_refusal(void **state)
{
	__u32 client = CLIENT_NEXT, server = SERVER_NEXT;
	struct seen seen;

	(void)state;
	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(run(ingress,
				     &(struct spec){ .seq = client, .ack = server, .flags = PSH_ACK, .text = get_a }),
				 PASS);
		packet_see(&packet, &seen);
		assert_true(seen.from_server);
		assert_int_equal(seen.seq, server);
		assert_int_equal(seen.ack, client + strlen(get_a));
		client += strlen(get_a);
		server += seen.n_text;
		assert_int_equal(acknowledges(false, client, server), PASS);
		packet_see(&packet, &seen);
		assert_int_equal(seen.seq, CLIENT_NEXT);
		assert_int_equal(seen.ack, SERVER_NEXT);
		sweep(WEIR_REST_NS);
		assert_true(rests());
	}
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_TOTAL, &error));
	assert_int_equal(run(ingress, &(struct spec){ .seq = client, .ack = server, .flags = PSH_ACK, .text = get_a }),
			 PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.seq, CLIENT_NEXT);
	assert_int_equal(seen.ack, SERVER_NEXT);
	assert_int_equal(counter(WEIR_SPLICE_OPENED), 1);
	assert_int_equal(counter(WEIR_SPLICE_CLOSED), 0);
}

/* From both sides what brings something comes again, until the entry is gone. Not a RST, which is let by where it means what it says. */
static void test_waits_while_it_lies_down(void **state)
{
	const struct spec reset = { .seq = CLIENT_NEXT, .flags = WEIR_TCP_RST };
	const struct spec server_resets = { .from_server = true, .seq = SERVER_NEXT, .flags = WEIR_TCP_RST };
	struct weir_conn c;

	(void)state;
	connect_ends(false);
	c = awake();
	c.id = WEIR_CONN_FORGOTTEN;
	conn_put(c);
	assert_int_equal(run(ingress, &first), DROP);
	assert_int_equal(answer(), DROP);
	assert_int_equal(counter(WEIR_CONTENDED), 2);
	assert_int_equal(counter(WEIR_PASSED), 0);
	assert_int_equal(acknowledges(false, CLIENT_NEXT, SERVER_NEXT), PASS);
	assert_untouched(ingress, &reset);
	assert_untouched(egress, &server_resets);
	assert_int_equal(counter(WEIR_CONTENDED), 2);
	c.splice.cuts = 1;
	conn_put(c);
	assert_int_equal(run(ingress, &reset), DROP);
	assert_int_equal(run(egress, &server_resets), DROP);
	assert_int_equal(counter(WEIR_CONTENDED), 4);
}

static void test_is_forgotten_while_it_rests(void **state)
{
	(void)state;
	connect_resting();
	forget(WEIR_CONN_SWEPT, 8);
	assert_true(rests());
	forget(WEIR_CONN_SWEPT, 7);
	assert_int_equal(entries(dp->maps.resting) + entries(dp->maps.conns), 0);
	assert_int_equal(counter(WEIR_CONN_SWEPT), 1);
	assert_int_equal(counter(WEIR_CONN_CLOSED), 1);
}

/* What is known of the same two ends is of another connection. */
static void test_is_outlived(void **state)
{
	const struct spec syn_ack = {
		.seq = SERVER_NEXT + 100000, .ack = CLIENT_NEXT, .flags = WEIR_TCP_SYN | ACK, .from_server = true
	};

	(void)state;
	connect_resting();
	assert_untouched(egress, &syn_ack);
	assert_int_equal(entries(dp->maps.resting) + entries(dp->maps.conns), 0);
}

static void fill(int map, const void *value)
{
	struct weir_flow key = {};

	for (__u32 i = 0;; i++) {
		memcpy(key.client, &i, sizeof(i));
		if (bpf_map_update_elem(map, &key, value, BPF_NOEXIST))
			break;
	}
	assert_int_equal(errno, E2BIG);
}

/* What brings something waits on both sides, as long as the kernel has no room. */
static void test_no_room_to_wake(void **state)
{
	static const struct weir_conn none;
	struct weir_flow key = {};

	(void)state;
	connect_resting();
	fill(dp->maps.conns, &none);
	assert_int_equal(run(ingress, &first), DROP);
	assert_int_equal(answer(), DROP);
	assert_int_equal(counter(WEIR_BUSY_MAP_FULL), 2);
	assert_int_equal(acknowledges(false, CLIENT_NEXT, SERVER_NEXT), PASS);
	assert_int_equal(bpf_map_delete_elem(dp->maps.conns, &key), 0);
	assert_untouched(ingress, &first);
	assert_int_equal(counter(WEIR_PASSED), 1);
}

/* It stays what it is: with its id, and with whose share it is of. */
static void test_no_room_to_rest(void **state)
{
	static const struct weir_resting none;
	struct weir_conn before;

	(void)state;
	connect_ends(false);
	before = awake();
	before.id = 7;
	before.holder = 3;
	conn_put(before);
	fill(dp->maps.resting, &none);
	sweep(WEIR_REST_NS);
	assert_int_equal(entries(dp->maps.conns), 1);
	assert_true(awake().id == before.id);
	assert_int_equal(awake().holder, before.holder);
	assert_untouched(ingress, &first);
	assert_int_equal(counter(WEIR_PASSED), 1);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(rests_after_a_silence),
		TEST(rests_unread_after_two_sweeps),
		TEST(wakes_with_a_request),
		TEST(wakes_with_what_the_server_says),
		TEST(sleeps_through_acknowledgements),
		TEST(nothing_is_urgent),
		TEST(does_not_rest_while_something_is_under_way),
		TEST(rests_after_a_refusal),
		TEST(waits_while_it_lies_down),
		TEST(is_forgotten_while_it_rests),
		TEST(is_outlived),
		TEST(no_room_to_wake),
		TEST(no_room_to_rest),
	};

	return cmocka_run_group_tests_name("rest", tests, attached_open, attached_close);
}
