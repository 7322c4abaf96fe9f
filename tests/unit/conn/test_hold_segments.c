/* SPDX-License-Identifier: GPL-2.0 */
/* Withholding a stream without records: HTTP/2 and what may be HTTP/1, charged by segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hold_scene.h"
#include "weir/conn/server.h"

/* What might be HTTP/1 costs its empty lines, and one for a first line that might be a request of HTTP/0.9. */
static const struct preface {
	const char *text;
	__u32 weight;
	bool http2;
} prefaces[] = {
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1, true },
	{ "QRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 3, false },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\rn", 2, false },
	/* Go's net/http serves that as a request, and goes on. */
	{ "PRI * HTTP/2.0\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n", 3, false },
};

/* HTTP/2 is what a segment has begun that came by. */
static void test_http2_that_has_come_by(void **state)
{
	struct hold_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(prefaces) / sizeof(*prefaces); i++) {
		const struct preface *p = &prefaces[i];

		hold_open(&s, WEIR_PHASE_FOLLOWED);
		weir_conn_opaque(&s.conn, START, WEIR_HTTP2);
		s.size = strlen(p->text);
		memcpy(s.stream, p->text, s.size);
		s.socket.untouched = 1;
		assert_int_equal(hold_offer(&s, 0, s.size, true), WEIR_DROP);
		assert_int_equal(hold_offer(&s, 0, s.size, false), WEIR_PASS);
		hold_check(&s, 1, p->weight);
		s.socket.untouched = 0;
		s.socket.next = START + s.size;
		hold_add(&s, WEIR_RECORD_DATA, 8);
		assert_int_equal(hold_offer(&s, s.size - 13, 13, false), WEIR_PASS);
		hold_check(&s, 1 + !p->http2, p->weight + !p->http2);
	}
}

/* In the middle of the stream it may be in a request's body, whatever it was that looked like HTTP/2 on its way here. */
static void test_http2_in_a_body(void **state)
{
	static const char text[] = "POST / HTTP/1.1\r\nContent-Length: 24\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	const __u32 head = sizeof(text) - 1 - WEIR_HOLD_PREFACE;
	struct hold_scene s;

	(void)state;
	for (int busy = 0; busy < 2; busy++) {
		hold_open(&s, WEIR_PHASE_FOLLOWED);
		weir_conn_opaque(&s.conn, START, WEIR_HTTP2);
		s.size = sizeof(text) - 1;
		memcpy(s.stream, text, s.size);
		s.socket.untouched = 1;
		assert_int_equal(hold_offer(&s, 0, head, false), WEIR_PASS);
		/* The socket has not looked at it yet; and the same bytes may be for another place. */
		s.socket.busy = busy;
		s.socket.untouched = busy;
		s.socket.next = START + (busy ? 0 : head);
		assert_int_equal(hold_offer(&s, head, WEIR_HOLD_PREFACE, false), WEIR_PASS);
		memcpy(s.stream, text + head, WEIR_HOLD_PREFACE);
		hold_offer(&s, 0, WEIR_HOLD_PREFACE, false);
		assert_int_equal(s.conn.bare & WEIR_BARE_NONE, 0);
	}
}

/* Not TLS: by segments. */
static void test_by_segments(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START + 10, WEIR_HTTP2);
	s.conn.bare = WEIR_BARE_NONE;
	hold_add(&s, WEIR_RECORD_DATA, 4000);
	assert_int_equal(hold_offer(&s, 0, 10, true), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 0, 23, true), WEIR_PASS);
	hold_check(&s, 0, 0);
	assert_int_equal(hold_offer(&s, 23, 14, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 23, 14, false), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 37, 1025, false), WEIR_PASS);
	hold_check(&s, 2, 3);
	/* What is ahead of a gap does not make the gap old. */
	assert_int_equal(hold_offer(&s, 2000, 100, false), WEIR_PASS);
	hold_check(&s, 3, 4);
	assert_int_equal(hold_offer(&s, 1062, 938, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 1062, 938, false), WEIR_PASS);
	hold_check(&s, 4, 5);
	/* The server has what was ahead. */
	s.socket.next = START + 2100;
	assert_int_equal(hold_offer(&s, 2100, 100, false), WEIR_PASS);
	assert_int_equal(s.conn.hold.next, START + 2200);
	hold_check(&s, 5, 6);
}

/* What is not read because of what it is may come in crumbs for nothing; for any other reason it may be requests. */
static void test_crumbs(void **state)
{
	struct hold_scene s;

	(void)state;
	for (enum weir_reason why = WEIR_HTTP2; why <= WEIR_BAD_PREAMBLE; why++) {
		bool known = why == WEIR_HTTP2 || why == WEIR_UPGRADE;

		hold_open(&s, WEIR_PHASE_FOLLOWED);
		weir_conn_opaque(&s.conn, START, why);
		s.conn.bare = WEIR_BARE_NONE;
		hold_add(&s, 'x', 100);
		assert_int_equal(hold_offer(&s, 0, 1, true), known ? WEIR_PASS : WEIR_DROP);
		assert_int_equal(hold_offer(&s, 1, 13, true), known ? WEIR_PASS : WEIR_DROP);
		assert_int_equal(hold_offer(&s, 14, 14, true), WEIR_DROP);
	}
}

/* For nothing, but not without end: one in so many costs a token, and is asked for until it passes. */
static void test_crumbs_without_end(void **state)
{
	static const enum weir_reason whys[] = { WEIR_HTTP2, WEIR_UPGRADE };
	struct hold_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(whys) / sizeof(*whys); i++) {
		hold_open(&s, WEIR_PHASE_FOLLOWED);
		weir_conn_opaque(&s.conn, START, whys[i]);
		s.conn.bare = WEIR_BARE_NONE;
		hold_add(&s, 'x', 3000);
		for (__u32 n = 1; n < 2 * WEIR_RECORD_SPARED; n++) {
			bool costs = n == WEIR_RECORD_SPARED;

			assert_int_equal(hold_offer(&s, 13 * (n - 1), 13, true), costs ? WEIR_DROP : WEIR_PASS);
			if (costs)
				assert_int_equal(hold_offer(&s, 13 * (n - 1), 13, false), WEIR_PASS);
			s.socket.next = START + 13 * n;
		}
		hold_check(&s, 1, 1);
	}
}

static void hold_add_grant(struct hold_scene *s, __u8 type, __u32 number)
{
	const __u8 grant[WEIR_HOLD_GRANT] = { 0,	   0,	   4, type, 0,	  number >> 24, number >> 16,
					      number >> 8, number, 0, 0,    0x7f, 0xff };

	memcpy(s->stream + s->size, grant, sizeof(grant));
	s->size += sizeof(grant);
}

/* A segment of WINDOW_UPDATEs is as short as one, however many they are. Others are not, nor parts of them. */
static void test_grants(void **state)
{
	static const struct {
		enum weir_reason why;
		__u8 type;
		__u32 number, at, length, weight;
	} cases[] = {
		{ WEIR_HTTP2, 8, 1, 0, 26, 0 },	    { WEIR_UPGRADE, 8, 1, 0, 26, 0 },
		{ WEIR_HTTP2, 8, 0, 0, 39, 0 },	    { WEIR_HTTP2, 8, 65535, 0, 247, 0 },
		{ WEIR_HTTP2, 8, 65536, 0, 26, 1 }, { WEIR_HTTP2, 8, 1 << 24, 0, 26, 1 },
		{ WEIR_HTTP2, 8, 1, 0, 260, 1 },    { WEIR_HTTP2, 1, 1, 0, 26, 1 },
		{ WEIR_HTTP2, 8, 1, 1, 26, 1 },	    { WEIR_HTTP2, 8, 1, 0, 25, 1 },
		{ WEIR_HTTP2, 8, 1, 0, 27, 1 },	    { WEIR_CONNECT, 8, 1, 0, 26, 1 },
	};
	struct hold_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		hold_open(&s, WEIR_PHASE_FOLLOWED);
		weir_conn_opaque(&s.conn, START + cases[i].at, cases[i].why);
		s.conn.bare = cases[i].why == WEIR_CONNECT ? 0 : WEIR_BARE_NONE;
		hold_add_grant(&s, 8, 3);
		for (__u8 n = 1; n < 20; n++)
			hold_add_grant(&s, cases[i].type, cases[i].number);
		assert_int_equal(hold_offer(&s, cases[i].at, cases[i].length, true),
				 cases[i].weight ? WEIR_DROP : WEIR_PASS);
		assert_int_equal(hold_offer(&s, cases[i].at, cases[i].length, false), WEIR_PASS);
		hold_check(&s, cases[i].weight, cases[i].weight);
	}
}

enum {
	FRAME_HEAD = 9,
	FRAME_HEADERS = 1,
	FRAME_CONTINUATION = 9
};

/* A server that begins a frame anywhere in them finds no request that has anything in it, whatever their numbers are. */
static void test_grants_hide_nothing(void **state)
{
	struct hold_scene s;

	(void)state;
	for (__u32 numbers = 0; numbers < 1 << 16; numbers++) {
		hold_open(&s, WEIR_PHASE_FOLLOWED);
		hold_add_grant(&s, 8, numbers);
		hold_add_grant(&s, 8, numbers);
		for (__u32 at = 0; at < WEIR_HOLD_GRANT; at++) {
			__u8 frame[FRAME_HEAD];

			memcpy(frame, s.stream + at, sizeof(frame));
			/* Where a client may write what it likes, it writes what would do. */
			for (__u32 i = 0; i < FRAME_HEAD; i++)
				if ((at + i) % WEIR_HOLD_GRANT > 8)
					frame[i] = i == 3 ? FRAME_HEADERS : 1;
			if ((frame[3] == FRAME_HEADERS || frame[3] == FRAME_CONTINUATION) && frame[8] & 1)
				assert_int_equal(frame[0] | frame[1] | frame[2], 0);
		}
	}
}

/* They are not without end, either. */
static void test_grants_without_end(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START, WEIR_HTTP2);
	s.conn.bare = WEIR_BARE_NONE;
	for (__u32 n = 0; n < 4 * WEIR_RECORD_SPARED; n++)
		hold_add_grant(&s, 8, n & 1);
	for (__u32 n = 0; n < 2 * WEIR_RECORD_SPARED; n++)
		assert_int_equal(hold_offer(&s, 26 * n, 26, false), WEIR_PASS);
	hold_check(&s, 2, 2);
}

/* A proxy may send on a 101 that its upstream has made up: requests behind it cost what they cost elsewhere, however they are cut. */
static void test_requests_behind_an_upgrade(void **state)
{
	static const char requests[] = "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n";
	const __u32 length = sizeof(requests) - 1;
	struct hold_scene s;

	(void)state;
	for (__u32 piece = 1; piece <= length; piece++) {
		hold_open(&s, WEIR_PHASE_FOLLOWED);
		weir_conn_opaque(&s.conn, START, WEIR_UPGRADE);
		memcpy(s.stream, requests, length);
		for (__u32 at = 0; at < length; at += piece) {
			assert_int_equal(hold_offer(&s, at, at + piece < length ? piece : length - at, false),
					 WEIR_PASS);
			s.socket.next = START + (at + piece < length ? at + piece : length);
		}
		assert_true(s.weight >= 3);
	}
}

static const struct greeting {
	__u8 bytes[21];
	__u32 length;
	bool http2;
} greetings[] = {
	{ { 0, 0, 0, 4, 0, 0, 0, 0, 0 }, 9, true },
	{ { 0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100, 0, 4, 0, 0, 255, 255 }, 21, true },
	{ { 0, 0, 252, 4, 0, 0, 0, 0, 0 }, 9, true },
	{ { 0, 0, 12, 4, 0, 0, 0, 0 }, 8, false },
	{ { 0, 0, 11, 4, 0, 0, 0, 0, 0 }, 9, false },
	{ { 0, 1, 2, 4, 0, 0, 0, 0, 0 }, 9, false },
	{ { 0, 0, 0, 4, 1, 0, 0, 0, 0 }, 9, false },
	{ { 0, 0, 0, 4, 0, 0, 0, 0, 1 }, 9, false },
	{ { 0, 0, 0, 7, 0, 0, 0, 0, 0 }, 9, false },
	{ "HTTP/1.1 408 x\r\n\r\n", 18, false },
};

/*
 * A server of HTTP/2 may speak first. The connection is HTTP/2 if its client's stream begins as such. If that comes later, or the server has
 * said anything else, all that comes may be HTTP/1: each crumb costs a token.
 */
static void test_server_speaks_first(void **state)
{
	static const char late[] = "GET / HTTP/1.1\r\n\r\n";
	struct hold_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(greetings) / sizeof(*greetings) * 2; i++) {
		const struct greeting *p = &greetings[i / 2];
		const __u32 at = i % 2 ? sizeof(late) - 1 : 0, end = at + WEIR_HOLD_PREFACE;

		hold_open(&s, WEIR_PHASE_FOLLOWED);
		assert_int_equal(hold_server_speaks(&s, p->bytes, p->length),
				 p->http2 ? WEIR_HTTP2 : WEIR_BAD_RESPONSE);
		memcpy(s.stream, late, at);
		memcpy(s.stream + at, prefaces[0].text, WEIR_HOLD_PREFACE);
		s.socket.untouched = 1;
		if (at)
			assert_int_equal(hold_offer(&s, 0, at, false), WEIR_PASS);
		s.socket.untouched = !at;
		s.socket.next = START + at;
		assert_int_equal(hold_offer(&s, at, WEIR_HOLD_PREFACE, false), WEIR_PASS);
		s.socket.untouched = 0;
		s.socket.next = START + end;
		s.weight = 0;
		for (__u32 n = 0; n < 4; n++)
			assert_int_equal(hold_offer(&s, end + n, 1, false), WEIR_PASS);
		assert_int_equal(s.weight, p->http2 && !at ? 0 : 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_http2_that_has_come_by),
		cmocka_unit_test(test_http2_in_a_body),
		cmocka_unit_test(test_by_segments),
		cmocka_unit_test(test_crumbs),
		cmocka_unit_test(test_crumbs_without_end),
		cmocka_unit_test(test_grants),
		cmocka_unit_test(test_grants_hide_nothing),
		cmocka_unit_test(test_grants_without_end),
		cmocka_unit_test(test_requests_behind_an_upgrade),
		cmocka_unit_test(test_server_speaks_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
