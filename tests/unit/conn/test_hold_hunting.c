/* SPDX-License-Identifier: GPL-2.0 */
/* Withholding on connections that were joined in the middle: by lines, until a record begins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hold_scene.h"

static void test_joined(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_HUNTING);
	memset(s.stream, 'x', 1000);
	s.size = 1000;
	assert_int_equal(hold_offer(&s, 0, 996, true), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 996, 4, true), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(hold_offer(&s, 1000, 210, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 1000, 210, false), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	hold_check(&s, 2, 2);
	assert_int_equal(hold_offer(&s, 1000, 210, true), WEIR_PASS);
	/* It was chance: the hunt goes on, and then it is joined again. */
	memset(s.stream + s.size, 'x', 100);
	s.size += 100;
	assert_int_equal(hold_offer(&s, 1210, 100, false), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(hold_offer(&s, 1310, 105, false), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	hold_check(&s, 4, 4);
}

/* Only a record of application data, of version 3.3, and only where a segment begins. */
static void test_not_joined(void **state)
{
	static const __u8 starts[][5] = {
		{ 22, 3, 3, 0, 50 }, { 23, 3, 1, 0, 50 }, { 23, 3, 3, 0x60, 0 }, { 'G', 'E', 'T' }
	};
	struct hold_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		hold_open(&s, WEIR_PHASE_HUNTING);
		memcpy(s.stream, starts[i], sizeof(starts[i]));
		assert_int_equal(hold_offer(&s, 0, 55, true), WEIR_PASS);
		assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
		hold_check(&s, 0, 0);
	}
}

static void hold_add_text(struct hold_scene *s, const char *text)
{
	memcpy(s->stream + s->size, text, strlen(text));
	s->size += strlen(text);
}

#define GET "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
#define GET_BYTES (sizeof(GET) - 1)

/* Of a connection that is hunting each head that was not decided before costs a token, and what is withheld comes again. */
static void test_hunting_by_lines(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_HUNTING);
	memset(s.stream, 'x', 4000);
	s.size = 4000;
	hold_add_text(&s, GET GET GET GET);
	/* A body that was under way. */
	assert_int_equal(hold_offer(&s, 0, 4000, true), WEIR_PASS);
	hold_check(&s, 0, 0);
	assert_int_equal(hold_offer(&s, 4000, GET_BYTES, true), WEIR_DROP);
	s.now_ns += 10;
	assert_int_equal(hold_offer(&s, 4000, GET_BYTES, false), WEIR_PASS);
	hold_check(&s, 1, 1);
	assert_int_equal(s.held_ns, 11);
	/* What the server has is not charged again. */
	s.socket.next = START + 4000 + GET_BYTES;
	assert_int_equal(hold_offer(&s, 4000, GET_BYTES, true), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 4000, 3 * GET_BYTES, false), WEIR_PASS);
	hold_check(&s, 2, 3);
	/* Of two that come together, one was decided on its way. */
	s.conn.hold.decided = 1;
	assert_int_equal(hold_offer(&s, 4000 + 2 * GET_BYTES, 2 * GET_BYTES, true), WEIR_DROP);
	assert_int_equal(s.conn.hold.decided, 1);
	assert_int_equal(hold_offer(&s, 4000 + 2 * GET_BYTES, 2 * GET_BYTES, false), WEIR_PASS);
	assert_int_equal(s.conn.hold.decided, 0);
	hold_check(&s, 3, 4);
	assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
}

/* While the server's socket still listens, nothing is known to have come to it. */
static void test_hunting_before_it_is_accepted(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_HUNTING);
	s.socket = (struct weir_socket){ .listens = 1 };
	s.conn.bare |= WEIR_BARE_PAID;
	hold_add_text(&s, "a: b\r\n\r\n" GET);
	assert_int_equal(hold_offer(&s, 0, 8, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 0, 8, false), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 8, GET_BYTES, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 8, GET_BYTES, false), WEIR_PASS);
	hold_check(&s, 2, 2);
}

/* A connection that is hunted, or is not read for this reason. The server has the first `cut` bytes of its stream. */
static void open_cut(struct hold_scene *s, const char *text, enum weir_reason why, __u32 cut)
{
	hold_open(s, WEIR_PHASE_HUNTING);
	if (why != WEIR_REASON_NONE)
		weir_conn_opaque(&s->conn, START, why);
	hold_add_text(s, text);
	if (cut)
		assert_int_equal(hold_offer(s, 0, cut, false), WEIR_PASS);
	s->socket.next = START + cut;
}

/* The end of a head costs a token wherever it is cut, and one more where a piece begins with the end of a line. */
static void test_hunting_cut_at_every_byte(void **state)
{
	struct hold_scene s;

	(void)state;
	for (__u32 cut = 1; cut < GET_BYTES; cut++) {
		open_cut(&s, GET, WEIR_REASON_NONE, cut);
		assert_int_equal(hold_offer(&s, cut, GET_BYTES - cut, false), WEIR_PASS);
		assert_in_range(s.weight, 1, 2);
	}
}

/* What a line costs that may be a request of HTTP/0.9: it is in one segment, or in two. */
static void check_line(const char *text, enum weir_reason why, __u32 weight)
{
	struct hold_scene s;
	size_t bytes = strlen(text);

	for (__u32 cut = 0; cut < bytes; cut++) {
		open_cut(&s, text, why, cut);
		assert_int_equal(hold_offer(&s, cut, bytes - cut, weight), weight ? WEIR_DROP : WEIR_PASS);
		assert_int_equal(hold_offer(&s, cut, bytes - cut, false), WEIR_PASS);
		hold_check(&s, weight, weight);
	}
}

/* HTTP/0.9: its one line is all of it. On a connection that may not be read it is no cheaper than any other request. */
static void test_requests_of_one_line(void **state)
{
	(void)state;
	for (int early = 0; early < 2; early++) {
		enum weir_reason why = early ? WEIR_ANSWERED_EARLY : WEIR_REASON_NONE;

		check_line("GET /\r\n", why, 1);
		check_line("GET /1zzzzzzzz\n", why, 1);
		check_line("GET /a b HTTP/2\n", why, 1);
		check_line("GET /aHTTP/1.1\n", why, 1);
		check_line("GET /", why, 0);
	}
}

/* One at most is a connection's, for the answer ends it: so is what it costs. A body is not taken for many. */
static void test_one_line_is_paid_once(void **state)
{
	static const char *const lines[] = { "GET /\n", "x\nxxGET / x\n", "x\nGGET\t/\r\n", "a\n" };
	struct hold_scene s;
	__u32 at = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		hold_open(&s, WEIR_PHASE_HUNTING);
		hold_add_text(&s, lines[i]);
		assert_int_equal(hold_offer(&s, 0, s.size, false), WEIR_PASS);
		hold_check(&s, 1, 1);
	}
	hold_open(&s, WEIR_PHASE_HUNTING);
	for (int i = 0; i < 100; i++) {
		hold_add_text(&s, "a\nbody\n");
		assert_int_equal(hold_offer(&s, at, s.size - at, false), WEIR_PASS);
		at = s.size;
		s.socket.next = START + at;
	}
	hold_check(&s, 1, 1);
	/* Heads have empty lines, and their first lines a version: those pay. */
	hold_open(&s, WEIR_PHASE_HUNTING);
	hold_add_text(&s, GET GET GET);
	assert_int_equal(hold_offer(&s, 0, s.size, false), WEIR_PASS);
	hold_check(&s, 1, 3);
	hold_add_text(&s, GET "GET /\n");
	assert_int_equal(hold_offer(&s, 3 * GET_BYTES, GET_BYTES + 6, false), WEIR_PASS);
	hold_check(&s, 2, 5);
}

#define CUT_HEAD "GET / HTTP/1.1\r\nHost: x\r\n"
#define CUT_BYTES ((__u32)sizeof(CUT_HEAD) - 1)

/* What a stream costs that is hunted, or whose server has answered early, and that ends behind `text`: all at once, or in pieces. */
static void check_end(const char *text, enum weir_reason why, __u32 weight)
{
	struct hold_scene s;
	__u32 bytes = strlen(text);

	for (__u32 cut = 0; cut <= bytes; cut++) {
		open_cut(&s, text, why, cut);
		assert_int_equal(hold_offer_end(&s, cut, bytes - cut, false), WEIR_PASS);
		/* Where a line is cut, the pieces may be two lines, and end two heads. */
		assert_in_range(s.weight, weight, cut ? weight + 2 : weight);
		/* It comes again, alone. */
		s.socket.next = START + bytes;
		assert_int_equal(hold_offer_end(&s, bytes, 0, false), WEIR_PASS);
		assert_int_equal(hold_offer_end(&s, bytes, 0, true), WEIR_PASS);
	}
}

/* Some servers take the end of the stream for the end of a head: it is no cheaper than another one. */
static void test_heads_that_the_end_cuts(void **state)
{
	(void)state;
	for (int early = 0; early < 2; early++) {
		enum weir_reason why = early ? WEIR_ANSWERED_EARLY : WEIR_REASON_NONE;

		check_end(CUT_HEAD, why, 1);
		check_end("G", why, 1);
		check_end(CUT_HEAD "\r", why, 1);
		check_end(GET CUT_HEAD, why, 2);
		check_end(GET GET, why, 2);
	}
	check_end(CUT_HEAD, WEIR_BAD_RESPONSE, 1);
	check_end(GET CUT_HEAD, WEIR_BAD_RESPONSE, 2);
	check_end("", WEIR_REASON_NONE, 0);
	check_end("", WEIR_BAD_RESPONSE, 0);
	check_end("", WEIR_ANSWERED_EARLY, 1);
	check_end("\r\n", WEIR_ANSWERED_EARLY, 1);
	check_end("0123456789", WEIR_UPGRADE, 1);
	check_end(GET CUT_HEAD, WEIR_UPGRADE, 2);
}

/* A head that was under way when the connection was lost, or joined: the rest of it may be a FIN. */
static void test_head_was_begun_before(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	s.conn.request_place = WEIR_PLACE_HEAD;
	weir_conn_hunt(&s.conn);
	assert_int_equal(hold_offer_end(&s, 0, 0, true), WEIR_DROP);
	assert_int_equal(hold_offer_end(&s, 0, 0, false), WEIR_PASS);
	hold_check(&s, 1, 1);
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	s.conn.request_place = WEIR_PLACE_HEAD;
	weir_hold_unseen(&s.conn, &s.socket);
	assert_int_equal(hold_offer_end(&s, 0, 0, true), WEIR_DROP);
}

/* What it ends has to be known: a FIN ahead of its turn comes again. */
static void test_end_ahead_of_its_turn(void **state)
{
	struct hold_scene s;

	(void)state;
	for (int hunting = 0; hunting < 2; hunting++) {
		hold_open(&s, WEIR_PHASE_HUNTING);
		if (!hunting)
			weir_conn_opaque(&s.conn, START, WEIR_ANSWERED_EARLY);
		hold_add_text(&s, CUT_HEAD);
		assert_int_equal(hold_offer_end(&s, 10, CUT_BYTES - 10, false), WEIR_DROP);
		assert_int_equal(s.why, WEIR_OUT_OF_ORDER);
		assert_int_equal(hold_offer_end(&s, CUT_BYTES, 0, false), WEIR_DROP);
		assert_int_equal(hold_offer(&s, 0, CUT_BYTES, false), WEIR_PASS);
		s.socket.next = START + CUT_BYTES;
		assert_int_equal(hold_offer_end(&s, CUT_BYTES, 0, false), WEIR_PASS);
		hold_check(&s, 1, 1);
	}
}

/* Where the server answers what could not be read, that was no body: it is charged as what is not seen. */
static void test_hunting_what_is_not_http(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_HUNTING);
	memset(s.stream, 'x', 4000);
	s.conn.hold.answers = 1;
	assert_int_equal(hold_offer(&s, 0, 1500, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 0, 1500, false), WEIR_PASS);
	hold_check(&s, 1, 2);
	/* A body that was announced in a head that was read is one. */
	s.conn.request_next = START + 3000;
	assert_int_equal(hold_offer(&s, 1500, 1500, true), WEIR_PASS);
	hold_check(&s, 1, 2);
	assert_int_equal(hold_offer(&s, 3000, 10, false), WEIR_PASS);
	hold_check(&s, 2, 3);
}

/* Two segments at once, on two CPUs: what one of them has used of what was decided, the other one must pay for. */
static void test_hunting_contended(void **state)
{
	struct weir_hold_reader first, second;
	enum weir_reason why = WEIR_REASON_NONE;
	struct weir_segment g = hold_segment(0, 2);
	struct hold_scene s;
	__u64 held_ns = 0;

	(void)state;
	hold_open(&s, WEIR_PHASE_HUNTING);
	s.conn.hold.decided = 1;
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, true, &first, &why), WEIR_FRAME);
	weir_hold_reader_line(&first, '\n');
	weir_hold_reader_end(&first, &g);
	second = first;
	assert_int_equal(first.weight, 0);
	assert_int_equal(weir_hold_commit(&s.conn, &first, 1, &held_ns, &why), WEIR_PASS);
	assert_int_equal(weir_hold_commit(&s.conn, &second, 1, &held_ns, &why), WEIR_DROP);
	assert_int_equal(why, WEIR_CONTENDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_not_joined),
		cmocka_unit_test(test_hunting_by_lines),
		cmocka_unit_test(test_hunting_before_it_is_accepted),
		cmocka_unit_test(test_hunting_cut_at_every_byte),
		cmocka_unit_test(test_requests_of_one_line),
		cmocka_unit_test(test_one_line_is_paid_once),
		cmocka_unit_test(test_heads_that_the_end_cuts),
		cmocka_unit_test(test_head_was_begun_before),
		cmocka_unit_test(test_end_ahead_of_its_turn),
		cmocka_unit_test(test_hunting_what_is_not_http),
		cmocka_unit_test(test_hunting_contended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
