/* SPDX-License-Identifier: GPL-2.0 */
/* Withholding: a stream of records cut everywhere, refused, sent again, out of order, and lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hold_scene.h"

/* Records of a whole connection: 4 that cost something, 1 + 2 + 1 + 1 tokens. */
static void add_session(struct hold_scene *s)
{
	hold_add(s, WEIR_RECORD_HANDSHAKE, 300);
	hold_add(s, WEIR_RECORD_CIPHER, 1);
	hold_add(s, WEIR_RECORD_DATA, WEIR_RECORD_FINISHED_256);
	hold_add(s, WEIR_RECORD_DATA, 100);
	hold_add(s, WEIR_RECORD_DATA, 1500);
	hold_add(s, WEIR_RECORD_DATA, 30);
	hold_add(s, WEIR_RECORD_DATA, 31);
	hold_add(s, WEIR_RECORD_DATA, 200);
	hold_add(s, WEIR_RECORD_DATA, 19);
}

static void test_cut_at_every_byte(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	add_session(&s);
	for (__u32 cut = 0, size = s.size; cut <= size; cut++) {
		hold_open_tls(&s);
		add_session(&s);
		if (cut)
			assert_int_equal(hold_offer(&s, 0, cut, false), WEIR_PASS);
		if (cut < size)
			assert_int_equal(hold_offer(&s, cut, size - cut, false), WEIR_PASS);
		hold_check(&s, 4, 5);
		assert_int_equal(s.conn.hold.next, START + size);
	}
}

static void test_a_byte_at_a_time(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	add_session(&s);
	for (__u32 i = 0; i < s.size; i++)
		assert_int_equal(hold_offer(&s, i, 1, false), WEIR_PASS);
	hold_check(&s, 4, 5);
}

/* What is refused is asked again as often as it comes, costs nothing until it passes, and then once. */
static void test_refused(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	hold_add(&s, WEIR_RECORD_HANDSHAKE, 300);
	hold_add(&s, WEIR_RECORD_DATA, WEIR_RECORD_FINISHED_256);
	assert_int_equal(hold_offer(&s, 0, s.size, true), WEIR_PASS);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hold_offer(&s, s.size - 105, 105, true), WEIR_DROP);
	hold_check(&s, 0, 0);
	s.now_ns += 5000;
	assert_int_equal(hold_offer(&s, s.size - 105, 105, false), WEIR_PASS);
	hold_check(&s, 1, 1);
	assert_int_equal(s.held_ns, 5003);
	/* Known by its numbers, it passes whatever the limits say. */
	assert_int_equal(hold_offer(&s, s.size - 105, 105, true), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 0, s.size, true), WEIR_PASS);
	hold_check(&s, 1, 1);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(hold_offer(&s, s.size - 105, 105, false), WEIR_PASS);
	hold_check(&s, 2, 2);
	assert_int_equal(s.held_ns, 5003);
}

/* A segment that joins what passed with what did not costs what is new. */
static void test_repeated_with_more(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	weir_record_start_midway(&s.conn.hold.record);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(hold_offer(&s, 0, s.size, false), WEIR_PASS);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(hold_offer(&s, 0, s.size, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 0, s.size, false), WEIR_PASS);
	hold_check(&s, 2, 2);
}

static void test_out_of_order(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	weir_record_start_midway(&s.conn.hold.record);
	hold_add(&s, WEIR_RECORD_DATA, 1000);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	/*
	 * Where a record begins cannot be known before the one in front of it has. It costs what one record of that length does, each time, and
	 * is none of those that cost nothing; and what comes in its place costs what it is.
	 */
	for (__u32 i = 1; i <= 2; i++) {
		assert_int_equal(hold_offer(&s, 1005, 105, true), WEIR_DROP);
		assert_int_equal(hold_offer(&s, 1005, 105, false), WEIR_PASS);
		hold_check(&s, i, i);
	}
	assert_int_equal(hold_offer(&s, 2, 1100, false), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 1005, 1, false), WEIR_PASS);
	hold_check(&s, 4, 5);
	assert_true(s.conn.hold.by_records);
	assert_int_equal(s.conn.hold.next, START);
	/* A known body may come as it likes. */
	assert_int_equal(hold_offer(&s, 0, 10, false), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 500, 505, true), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 10, 490, true), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 1005, 105, false), WEIR_PASS);
	hold_check(&s, 6, 7);
}

/* The gap is filled: the next segment in turn begins with a record. If it does not, there are none any more. */
static void test_after_a_gap(void **state)
{
	struct hold_scene s;

	(void)state;
	for (__u32 off = 0; off < 2; off++) {
		hold_open_tls(&s);
		weir_record_start_midway(&s.conn.hold.record);
		for (int i = 0; i < 4; i++)
			hold_add(&s, WEIR_RECORD_DATA, 100);
		assert_int_equal(hold_offer(&s, 105, 105 + off, false), WEIR_PASS);
		assert_int_equal(hold_offer(&s, 0, 105, false), WEIR_PASS);
		hold_check(&s, 2, 2);
		s.socket.next = START + 210 + off;
		assert_int_equal(hold_offer(&s, 210 + off, 105 - off, false), WEIR_PASS);
		hold_check(&s, 3, 3);
		assert_int_equal(s.conn.hold.by_records, !off);
		assert_int_equal(hold_offer(&s, 315, 105, false), WEIR_PASS);
		hold_check(&s, 4, 4);
	}
}

/* The first record may be none: what looked like one may have been lost. So what is ahead of it is charged by its lines. */
static void test_requests_ahead_of_their_turn(void **state)
{
	static const enum weir_reason whys[] = { WEIR_TLS, WEIR_UNSEEN, WEIR_MID_STREAM };
	const char *text = "GET / HTTP/1.0\n\nGET / HTTP/1.0\n\nGET / HTTP/1.0\n\n";
	struct hold_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(whys) / sizeof(*whys); i++) {
		hold_open(&s, WEIR_PHASE_FOLLOWED);
		weir_conn_opaque(&s.conn, START, whys[i]);
		s.conn.hold.by_records = 1;
		s.size = strlen(text);
		memcpy(s.stream, text, s.size);
		assert_int_equal(hold_offer_end(&s, 1, s.size - 1, false), WEIR_DROP);
		assert_int_equal(s.why, WEIR_OUT_OF_ORDER);
		assert_int_equal(hold_offer(&s, 1, s.size - 1, true), WEIR_DROP);
		assert_int_equal(hold_offer(&s, 1, s.size - 1, false), WEIR_PASS);
		hold_check(&s, 1, 3);
		assert_true(s.conn.hold.by_records && s.conn.hold.next == START);
		assert_int_equal(hold_offer(&s, 0, 1, false), WEIR_PASS);
		hold_check(&s, 2, 4);
	}
}

/* What the server has although it was never seen here does not come again: the next segment may begin with a record. */
static void test_missed(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	weir_record_start_midway(&s.conn.hold.record);
	hold_add(&s, WEIR_RECORD_DATA, 1000);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	s.socket.next = START + 1005;
	assert_int_equal(hold_offer(&s, 1005, 50, false), WEIR_PASS);
	assert_true(s.conn.hold.by_records);
	assert_int_equal(hold_offer(&s, 1055, 160, false), WEIR_PASS);
	hold_check(&s, 2, 2);
}

/* No record where one should be: from there on each segment is one, until one begins as a record does. */
static void test_lost(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	weir_record_start_midway(&s.conn.hold.record);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(hold_offer(&s, 0, 105, false), WEIR_PASS);
	memset(s.stream + s.size, 'x', 2000);
	s.size += 2000;
	assert_int_equal(hold_offer(&s, 105, 1025, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 105, 1025, false), WEIR_PASS);
	hold_check(&s, 2, 3);
	assert_int_equal(hold_offer(&s, 105 + 1025, 975, false), WEIR_PASS);
	hold_check(&s, 3, 4);
	assert_false(s.conn.hold.by_records);
	hold_add(&s, WEIR_RECORD_DATA, 2000);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	/* Not ahead of a gap, or what fills it would pass for old. */
	assert_int_equal(hold_offer(&s, 4110, 105, false), WEIR_PASS);
	assert_false(s.conn.hold.by_records);
	hold_check(&s, 4, 5);
	s.socket.next = START + 2105;
	assert_int_equal(hold_offer(&s, 2105, 1000, false), WEIR_PASS);
	assert_true(s.conn.hold.by_records);
	assert_int_equal(hold_offer(&s, 3105, 1005, true), WEIR_PASS);
	hold_check(&s, 5, 7);
}

/* A body of HTTP may look like records, and announce long ones: what is in these costs its requests all the same. */
static void test_requests_in_records_of_a_body(void **state)
{
	static const char body[] = "\x17\x03\x03\x00\x01x\x16\x03\x03\x46\x50", request[] = "GET / HTTP/1.1\r\n\r\n";
	const __u32 n_body = sizeof(body) - 1, n_request = sizeof(request) - 1;
	struct hold_scene s;
	__u32 at;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START, WEIR_UNSEEN);
	memcpy(s.stream, body, n_body);
	s.size = n_body;
	assert_int_equal(hold_offer(&s, 0, n_body, false), WEIR_PASS);
	assert_true(s.conn.hold.by_records && seq_after(s.conn.hold.next, START + 18000));
	hold_check(&s, 1, 18);
	for (int i = 0; i < 4; i++) {
		at = s.size;
		for (int j = 0; j < 5; j++, s.size += n_request)
			memcpy(s.stream + s.size, request, n_request);
		/* Each time, until the server has them. */
		assert_int_equal(hold_offer(&s, at, s.size - at, true), WEIR_DROP);
		s.records = s.weight = 0;
		assert_int_equal(hold_offer(&s, at, s.size - at, false), WEIR_PASS);
		hold_check(&s, 1, 5);
		s.socket.next = START + s.size;
		assert_int_equal(hold_offer(&s, at, s.size - at, true), WEIR_PASS);
	}
	/* One of HTTP/0.9, and one that a FIN ends: either is the connection's last. */
	at = s.size;
	memcpy(s.stream + at, "GET /\r\n", 7);
	s.size += 7;
	assert_int_equal(hold_offer_end(&s, at, 7, true), WEIR_DROP);
	assert_int_equal(hold_offer_end(&s, at, 7, false), WEIR_PASS);
	hold_check(&s, 2, 6);
}

/* What only looked like TLS may have been lost, and requests have come in its place: each of them costs, in whatever pieces. */
static void test_requests_in_the_place_of_records(void **state)
{
	const char *text = "GET / HTTP/1.0\n\nGET / HTTP/1.0\n\nGET / HTTP/1.0\n\n";
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	s.size = strlen(text);
	memcpy(s.stream, text, s.size);
	assert_int_equal(hold_offer(&s, 0, s.size, true), WEIR_DROP);
	assert_int_equal(hold_offer(&s, 0, s.size, false), WEIR_PASS);
	hold_check(&s, 1, 3);
	/* Until the server has it. */
	assert_int_equal(hold_offer(&s, 0, 13, false), WEIR_PASS);
	hold_check(&s, 2, 4);
}

/* A request was decided on its way, and lost behind: what comes in its place by another way is not paid for. */
static void test_unseen_in_the_place_of_what_was_decided(void **state)
{
	static const enum weir_reason whys[] = { WEIR_CONNECT, WEIR_HTTP2, WEIR_GAP };
	const char *text = "GET / HTTP/1.0\n\nGET / HTTP/1.0\n\nGET / HTTP/1.0\n\n";
	struct hold_scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(whys) / sizeof(*whys); i++) {
		hold_open(&s, WEIR_PHASE_FOLLOWED);
		s.size = strlen(text);
		memcpy(s.stream, text, s.size);
		weir_conn_opaque(&s.conn, START + s.size, whys[i]);
		assert_int_equal(hold_offer(&s, 0, s.size, true), WEIR_PASS);
		s.unseen = true;
		assert_int_equal(hold_offer(&s, 0, s.size, true), WEIR_DROP);
		assert_int_equal(hold_offer(&s, 0, s.size, false), WEIR_PASS);
		hold_check(&s, 1, 3);
		/* The server has it. */
		s.socket.next = START + s.size;
		assert_int_equal(hold_offer(&s, 0, s.size, true), WEIR_PASS);
	}
}

/* Two segments at once, on two CPUs: the second comes again. */
static void test_contended(void **state)
{
	struct weir_hold_reader first, second;
	enum weir_reason why = WEIR_REASON_NONE;
	struct weir_segment g;
	struct hold_scene s;
	__u64 held_ns = 0;

	(void)state;
	hold_open_tls(&s);
	hold_add(&s, WEIR_RECORD_HANDSHAKE, 100);
	g = hold_segment(0, 3);
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, true, &first, &why), WEIR_FRAME);
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, true, &second, &why), WEIR_FRAME);
	for (int i = 0; i < 3; i++)
		weir_hold_reader_feed(&first, s.stream[i]);
	assert_int_equal(weir_hold_commit(&s.conn, &first, 1, &held_ns, &why), WEIR_PASS);
	assert_int_equal(weir_hold_commit(&s.conn, &second, 1, &held_ns, &why), WEIR_DROP);
	assert_int_equal(why, WEIR_CONTENDED);
	assert_int_equal(s.conn.hold.next, START + 3);
	assert_int_equal(s.conn.hold.record.header, 3);
}

/* A segment of a stream of records, and the one behind it, at once on two CPUs: `first` is in its turn, and the other ahead of its own. */
struct side_by_side {
	struct hold_scene scene;
	struct weir_segment g[2];
	struct weir_hold_reader first, second;
	enum weir_reason why;
};

static void read_side_by_side(struct side_by_side *b)
{
	*b = (struct side_by_side){ .g = { hold_segment(0, 105), hold_segment(105, 105) } };
	hold_open_tls(&b->scene);
	for (int i = 0; i < 2; i++)
		hold_add(&b->scene, WEIR_RECORD_DATA, 100);
	for (int i = 0; i < 2; i++) {
		struct weir_hold_reader *r = i ? &b->second : &b->first;

		assert_int_equal(weir_hold_begin(&b->scene.conn, &b->scene.socket, &b->g[i], true, r, &b->why),
				 WEIR_FRAME);
		hold_read(b->scene.stream, &b->g[i], r);
	}
	assert_false(b->first.ahead);
	assert_true(b->second.ahead);
}

static enum weir_action commit(struct side_by_side *b, const struct weir_hold_reader *r)
{
	return weir_hold_commit(&b->scene.conn, r, 1, &b->scene.held_ns, &b->why);
}

/* The one behind has been overtaken. Read anew, it is in its turn, and its records are read. */
static void test_overtaken(void **state)
{
	struct side_by_side b;

	(void)state;
	read_side_by_side(&b);
	assert_int_equal(commit(&b, &b.first), WEIR_PASS);
	assert_int_equal(commit(&b, &b.second), WEIR_DROP);
	assert_int_equal(b.why, WEIR_CONTENDED);
	assert_int_equal(weir_hold_begin(&b.scene.conn, &b.scene.socket, &b.g[1], true, &b.second, &b.why), WEIR_FRAME);
	hold_read(b.scene.stream, &b.g[1], &b.second);
	assert_false(b.second.ahead);
	assert_true(b.second.by_records);
	assert_int_equal(commit(&b, &b.second), WEIR_PASS);
	assert_int_equal(b.scene.conn.hold.next, START + 210);
}

/* What is ahead has moved nothing: the one in its turn goes on. */
static void test_passed_ahead(void **state)
{
	struct side_by_side b;

	(void)state;
	read_side_by_side(&b);
	assert_int_equal(commit(&b, &b.second), WEIR_PASS);
	assert_int_equal(commit(&b, &b.first), WEIR_PASS);
	assert_int_equal(b.scene.conn.hold.next, START + 105);
}

/* What is ahead has paid for the one request without an empty line: what was read meanwhile is read with that in mind. */
static void test_paid_ahead(void **state)
{
	static const char request[] = "GET /\n";
	struct side_by_side b;

	(void)state;
	read_side_by_side(&b);
	for (size_t i = 0; i < sizeof(request) - 1; i++)
		weir_hold_reader_line(&b.second, request[i]);
	weir_hold_reader_end(&b.second, &b.g[1]);
	assert_true(b.second.bare);
	assert_int_equal(commit(&b, &b.second), WEIR_PASS);
	assert_int_equal(commit(&b, &b.first), WEIR_DROP);
	assert_int_equal(b.why, WEIR_CONTENDED);
}

/* What the socket drops is not followed: the stream may go on with something else in its place. */
static void test_what_the_socket_drops(void **state)
{
	struct weir_hold_reader r;
	enum weir_reason why = WEIR_REASON_NONE;
	struct weir_segment g;
	struct hold_scene s;

	(void)state;
	hold_open_tls(&s);
	hold_add(&s, WEIR_RECORD_HANDSHAKE, 100);
	s.socket.edge = START + 104;
	assert_int_equal(hold_offer(&s, 0, 105, false), WEIR_DROP);
	assert_int_equal(s.why, WEIR_OUT_OF_WINDOW);
	s.socket.edge = START;
	assert_int_equal(hold_offer(&s, 0, 1, false), WEIR_DROP);
	s.socket.edge = START - 5;
	assert_int_equal(hold_offer(&s, 0, 105, false), WEIR_DROP);
	assert_int_equal(s.conn.hold.next, START);

	s.socket = (struct weir_socket){ .next = START, .edge = START + 105, .ts_recent = 5 };
	g = hold_segment(0, 105);
	g.has_ts = 1;
	g.tsval = 3;
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, true, &r, &why), WEIR_DROP);
	assert_int_equal(why, WEIR_OUT_OF_WINDOW);
	g.tsval = 4;
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, true, &r, &why), WEIR_FRAME);
	g.tsval = 0x80000000;
	s.socket.ts_recent = 0;
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, true, &r, &why), WEIR_FRAME);
	s.socket = (struct weir_socket){ .listens = 1 };
	assert_int_equal(hold_offer(&s, 0, 105, false), WEIR_PASS);
	assert_int_equal(s.conn.hold.next, START + 105);
}

/* Connections that can be read are the answer lane's, and bare acknowledgements nobody's. */
static void test_not_ours(void **state)
{
	struct hold_scene s;

	(void)state;
	hold_open(&s, WEIR_PHASE_FOLLOWED);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(hold_offer(&s, 0, 105, true), WEIR_PASS);
	hold_open_tls(&s);
	hold_add(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(hold_offer(&s, 0, 0, true), WEIR_PASS);
	assert_int_equal(hold_offer(&s, 50, 0, true), WEIR_PASS);
	hold_check(&s, 0, 0);
}

/* Who looks for the next record anew has not had the short ones before it for nothing. */
static void test_seeking_forgives_nothing(void **state)
{
	struct weir_hold_reader r = { .record.spared = 5 };

	(void)state;
	weir_hold_seek(&r, false);
	assert_int_equal(r.record.spared, 5);
	assert_true(r.seeking && r.midway && r.by_records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeking_forgives_nothing),
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_a_byte_at_a_time),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_repeated_with_more),
		cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_after_a_gap),
		cmocka_unit_test(test_requests_ahead_of_their_turn),
		cmocka_unit_test(test_missed),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_requests_in_the_place_of_records),
		cmocka_unit_test(test_requests_in_records_of_a_body),
		cmocka_unit_test(test_unseen_in_the_place_of_what_was_decided),
		cmocka_unit_test(test_contended),
		cmocka_unit_test(test_overtaken),
		cmocka_unit_test(test_passed_ahead),
		cmocka_unit_test(test_paid_ahead),
		cmocka_unit_test(test_what_the_socket_drops),
		cmocka_unit_test(test_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
