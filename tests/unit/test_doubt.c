/* SPDX-License-Identifier: GPL-2.0 */
/* Segments that the server may not take, and what it never got: when its socket is asked, and what follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "weir/conn.h"

#define CLIENT 0xffffff80U /* the stream wraps around */
#define SERVER 1000U
#define WINDOW 500
#define SCALE 3

static const char get[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
static const char decoy[] = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n";
static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

struct scene {
	struct weir_conn conn;
	struct weir_socket socket; /* what the kernel would say */
	__u32 asks;
	__u32 got;   /* requests that were read in the latest segment */
	__u32 start; /* of what was cut off it */
	__u32 sent;  /* of the server */
	enum weir_reason why;
};

static void open_scene(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	weir_conn_open(&s->conn, 0, WEIR_PHASE_FOLLOWED, CLIENT, SERVER, WINDOW);
	s->conn.splice.server_scale = SCALE;
	s->conn.last_ns = WEIR_NS_PER_S;
	s->socket = (struct weir_socket){
		.next = CLIENT,
		.edge = CLIENT + (WINDOW << SCALE),
		.sent = SERVER,
		.acked = SERVER,
		.ack_slack = 100,
		.ts_recent = 500,
		.known = 1,
	};
}

static struct weir_segment segment(const struct scene *s, __u32 at, __u32 length)
{
	return (struct weir_segment){
		.seq = CLIENT + at,
		.ack = SERVER + s->sent,
		.len = length,
		.flags = WEIR_TCP_ACK,
		.has_ts = 1,
		.tsval = 500,
	};
}

static void feed(struct scene *s, const struct weir_segment *g, const char *text, struct weir_request_reader *r,
		 bool shed)
{
	static const struct weir_reading reading = { .seed = { 1, 2 } };

	while (seq_before(r->next, g->seq + g->len) && weir_preamble_awaited(&r->preamble))
		weir_request_reader_feed_preamble(r, text[r->next - g->seq]);
	while (seq_before(r->next, g->seq + g->len) && !r->held && r->lost == WEIR_REASON_COUNT) {
		if (weir_request_reader_feed(r, &reading, text[r->next - g->seq]) != WEIR_FRAME_HEAD)
			continue;
		s->got++;
		r->shed = shed && !r->again;
		if (!r->shed)
			weir_request_reader_passed(r);
	}
	r->answer = (struct weir_answer_choice){ .length = 100, .kind = WEIR_ANSWER_KEEP };
}

/* A segment of the client's, as the program on its way takes it. */
static enum weir_action offer(struct scene *s, const struct weir_segment *g, const char *text, bool shed)
{
	struct weir_socket k = {};
	struct weir_request_reader r = {};
	enum weir_action action;

	s->why = WEIR_REASON_COUNT;
	s->got = 0;
	action = weir_conn_begin_client(&s->conn, &k, g, &r, &s->why);
	if (action == WEIR_ASK) {
		assert_int_equal(s->why, WEIR_REASON_COUNT);
		s->asks++;
		k = s->socket;
		k.asked = 1;
		action = weir_conn_begin_client(&s->conn, &k, g, &r, &s->why);
	}
	if (action == WEIR_FRAME) {
		feed(s, g, text, &r, shed);
		action = weir_conn_commit_client(&s->conn, g, &r, &s->why);
	}
	s->start = r.start - CLIENT;
	return action;
}

static enum weir_action send(struct scene *s, __u32 at, const char *text)
{
	struct weir_segment g = segment(s, at, strlen(text));

	return offer(s, &g, text, false);
}

/* The server has the client's stream up to `next`, says so, and answers if it has anything to say. */
static void server_has(struct scene *s, __u32 next, const char *text)
{
	struct weir_segment g = {
		.seq = SERVER + s->sent,
		.ack = CLIENT + next,
		.len = strlen(text),
		.flags = WEIR_TCP_ACK,
		.window = WINDOW,
	};
	enum weir_reason why = WEIR_REASON_COUNT;
	struct weir_response_reader r;

	s->socket.next = g.ack;
	s->socket.edge = g.ack + (WINDOW << SCALE);
	s->sent += g.len;
	s->socket.sent = SERVER + s->sent;
	if (weir_conn_begin_server(&s->conn, &g, &r, &why) != WEIR_FRAME)
		return;
	while (seq_before(r.next, g.seq + g.len))
		weir_response_reader_feed(&r, text[r.next - g.seq]);
	weir_conn_commit_server(&s->conn, &r, &why);
	assert_int_equal(why, WEIR_REASON_COUNT);
}

static void later(struct scene *s)
{
	s->conn.last_ns += WEIR_UNDER_WAY_NS;
}

static void check_at(const struct scene *s, __u32 next, __u32 requests)
{
	assert_int_equal(s->conn.request_next - CLIENT, next);
	assert_int_equal(s->conn.requests, requests);
}

/* Requests one after the other and two at a time, a body in pieces out of order, and a full window. */
static void test_ordinary_traffic_asks_nobody(void **state)
{
	static const char post[] = "POST / HTTP/1.1\r\nContent-Length: 300\r\n\r\n";
	static const char bytes[WINDOW << SCALE];
	__u32 n = strlen(get), m = strlen(post), at = 0;
	struct weir_segment g;
	struct scene s;

	(void)state;
	open_scene(&s);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(send(&s, at, get), WEIR_PASS);
		assert_int_equal(send(&s, at + n, get), WEIR_PASS);
		at += 2 * n;
		server_has(&s, at, "");
		server_has(&s, at, ok);
		server_has(&s, at, ok);
		assert_int_equal(send(&s, at, post), WEIR_PASS);
		g = segment(&s, at + m + 200, 100);
		assert_int_equal(offer(&s, &g, bytes, false), WEIR_PASS);
		server_has(&s, at + m, "");
		/* it comes again, when something behind it has been read */
		assert_int_equal(send(&s, at + m + 300, get), WEIR_PASS);
		g = segment(&s, at + m, 200);
		assert_int_equal(offer(&s, &g, bytes, false), WEIR_PASS);
		at += m + 300 + n;
		server_has(&s, at, ok);
		server_has(&s, at, ok);
	}
	assert_int_equal(send(&s, at, decoy), WEIR_PASS);
	at += strlen(decoy);
	server_has(&s, at, "");
	g = segment(&s, at, WINDOW << SCALE);
	assert_int_equal(offer(&s, &g, bytes, false), WEIR_PASS);
	assert_int_equal(s.asks, 0);
}

/* One that differs from an ordinary segment by what is given. */
static void refused(const struct weir_segment *g)
{
	struct scene s;

	open_scene(&s);
	assert_int_equal(send(&s, 0, get), WEIR_PASS);
	server_has(&s, strlen(get), ok);
	assert_int_equal(offer(&s, g, decoy, true), WEIR_HOLD);
	assert_int_equal(s.why, WEIR_UNACCEPTABLE);
	assert_int_equal(s.asks, 1);
	assert_int_equal(s.got, 0);
	check_at(&s, strlen(get), 1);
	/* Where no socket can be asked, it is as any other. */
	s.socket.known = 0;
	assert_int_equal(offer(&s, g, decoy, false), WEIR_PASS);
	assert_int_equal(s.got, 1);
}

static void test_what_the_server_drops_is_not_read(void **state)
{
	struct scene s = { .sent = strlen(ok) };
	struct weir_segment ordinary = segment(&s, strlen(get), strlen(decoy)), g;

	(void)state;
	g = ordinary;
	g.tsval = 498;
	refused(&g);
	g = ordinary;
	g.ack = SERVER - 101;
	refused(&g);
	g = ordinary;
	g.ack++;
	refused(&g);
	g = ordinary;
	g.len = (WINDOW << SCALE) + 1;
	refused(&g);
}

/* It asks, and is told that the server takes it. */
static void test_doubtful_and_taken(void **state)
{
	__u32 n = strlen(get);
	struct weir_segment g;
	struct scene s;

	(void)state;
	open_scene(&s);
	assert_int_equal(send(&s, 0, get), WEIR_PASS);
	server_has(&s, n, ok);
	assert_int_equal(send(&s, n, get), WEIR_PASS);
	g = segment(&s, 2 * n, n);
	g.tsval = 499;
	g.ack -= 20;
	assert_int_equal(offer(&s, &g, get, false), WEIR_PASS);
	assert_int_equal(s.asks, 1);
	check_at(&s, 3 * n, 3);
}

/* A server without room drops and answers it: it must hear of the probe, and the byte is none of the stream yet. */
static void test_shut_window(void **state)
{
	struct weir_segment g;
	struct scene s;

	(void)state;
	open_scene(&s);
	s.conn.splice.server_window = 0;
	s.socket.edge = CLIENT;
	g = segment(&s, 0, 1);
	assert_int_equal(offer(&s, &g, get, false), WEIR_PASS);
	check_at(&s, 0, 0);
	assert_int_equal(s.conn.splice.passed_end, CLIENT);
	server_has(&s, 0, "");
	assert_int_equal(send(&s, 0, get), WEIR_PASS);
	check_at(&s, strlen(get), 1);
}

/* What was read first never came to the server: what comes in its place is read, and charged. */
static void test_decoy(void **state)
{
	__u32 n = strlen(get);
	struct scene s;

	(void)state;
	open_scene(&s);
	assert_int_equal(send(&s, 0, decoy), WEIR_PASS);
	check_at(&s, strlen(decoy) + 999999, 1);
	assert_int_equal(send(&s, 0, get), WEIR_HOLD);
	assert_int_equal(s.why, WEIR_UNCONFIRMED);
	later(&s);
	s.socket.busy = 1;
	assert_int_equal(send(&s, 0, get), WEIR_HOLD);
	s.socket.busy = 0;
	assert_int_equal(send(&s, 0, get), WEIR_HOLD);
	assert_int_equal(s.why, WEIR_RETAKEN);
	check_at(&s, 0, 0);
	assert_int_equal(send(&s, 0, get), WEIR_PASS);
	assert_int_equal(s.why, WEIR_REASON_COUNT);
	assert_int_equal(s.got, 1);
	check_at(&s, n, 1);
	server_has(&s, n, ok);
	/* All is as if nothing had been: the next one may be answered. */
	assert_int_equal(send(&s, n, get), WEIR_PASS);
	assert_int_equal(s.why, WEIR_REASON_COUNT);
	check_at(&s, 2 * n, 2);
}

/* A decoy in the middle, with a FIN, of a connection on which something was shed. */
static void test_decoy_of_a_translated_connection(void **state)
{
	__u32 n = strlen(get);
	struct weir_segment g;
	struct scene s;

	(void)state;
	open_scene(&s);
	g = segment(&s, 0, n);
	assert_int_equal(offer(&s, &g, get, true), WEIR_ANSWER);
	s.conn.splice.client_acked += 100;
	g = segment(&s, n, strlen(decoy));
	g.ack += 100;
	g.flags |= WEIR_TCP_FIN;
	assert_int_equal(offer(&s, &g, decoy, false), WEIR_PASS);
	later(&s);
	g = segment(&s, n, n);
	g.ack += 100;
	assert_int_equal(offer(&s, &g, get, true), WEIR_HOLD);
	assert_int_equal(s.why, WEIR_RETAKEN);
	assert_int_equal(offer(&s, &g, get, true), WEIR_ANSWER);
	assert_int_equal(s.conn.splice.cuts, 2);
	check_at(&s, 2 * n, 0);
}

/* Of three in one flight, some are lost: the last one alone is known to be the same, and others are read again. */
static void test_each_of_three(void **state)
{
	__u32 n = strlen(get);
	struct scene s;

	(void)state;
	for (__u32 lost = 0; lost < 3; lost++) {
		open_scene(&s);
		for (__u32 i = 0; i < 3; i++)
			assert_int_equal(send(&s, i * n, get), WEIR_PASS);
		later(&s);
		s.socket.next = CLIENT + lost * n;
		for (__u32 i = 0; i < lost; i++) {
			assert_int_equal(send(&s, i * n, get), WEIR_PASS);
			assert_int_equal(s.got, 0);
		}
		later(&s);
		if (lost < 2) {
			assert_int_equal(send(&s, lost * n, get), WEIR_HOLD);
			assert_int_equal(s.why, WEIR_RETAKEN);
			check_at(&s, lost * n, lost);
		}
		for (__u32 i = lost; i < 3; i++) {
			assert_int_equal(send(&s, i * n, get), WEIR_PASS);
			assert_int_equal(s.why, WEIR_REASON_COUNT);
		}
		check_at(&s, 3 * n, 3);
	}
}

/* The end of a body was lost, and comes again with a request that the server has: that must not be said twice. */
static void test_what_follows_a_lost_body_is_cut_off(void **state)
{
	static const char post[] = "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n";
	__u32 m = strlen(post), n = strlen(get);
	char both[100];
	struct scene s;

	(void)state;
	open_scene(&s);
	assert_int_equal(send(&s, 0, post), WEIR_PASS);
	assert_int_equal(send(&s, m + 9, get), WEIR_PASS);
	server_has(&s, m, "");
	s.socket.early = 1;
	snprintf(both, sizeof(both), "123456789%s", get);
	assert_int_equal(send(&s, m, both), WEIR_CUT);
	assert_int_equal(s.start, m + 9);
	check_at(&s, m + 9 + n, 2);
}

/* What the server has from behind the gap was read as what followed the decoy: nothing can be relied on. */
static void test_decoy_before_early_bytes(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	assert_int_equal(send(&s, 0, decoy), WEIR_PASS);
	assert_int_equal(send(&s, strlen(decoy), get), WEIR_PASS);
	later(&s);
	s.socket.early = 1;
	assert_int_equal(send(&s, strlen(decoy), get), WEIR_PASS);
	assert_int_equal(s.why, WEIR_REASON_COUNT);
	assert_int_equal(send(&s, 0, get), WEIR_PASS);
	assert_int_equal(s.why, WEIR_CONTRADICTED);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	assert_int_equal(s.conn.hold.next, CLIENT);
}

/* A head was lost behind weir, and the server has its body's end: the same comes again, and may be cut otherwise. */
static void test_same_before_early_bytes(void **state)
{
	static const char post[] = "POST / HTTP/1.1\r\nContent-Length: 300\r\n\r\n";
	static char whole[400];
	__u32 m = strlen(post), n = strlen(get);
	struct weir_segment g;
	struct scene s;

	(void)state;
	memcpy(whole, post, m);
	memcpy(whole + m + 300, get, n);
	for (__u32 size = m; size <= m + 300 + n; size++) {
		open_scene(&s);
		g = segment(&s, 0, m + 100);
		assert_int_equal(offer(&s, &g, whole, false), WEIR_PASS);
		g = segment(&s, m + 100, 200);
		assert_int_equal(offer(&s, &g, whole + m + 100, false), WEIR_PASS);
		later(&s);
		s.socket.early = 1;
		g = segment(&s, 0, size);
		assert_int_equal(offer(&s, &g, whole, false), size > m + 300 ? WEIR_CUT : WEIR_PASS);
		assert_int_equal(s.why, WEIR_REASON_COUNT);
		assert_int_equal(s.got, 1);
		assert_true(size <= m + 300 || s.start == m + 300);
		check_at(&s, m + 300, 1);
		assert_int_equal(s.conn.phase, WEIR_PHASE_FOLLOWED);
	}
	/* It says something else, though of the same length; or a part of it, which proves nothing. */
	memcpy(whole, "PUT / HTTP/1.1\r\nContent-Length:  300\r\n\r\n", m);
	g = segment(&s, 0, m);
	assert_int_equal(offer(&s, &g, whole, false), WEIR_PASS);
	assert_int_equal(s.why, WEIR_CONTRADICTED);
	open_scene(&s);
	assert_int_equal(send(&s, 0, post), WEIR_PASS);
	later(&s);
	s.socket.early = 1;
	g = segment(&s, 0, m - 1);
	assert_int_equal(offer(&s, &g, post, false), WEIR_PASS);
	assert_int_equal(s.why, WEIR_CONTRADICTED);
}

/* The second part of a head was lost: where the machine stood before it is not known any more. */
static void test_lost_in_a_head(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	assert_int_equal(send(&s, 0, "GET / HT"), WEIR_PASS);
	assert_int_equal(send(&s, 8, "TP/1.1\r\n\r\n"), WEIR_PASS);
	s.socket.next = CLIENT + 8;
	later(&s);
	assert_int_equal(send(&s, 0, "GET / HT"), WEIR_PASS);
	assert_int_equal(s.why, WEIR_REASON_COUNT);
	assert_int_equal(send(&s, 8, "TP/1.1\r\n\r\n"), WEIR_PASS);
	assert_int_equal(s.why, WEIR_CONTRADICTED);
	assert_int_equal(s.conn.hold.next, CLIENT + 8);
}

/* A connection turns opaque on bytes that the server never gets: it is so from where the server stands. */
static void test_decoy_that_cannot_be_read(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	assert_int_equal(send(&s, 0, get), WEIR_PASS);
	assert_int_equal(send(&s, strlen(get), "GET\n"), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	assert_int_equal(s.conn.hold.next, CLIENT + strlen(get));
	later(&s);
	assert_int_equal(send(&s, 0, decoy), WEIR_PASS);
	assert_int_equal(s.conn.hold.next, CLIENT);
	assert_int_equal(s.asks, 1);
}

/* Behind a gap, more pieces than can be remembered wait until the server has some of them. */
static void test_far_ahead(void **state)
{
	static const char head[] = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n";
	__u32 at = strlen(head);
	struct scene s;

	(void)state;
	open_scene(&s);
	assert_int_equal(send(&s, 0, head), WEIR_PASS);
	for (int i = 1; i < WEIR_READS; i++, at += 14)
		assert_int_equal(send(&s, at + 9, "\r\n9\r\n"), WEIR_PASS);
	assert_int_equal(s.asks, 0);
	s.socket.early = 1;
	assert_int_equal(send(&s, at + 9, "\r\n9\r\n"), WEIR_HOLD);
	assert_int_equal(s.why, WEIR_OUT_OF_ORDER);
	assert_int_equal(s.asks, 1);
	/* It has, and has not said so yet. */
	s.socket.next = CLIENT + strlen(head);
	assert_int_equal(send(&s, at + 9, "\r\n9\r\n"), WEIR_PASS);
	assert_int_equal(s.asks, 2);
	/* Without a gap they do not. */
	at += 14;
	s.socket.early = 0;
	assert_int_equal(send(&s, at + 9, "\r\n9\r\n"), WEIR_PASS);
	assert_int_equal(s.asks, 3);
	assert_int_equal(s.conn.phase, WEIR_PHASE_FOLLOWED);
}

/* Places come again after 2^32 bytes. */
static void test_what_is_confirmed_is_forgotten(void **state)
{
	struct weir_segment g;
	struct scene s;
	__u32 at;

	(void)state;
	open_scene(&s);
	assert_int_equal(send(&s, 0, "POST / HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n"), WEIR_PASS);
	at = 1000;
	for (int i = 0; i < 9; i++, at += 1U << 29) {
		server_has(&s, at, "");
		g = segment(&s, at, 1000);
		assert_int_equal(offer(&s, &g, NULL, false), WEIR_PASS);
	}
	server_has(&s, 0, "");
	g = segment(&s, 0, 1000);
	assert_int_equal(offer(&s, &g, NULL, false), WEIR_PASS);
	assert_int_equal(s.asks, 0);
}

#define ONE "PROXY TCP4 192.0.2.1 192.0.2.9 1 80\r\n"
#define OTHER "PROXY TCP4 192.0.2.2 192.0.2.9 1 80\r\n"
#define GET "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"

static void open_with_preamble(struct scene *s)
{
	open_scene(s);
	weir_conn_await_preamble(&s->conn);
}

static void check_named(const struct scene *s, int last)
{
	assert_true(s->conn.preamble.given);
	assert_int_equal(s->conn.preamble.address[15], last);
}

/* The server never got the preamble: what comes in its place says whose the connection is. */
static void test_another_preamble(void **state)
{
	static const char *const one[] = { ONE, ONE GET }, *const other[] = { OTHER, OTHER GET };
	struct scene s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_with_preamble(&s);
		assert_int_equal(send(&s, 0, one[i]), WEIR_PASS);
		check_named(&s, 1);
		later(&s);
		assert_int_equal(send(&s, 0, one[i]), WEIR_PASS);
		assert_int_equal(s.asks, 1);
		check_named(&s, 1);
		/* That is on its way again. */
		assert_int_equal(send(&s, 0, other[i]), WEIR_HOLD);
		assert_int_equal(s.why, WEIR_UNCONFIRMED);
		later(&s);
		assert_int_equal(send(&s, 0, other[i]), WEIR_HOLD);
		assert_int_equal(s.why, WEIR_RETAKEN);
		check_at(&s, 0, 0);
		assert_int_equal(send(&s, 0, other[i]), WEIR_PASS);
		check_named(&s, 2);
		check_at(&s, strlen(other[i]), i);
	}
}

/* A preamble in pieces is one read; the request behind it is another. */
static void test_preamble_in_pieces_read_again(void **state)
{
	__u32 n = strlen(ONE);
	char first[11] = "";
	struct scene s;

	(void)state;
	memcpy(first, ONE, 10);
	open_with_preamble(&s);
	assert_int_equal(send(&s, 0, first), WEIR_PASS);
	assert_int_equal(send(&s, 10, &ONE[10]), WEIR_PASS);
	assert_int_equal(send(&s, n, get), WEIR_PASS);
	check_at(&s, n + strlen(get), 1);
	assert_int_equal(s.conn.unconfirmed.n, 2);
	later(&s);
	assert_int_equal(send(&s, 0, ONE GET), WEIR_PASS);
	check_at(&s, n + strlen(get), 1);
	s.socket.next = CLIENT + n;
	assert_int_equal(send(&s, n, get), WEIR_PASS);
	later(&s);
	assert_int_equal(send(&s, n, decoy), WEIR_HOLD);
	assert_int_equal(s.why, WEIR_RETAKEN);
	assert_int_equal(send(&s, n, decoy), WEIR_PASS);
	check_named(&s, 1);
	check_at(&s, n + strlen(decoy) + 999999, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ordinary_traffic_asks_nobody),
		cmocka_unit_test(test_what_the_server_drops_is_not_read),
		cmocka_unit_test(test_doubtful_and_taken),
		cmocka_unit_test(test_shut_window),
		cmocka_unit_test(test_decoy),
		cmocka_unit_test(test_decoy_of_a_translated_connection),
		cmocka_unit_test(test_each_of_three),
		cmocka_unit_test(test_what_follows_a_lost_body_is_cut_off),
		cmocka_unit_test(test_decoy_before_early_bytes),
		cmocka_unit_test(test_same_before_early_bytes),
		cmocka_unit_test(test_lost_in_a_head),
		cmocka_unit_test(test_decoy_that_cannot_be_read),
		cmocka_unit_test(test_far_ahead),
		cmocka_unit_test(test_what_is_confirmed_is_forgotten),
		cmocka_unit_test(test_another_preamble),
		cmocka_unit_test(test_preamble_in_pieces_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
