/* SPDX-License-Identifier: GPL-2.0 */
/* What was read and the server never got: what comes in its place is read, and charged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../digest_keys.h"
#include "doubt_scene.h"

/* What was read first never came to the server: what comes in its place is read, and charged. */
static void test_decoy(void **state)
{
	__u32 n = strlen(GET);
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, DECOY), WEIR_PASS);
	doubt_check_at(&s, strlen(DECOY) + 999999, 1);
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_DROP);
	assert_int_equal(s.why, WEIR_UNCONFIRMED);
	doubt_later(&s);
	s.socket.busy = 1;
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_DROP);
	s.socket.busy = 0;
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_DROP);
	assert_int_equal(s.why, WEIR_RETAKEN);
	doubt_check_at(&s, 0, 0);
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
	assert_int_equal(s.why, WEIR_REASON_NONE);
	assert_int_equal(s.got, 1);
	doubt_check_at(&s, n, 1);
	doubt_server_has(&s, n, OK);
	/* All is as if nothing had been: the next one may be answered. */
	assert_int_equal(doubt_send(&s, n, GET), WEIR_PASS);
	assert_int_equal(s.why, WEIR_REASON_NONE);
	doubt_check_at(&s, 2 * n, 2);
}

/* A decoy in the middle, with a FIN, of a connection on which something was shed. */
static void test_decoy_of_a_translated_connection(void **state)
{
	__u32 n = strlen(GET);
	struct weir_segment g;
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	g = doubt_segment(&s, 0, n);
	assert_int_equal(doubt_offer(&s, &g, GET, true), WEIR_ANSWER);
	s.conn.splice.client_acked += 100;
	g = doubt_segment(&s, n, strlen(DECOY));
	g.ack += 100;
	g.flags |= WEIR_TCP_FIN;
	assert_int_equal(doubt_offer(&s, &g, DECOY, false), WEIR_PASS);
	doubt_later(&s);
	g = doubt_segment(&s, n, n);
	g.ack += 100;
	assert_int_equal(doubt_offer(&s, &g, GET, true), WEIR_DROP);
	assert_int_equal(s.why, WEIR_RETAKEN);
	assert_false(s.conn.splice.fins & WEIR_SPLICE_CLIENT_FIN);
	assert_int_equal(doubt_offer(&s, &g, GET, true), WEIR_ANSWER);
	assert_int_equal(s.conn.splice.cuts, 2);
	doubt_check_at(&s, 2 * n, 0);
}

/* Of the requests that were decided while the connection hunted, those that are read again are decided again. */
static void test_decided_again(void **state)
{
	__u32 n = strlen(GET);
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
	doubt_server_has(&s, n, OK);
	assert_int_equal(doubt_send(&s, n, DECOY), WEIR_PASS);
	s.conn.hold.decided = 3;
	doubt_later(&s);
	assert_int_equal(doubt_send(&s, n, GET), WEIR_DROP);
	assert_int_equal(s.why, WEIR_RETAKEN);
	assert_int_equal(s.conn.hold.decided, 2);
}

/* Of three in one flight, some are lost: the last one alone is known to be the same, and others are read again. */
static void test_each_of_three(void **state)
{
	__u32 n = strlen(GET);
	struct doubt_scene s;

	(void)state;
	for (__u32 lost = 0; lost < 3; lost++) {
		doubt_open(&s);
		for (__u32 i = 0; i < 3; i++)
			assert_int_equal(doubt_send(&s, i * n, GET), WEIR_PASS);
		doubt_later(&s);
		s.socket.next = CLIENT + lost * n;
		for (__u32 i = 0; i < lost; i++) {
			assert_int_equal(doubt_send(&s, i * n, GET), WEIR_PASS);
			assert_int_equal(s.got, 0);
		}
		doubt_later(&s);
		if (lost < 2) {
			assert_int_equal(doubt_send(&s, lost * n, GET), WEIR_DROP);
			assert_int_equal(s.why, WEIR_RETAKEN);
			doubt_check_at(&s, lost * n, lost);
		}
		for (__u32 i = lost; i < 3; i++) {
			assert_int_equal(doubt_send(&s, i * n, GET), WEIR_PASS);
			assert_int_equal(s.why, WEIR_REASON_NONE);
		}
		doubt_check_at(&s, 3 * n, 3);
	}
}

/* Several in one segment are the same only if each of them is, whether the last one is whole or not. */
static void test_several_in_one_segment(void **state)
{
	static const char read[] = "GET /healthz HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
	static const char other[] = "GET /secrets HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
	static const char second[] = "GET /healthz HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
	static const char *const others[] = { other, second };
	char first[sizeof(read)], again[sizeof(read)];
	struct doubt_scene s;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		for (size_t cut = 0; cut < 12; cut++) {
			snprintf(first, sizeof(first), "%.*s", (int)(strlen(read) - cut), read);
			snprintf(again, sizeof(again), "%.*s", (int)(strlen(read) - cut), others[i]);
			doubt_open(&s);
			assert_int_equal(doubt_send(&s, 0, first), WEIR_PASS);
			doubt_later(&s);
			assert_int_equal(doubt_send(&s, 0, first), WEIR_PASS);
			doubt_check_at(&s, strlen(first), cut ? 2 : 3);
			doubt_later(&s);
			assert_int_equal(doubt_send(&s, 0, again), WEIR_DROP);
			assert_int_equal(s.why, WEIR_RETAKEN);
			assert_int_equal(doubt_send(&s, 0, again), WEIR_PASS);
			assert_int_equal(s.got, cut ? 2 : 3);
		}
	}
}

/* The end of a body was lost, and comes again with a request that the server has: that must not be said twice. */
static void test_what_follows_a_lost_body_is_cut_off(void **state)
{
	static const char post[] = "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n";
	__u32 m = strlen(post), n = strlen(GET);
	char both[100];
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, post), WEIR_PASS);
	assert_int_equal(doubt_send(&s, m + 9, GET), WEIR_PASS);
	doubt_server_has(&s, m, "");
	s.socket.early = 1;
	snprintf(both, sizeof(both), "123456789%s", GET);
	assert_int_equal(doubt_send(&s, m, both), WEIR_CUT);
	assert_int_equal(s.start, m + 9);
	doubt_check_at(&s, m + 9 + n, 2);
}

/* What the server has from behind the gap was read as what followed the decoy: nothing can be relied on. */
static void test_decoy_before_early_bytes(void **state)
{
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, DECOY), WEIR_PASS);
	assert_int_equal(doubt_send(&s, strlen(DECOY), GET), WEIR_PASS);
	doubt_later(&s);
	s.socket.early = 1;
	assert_int_equal(doubt_send(&s, strlen(DECOY), GET), WEIR_PASS);
	assert_int_equal(s.why, WEIR_REASON_NONE);
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
	assert_int_equal(s.why, WEIR_CONTRADICTED);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	assert_int_equal(s.conn.hold.next, CLIENT);
}

/* A head was lost behind weir, and the server has its body's end: the same comes again, and may be cut otherwise. */
static void test_same_before_early_bytes(void **state)
{
	static const char post[] = "POST / HTTP/1.1\r\nContent-Length: 300\r\n\r\n";
	static char whole[400];
	__u32 m = strlen(post), n = strlen(GET);
	struct weir_segment g;
	struct doubt_scene s;

	(void)state;
	memcpy(whole, post, m);
	memcpy(whole + m + 300, GET, n);
	for (__u32 size = m; size <= m + 300 + n; size++) {
		doubt_open(&s);
		g = doubt_segment(&s, 0, m + 100);
		assert_int_equal(doubt_offer(&s, &g, whole, false), WEIR_PASS);
		g = doubt_segment(&s, m + 100, 200);
		assert_int_equal(doubt_offer(&s, &g, whole + m + 100, false), WEIR_PASS);
		doubt_later(&s);
		s.socket.early = 1;
		g = doubt_segment(&s, 0, size);
		assert_int_equal(doubt_offer(&s, &g, whole, false), size > m + 300 ? WEIR_CUT : WEIR_PASS);
		assert_int_equal(s.why, WEIR_REASON_NONE);
		assert_int_equal(s.got, 1);
		assert_true(size <= m + 300 || s.start == m + 300);
		doubt_check_at(&s, m + 300, 1);
		assert_int_equal(s.conn.phase, WEIR_PHASE_FOLLOWED);
	}
	/* It says something else, though of the same length; or a part of it, which proves nothing. */
	memcpy(whole, "PUT / HTTP/1.1\r\nContent-Length:  300\r\n\r\n", m);
	g = doubt_segment(&s, 0, m);
	assert_int_equal(doubt_offer(&s, &g, whole, false), WEIR_PASS);
	assert_int_equal(s.why, WEIR_CONTRADICTED);
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, post), WEIR_PASS);
	doubt_later(&s);
	s.socket.early = 1;
	g = doubt_segment(&s, 0, m - 1);
	assert_int_equal(doubt_offer(&s, &g, post, false), WEIR_PASS);
	assert_int_equal(s.why, WEIR_CONTRADICTED);
}

/* The second part of a head was lost: where the machine stood before it is not known any more. */
static void test_lost_in_a_head(void **state)
{
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, "GET / HT"), WEIR_PASS);
	assert_int_equal(doubt_send(&s, 8, "TP/1.1\r\n\r\n"), WEIR_PASS);
	s.socket.next = CLIENT + 8;
	doubt_later(&s);
	assert_int_equal(doubt_send(&s, 0, "GET / HT"), WEIR_PASS);
	assert_int_equal(s.why, WEIR_REASON_NONE);
	assert_int_equal(doubt_send(&s, 8, "TP/1.1\r\n\r\n"), WEIR_PASS);
	assert_int_equal(s.why, WEIR_CONTRADICTED);
	assert_int_equal(s.conn.hold.next, CLIENT + 8);
}

/* A connection turns opaque on bytes that the server never gets: it is so from where the server stands. */
static void test_decoy_that_cannot_be_read(void **state)
{
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
	assert_int_equal(doubt_send(&s, strlen(GET), "GET\n"), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	assert_int_equal(s.conn.hold.next, CLIENT + strlen(GET));
	doubt_later(&s);
	assert_int_equal(doubt_send(&s, 0, DECOY), WEIR_PASS);
	assert_int_equal(s.conn.hold.next, CLIENT);
	assert_int_equal(s.asks, 1);
}

#define ONE "PROXY TCP4 192.0.2.1 192.0.2.9 1 80\r\n"
#define OTHER "PROXY TCP4 192.0.2.2 192.0.2.9 1 80\r\n"

static void open_with_preamble(struct doubt_scene *s)
{
	doubt_open(s);
	weir_conn_await_preamble(&s->conn);
}

static void check_named(const struct doubt_scene *s, int last)
{
	assert_true(s->conn.preamble.given);
	assert_int_equal(s->conn.preamble.address[15], last);
}

/* The server never got the preamble: what comes in its place says whose the connection is. */
static void test_another_preamble(void **state)
{
	static const char *const one[] = { ONE, ONE GET }, *const other[] = { OTHER, OTHER GET };
	struct doubt_scene s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_with_preamble(&s);
		assert_int_equal(doubt_send(&s, 0, one[i]), WEIR_PASS);
		check_named(&s, 1);
		doubt_later(&s);
		assert_int_equal(doubt_send(&s, 0, one[i]), WEIR_PASS);
		assert_int_equal(s.asks, 1);
		check_named(&s, 1);
		/* That is on its way again. */
		assert_int_equal(doubt_send(&s, 0, other[i]), WEIR_DROP);
		assert_int_equal(s.why, WEIR_UNCONFIRMED);
		doubt_later(&s);
		assert_int_equal(doubt_send(&s, 0, other[i]), WEIR_DROP);
		assert_int_equal(s.why, WEIR_RETAKEN);
		doubt_check_at(&s, 0, 0);
		assert_int_equal(doubt_send(&s, 0, other[i]), WEIR_PASS);
		check_named(&s, 2);
		doubt_check_at(&s, strlen(other[i]), i);
	}
}

/* A preamble in pieces is one read; the request behind it is another. */
static void test_preamble_in_pieces_read_again(void **state)
{
	__u32 n = strlen(ONE);
	char first[11] = "";
	struct doubt_scene s;

	(void)state;
	memcpy(first, ONE, 10);
	open_with_preamble(&s);
	assert_int_equal(doubt_send(&s, 0, first), WEIR_PASS);
	assert_int_equal(doubt_send(&s, 10, &ONE[10]), WEIR_PASS);
	assert_int_equal(doubt_send(&s, n, GET), WEIR_PASS);
	doubt_check_at(&s, n + strlen(GET), 1);
	assert_int_equal(s.conn.unconfirmed.n, 2);
	doubt_later(&s);
	assert_int_equal(doubt_send(&s, 0, ONE GET), WEIR_PASS);
	doubt_check_at(&s, n + strlen(GET), 1);
	s.socket.next = CLIENT + n;
	assert_int_equal(doubt_send(&s, n, GET), WEIR_PASS);
	doubt_later(&s);
	assert_int_equal(doubt_send(&s, n, DECOY), WEIR_DROP);
	assert_int_equal(s.why, WEIR_RETAKEN);
	assert_int_equal(doubt_send(&s, n, DECOY), WEIR_PASS);
	check_named(&s, 1);
	doubt_check_at(&s, n + strlen(DECOY) + 999999, 1);
}

/* Of a connection that was joined late, and that is not read any more, for its client pipelines. */
static void test_decoy_of_two_that_were_hunted(void **state)
{
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	s.conn.phase = WEIR_PHASE_HUNTING;
	assert_int_equal(doubt_send(&s, 0, GET GET), WEIR_PASS);
	assert_int_equal(s.got, 2);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	assert_int_equal(s.conn.hold.next - CLIENT, 2 * strlen(GET));
	/* What comes in their place is asked for, and waits; then nothing of the server's stream is known here. */
	assert_int_equal(doubt_send(&s, 0, GET GET), WEIR_DROP);
	assert_int_equal(s.why, WEIR_UNCONFIRMED);
	doubt_later(&s);
	assert_int_equal(doubt_send(&s, 0, GET GET), WEIR_PASS);
	assert_int_equal(s.conn.hold.next, CLIENT);
}

/* What is read of a segment that has one request, and nothing behind it, may be kept with its head. */
static bool has_one(const char *text, bool again)
{
	static const struct weir_reading reading = { .seed = { 1, 2 } };
	struct weir_request_reader r;
	struct doubt_scene s;

	doubt_open(&s);
	weir_request_reader_open(&r, &s.conn, NULL);
	r.again = again;
	r.again_end = CLIENT + strlen(text);
	for (; *text && r.lost == WEIR_REASON_NONE; text++)
		if (weir_request_reader_feed(&r, &reading, &digest_keys, *text) == WEIR_FRAME_HEAD)
			weir_request_reader_passed(&r);
	if (!weir_request_reader_has_one(&r))
		return false;
	r.shed = 1;
	assert_false(weir_request_reader_has_one(&r));
	return true;
}

static void test_one_alone(void **state)
{
	(void)state;
	assert_true(has_one(GET, false));
	assert_true(has_one(DECOY, false));
	assert_false(has_one(GET, true));
	assert_false(has_one("", false));
	assert_false(has_one("GET /", false));
	assert_false(has_one(GET GET, false));
	assert_false(has_one(GET "G", false));
	assert_false(has_one("CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decoy),
		cmocka_unit_test(test_decoy_of_a_translated_connection),
		cmocka_unit_test(test_decided_again),
		cmocka_unit_test(test_each_of_three),
		cmocka_unit_test(test_several_in_one_segment),
		cmocka_unit_test(test_what_follows_a_lost_body_is_cut_off),
		cmocka_unit_test(test_decoy_before_early_bytes),
		cmocka_unit_test(test_same_before_early_bytes),
		cmocka_unit_test(test_lost_in_a_head),
		cmocka_unit_test(test_decoy_that_cannot_be_read),
		cmocka_unit_test(test_another_preamble),
		cmocka_unit_test(test_preamble_in_pieces_read_again),
		cmocka_unit_test(test_decoy_of_two_that_were_hunted),
		cmocka_unit_test(test_one_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
