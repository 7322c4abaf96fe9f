/* SPDX-License-Identifier: GPL-2.0 */
/* A connection whose segments wait for tokens: who departs when, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hold_scene.h"
#include "weir/conn/pace.h"

#define SECOND WEIR_NS_PER_S
#define MS (SECOND / 1000)

struct scene {
	struct weir_conn conn;
	struct weir_socket socket;
	__u8 stream[ROOM];
	__u32 size;
	__u64 now_ns, departs_ns, held_ns;
	__u32 weight;
	enum weir_reason why;
};

static void open_scene(struct scene *s, enum weir_reason opaque_why)
{
	memset(s, 0, sizeof(*s));
	weir_conn_open(&s->conn, 0, WEIR_PHASE_FOLLOWED, START, 1, 1000);
	weir_conn_opaque(&s->conn, START, opaque_why);
	weir_record_start_midway(&s->conn.hold.record);
	s->socket = (struct weir_socket){ .next = START, .edge = START + ROOM };
	s->now_ns = 10 * SECOND;
}

/* Returns where it begins. */
static __u32 add_record(struct scene *s, __u32 length)
{
	const __u8 header[] = { WEIR_RECORD_DATA, 3, 3, length >> 8, length };
	__u32 at = s->size;

	assert_true(at + sizeof(header) + length <= ROOM);
	memcpy(s->stream + at, header, sizeof(header));
	memset(s->stream + at + sizeof(header), 0xee, length);
	s->size += sizeof(header) + length;
	return at;
}

/* One segment; the limits let it pass after `wait_ns`, if it weighs anything. */
static enum weir_action offer(struct scene *s, __u32 at, __u32 length, __u64 wait_ns)
{
	struct weir_segment g = { .seq = START + at, .len = length, .flags = WEIR_TCP_ACK };
	struct weir_hold_reader r;
	enum weir_action action;

	s->why = WEIR_REASON_NONE;
	s->departs_ns = s->held_ns = s->weight = 0;
	action = weir_pace_begin(&s->conn, &s->socket, &g, s->now_ns, &r, &s->departs_ns, &s->why);
	if (action != WEIR_FRAME)
		return action;
	hold_read(s->stream, &g, &r);
	s->weight = r.weight;
	return weir_pace_commit(&s->conn, &r, s->now_ns, s->now_ns + (r.weight ? wait_ns : 0), &s->departs_ns,
				&s->held_ns, &s->why);
}

static bool waits(const struct scene *s)
{
	return weir_pace_waits(s->departs_ns, s->now_ns);
}

/* The hook that comes after has nothing to ask for. */
static void assert_paid(struct scene *s, __u32 at, __u32 length)
{
	struct weir_segment g = { .seq = START + at, .len = length, .flags = WEIR_TCP_ACK };
	struct weir_hold_reader r;

	assert_int_equal(weir_hold_begin(&s->conn, &s->socket, &g, true, &r, &s->why), WEIR_PASS);
}

/* What comes by another way, as fragments, may be other records than those that wait: it costs what might be requests. */
static void test_unseen_before_what_waits(void **state)
{
	struct weir_segment g = { .seq = START, .len = 105, .flags = WEIR_TCP_ACK };
	struct weir_hold_reader r;
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_TLS);
	add_record(&s, 100);
	assert_int_equal(offer(&s, 0, s.size, WEIR_NS_PER_S), WEIR_PASS);
	assert_true(waits(&s));
	assert_paid(&s, 0, s.size);
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, false, &r, &s.why), WEIR_FRAME);
	hold_read(s.stream, &g, &r);
	assert_int_equal(r.weight, 1);
	assert_int_equal(weir_hold_commit(&s.conn, &r, s.now_ns, &s.held_ns, &s.why), WEIR_PASS);
	/* It moves nothing. */
	assert_int_equal(s.conn.hold.next, START + 105);
	assert_true(s.conn.hold.by_records);
}

/* A packet's badge has room for so many tokens. Who has paid more has it deducted so far, and is never taken for one that says something else. */
static void test_most_that_is_paid(void **state)
{
	const struct weir_segment g = { .seq = START, .len = 3000 };

	(void)state;
	for (__u32 weight = 0; weight < 3000; weight++) {
		struct weir_hold_reader r = { .weight = weight, .arrives = 1 };
		__u32 paid = weir_pace_paid(&r, &g, false), counted = weight < 1021 ? weight : 1021;

		assert_true(paid >= WEIR_PAID_NOTHING && paid < WEIR_PAID_BEGINS);
		weir_pace_deduct(&r, paid);
		assert_int_equal(r.weight, weight - counted);
		assert_int_equal(r.records, weight > counted);
	}
}

/* One packet of the stream at the socket's hook, which has paid there what it has: what it costs there. -1: it passes unasked. */
static int arrive(struct scene *s, __u32 at, const char *text, __u32 paid)
{
	__u32 length = strlen(text);
	struct weir_segment g = { .seq = START + at, .len = length, .flags = WEIR_TCP_ACK };
	struct weir_hold_reader r;
	enum weir_action action;

	memcpy(s->stream + at, text, length);
	action = weir_pace_meet(&s->conn, &s->socket, &g, paid, &r, &s->why);
	if (action == WEIR_PASS)
		return -1;
	assert_int_equal(action, WEIR_FRAME);
	hold_read(s->stream, &g, &r);
	weir_pace_deduct(&r, paid);
	return r.weight;
}

#define GET "GET / HTTP/1.1\r\n\r\n"
#define FIVE GET GET GET GET GET

/* What has paid is lost behind ingress, or overtaken: what comes in its place costs its requests. */
static void test_in_the_place_of_what_has_paid(void **state)
{
	static const enum weir_reason whys[] = { WEIR_TLS, WEIR_HTTP2, WEIR_GAP, WEIR_CONNECT, WEIR_UPGRADE };
	const __u32 length = sizeof(FIVE) - 1;
	struct scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(whys) / sizeof(*whys); i++) {
		open_scene(&s, whys[i]);
		memset(s.stream, 'x', ROOM);
		assert_int_equal(offer(&s, 0, length, SECOND), WEIR_PASS);
		assert_int_equal(s.weight, 1);
		/* While it waits, what repeats it waits, and has paid nothing. */
		assert_int_equal(offer(&s, 0, length, SECOND), WEIR_PASS);
		assert_int_equal(s.weight, 0);
		assert_true(waits(&s));
		assert_int_equal(arrive(&s, 0, FIVE, WEIR_PAID_NOTHING), 5);
		assert_int_equal(arrive(&s, 0, FIVE, WEIR_PAID_NOTHING + 1), 4);
		assert_int_equal(arrive(&s, 0, FIVE, WEIR_PAID_NOTHING + 7), 0);
		/* When nothing waits, what comes again was lost. */
		s.now_ns += 2 * SECOND;
		memcpy(s.stream, FIVE, length);
		assert_int_equal(offer(&s, 0, length, SECOND), WEIR_PASS);
		assert_int_equal(s.weight, 5);
		assert_int_equal(s.conn.hold.next, START + length);
		/* What was decided before is no business of the hold's. */
		assert_int_equal(arrive(&s, 0, FIVE, WEIR_PAID_WHOLE), -1);
		s.socket.next = START + length;
		assert_int_equal(arrive(&s, 0, FIVE, WEIR_PAID_NOTHING), -1);
	}
}

#define BARE "GET / HTTP/1.1\r\n:\r\n"

/* The same of heads that end at a line that is no field: each packet that has paid nothing pays for all that begin in it. */
static void test_heads_in_the_place_of_what_has_paid(void **state)
{
	const __u32 each = sizeof(BARE) - 1;
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_CONNECT);
	s.conn.bare |= WEIR_BARE_PAID;
	memset(s.stream, 'x', ROOM);
	assert_int_equal(offer(&s, 0, 10 * each, SECOND), WEIR_PASS);
	assert_int_equal(s.weight, 1);
	for (__u32 n = 0; n < 10; n++) {
		assert_int_equal(arrive(&s, n * each, BARE, WEIR_PAID_NOTHING), 1);
		s.socket.next = START + (n + 1) * each;
	}
	/* Of what has paid for itself, the head that it leaves open is among what was paid. */
	s.socket.next = START;
	assert_int_equal(arrive(&s, 0, BARE BARE, WEIR_PAID_NOTHING), 2);
	assert_int_equal(arrive(&s, 0, BARE BARE, WEIR_PAID_NOTHING + 1), 0);
	assert_int_equal(arrive(&s, 0, GET BARE, WEIR_PAID_NOTHING + 1), 0);
}

/* What has come in part before ingress could charge the rest of it pays for all of its requests. */
static void test_longer_than_what_has_paid(void **state)
{
	const __u32 length = sizeof(FIVE) - 1;
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_CONNECT);
	memset(s.stream, 'x', ROOM);
	assert_int_equal(offer(&s, 0, length - 1, SECOND), WEIR_PASS);
	assert_int_equal(s.weight, 1);
	assert_int_equal(arrive(&s, 0, FIVE, WEIR_PAID_NOTHING + 1), 5);
	assert_int_equal(offer(&s, length - 1, 1, SECOND), WEIR_PASS);
	assert_int_equal(arrive(&s, 0, FIVE, WEIR_PAID_NOTHING + 1), 4);
}

/* Short ones are counted at ingress, and not once more at the socket. */
static void test_short_ones_that_have_paid(void **state)
{
	__u32 paid = 0, length = 10;
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_UPGRADE);
	for (__u32 at = 0; at < 100 * length; at += length) {
		memset(s.stream + at, 'x', length);
		assert_int_equal(offer(&s, at, length, 0), WEIR_PASS);
		paid += s.weight;
		assert_int_equal(arrive(&s, at, "xxxxxxxxxx", WEIR_PAID_NOTHING + s.weight), 0);
		s.socket.next = START + at + length;
	}
	assert_in_range(paid, 1, 50);
}

/* Of a connection that was not seen, and of a body, only the socket's hook tells what has come: ingress charges nothing, and delays nothing. */
static void test_left_to_the_socket(void **state)
{
	static const enum weir_reason whys[] = { WEIR_UNSEEN, WEIR_ANSWERED_EARLY, WEIR_BODY_SERVED };
	struct scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(whys) / sizeof(*whys); i++) {
		open_scene(&s, whys[i]);
		memcpy(s.stream, FIVE, sizeof(FIVE));
		assert_int_equal(offer(&s, 0, sizeof(FIVE) - 1, SECOND), WEIR_PASS);
		assert_int_equal(s.weight, 0);
		assert_false(waits(&s));
		assert_int_equal(s.conn.hold.next, START);
		assert_int_equal(arrive(&s, 0, FIVE, WEIR_PAID_NOTHING), 5);
	}
}

static __u32 paid_by(struct scene *s, __u32 at, __u32 length)
{
	struct weir_segment g = { .seq = START + at, .len = length, .flags = WEIR_TCP_ACK };
	struct weir_hold_reader r;

	assert_int_equal(weir_pace_begin(&s->conn, &s->socket, &g, s->now_ns, &r, &s->departs_ns, &s->why), WEIR_FRAME);
	hold_read(s->stream, &g, &r);
	assert_int_equal(weir_pace_commit(&s->conn, &r, s->now_ns, s->now_ns, &s->departs_ns, &s->held_ns, &s->why),
			 WEIR_PASS);
	return weir_pace_paid(&r, &g, false);
}

/* TLS and HTTP/2 are believed when the very packet that began them has come, and not by what was read at ingress. */
static void test_what_begins(void **state)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	struct scene s;

	(void)state;
	for (int tls = 0; tls < 2; tls++) {
		__u32 length = 105;

		open_scene(&s, tls ? WEIR_TLS : WEIR_HTTP2);
		add_record(&s, 100);
		if (!tls) {
			length = sizeof(preface) - 1;
			memcpy(s.stream, preface, length);
			s.socket.untouched = 1;
		}
		assert_int_equal(paid_by(&s, 0, length), WEIR_PAID_BEGINS);
		assert_int_equal(arrive(&s, 0, GET, WEIR_PAID_NOTHING), 1);
		/* Not where it comes in the place of something else. */
		s.socket.next = START + 1;
		assert_int_equal(arrive(&s, 0, GET, WEIR_PAID_BEGINS), -1);
		assert_int_equal(arrive(&s, 0, GET, WEIR_PAID_NOTHING), 1);
		s.socket.next = START;
		assert_int_equal(arrive(&s, 0, GET, WEIR_PAID_BEGINS), -1);
		assert_true(s.conn.bare & WEIR_BARE_NONE);
		assert_int_equal(arrive(&s, 0, GET, WEIR_PAID_NOTHING), -1);
		/* A later record begins nothing. */
		s.socket.next = START + length;
		s.size = length;
		add_record(&s, 100);
		assert_int_equal(paid_by(&s, length, 105), WEIR_PAID_NOTHING + 1);
	}
}

/* Nor before the server has answered in kind. */
static void test_what_begins_for_one_side(void **state)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	const __u32 length = sizeof(preface) - 1;
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_HTTP2);
	weir_conn_await_word(&s.conn);
	memcpy(s.stream, preface, length);
	s.socket.untouched = 1;
	assert_int_equal(paid_by(&s, 0, length), WEIR_PAID_BEGINS);
	assert_int_equal(arrive(&s, 0, preface, WEIR_PAID_BEGINS), -1);
	s.socket.untouched = 0;
	s.socket.next = START + length;
	memset(s.stream + length, 'x', sizeof(FIVE) - 1);
	assert_int_equal(offer(&s, length, sizeof(FIVE) - 1, SECOND), WEIR_PASS);
	assert_true(waits(&s));
	assert_int_equal(arrive(&s, length, FIVE, WEIR_PAID_NOTHING), 5);
	s.conn.bare &= ~WEIR_BARE_UNTOLD;
	assert_int_equal(arrive(&s, length, FIVE, WEIR_PAID_NOTHING), -1);
}

static void test_within_the_limit(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_TLS);
	add_record(&s, 100);
	assert_int_equal(offer(&s, 0, s.size, 0), WEIR_PASS);
	assert_int_equal(s.weight, 1);
	assert_false(waits(&s));
	assert_int_equal(s.held_ns, 0);
	assert_paid(&s, 0, s.size);
}

static void test_over_the_limit(void **state)
{
	struct scene s;
	__u32 at;

	(void)state;
	open_scene(&s, WEIR_TLS);
	add_record(&s, 100);
	assert_int_equal(offer(&s, 0, s.size, 70 * MS), WEIR_PASS);
	assert_int_equal(s.departs_ns, s.now_ns + 70 * MS);
	assert_int_equal(s.held_ns, 70 * MS);
	assert_true(waits(&s));
	assert_paid(&s, 0, s.size);
	/* It comes again while it waits, and afterwards. */
	s.now_ns += 60 * MS;
	assert_int_equal(offer(&s, 0, s.size, SECOND), WEIR_PASS);
	assert_int_equal(s.weight, 0);
	assert_int_equal(s.departs_ns, s.now_ns + 10 * MS);
	assert_true(waits(&s));
	s.now_ns += 10 * MS;
	assert_int_equal(offer(&s, 0, s.size, SECOND), WEIR_PASS);
	assert_true(waits(&s)); /* for the same is perhaps just on its way */
	s.now_ns += WEIR_PACE_SLACK_NS;
	assert_int_equal(offer(&s, 0, s.size, SECOND), WEIR_PASS);
	assert_int_equal(s.weight, 0);
	assert_false(waits(&s));
	/* The next one is held for as long as it is. */
	at = add_record(&s, 100);
	assert_int_equal(offer(&s, at, 105, 30 * MS), WEIR_PASS);
	assert_int_equal(s.held_ns, 30 * MS);
	assert_int_equal(s.departs_ns, s.now_ns + 30 * MS);
}

/* What costs nothing does not overtake; nor does what would be let in earlier. */
static void test_in_order(void **state)
{
	struct scene s;
	__u32 second, third;

	(void)state;
	open_scene(&s, WEIR_TLS);
	add_record(&s, 3000);
	second = add_record(&s, 10);
	third = add_record(&s, 100);
	assert_int_equal(offer(&s, 0, 1000, 70 * MS), WEIR_PASS);
	assert_int_equal(s.weight, 3);
	/* The rest of the record, in whatever order, and a short one. */
	assert_int_equal(offer(&s, 2000, 1005, 0), WEIR_PASS);
	assert_int_equal(s.departs_ns, s.now_ns + 70 * MS);
	assert_int_equal(offer(&s, 1000, 1000, 0), WEIR_PASS);
	assert_int_equal(s.departs_ns, s.now_ns + 70 * MS);
	assert_int_equal(offer(&s, second, 15, SECOND), WEIR_PASS);
	assert_int_equal(s.weight, 0);
	assert_int_equal(s.departs_ns, s.now_ns + 70 * MS);
	assert_int_equal(offer(&s, third, 105, 20 * MS), WEIR_PASS);
	assert_int_equal(s.weight, 1);
	assert_int_equal(s.departs_ns, s.now_ns + 70 * MS);
	assert_int_equal(s.conn.hold.next, START + s.size);
}

/* It would have to wait for too long: withheld, and asked again. */
static void test_refused(void **state)
{
	struct weir_segment g = { .seq = START, .len = 105, .flags = WEIR_TCP_ACK };
	struct weir_hold_reader r;
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_TLS);
	add_record(&s, 100);
	assert_int_equal(weir_pace_begin(&s.conn, &s.socket, &g, s.now_ns, &r, &s.departs_ns, &s.why), WEIR_FRAME);
	hold_read(s.stream, &g, &r);
	weir_hold_refuse(&s.conn, &r, s.now_ns);
	s.now_ns += 200 * MS;
	assert_int_equal(weir_pace_begin(&s.conn, &s.socket, &g, s.now_ns, &r, &s.departs_ns, &s.why), WEIR_FRAME);
	assert_true(r.again);
	assert_int_equal(offer(&s, 0, 105, 100 * MS), WEIR_PASS);
	assert_int_equal(s.held_ns, 300 * MS);
	assert_int_equal(s.departs_ns, s.now_ns + 100 * MS);
}

static void test_by_segments(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_HTTP2);
	memset(s.stream, 'x', ROOM);
	assert_int_equal(offer(&s, 0, 100, 50 * MS), WEIR_PASS);
	assert_true(waits(&s));
	/* Behind a gap it is the socket's hook that asks, but it departs no earlier. */
	assert_int_equal(offer(&s, 200, 100, 0), WEIR_PASS);
	assert_int_equal(s.weight, 0);
	assert_int_equal(s.departs_ns, s.now_ns + 50 * MS);
	assert_int_equal(s.conn.hold.next, START + 100);
	assert_int_equal(offer(&s, 100, 200, 60 * MS), WEIR_PASS);
	assert_int_equal(s.weight, 1);
	assert_int_equal(s.departs_ns, s.now_ns + 60 * MS);
	assert_int_equal(s.conn.hold.next, START + 300);
}

static void test_out_of_order_records(void **state)
{
	struct scene s;
	__u32 at;

	(void)state;
	open_scene(&s, WEIR_TLS);
	add_record(&s, 100);
	at = add_record(&s, 100);
	/* The socket's hook charges it. */
	assert_int_equal(offer(&s, at, 105, 60 * MS), WEIR_PASS);
	assert_int_equal(s.weight, 0);
	assert_false(waits(&s));
	assert_int_equal(offer(&s, 0, s.size, 0), WEIR_PASS);
	assert_int_equal(s.weight, 2);
}

/* Behind records comes what is none: what the server has not got yet may have been none either, and costs what requests do. */
static void test_no_records_any_more(void **state)
{
	struct scene s;
	__u32 at;

	(void)state;
	open_scene(&s, WEIR_TLS);
	at = add_record(&s, 100) + 105;
	assert_int_equal(offer(&s, 0, at, 0), WEIR_PASS);
	memset(s.stream + at, 'x', 100);
	assert_int_equal(offer(&s, at, 100, SECOND), WEIR_PASS);
	assert_int_equal(s.weight, 1);
	assert_true(waits(&s));
	memcpy(s.stream, FIVE, sizeof(FIVE) - 1);
	assert_int_equal(offer(&s, 0, at, SECOND), WEIR_PASS);
	assert_int_equal(s.weight, 5);
}

/* Another CPU was ahead: nothing has changed. */
static void test_contended(void **state)
{
	struct weir_segment g = { .seq = START, .len = 105, .flags = WEIR_TCP_ACK };
	struct weir_hold_reader r;
	struct weir_hold before;
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_TLS);
	add_record(&s, 100);
	assert_int_equal(weir_pace_begin(&s.conn, &s.socket, &g, s.now_ns, &r, &s.departs_ns, &s.why), WEIR_FRAME);
	hold_read(s.stream, &g, &r);
	assert_int_equal(offer(&s, 0, 105, 0), WEIR_PASS);
	before = s.conn.hold;
	assert_int_equal(weir_pace_commit(&s.conn, &r, s.now_ns, s.now_ns + SECOND, &s.departs_ns, &s.held_ns, &s.why),
			 WEIR_DROP);
	assert_int_equal(s.why, WEIR_CONTENDED);
	assert_memory_equal(&s.conn.hold, &before, sizeof(before));
}

static void test_not_ours(void **state)
{
	struct scene s;

	(void)state;
	assert_false(weir_pace_concerns(&(struct weir_segment){ .flags = WEIR_TCP_ACK }));
	assert_false(weir_pace_concerns(&(struct weir_segment){ .flags = WEIR_TCP_ACK | WEIR_TCP_FIN }));
	assert_false(weir_pace_concerns(&(struct weir_segment){ .len = 1, .flags = WEIR_TCP_RST }));
	assert_true(weir_pace_concerns(&(struct weir_segment){ .len = 1, .flags = WEIR_TCP_ACK | WEIR_TCP_FIN }));
	/* Joined in mid-stream: the socket's hook finds out what it is. */
	open_scene(&s, WEIR_TLS);
	s.conn.phase = WEIR_PHASE_HUNTING;
	add_record(&s, 100);
	assert_int_equal(offer(&s, 0, 105, SECOND), WEIR_PASS);
	assert_int_equal(s.weight, 0);
	assert_false(waits(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unseen_before_what_waits),
		cmocka_unit_test(test_in_the_place_of_what_has_paid),
		cmocka_unit_test(test_heads_in_the_place_of_what_has_paid),
		cmocka_unit_test(test_longer_than_what_has_paid),
		cmocka_unit_test(test_short_ones_that_have_paid),
		cmocka_unit_test(test_left_to_the_socket),
		cmocka_unit_test(test_most_that_is_paid),
		cmocka_unit_test(test_what_begins),
		cmocka_unit_test(test_what_begins_for_one_side),
		cmocka_unit_test(test_within_the_limit),
		cmocka_unit_test(test_over_the_limit),
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_by_segments),
		cmocka_unit_test(test_out_of_order_records),
		cmocka_unit_test(test_no_records_any_more),
		cmocka_unit_test(test_contended),
		cmocka_unit_test(test_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
