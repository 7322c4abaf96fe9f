/* SPDX-License-Identifier: GPL-2.0 */
/* What came to the socket by a way that is not seen, and what follows on its connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hold_scene.h"

static enum weir_reason meet(struct hold_scene *s, const struct weir_segment *g, bool badged)
{
	return weir_hold_meet(&s->conn, &s->socket, g, badged, true);
}

/*
 * Segments come to the socket by a way that is not seen. The first are dropped. Then their connection is opaque, from where the server stands.
 */
static void test_unseen(void **state)
{
	struct weir_segment seen = hold_segment(0, 500), unseen = hold_segment(300, 400);
	struct hold_scene s;

	(void)state;
	for (enum weir_phase phase = WEIR_PHASE_FOLLOWED; phase <= WEIR_PHASE_HUNTING; phase++) {
		hold_open(&s, phase);
		weir_splice_pass(&s.conn.splice, &seen);
		assert_int_equal(meet(&s, &seen, true), WEIR_REASON_NONE);
		s.socket.next = START + 200;
		for (int i = 1; i < WEIR_STRAYS_MAX; i++)
			assert_int_equal(meet(&s, &unseen, false), WEIR_STRAY);
		assert_int_equal(s.conn.phase, phase);
		assert_int_equal(meet(&s, &unseen, false), WEIR_UNSEEN);
		assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
		assert_int_equal(s.conn.opaque_why, WEIR_UNSEEN);
		assert_int_equal(s.conn.hold.next, START + 200);
		assert_int_equal(meet(&s, &unseen, false), WEIR_REASON_NONE);
		hold_add(&s, WEIR_RECORD_HANDSHAKE, 700);
		assert_int_equal(hold_offer(&s, 200, 500, true), WEIR_DROP);
		assert_int_equal(hold_offer(&s, 200, 500, false), WEIR_PASS);
		hold_check(&s, 1, 1);
	}
}

/* The server has nothing yet: what stands before the stray that made the connection opaque is charged, too. */
static void test_unseen_ahead_of_the_handshake(void **state)
{
	struct weir_segment ahead = hold_segment(300, 40);
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	s.socket.listens = true;
	for (int i = 1; i < WEIR_STRAYS_MAX; i++)
		assert_int_equal(meet(&s, &ahead, false), WEIR_STRAY);
	assert_int_equal(meet(&s, &ahead, false), WEIR_UNSEEN);
	assert_int_equal(s.conn.hold.next, START);
	memcpy(s.stream, "GET / HTTP/1.1\r\n\r\n", 18);
	assert_int_equal(hold_offer(&s, 0, 18, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 0, 18, false), WEIR_PASS);
	hold_check(&s, 1, 1);
}

/* What was charged and did not come to the server is charged again, as other bytes may have taken its place. */
static void test_charged_until_the_server_has_it(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START, WEIR_ANSWERED_EARLY);
	s.socket.next = START;
	memcpy(s.stream, "a decoy that was dropped", 24);
	assert_int_equal(hold_offer(&s, 0, 24, true), WEIR_PASS);
	memcpy(s.stream, "GET / HTTP/1.1\r\n\r\nGET", 21);
	assert_int_equal(hold_offer(&s, 0, 18, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 0, 18, false), WEIR_PASS);
	hold_check(&s, 1, 1);
	assert_int_equal(hold_offer(&s, 10, 8, true), WEIR_DROP);
	s.socket.next = START + 18;
	assert_int_equal(hold_offer(&s, 0, 18, true), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 10, 14, true), WEIR_PASS);
	hold_check(&s, 1, 1);
}

/* Whatever made it opaque: what was decided before is not charged, what was charged and did not come to the server is. */
static void test_charged_until_the_server_has_it_behind_what_was_decided(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START + 30, WEIR_BAD_RESPONSE);
	assert_int_equal(hold_offer(&s, 0, 30, true), WEIR_PASS);
	memset(s.stream + 30, 'x', 24);
	assert_int_equal(hold_offer(&s, 0, 54, false), WEIR_PASS);
	hold_check(&s, 1, 1);
	memcpy(s.stream + 30, "GET / HTTP/1.1\r\n\r\n\r\n\r\n", 22);
	assert_int_equal(hold_offer(&s, 0, 30, true), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 0, 54, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 0, 54, false), WEIR_PASS);
	hold_check(&s, 2, 4);
	s.socket.next = START + 54;
	assert_int_equal(hold_offer(&s, 0, 54, true), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 54, 1, true), WEIR_DROP);
}

/* Over a record that was none the position has run ahead: what the server has not got is charged. */
static void test_a_record_that_was_none(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_hold_unseen(&s.conn, &s.socket);
	hold_add(&s, WEIR_RECORD_DATA, 20);
	assert_int_equal(hold_offer(&s, 0, 25, false), WEIR_PASS);
	s.socket.next = START + 25;
	hold_add(&s, WEIR_RECORD_HANDSHAKE, 4000);
	assert_int_equal(hold_offer(&s, 25, 100, false), WEIR_PASS);
	hold_check(&s, 1, 4);
	s.stream[4030] = 'x';
	assert_int_equal(hold_offer(&s, 4030, 10, true), WEIR_DROP);
	s.socket.next = START + 4030;
	assert_int_equal(hold_offer(&s, 4030, 10, false), WEIR_PASS);
	assert_int_equal(s.conn.hold.next, START + 4030);
}

/* What the socket would drop now does not come to it, and says nothing of the connection. */
static void test_strays_out_of_window(void **state)
{
	struct weir_segment g = hold_segment(0, 500), beyond = hold_segment(1 << 30, 10);
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	assert_false(weir_hold_socket_takes(&s.conn, &s.socket, &beyond));
	for (int i = 0; i < 5 * WEIR_STRAYS_MAX; i++)
		assert_int_equal(meet(&s, &beyond, false), WEIR_STRAY);
	assert_int_equal(weir_hold_meet(&s.conn, &s.socket, &beyond, false, false), WEIR_REASON_NONE);
	assert_int_equal(s.conn.phase, WEIR_PHASE_FOLLOWED);
	for (int i = 1; i < WEIR_STRAYS_MAX; i++)
		assert_int_equal(meet(&s, &g, false), WEIR_STRAY);
	assert_int_equal(meet(&s, &g, false), WEIR_UNSEEN);
}

/* An acknowledgement of what the server is just sending: that has gone out, and its socket does not count it yet. */
static void test_takes_an_acknowledgement_of_what_is_being_sent(void **state)
{
	struct weir_segment g = hold_segment(0, 10);
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	s.socket.sent = 1;
	s.conn.splice.server_end = g.ack = 100;
	assert_false(weir_hold_socket_takes(&s.conn, &s.socket, &g));
	s.socket.owned = 1;
	assert_true(weir_hold_socket_takes(&s.conn, &s.socket, &g));
	g.ack++;
	assert_false(weir_hold_socket_takes(&s.conn, &s.socket, &g));
}

/* What was read in between ends the row; what has nothing to read does not. */
static void test_strays_in_between(void **state)
{
	struct weir_segment g = hold_segment(0, 500), ack = hold_segment(0, 0);
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_splice_pass(&s.conn.splice, &g);
	for (int i = 0; i < 5 * WEIR_STRAYS_MAX; i++) {
		assert_int_equal(meet(&s, &g, false), WEIR_STRAY);
		if (i % 2)
			assert_int_equal(meet(&s, &g, true), WEIR_REASON_NONE);
	}
	assert_int_equal(meet(&s, &ack, true), WEIR_REASON_NONE);
	for (int i = 1; i < WEIR_STRAYS_MAX; i++)
		assert_int_equal(meet(&s, &g, false), i > 1 ? WEIR_UNSEEN : WEIR_STRAY);
}

/* Nothing is dropped where nothing may be. */
static void test_nothing_is_withheld(void **state)
{
	struct weir_segment g = hold_segment(0, 500);
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	assert_int_equal(weir_hold_meet(&s.conn, &s.socket, &g, false, false), WEIR_UNSEEN);
	hold_open(&s, WEIR_PHASE_CLOSED);
	assert_int_equal(weir_hold_meet(&s.conn, &s.socket, &g, false, false), WEIR_REASON_NONE);
	assert_int_equal(s.conn.phase, WEIR_PHASE_CLOSED);
}

/* Where it stands does not tell whether it was read: other bytes may come in the place of those that were. */
static void test_other_bytes_in_the_place(void **state)
{
	struct weir_segment seen = hold_segment(0, 500), g;
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_splice_pass(&s.conn.splice, &seen);
	assert_true(weir_hold_overlooked(&s.conn, &s.socket, &seen, false));
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &seen, true));
	/* In a translated connection it stands by the server's numbers. */
	s.conn.splice.in_off = 100;
	g = hold_segment(0, 400);
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g, true));
	g.len++;
	assert_true(weir_hold_overlooked(&s.conn, &s.socket, &g, true));
}

/* A FIN weighs nothing: in the middle of a head it never comes by a way that is not seen. */
static void test_unseen_fin(void **state)
{
	struct weir_segment fin = hold_segment(0, 0), seen = hold_segment(0, 0);
	struct hold_scene s;

	(void)state;
	fin.flags |= WEIR_TCP_FIN;
	seen.flags |= WEIR_TCP_FIN;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	assert_int_equal(meet(&s, &seen, true), WEIR_REASON_NONE);
	s.conn.request_place = WEIR_PLACE_HEAD;
	for (int i = 0; i < 300; i++)
		assert_int_equal(meet(&s, &fin, false), WEIR_STRAY);
	assert_int_equal(meet(&s, &seen, true), WEIR_REASON_NONE);
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	for (int i = 1; i < WEIR_STRAYS_MAX; i++)
		assert_int_equal(meet(&s, &fin, false), WEIR_STRAY);
	assert_int_equal(meet(&s, &fin, false), WEIR_UNSEEN);
	/* The server has it already. */
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	s.socket.next = START + 1;
	assert_int_equal(meet(&s, &fin, false), WEIR_REASON_NONE);
}

/* What follows the end of a connection that weir ended does not come to the server at all. */
static void test_unseen_after_the_end(void **state)
{
	struct weir_segment g = hold_segment(0, 100);
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_CLOSED);
	for (int i = 0; i < 300; i++)
		assert_int_equal(meet(&s, &g, false), WEIR_STRAY);
	assert_int_equal(s.conn.phase, WEIR_PHASE_CLOSED);
}

/* A body whose server has answered before its end costs what could be requests, those of one line among them. */
static void test_answered_early(void **state)
{
	static const char *const texts[] = { "{ a body }", "GET / HTTP/1.1\r\nHost: x\r\n", "\r\n", "\n",
					     "G\n\n\r\nGET / HTTP/1.1\r\n\r\n" };
	static const __u32 weights[] = { 0, 0, 1, 1, 4 };
	__u32 weight = 0, records = 0, at = 0;
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START, WEIR_ANSWERED_EARLY);
	for (int i = 0; i < 5; i++) {
		memcpy(s.stream + at, texts[i], strlen(texts[i]));
		assert_int_equal(hold_offer(&s, at, strlen(texts[i]), false), WEIR_PASS);
		at += strlen(texts[i]);
		weight += weights[i];
		records += !!weights[i];
		hold_check(&s, records, weight);
	}
}

/* Each segment costs something there, and each empty line, and the first line that may be a request by itself. */
static void test_unseen_requests(void **state)
{
	static const char *const texts[] = { "G", "GET / HTTP/1.1\r\n", "\r\n", "\n",
					     "GET /\n\n\r\nGET / HTTP/1.1\r\n\r\n" };
	static const __u32 weights[] = { 1, 1, 1, 1, 4 };
	__u32 weight = 0, at = 0;
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START, WEIR_UNSEEN);
	for (int i = 0; i < 5; i++) {
		memcpy(s.stream + at, texts[i], strlen(texts[i]));
		assert_int_equal(hold_offer(&s, at, strlen(texts[i]), false), WEIR_PASS);
		at += strlen(texts[i]);
		weight += weights[i];
		hold_check(&s, i + 1, weight);
	}
	memset(s.stream + at, '\n', 3000);
	assert_int_equal(hold_offer(&s, at, 3000, false), WEIR_PASS);
	hold_check(&s, 6, weight + 3000);
}

/* What the socket has is nothing new to it. What it would drop now may be, by the time it looks. */
static void test_not_unseen(void **state)
{
	struct weir_segment g = hold_segment(0, 100);
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	s.socket.next = START + 100;
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g, false));
	s.socket.listens = 1;
	assert_true(weir_hold_overlooked(&s.conn, &s.socket, &g, false));
	for (__u32 edge = START + 98; edge != START + 101; edge++) {
		s.socket = (struct weir_socket){ .next = START, .edge = edge };
		assert_true(weir_hold_overlooked(&s.conn, &s.socket, &g, false));
		assert_true(weir_hold_overlooked(&s.conn, &s.socket, &g, true));
	}
	g.flags |= WEIR_TCP_RST;
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g, false));
	g = hold_segment(0, 0);
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_unseen_ahead_of_the_handshake),
		cmocka_unit_test(test_strays_out_of_window),
		cmocka_unit_test(test_takes_an_acknowledgement_of_what_is_being_sent),
		cmocka_unit_test(test_charged_until_the_server_has_it),
		cmocka_unit_test(test_charged_until_the_server_has_it_behind_what_was_decided),
		cmocka_unit_test(test_a_record_that_was_none),
		cmocka_unit_test(test_strays_in_between),
		cmocka_unit_test(test_nothing_is_withheld),
		cmocka_unit_test(test_other_bytes_in_the_place),
		cmocka_unit_test(test_unseen_fin),
		cmocka_unit_test(test_unseen_after_the_end),
		cmocka_unit_test(test_answered_early),
		cmocka_unit_test(test_unseen_requests),
		cmocka_unit_test(test_not_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
