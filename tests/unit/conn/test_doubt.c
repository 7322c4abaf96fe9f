/* SPDX-License-Identifier: GPL-2.0 */
/* Segments that the server may not take: when its socket is asked, and when nobody is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "doubt_scene.h"
#include "weir/conn/stray.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* Requests one after the other and two at a time, a body in pieces out of order, and a full window. */
static void test_ordinary_traffic_asks_nobody(void **state)
{
	static const char post[] = "POST / HTTP/1.1\r\nContent-Length: 300\r\n\r\n";
	static const char bytes[WINDOW << SCALE];
	__u32 n = strlen(GET), m = strlen(post), at = 0;
	struct weir_segment g;
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(doubt_send(&s, at, GET), WEIR_PASS);
		assert_int_equal(doubt_send(&s, at + n, GET), WEIR_PASS);
		at += 2 * n;
		doubt_server_has(&s, at, "");
		doubt_server_has(&s, at, OK);
		doubt_server_has(&s, at, OK);
		assert_int_equal(doubt_send(&s, at, post), WEIR_PASS);
		g = doubt_segment(&s, at + m + 200, 100);
		assert_int_equal(doubt_offer(&s, &g, bytes, false), WEIR_PASS);
		doubt_server_has(&s, at + m, "");
		/* it comes again, when something behind it has been read */
		assert_int_equal(doubt_send(&s, at + m + 300, GET), WEIR_PASS);
		g = doubt_segment(&s, at + m, 200);
		assert_int_equal(doubt_offer(&s, &g, bytes, false), WEIR_PASS);
		at += m + 300 + n;
		doubt_server_has(&s, at, OK);
		doubt_server_has(&s, at, OK);
	}
	assert_int_equal(doubt_send(&s, at, DECOY), WEIR_PASS);
	at += strlen(DECOY);
	doubt_server_has(&s, at, "");
	g = doubt_segment(&s, at, WINDOW << SCALE);
	assert_int_equal(doubt_offer(&s, &g, bytes, false), WEIR_PASS);
	assert_int_equal(s.asks, 0);
}

/* Nor does what begins something else, and comes again at once: it was never read, and the hold knows of it. */
static void test_what_is_not_read_asks_nobody(void **state)
{
	static const char *const begins[] = { "\x16\x03\x01\x01\x01hello", PREFACE, "no request\r\n\r\n" };
	__u32 n = strlen(GET);
	struct doubt_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		doubt_open(&s);
		assert_int_equal(doubt_send(&s, 0, begins[i]), WEIR_PASS);
		assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
		assert_int_equal(doubt_send(&s, 0, begins[i]), WEIR_PASS);
		assert_int_equal(s.asks, 0);
	}
	/* A request before it was read. */
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, GET "no request\r\n\r\n"), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	assert_int_equal(doubt_send(&s, n, "no request\r\n\r\n"), WEIR_PASS);
	assert_int_equal(s.asks, 0);
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_DROP);
	assert_int_equal(s.why, WEIR_UNCONFIRMED);
}

/* One that differs from an ordinary segment by what is given. */
static void refused(const struct weir_segment *g)
{
	struct doubt_scene s;

	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
	doubt_server_has(&s, strlen(GET), OK);
	assert_int_equal(doubt_offer(&s, g, DECOY, true), WEIR_DROP);
	assert_int_equal(s.why, WEIR_UNACCEPTABLE);
	assert_int_equal(s.asks, 1);
	assert_int_equal(s.got, 0);
	doubt_check_at(&s, strlen(GET), 1);
	/* Where no socket can be asked, it is as any other. */
	s.socket.known = 0;
	assert_int_equal(doubt_offer(&s, g, DECOY, false), WEIR_PASS);
	assert_int_equal(s.got, 1);
}

static void test_what_the_server_drops_is_not_read(void **state)
{
	struct doubt_scene s = { .sent = strlen(OK) };
	struct weir_segment ordinary = doubt_segment(&s, strlen(GET), strlen(DECOY)), g;

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

/* The server is at work on its socket, which does not count yet what it has just sent: only what has gone out counts. */
static void test_acknowledged_while_it_is_sent(void **state)
{
	struct weir_segment g;
	struct doubt_scene s;

	(void)state;
	for (__u32 owned = 0; owned < 2; owned++) {
		doubt_open(&s);
		assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
		doubt_server_has(&s, strlen(GET), OK);
		s.socket.sent = SERVER;
		s.socket.owned = owned;
		g = doubt_segment(&s, strlen(GET), strlen(DECOY));
		assert_int_equal(weir_conn_socket_drops(&s.conn, &s.socket, &g), !owned);
		g.ack++;
		assert_true(weir_conn_socket_drops(&s.conn, &s.socket, &g));
		g.ack = SERVER;
		assert_false(weir_conn_socket_drops(&s.conn, &s.socket, &g));
	}
	/* What the socket counts already may not have been seen on its way out. */
	s.socket.sent = SERVER + 500;
	g.ack = SERVER + 500;
	assert_false(weir_conn_socket_drops(&s.conn, &s.socket, &g));
	g.ack++;
	assert_true(weir_conn_socket_drops(&s.conn, &s.socket, &g));
}

/* Its numbers are of another connection, or are changed behind this: the socket gets it as it is, and nothing is read of it. */
static void test_out_of_reach(void **state)
{
	static const __u32 acks[] = { SERVER - 1001, SERVER + 1001 + sizeof(OK), SERVER + 0x7fffffff,
				      SERVER - 0x7fffffff };
	struct weir_segment g;
	struct doubt_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(acks) / sizeof(acks[0]); i++) {
		doubt_open(&s);
		assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
		doubt_server_has(&s, strlen(GET), OK);
		g = doubt_segment(&s, strlen(GET), strlen(DECOY));
		g.ack = acks[i];
		assert_int_equal(doubt_offer(&s, &g, DECOY, true), WEIR_LEAVE);
		assert_int_equal(s.why, WEIR_REASON_NONE);
		assert_int_equal(s.got, 0);
		doubt_check_at(&s, strlen(GET), 1);
		assert_int_equal(s.conn.splice.passed_end, CLIENT + strlen(GET));
		s.conn.splice.cuts = 1;
		assert_int_equal(doubt_offer(&s, &g, DECOY, true), WEIR_DROP);
	}
}

/*
 * What the server says here is not what its socket has sent, or was acknowledged: something on the way gives it other numbers. One below and
 * above each bound, and far away. What does not jump is not asked about.
 */
static void test_renumbered(void **state)
{
	static const struct {
		__u32 seq;
		bool jumps, renumbered;
	} cases[] = {
		{ SERVER, false, false },     { SERVER - 0x70000000, false, false },
		{ SERVER + 1, true, false },  { SERVER + 500, true, false },
		{ SERVER + 501, true, true }, { SERVER + 0x70000000, true, true },
	};
	struct doubt_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_segment g = { .seq = cases[i].seq, .ack = CLIENT, .flags = WEIR_TCP_ACK };

		doubt_open(&s);
		s.socket.sent = SERVER + 500;
		assert_int_equal(weir_conn_server_jumps(&s.conn, &g), cases[i].jumps);
		assert_int_equal(weir_conn_server_may_pass(&s.conn, &g), !cases[i].jumps);
		s.socket.known = 0;
		assert_false(weir_conn_is_renumbered(&s.conn, &s.socket, &g));
		s.socket.known = 1;
		s.conn.splice.cuts = 1;
		assert_false(weir_conn_is_renumbered(&s.conn, &s.socket, &g));
		s.conn.splice.cuts = 0;
		assert_int_equal(weir_conn_is_renumbered(&s.conn, &s.socket, &g), cases[i].renumbered);
		assert_int_equal(s.conn.phase, cases[i].renumbered ? WEIR_PHASE_OPAQUE : WEIR_PHASE_FOLLOWED);
		if (cases[i].renumbered)
			assert_int_equal(s.conn.opaque_why, WEIR_UNSEEN);
		/* Now it does not matter any more. */
		if (cases[i].renumbered)
			assert_false(weir_conn_server_jumps(&s.conn, &g));
	}
}

/* The socket was made anew, behind what was seen of the server: what it has sent it may send again, and nothing before that. */
static void test_renumbered_from_before(void **state)
{
	struct weir_segment g = { .seq = SERVER + 10, .ack = CLIENT, .flags = WEIR_TCP_ACK };
	struct doubt_scene s;

	(void)state;
	for (__u32 beyond = 0; beyond < 2; beyond++) {
		doubt_open(&s);
		s.socket.reach = 100;
		s.socket.acked = SERVER + 110 + beyond;
		s.socket.sent = s.socket.acked + 50;
		assert_int_equal(weir_conn_is_renumbered(&s.conn, &s.socket, &g), beyond);
	}
}

/* It asks, and is told that the server takes it. */
static void test_doubtful_and_taken(void **state)
{
	__u32 n = strlen(GET);
	struct weir_segment g;
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
	doubt_server_has(&s, n, OK);
	assert_int_equal(doubt_send(&s, n, GET), WEIR_PASS);
	g = doubt_segment(&s, 2 * n, n);
	g.tsval = 499;
	g.ack -= 20;
	assert_int_equal(doubt_offer(&s, &g, GET, false), WEIR_PASS);
	assert_int_equal(s.asks, 1);
	doubt_check_at(&s, 3 * n, 3);
}

/* The client acknowledges what was not seen: one below and above what the socket has sent. */
static void test_answers_unseen(void **state)
{
	static const struct {
		__u32 sent, acked;
		enum weir_action action;
		enum weir_reason why;
	} cases[] = {
		{ 0, 0, WEIR_PASS, WEIR_REASON_NONE },	{ 0, 1, WEIR_DROP, WEIR_UNACCEPTABLE },
		{ 1, 0, WEIR_PASS, WEIR_REASON_NONE },	{ 1, 1, WEIR_PASS, WEIR_UNSEEN },
		{ 1, 2, WEIR_DROP, WEIR_UNACCEPTABLE }, { 900, 899, WEIR_PASS, WEIR_UNSEEN },
		{ 900, 900, WEIR_PASS, WEIR_UNSEEN },	{ 900, 901, WEIR_DROP, WEIR_UNACCEPTABLE },
	};
	__u32 n = strlen(DECOY);
	struct weir_segment g;
	struct doubt_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool unseen = cases[i].why == WEIR_UNSEEN;

		doubt_open(&s);
		assert_int_equal(doubt_send(&s, 0, DECOY), WEIR_PASS);
		doubt_server_has(&s, n, "");
		s.socket.sent += cases[i].sent;
		g = doubt_segment(&s, n, strlen(GET));
		g.ack += cases[i].acked;
		assert_int_equal(doubt_offer(&s, &g, GET, false), cases[i].action);
		assert_int_equal(s.why, cases[i].why);
		assert_int_equal(s.conn.phase, unseen ? WEIR_PHASE_OPAQUE : WEIR_PHASE_FOLLOWED);
		if (!unseen)
			continue;
		assert_int_equal(s.conn.opaque_why, WEIR_UNSEEN);
		assert_int_equal(s.conn.hold.next, CLIENT + n);
		/* What comes next asks nobody. */
		g.seq += g.len;
		assert_int_equal(doubt_offer(&s, &g, GET, false), WEIR_PASS);
		assert_int_equal(s.asks, 1);
	}
}

/* A hunt goes on, but is told that the server answers. Where something was cut, nothing is told. */
static void test_answers_unseen_elsewhere(void **state)
{
	struct weir_segment g;
	struct doubt_scene s;

	(void)state;
	for (__u8 cuts = 0; cuts < 2; cuts++) {
		doubt_open(&s);
		weir_conn_hunt(&s.conn);
		s.conn.splice.cuts = cuts;
		s.socket.sent += 900;
		g = doubt_segment(&s, 0, strlen(GET));
		g.ack += 900;
		assert_int_equal(doubt_offer(&s, &g, GET, false), WEIR_PASS);
		assert_int_equal(s.why, WEIR_REASON_NONE);
		assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
		assert_int_equal(s.conn.hold.answers, !cuts);
	}
}

static void shut(struct doubt_scene *s)
{
	doubt_open(s);
	s->conn.splice.server_window = 0;
	s->socket.edge = CLIENT;
}

/*
 * A server without room hears of the probe, and gets no byte of it: it may have room by the time it looks. The byte is none
 * of the stream yet.
 */
static void test_shut_window(void **state)
{
	struct weir_segment g;
	struct doubt_scene s;

	(void)state;
	shut(&s);
	g = doubt_segment(&s, 0, 1);
	assert_int_equal(doubt_offer(&s, &g, GET, false), WEIR_PROBE);
	assert_int_equal(s.why, WEIR_OUT_OF_WINDOW);
	doubt_check_at(&s, 0, 0);
	assert_int_equal(s.conn.splice.passed_end, CLIENT);
	doubt_server_has(&s, 0, "");
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
	doubt_check_at(&s, strlen(GET), 1);
}

/* The same where the connection is not read; a signed one is not changed. */
static void test_shut_window_of_what_is_not_read(void **state)
{
	struct weir_segment g;
	struct doubt_scene s;

	(void)state;
	for (enum weir_reason why = WEIR_TLS; why <= WEIR_BAD_PREAMBLE; why++) {
		shut(&s);
		weir_conn_opaque(&s.conn, CLIENT, why);
		g = doubt_segment(&s, 0, 1);
		assert_int_equal(doubt_offer(&s, &g, GET, false), why == WEIR_SIGNED ? WEIR_DROP : WEIR_PROBE);
		doubt_server_has(&s, 0, "");
		assert_int_equal(doubt_offer(&s, &g, GET, false), WEIR_PASS);
		assert_int_equal(s.asks, 1);
	}
}

/* Behind a gap, more pieces than can be remembered wait until the server has some of them. */
static void test_far_ahead(void **state)
{
	static const char head[] = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n";
	__u32 at = strlen(head);
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, head), WEIR_PASS);
	for (int i = 1; i < WEIR_READS; i++, at += 14)
		assert_int_equal(doubt_send(&s, at + 9, "\r\n9\r\n"), WEIR_PASS);
	assert_int_equal(s.asks, 0);
	s.socket.early = 1;
	assert_int_equal(doubt_send(&s, at + 9, "\r\n9\r\n"), WEIR_DROP);
	assert_int_equal(s.why, WEIR_OUT_OF_ORDER);
	assert_int_equal(s.asks, 1);
	/* It has, and has not said so yet. */
	s.socket.next = CLIENT + strlen(head);
	assert_int_equal(doubt_send(&s, at + 9, "\r\n9\r\n"), WEIR_PASS);
	assert_int_equal(s.asks, 2);
	/* Without a gap they do not. */
	at += 14;
	s.socket.early = 0;
	assert_int_equal(doubt_send(&s, at + 9, "\r\n9\r\n"), WEIR_PASS);
	assert_int_equal(s.asks, 3);
	assert_int_equal(s.conn.phase, WEIR_PHASE_FOLLOWED);
}

/* Places come again after 2^32 bytes. */
static void test_what_is_confirmed_is_forgotten(void **state)
{
	struct weir_segment g;
	struct doubt_scene s;
	__u32 at;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, "POST / HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n"), WEIR_PASS);
	at = 1000;
	for (int i = 0; i < 9; i++, at += 1U << 29) {
		doubt_server_has(&s, at, "");
		g = doubt_segment(&s, at, 1000);
		assert_int_equal(doubt_offer(&s, &g, NULL, false), WEIR_PASS);
	}
	doubt_server_has(&s, 0, "");
	g = doubt_segment(&s, 0, 1000);
	assert_int_equal(doubt_offer(&s, &g, NULL, false), WEIR_PASS);
	assert_int_equal(s.asks, 0);
}

/* What the server said was not seen: from there on nobody knows what is answered, also in the middle of a body. */
static void test_gap_of_the_servers(void **state)
{
	static const char *const sent[] = { GET, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5" };
	struct doubt_scene s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		doubt_open(&s);
		assert_int_equal(doubt_send(&s, 0, sent[i]), WEIR_PASS);
		s.sent++;
		assert_int_equal(doubt_server_says(&s, strlen(sent[i]), OK), WEIR_GAP);
		assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
	}
}

/* The same while a segment of the client's is read: it comes again. */
static void test_gap_meanwhile(void **state)
{
	struct weir_segment g;
	struct weir_request_reader r;
	struct weir_socket k = {};
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	g = doubt_segment(&s, 0, strlen(GET));
	assert_int_equal(weir_conn_begin_client(&s.conn, NULL, &k, &g, &r, &s.why), WEIR_FRAME);
	s.sent++;
	assert_int_equal(doubt_server_says(&s, 0, OK), WEIR_GAP);
	assert_int_equal(weir_conn_commit_client(&s.conn, NULL, &g, &r, &s.why), WEIR_DROP);
	assert_int_equal(s.why, WEIR_CONTENDED);
}

/* What is begun like TLS, or HTTP/2, waits for the server's word. Behind a request that is too late. */
static void test_begun_like_another_protocol(void **state)
{
	static const struct {
		const char *text;
		enum weir_reason why;
	} begun[] = { { "\x16\x03\x01", WEIR_TLS }, { PREFACE, WEIR_HTTP2 }, { "GET\n", WEIR_BARE_LF } };
	struct doubt_scene s;

	(void)state;
	for (int i = 0; i < 6; i++) {
		bool behind = i % 2;
		__u32 at = behind ? strlen(GET) : 0;
		enum weir_reason why = begun[i / 2].why;

		doubt_open(&s);
		if (behind) {
			assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
			doubt_server_has(&s, at, OK);
		}
		assert_int_equal(doubt_send(&s, at, begun[i / 2].text), WEIR_PASS);
		assert_int_equal(s.why, why);
		assert_int_equal(s.conn.opaque_why, why);
		assert_int_equal(s.conn.hold.next - CLIENT, at);
		assert_int_equal(weir_conn_is_untold(&s.conn), !behind && i < 4);
		/* The preface is known by where the client's stream begins. */
		assert_int_equal(!!(s.conn.bare & WEIR_BARE_FIRST), !behind && why == WEIR_HTTP2);
		if (s.conn.bare & WEIR_BARE_FIRST)
			assert_int_equal(s.conn.request_next - CLIENT, at);
	}
	/* Cut, it is not seen where it begins. */
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, "PRI * "), WEIR_PASS);
	assert_int_equal(doubt_send(&s, 6, &PREFACE[6]), WEIR_PASS);
	assert_int_equal(s.why, WEIR_HTTP2);
	assert_true(weir_conn_is_untold(&s.conn));
	assert_false(s.conn.bare & WEIR_BARE_FIRST);
}

/* An answer's body that is too long to be passed over at once is no gap. Its last byte ends the answer. */
static void test_long_answer(void **state)
{
	static const __u32 lengths[] = { 2 * WEIR_SKIP_MAX, 2 * WEIR_SKIP_MAX + 12 };
	const __u32 n = strlen(GET);
	struct doubt_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		__u32 body, end;
		char head[64];

		body = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", lengths[i]);
		end = body + lengths[i];
		doubt_open(&s);
		assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
		doubt_server_has(&s, n, head);
		for (__u32 at = body + WEIR_SKIP_MAX; at < end - 1; at += WEIR_SKIP_MAX) {
			assert_int_equal(s.conn.response_next - SERVER, at);
			s.sent = at + 1;
			doubt_server_has(&s, n, "x");
			assert_int_equal(s.conn.phase, WEIR_PHASE_FOLLOWED);
		}
		assert_int_equal(s.conn.response_next - SERVER, end - 1);
		assert_int_equal(s.conn.responses, 0);
		s.sent = end - 1;
		doubt_server_has(&s, n, "x");
		assert_int_equal(s.conn.responses, 1);
		s.sent++;
		assert_int_equal(doubt_server_says(&s, n, "x"), WEIR_GAP);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ordinary_traffic_asks_nobody),
		cmocka_unit_test(test_what_is_not_read_asks_nobody),
		cmocka_unit_test(test_what_the_server_drops_is_not_read),
		cmocka_unit_test(test_acknowledged_while_it_is_sent),
		cmocka_unit_test(test_out_of_reach),
		cmocka_unit_test(test_renumbered),
		cmocka_unit_test(test_renumbered_from_before),
		cmocka_unit_test(test_doubtful_and_taken),
		cmocka_unit_test(test_answers_unseen),
		cmocka_unit_test(test_answers_unseen_elsewhere),
		cmocka_unit_test(test_shut_window),
		cmocka_unit_test(test_shut_window_of_what_is_not_read),
		cmocka_unit_test(test_far_ahead),
		cmocka_unit_test(test_what_is_confirmed_is_forgotten),
		cmocka_unit_test(test_gap_of_the_servers),
		cmocka_unit_test(test_gap_meanwhile),
		cmocka_unit_test(test_begun_like_another_protocol),
		cmocka_unit_test(test_long_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
