/* SPDX-License-Identifier: GPL-2.0 */
/* What a connection has only while something is under way: when it is made, when it goes, and what happens if there is no room. */
#include "attached.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#define HALF "GET /api/v1/namespaces/a"
#define REST "/pods HTTP/1.1\r\nHost: x\r\n\r\n"
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"
#define CHUNKS "hello\r\n0\r\n\r\n"

static const struct spec half = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = HALF };
static const struct spec rest = {
	.seq = CLIENT_NEXT + sizeof(HALF) - 1, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = REST
};
static const struct spec whole = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a };

static unsigned int entries(void)
{
	__u32 key, next, *at = NULL;
	unsigned int n = 0;

	for (; !bpf_map_get_next_key(dp->maps.busy, at, &next); n++) {
		key = next;
		at = &key;
	}
	return n;
}

/* As the agent's sweep does, after a silence of the connection's. */
static void sweep(__u64 silence_ns)
{
	struct weir_forget forget = { .reason = WEIR_REASON_NONE };
	struct weir_conn c = conn_look(false);

	c.last_ns = datapath_now_ns() - silence_ns;
	packet_flow(false, &forget.flow);
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &forget.flow, &c, BPF_ANY), 0);
	assert_int_equal(datapath_run(dp->forget_fd, &forget, sizeof(forget)), 0);
}

static __u32 after_request(const char *text)
{
	return CLIENT_NEXT + strlen(text);
}

static int answer(const char *text, __u32 ack)
{
	struct spec spec = { .seq = SERVER_NEXT, .ack = ack, .flags = PSH_ACK, .text = text, .from_server = true };

	return run(egress, &spec);
}

static void test_whole_messages(void **state)
{
	(void)state;
	connect_ends(false);
	assert_untouched(ingress, &whole);
	assert_int_equal(answer(ok, after_request(get_a)), PASS);
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(entries(), 0);
	assert_int_equal(conn_look(false).busy, 0);
}

static void test_head_in_two_segments(void **state)
{
	(void)state;
	connect_ends(false);
	assert_untouched(ingress, &half);
	assert_int_equal(entries(), 1);
	assert_int_not_equal(conn_look(false).busy, 0);
	assert_untouched(ingress, &rest);
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(conn_look(false).request_place, WEIR_PLACE_ENDED);
	assert_int_equal(entries(), 1);
}

static void test_answer_in_two_segments(void **state)
{
	struct spec more = { .seq = SERVER_NEXT + sizeof(CHUNKED) - 1,
			     .ack = after_request(get_a),
			     .flags = PSH_ACK,
			     .text = CHUNKS,
			     .from_server = true };

	(void)state;
	connect_ends(false);
	assert_untouched(ingress, &whole);
	assert_int_equal(answer(CHUNKED, after_request(get_a)), PASS);
	assert_int_equal(entries(), 1);
	assert_int_equal(conn_look(false).responses, 0);
	assert_untouched(egress, &more);
	assert_int_equal(conn_look(false).responses, 1);
	assert_int_equal(conn_look(false).phase, WEIR_PHASE_FOLLOWED);
}

/* Idle: it goes. The next request may have it anew. */
static void test_goes_when_idle(void **state)
{
	const struct spec next = { .seq = CLIENT_NEXT + sizeof(HALF) - 1 + sizeof(REST) - 1,
				   .ack = SERVER_NEXT,
				   .flags = PSH_ACK,
				   .text = HALF };

	(void)state;
	connect_ends(false);
	assert_untouched(ingress, &half);
	assert_untouched(ingress, &rest);
	sweep(WEIR_REST_NS - WEIR_NS_PER_S);
	assert_int_equal(entries(), 1);
	sweep(WEIR_REST_NS);
	assert_int_equal(entries(), 0);
	assert_int_equal(conn_look(false).busy, 0);
	assert_untouched(ingress, &next);
	assert_int_equal(entries(), 1);
}

/* However long a head takes. */
static void test_stays_with_half_a_head(void **state)
{
	(void)state;
	connect_ends(false);
	assert_untouched(ingress, &half);
	sweep(100 * WEIR_REST_NS);
	assert_int_equal(entries(), 1);
	assert_untouched(ingress, &rest);
	assert_int_equal(counter(WEIR_PASSED), 1);
}

static void test_goes_with_its_connection(void **state)
{
	struct weir_forget forget = { .reason = WEIR_CONN_SWEPT };

	(void)state;
	connect_ends(false);
	assert_untouched(ingress, &half);
	packet_flow(false, &forget.flow);
	assert_int_equal(datapath_run(dp->forget_fd, &forget, sizeof(forget)), 0);
	assert_int_equal(counter(WEIR_CONN_SWEPT), 1);
	assert_int_equal(entries(), 0);
}

static void fill(void)
{
	static const struct weir_busy none;
	__u32 key = 2; /* weir's are odd */

	while (!bpf_map_update_elem(dp->maps.busy, &key, &none, BPF_NOEXIST))
		key += 2;
	assert_int_equal(errno, E2BIG);
}

/* Half a head waits, as long as there is no room. A whole one needs none. */
static void test_no_room_for_a_request(void **state)
{
	__u32 key = 2;

	(void)state;
	connect_ends(false);
	fill();
	assert_int_equal(run(ingress, &half), DROP);
	assert_int_equal(counter(WEIR_BUSY_MAP_FULL), 1);
	assert_int_equal(conn_look(false).busy, 0);
	assert_int_equal(conn_look(false).request_next, CLIENT_NEXT);
	assert_untouched(ingress, &whole);
	assert_int_equal(counter(WEIR_PASSED), 1);
	connect_ends(false);
	assert_int_equal(bpf_map_delete_elem(dp->maps.busy, &key), 0);
	assert_untouched(ingress, &half);
	assert_untouched(ingress, &rest);
	assert_int_equal(counter(WEIR_PASSED), 2);
}

/* An answer passes; what its client sends from there on is not read, and so is held. */
static void test_no_room_for_an_answer(void **state)
{
	(void)state;
	connect_ends(false);
	assert_untouched(ingress, &whole);
	fill();
	assert_int_equal(answer(CHUNKED, after_request(get_a)), PASS);
	assert_int_equal(counter(WEIR_BUSY_MAP_FULL), 1);
	assert_int_equal(conn_look(false).phase, WEIR_PHASE_OPAQUE);
	assert_int_equal(conn_look(false).opaque_why, WEIR_BUSY_MAP_FULL);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(whole_messages),	     TEST(head_in_two_segments),   TEST(answer_in_two_segments),
		TEST(goes_when_idle),	     TEST(stays_with_half_a_head), TEST(goes_with_its_connection),
		TEST(no_room_for_a_request), TEST(no_room_for_an_answer),
	};

	return cmocka_run_group_tests_name("busy", tests, attached_open, attached_close);
}
