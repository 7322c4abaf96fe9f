/* SPDX-License-Identifier: GPL-2.0 */
/* What begins like TLS, or HTTP/2, and what its server says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hold_scene.h"

#define REQUEST "GET / HTTP/1.1\r\n\r\n"

static const __u8 settings[] = { 0, 0, 0, 4, 0, 0, 0, 0, 0 };

static void begin(struct hold_scene *s, enum weir_reason why, const char *text, __u32 length)
{
	hold_open(s, WEIR_PHASE_FOLLOWED);
	weir_conn_await_word(&s->conn);
	weir_conn_opaque(&s->conn, START, why);
	memcpy(s->stream, text, length);
	s->size = length;
	s->socket.untouched = 1;
}

/* The next bytes of the stream pass, and the server has them. */
static void pass(struct hold_scene *s, __u32 at, __u32 length)
{
	s->socket.untouched = !at;
	assert_int_equal(hold_offer(s, at, length, false), WEIR_PASS);
	s->socket.next = START + at + length;
	s->conn.splice.server_acked = START + at + length;
}

/*
 * Until its server answers a handshake costs nothing, however it is cut, unless a packet begins with a line's end. From then on records are
 * all that counts.
 */
static void test_a_handshake_is_free(void **state)
{
	const __u8 hello = WEIR_RECORD_HANDSHAKE, alert = WEIR_RECORD_ALERT;
	struct hold_scene s;

	(void)state;
	for (__u32 cut = 6; cut < 205; cut += 2) {
		begin(&s, WEIR_TLS, "", 0);
		hold_add(&s, WEIR_RECORD_HANDSHAKE, 200);
		for (__u32 at = 7; at < 200; at += 6)
			s.stream[at] = '\n';
		pass(&s, 0, cut);
		pass(&s, cut, 205 - cut);
		assert_int_equal(s.weight, 0);
		assert_false(weir_hold_is_tls(&s.conn));
		assert_int_equal(hold_server_speaks(&s, cut % 4 ? &hello : &alert, 1), WEIR_TLS);
		assert_int_equal(s.conn.response_next, 2);
		assert_true(weir_hold_is_tls(&s.conn));
		assert_true(s.conn.bare & WEIR_BARE_NONE);
		hold_add(&s, WEIR_RECORD_HANDSHAKE, 200);
		memset(s.stream + 210, '\n', 200);
		pass(&s, 205, 205);
		assert_int_equal(s.weight, 0);
	}
}

/*
 * TLS 1.3's early data comes before the server has answered the hello, so it is no certificate of the client's. It costs what it does also
 * when it comes again behind the answer. What follows it is handshake.
 */
static void test_early_data_is_charged(void **state)
{
	const __u8 hello = WEIR_RECORD_HANDSHAKE;
	struct hold_scene s;

	(void)state;
	for (int held = 0; held < 2; held++) {
		begin(&s, WEIR_TLS, "", 0);
		hold_add(&s, WEIR_RECORD_HANDSHAKE, 200);
		hold_add(&s, WEIR_RECORD_DATA, 1025);
		hold_add(&s, WEIR_RECORD_DATA, 4 + WEIR_RECORD_OVERHEAD);
		hold_add(&s, WEIR_RECORD_DATA, WEIR_RECORD_FINISHED_384);
		pass(&s, 0, 205);
		hold_check(&s, 0, 0);
		if (held) {
			assert_int_equal(hold_offer(&s, 205, 1030, true), WEIR_DROP);
			assert_int_equal(hold_server_speaks(&s, &hello, 1), WEIR_TLS);
		}
		pass(&s, 205, 1030);
		hold_check(&s, 1, 2);
		if (!held)
			assert_int_equal(hold_server_speaks(&s, &hello, 1), WEIR_TLS);
		pass(&s, 1235, 26);
		hold_check(&s, 1, 2);
		/* What was held has its client pay for the Finished, too. */
		pass(&s, 1261, 5 + WEIR_RECORD_FINISHED_384);
		hold_check(&s, 1 + held, 2 + held);
	}
}

/* A hello that is held, for it looks like a request by chance, makes no early data of the client's certificate. */
static void test_a_certificate_behind_a_held_hello(void **state)
{
	const __u8 hello = WEIR_RECORD_HANDSHAKE;
	struct hold_scene s;

	(void)state;
	begin(&s, WEIR_TLS, "", 0);
	hold_add(&s, WEIR_RECORD_HANDSHAKE, 200);
	memset(s.stream + 100, '\n', 2);
	hold_add(&s, WEIR_RECORD_DATA, 1025);
	assert_int_equal(hold_offer(&s, 0, 205, true), WEIR_DROP);
	pass(&s, 0, 205);
	hold_check(&s, 1, 1);
	assert_int_equal(hold_server_speaks(&s, &hello, 1), WEIR_TLS);
	pass(&s, 205, 1030);
	hold_check(&s, 1, 1);
}

/* A handshake that the server has answered with one, and a record whose body is empty lines, in which nobody knows where it begins. */
static void begin_tls(struct hold_scene *s)
{
	const __u8 hello = WEIR_RECORD_HANDSHAKE;

	begin(s, WEIR_TLS, "", 0);
	hold_add(s, WEIR_RECORD_HANDSHAKE, 200);
	pass(s, 0, 205);
	assert_int_equal(hold_server_speaks(s, &hello, 1), WEIR_TLS);
	weir_record_start_midway(&s->conn.hold.record);
	for (int i = 0; i < 4; i++)
		hold_add(s, WEIR_RECORD_DATA, 1000);
	memset(s->stream + 205 + 5, '\n', 1000);
	memset(s->stream + 205 + 1005 + 5, '\n', 1000);
}

/* What is ahead of its turn costs what its length does, and the records behind it are followed again: it is TLS for good. */
static void test_tls_with_a_gap(void **state)
{
	struct hold_scene s;

	(void)state;
	for (__u32 off = 0; off < 2; off++) {
		begin_tls(&s);
		assert_int_equal(hold_offer(&s, 205 + 1005, 1005 + off, false), WEIR_PASS);
		hold_check(&s, 1, 1);
		pass(&s, 205, 1005);
		hold_check(&s, 2, 2);
		/* The server has both. */
		s.socket.next = s.conn.splice.server_acked = START + 205 + 2010 + off;
		pass(&s, 205 + 2010 + off, 1005 - off);
		hold_check(&s, 3, 3);
		assert_int_equal(s.conn.hold.by_records, !off);
		assert_true(weir_hold_is_tls(&s.conn));
		assert_false(weir_hold_may_be_http(&s.conn));
		/* Lines and a FIN are none of a request, neither where nothing was found nor where a record was. */
		memset(s.stream + 205 + 3015 + 5, '\n', 1000);
		assert_int_equal(hold_offer_end(&s, 205 + 3015, 1005, false), WEIR_PASS);
		hold_check(&s, 4, 4);
		assert_true(s.conn.hold.by_records);
		assert_false(s.conn.bare & WEIR_BARE_MIDWAY);
	}
}

/* Nor does a FIN ahead of its turn end anything, and what comes by another way than what has waited has no lines either. */
static void test_tls_out_of_step(void **state)
{
	struct hold_scene s;

	(void)state;
	begin_tls(&s);
	assert_int_equal(hold_offer_end(&s, 205 + 1005, 1005, false), WEIR_PASS);
	hold_check(&s, 1, 1);
	begin_tls(&s);
	s.conn.hold.departs_ns = 1;
	s.unseen = true;
	assert_int_equal(hold_offer(&s, 205, 1005, false), WEIR_PASS);
	hold_check(&s, 1, 1);
}

/* What TLS 1.2's cipher adds is known behind a gap, too: WINDOW_UPDATEs stay as cheap as they were. */
static void test_short_ones_behind_a_gap(void **state)
{
	struct hold_scene s;
	__u32 at;

	(void)state;
	begin_tls(&s);
	s.conn.hold.record.overhead = WEIR_RECORD_OVERHEAD_AEAD;
	assert_int_equal(hold_offer(&s, 205 + 1005, 1006, false), WEIR_PASS);
	pass(&s, 205, 1005);
	s.socket.next = s.conn.splice.server_acked = START + 205 + 2011;
	pass(&s, 205 + 2011, 500);
	at = s.size = 205 + 2511;
	hold_check(&s, 3, 3);
	for (__u32 i = 0; i < WEIR_RECORD_SPARED - 1; i++) {
		hold_add(&s, WEIR_RECORD_DATA, WEIR_RECORD_OVERHEAD_AEAD + WEIR_RECORD_FREE);
		pass(&s, at, s.size - at);
		at = s.size;
	}
	hold_check(&s, 3, 3);
	assert_true(s.conn.hold.by_records);
}

/* What is behind the end of a record and is none was never TLS, whatever the server has said, and what comes after it is not either. */
static void test_tls_without_its_records(void **state)
{
	struct hold_scene s;

	(void)state;
	begin_tls(&s);
	memcpy(s.stream + 205, REQUEST REQUEST, 2 * (sizeof(REQUEST) - 1));
	pass(&s, 205, 2 * (sizeof(REQUEST) - 1));
	hold_check(&s, 1, 2);
	assert_false(weir_hold_is_tls(&s.conn));
	s.size = 205 + 2 * (sizeof(REQUEST) - 1);
	hold_add(&s, WEIR_RECORD_DATA, 1000);
	memset(s.stream + s.size - 1000, '\n', 1000);
	pass(&s, s.size - 1005, 1005);
	assert_true(s.conn.hold.by_records);
	assert_true(s.conn.bare & WEIR_BARE_MIDWAY);
	assert_true(s.weight > 900);
}

/* The same before the server has said anything, which is not asked any more. */
static void test_no_records_before_the_word(void **state)
{
	struct hold_scene s;

	(void)state;
	begin(&s, WEIR_TLS, "", 0);
	hold_add(&s, WEIR_RECORD_HANDSHAKE, 200);
	memcpy(s.stream + 205, REQUEST, sizeof(REQUEST) - 1);
	pass(&s, 0, 205);
	pass(&s, 205, sizeof(REQUEST) - 1);
	assert_int_equal(s.conn.bare & (WEIR_BARE_NONE | WEIR_BARE_UNTOLD), WEIR_BARE_NONE);
	assert_false(weir_hold_is_tls(&s.conn));
	assert_true(weir_hold_may_be_http(&s.conn));
}

/* To a server that weir looks into its lines are none. */
static void test_a_handshake_that_is_decided_inside(void **state)
{
	struct weir_hold_reader r = { .by_records = 1, .midway = 1, .lines = 2, .bare = 1, .weight = 3 };

	(void)state;
	weir_hold_reader_spare_records(&r);
	assert_int_equal(r.weight, 3);
	r.untold = 1;
	weir_hold_reader_spare_records(&r);
	assert_int_equal(r.weight, 0);
}

/* For many servers the header of a record may be a part of a method. */
static void test_requests_that_begin_like_tls(void **state)
{
	static const char requests[] = "\x16\x03\x01" REQUEST REQUEST REQUEST;
	const __u32 length = sizeof(requests) - 1;
	struct hold_scene s;

	(void)state;
	for (__u32 piece = 1; piece <= length; piece++) {
		begin(&s, WEIR_TLS, requests, length);
		for (__u32 at = 0; at < length; at += piece)
			pass(&s, at, at + piece < length ? piece : length - at);
		assert_true(s.weight >= 3);
		assert_int_equal(hold_server_speaks(&s, (const __u8 *)"HTTP/1.1 200 OK\r\n", 17), WEIR_BAD_RESPONSE);
		s.weight = 0;
		memcpy(s.stream + length, REQUEST, sizeof(REQUEST) - 1);
		for (__u32 at = 0; at < sizeof(REQUEST) - 1; at++)
			pass(&s, length + at, 1);
		assert_true(s.weight >= sizeof(REQUEST) - 1);
	}
}

/* Nor is a request without an empty line free: one line, or a head that a FIN ends. */
static void test_bare_requests_that_begin_like_tls(void **state)
{
	static const char line[] = "\x16\x03\x01\x40\x40\nGET /\n", head[] = "\x16\x03\x01GET / HTTP/1.1\r\nX: y";
	struct hold_scene s;

	(void)state;
	for (__u32 cut = 1; cut < sizeof(line) - 1; cut++) {
		begin(&s, WEIR_TLS, line, sizeof(line) - 1);
		pass(&s, 0, cut);
		pass(&s, cut, sizeof(line) - 1 - cut);
		assert_true(s.weight >= 1);
	}
	begin(&s, WEIR_TLS, head, sizeof(head) - 1);
	assert_int_equal(hold_offer_end(&s, 0, sizeof(head) - 1, false), WEIR_PASS);
	assert_int_equal(s.weight, 1);
}

/* What a client begins behind a request may be in the request's body, whatever the server says next. */
static void test_behind_a_request(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	s.conn.requests = 1;
	weir_conn_await_word(&s.conn);
	weir_conn_opaque(&s.conn, START, WEIR_TLS);
	assert_false(weir_conn_is_untold(&s.conn));
	assert_false(weir_hold_is_tls(&s.conn));
}

/* The preface is free of what it looks like. Requests behind it are not, and it is one to whom they are some. */
static void test_requests_behind_a_preface(void **state)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", requests[] = REQUEST REQUEST;
	const __u32 length = sizeof(preface) - 1 + sizeof(requests) - 1;
	struct hold_scene s;

	(void)state;
	for (int told = 0; told < 2; told++) {
		begin(&s, WEIR_HTTP2, preface, sizeof(preface) - 1);
		memcpy(s.stream + sizeof(preface) - 1, requests, sizeof(requests) - 1);
		pass(&s, 0, told ? sizeof(preface) - 1 : length);
		assert_int_equal(s.weight, told ? 1 : 3);
		assert_int_equal(hold_server_speaks(&s, told ? settings : (const __u8 *)"HTTP/1.1 ", 9),
				 told ? WEIR_HTTP2 : WEIR_BAD_RESPONSE);
		s.weight = 0;
		for (__u32 at = 0; at < 8; at++)
			pass(&s, (told ? sizeof(preface) - 1 : length) + at, 1);
		assert_int_equal(s.weight, told ? 0 : 8);
	}
}

/* Before the server's word crumbs are not HTTP/2's. */
static void test_crumbs_before_the_word(void **state)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	struct hold_scene s;

	(void)state;
	begin(&s, WEIR_HTTP2, preface, sizeof(preface) - 1);
	for (__u32 at = 0; at < 8; at++)
		pass(&s, at ? sizeof(preface) - 2 + at : 0, at ? 1 : sizeof(preface) - 1);
	assert_int_equal(s.weight, 8);
}

/* Only a digit ends a version that is known. */
static void test_digit_of_a_version(void **state)
{
	(void)state;
	for (unsigned int byte = 0; byte < 256; byte++)
		assert_int_equal(weir_hold_ending(WEIR_HOLD_ENDING - 1, byte),
				 byte >= '0' && byte <= '9' ? WEIR_HOLD_ENDING : byte == ' ');
}

/* What a server says first is nothing that comes behind an answer. */
static void test_settings_behind_an_answer(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct weir_response_reader r = { .first = i == 1, .responses = i == 2, .outstanding = i == 2 };

		weir_response_start(&r.response);
		assert_int_equal(weir_response_reader_feed(&r, settings[0]), i ? WEIR_FRAME_LOST : WEIR_FRAME_MORE);
		assert_int_equal(r.lost, WEIR_BAD_RESPONSE);
		assert_int_equal(r.next, !i);
	}
}

/* The client's stream does not begin yet where its preamble is still to come. */
static void test_settings_before_a_preamble(void **state)
{
	struct hold_scene s;

	(void)state;
	for (int preamble = 0; preamble < 2; preamble++) {
		hold_open(&s, WEIR_PHASE_FOLLOWED);
		if (preamble)
			weir_conn_await_preamble(&s.conn);
		assert_int_equal(hold_server_speaks(&s, settings, sizeof(settings)), WEIR_HTTP2);
		assert_int_equal(!!(s.conn.bare & WEIR_BARE_FIRST), !preamble);
	}
}

/*
 * A record before the client has begun one answers nothing: what such a client sends may be requests, and none of them is free. A connection
 * that was hunting may have been followed by records before.
 */
static void test_a_record_that_nobody_began(void **state)
{
	static const __u8 types[] = { WEIR_RECORD_HANDSHAKE, WEIR_RECORD_ALERT };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct hold_scene s;

		hold_open(&s, WEIR_PHASE_FOLLOWED);
		s.conn.hold.by_records = i / 2;
		assert_int_equal(hold_server_speaks(&s, &types[i % 2], 1), WEIR_BAD_RESPONSE);
		assert_false(weir_hold_is_tls(&s.conn));
		assert_true(weir_hold_may_be_http(&s.conn));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_handshake_is_free),
		cmocka_unit_test(test_early_data_is_charged),
		cmocka_unit_test(test_a_certificate_behind_a_held_hello),
		cmocka_unit_test(test_tls_with_a_gap),
		cmocka_unit_test(test_tls_out_of_step),
		cmocka_unit_test(test_short_ones_behind_a_gap),
		cmocka_unit_test(test_tls_without_its_records),
		cmocka_unit_test(test_no_records_before_the_word),
		cmocka_unit_test(test_a_handshake_that_is_decided_inside),
		cmocka_unit_test(test_requests_that_begin_like_tls),
		cmocka_unit_test(test_bare_requests_that_begin_like_tls),
		cmocka_unit_test(test_behind_a_request),
		cmocka_unit_test(test_requests_behind_a_preface),
		cmocka_unit_test(test_crumbs_before_the_word),
		cmocka_unit_test(test_digit_of_a_version),
		cmocka_unit_test(test_settings_behind_an_answer),
		cmocka_unit_test(test_settings_before_a_preamble),
		cmocka_unit_test(test_a_record_that_nobody_began),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
