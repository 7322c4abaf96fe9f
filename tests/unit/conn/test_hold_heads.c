/* SPDX-License-Identifier: GPL-2.0 */
/* Withholding what may be HTTP/1: heads that end without an empty line, as some servers read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hold_scene.h"

#define LAST ROOM

/* What `text` costs that is hunted (NONE), or not read for this reason, in pieces of so many bytes. No request of one line is asked for. */
static __u32 cost(const char *text, enum weir_reason why, __u32 piece)
{
	__u32 length = strlen(text);
	struct hold_scene s;

	hold_open(&s, WEIR_PHASE_HUNTING);
	if (why != WEIR_REASON_NONE)
		weir_conn_opaque(&s.conn, START, why);
	s.conn.bare |= WEIR_BARE_PAID;
	memcpy(s.stream, text, length);
	for (__u32 at = 0; at < length; at += piece) {
		__u32 rest = length - at;

		piece = piece < rest ? piece : rest;
		assert_int_equal(hold_offer(&s, at, piece, false), WEIR_PASS);
		s.socket.next = START + at + piece;
	}
	return s.weight;
}

#define THRICE(text) text text text

/* Perl's HTTP::Daemon ends a head at any line that is no field. */
static void test_ended_by_a_line_that_is_no_field(void **state)
{
	static const enum weir_reason whys[] = { WEIR_REASON_NONE, WEIR_CONNECT, WEIR_UPGRADE, WEIR_ANSWERED_EARLY };
	static const char *const texts[] = {
		THRICE("GET / HTTP/1.1\r\n:\r\n") "\r\n",
		THRICE("POST / HTTP/1.1 HTTP/1.0\r\n:\r\n"),
		THRICE("POST /\tHTTP/2.0\n:\n"),
		THRICE("POST / HTTP/1.1\r\nContent-Length: 3\r\n:\r\nx x"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		for (size_t n = 0; n < sizeof(whys) / sizeof(*whys); n++) {
			__u32 paid =
				i ? 2 :
				    3; /* the last one is paid for as one without an empty line, once a connection */

			assert_int_equal(cost(texts[i], whys[n], LAST), paid);
			for (__u32 piece = 1; piece < strlen(texts[i]); piece++)
				assert_true(cost(texts[i], whys[n], piece) >= paid);
		}
	}
}

/* The same behind what looks like a record of TLS until its server answers, and behind HTTP/2's preface, which such a server serves. */
static void test_begun_like_something_else(void **state)
{
	static const char record[] = "\x16\x03\x01GET / HTTP/1.1\r\n:\r\n" THRICE("GET / HTTP/1.1\r\n:\r\n");
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" THRICE("GET / HTTP/1.1\r\n:\r\n");
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	weir_conn_await_word(&s.conn);
	memcpy(s.stream, record, sizeof(record));
	assert_int_equal(hold_offer(&s, 0, sizeof(record) - 1, false), WEIR_PASS);
	hold_check(&s, 1, 4);
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START, WEIR_HTTP2);
	weir_conn_await_word(&s.conn);
	s.socket.untouched = 1;
	memcpy(s.stream, preface, sizeof(preface));
	assert_int_equal(hold_offer(&s, 0, sizeof(preface) - 1, false), WEIR_PASS);
	assert_true(s.weight >= 4);
}

/* The last of them is one without an empty line: that is paid once a connection. */
static void test_the_last_is_paid_once(void **state)
{
	static const char text[] = THRICE("POST / HTTP/1.1\r\n:\r\n");
	const __u32 length = sizeof(text) - 1;
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START, WEIR_CONNECT);
	memcpy(s.stream, text, length);
	memcpy(s.stream + length, text, length);
	assert_int_equal(hold_offer(&s, 0, length, false), WEIR_PASS);
	hold_check(&s, 1, 3);
	s.socket.next = START + length;
	assert_int_equal(hold_offer(&s, length, length, false), WEIR_PASS);
	hold_check(&s, 2, 6);
}

/* Offers the text at this place, and returns where it ends. */
static __u32 offer_text(struct hold_scene *s, __u32 at, const char *text, __u32 length)
{
	memcpy(s->stream + at, text, length);
	assert_int_equal(hold_offer(s, at, length, false), WEIR_PASS);
	s->socket.next = START + at + length;
	return at + length;
}

/* What comes between records goes back to be hunted, and each head in it is paid for, but the last. */
static void test_between_records(void **state)
{
	static const char heads[] = "GET / HTTP/1.1\r\n:\r\nGET / HTTP/1.1\r\n:\r\n", record[5 + 20] = "\x17\3\3\0\x14";
	struct hold_scene s;
	__u32 at;

	(void)state;
	hold_open(&s, WEIR_PHASE_HUNTING);
	s.conn.bare |= WEIR_BARE_PAID;
	at = offer_text(&s, 0, "a\n", 2);
	for (int i = 0; i < 3; i++) {
		at = offer_text(&s, at, record, sizeof(record));
		assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
		at = offer_text(&s, at, heads, sizeof(heads) - 1);
		assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
	}
	assert_int_equal(s.weight, 1 + 2 + 2);
}

/* A head with an empty line costs that one, wherever it is cut between lines; one that was decided on its way costs nothing. */
static void test_a_head_in_two_segments(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nA: b\r\n\r\nGET / HTTP/1.1\r\nA: b\r\n\r\n";
	static const __u32 cuts[] = { 16, 22, 24, 40, 46 };
	struct hold_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		for (__u32 decided = 0; decided < 3; decided++) {
			hold_open(&s, WEIR_PHASE_HUNTING);
			s.conn.bare |= WEIR_BARE_PAID;
			memcpy(s.stream, text, sizeof(text));
			assert_int_equal(hold_offer(&s, 0, cuts[i], false), WEIR_PASS);
			s.socket.next = START + cuts[i];
			assert_int_equal(s.weight, cuts[i] >= 24);
			s.conn.hold.decided = decided;
			s.weight = 0;
			assert_int_equal(hold_offer(&s, cuts[i], sizeof(text) - 1 - cuts[i], false), WEIR_PASS);
			assert_int_equal(s.weight, decided > 2 - (cuts[i] >= 24) ? 0 : 2 - (cuts[i] >= 24) - decided);
		}
	}
}

/* What comes before a segment ahead of its turn, or behind it, is not known: each head that begins in it is paid for. */
static void test_ahead_of_its_turn(void **state)
{
	static const char heads[] = THRICE("GET / HTTP/1.1\r\n:\r\n"), whole[] = THRICE("GET / HTTP/1.1\r\n\r\n");
	struct hold_scene s;

	(void)state;
	for (int open = 0; open < 2; open++) {
		hold_open_tls(&s);
		weir_conn_await_word(&s.conn);
		s.conn.bare |= WEIR_BARE_PAID | (open ? WEIR_BARE_HEAD : 0);
		memcpy(s.stream + 1, heads, sizeof(heads));
		memcpy(s.stream + 1000, whole, sizeof(whole));
		assert_int_equal(hold_offer(&s, 1, sizeof(heads) - 1, false), WEIR_PASS);
		hold_check(&s, 1, 3);
		assert_int_equal(hold_offer(&s, 1000, sizeof(whole) - 1, false), WEIR_PASS);
		hold_check(&s, 2, 6);
		assert_int_equal(!!(s.conn.bare & WEIR_BARE_HEAD), open);
	}
}

/* Segments of a connection that is hunting are read side by side: a head that one begins is known to the other, or that is read again. */
static void test_side_by_side(void **state)
{
	static const struct {
		const char *first, *second;
		bool moves;
	} pairs[] = {
		{ "GET / HTTP/1.1\r\n:\r\n", "GET / HTTP/1.1\r\n:\r\n", true },
		{ "GET / HTTP/1.1\r\n:\r\n", "\x17\x03\x03\1\1GET / HTTP/1.1\r\n:\r\n", true },
		{ "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", false },
		{ "part of a body", "GET / HTTP/1.1\r\n:\r\n", false },
	};
	struct weir_segment g[2];
	struct weir_hold_reader r[2];
	struct hold_scene s;
	__u64 held_ns;

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		hold_open(&s, WEIR_PHASE_HUNTING);
		s.conn.bare |= WEIR_BARE_PAID;
		s.why = WEIR_REASON_NONE;
		g[0] = hold_segment(0, strlen(pairs[i].first));
		g[1] = hold_segment(100, strlen(pairs[i].second));
		memcpy(s.stream, pairs[i].first, g[0].len);
		memcpy(s.stream + 100, pairs[i].second, g[1].len);
		for (int n = 0; n < 2; n++) {
			assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g[n], true, &r[n], &s.why), WEIR_FRAME);
			hold_read(s.stream, &g[n], &r[n]);
		}
		assert_int_equal(weir_hold_commit(&s.conn, &r[0], s.now_ns, &held_ns, &s.why), WEIR_PASS);
		assert_int_equal(weir_hold_commit(&s.conn, &r[1], s.now_ns, &held_ns, &s.why),
				 pairs[i].moves ? WEIR_DROP : WEIR_PASS);
		assert_int_equal(s.why, pairs[i].moves ? WEIR_CONTENDED : WEIR_REASON_NONE);
		if (pairs[i].moves)
			assert_int_equal(hold_offer(&s, 100, g[1].len, false), WEIR_PASS);
		assert_int_equal(s.weight, pairs[i].moves ? 1 : 0);
	}
}

/* Text that only speaks of HTTP costs nothing in a body. */
static void test_no_first_line(void **state)
{
	(void)state;
	assert_int_equal(cost(THRICE("x/HTTP/1.1 HTTP HTTP\n"), WEIR_ANSWERED_EARLY, LAST), 0);
	assert_int_equal(cost(THRICE("HTTP\n/1.1 \n"), WEIR_ANSWERED_EARLY, LAST), 0);
	assert_int_equal(cost("a HTTP/1.1\nb\n", WEIR_ANSWERED_EARLY, LAST), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ended_by_a_line_that_is_no_field),
		cmocka_unit_test(test_begun_like_something_else),
		cmocka_unit_test(test_the_last_is_paid_once),
		cmocka_unit_test(test_between_records),
		cmocka_unit_test(test_a_head_in_two_segments),
		cmocka_unit_test(test_ahead_of_its_turn),
		cmocka_unit_test(test_side_by_side),
		cmocka_unit_test(test_no_first_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
