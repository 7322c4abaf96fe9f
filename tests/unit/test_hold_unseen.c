/* SPDX-License-Identifier: GPL-2.0 */
/* What came to the socket by a way that is not seen, and what follows on its connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hold_scene.h"

/* What came to the socket by a way that is not seen makes its connection opaque, from where the server stands. */
static void test_unseen(void **state)
{
	struct weir_segment seen = hold_segment(0, 500), unseen = hold_segment(300, 400), g;
	struct hold_scene s;

	(void)state;
	for (enum weir_phase phase = WEIR_PHASE_FOLLOWED; phase <= WEIR_PHASE_HUNTING; phase++) {
		hold_open(&s, phase);
		weir_splice_pass(&s.conn.splice, &seen);
		assert_false(weir_hold_overlooked(&s.conn, &s.socket, &seen));
		assert_true(weir_hold_overlooked(&s.conn, &s.socket, &unseen));
		s.socket.next = START + 200;
		weir_hold_unseen(&s.conn, &s.socket, &unseen);
		assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
		assert_int_equal(s.conn.opaque_why, WEIR_UNSEEN);
		assert_int_equal(s.conn.hold.next, START + 200);
		assert_false(weir_hold_overlooked(&s.conn, &s.socket, &unseen));
		hold_add(&s, WEIR_RECORD_HANDSHAKE, 700);
		assert_int_equal(hold_offer(&s, 200, 500, true), WEIR_HOLD);
		assert_int_equal(hold_offer(&s, 200, 500, false), WEIR_PASS);
		hold_check(&s, 1, 1);
	}
	/* In a translated connection, by the server's numbers. */
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	s.conn.splice.in_off = 100;
	weir_splice_pass(&s.conn.splice, &seen);
	g = hold_segment(0, 400);
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	g.len++;
	assert_true(weir_hold_overlooked(&s.conn, &s.socket, &g));
}

/* A body whose server has answered before its end costs what could be requests. */
static void test_answered_early(void **state)
{
	static const char *const texts[] = { "{ a body }", "GET / HTTP/1.1\r\nHost: x\r\n", "\r\n", "\n",
					     "G\n\n\r\nGET / HTTP/1.1\r\n\r\n" };
	static const __u32 weights[] = { 0, 0, 1, 1, 3 };
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

/* Each segment costs something there, and each empty line. */
static void test_unseen_requests(void **state)
{
	static const char *const texts[] = { "G", "GET / HTTP/1.1\r\n", "\r\n", "\n",
					     "GET /\n\n\r\nGET / HTTP/1.1\r\n\r\n" };
	static const __u32 weights[] = { 1, 1, 1, 1, 3 };
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

/* What the socket has or will not take is nothing new to it. */
static void test_not_unseen(void **state)
{
	struct weir_segment g = hold_segment(0, 100);
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	s.socket.next = START + 100;
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	s.socket.listens = 1;
	assert_true(weir_hold_overlooked(&s.conn, &s.socket, &g));
	s.socket = (struct weir_socket){ .next = START, .edge = START + 99 };
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	s.socket.edge = START;
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	s.socket.edge = START + 100;
	assert_true(weir_hold_overlooked(&s.conn, &s.socket, &g));
	g.flags |= WEIR_TCP_RST;
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	g = hold_segment(0, 0);
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	g = hold_segment(0, 100);
	s.conn.phase = WEIR_PHASE_CLOSED;
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_answered_early),
		cmocka_unit_test(test_unseen_requests),
		cmocka_unit_test(test_not_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
