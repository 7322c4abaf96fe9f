/* SPDX-License-Identifier: GPL-2.0 */
/* Behind a body whose request was answered before its end: when requests are read again, and when never. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "doubt_scene.h"
#include "weir/conn/passing.h"
#include "weir/conn/rest.h"
#include "weir/conn/stray.h"

#define BODY 300

static const char post[] = "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n";
static const char endless[] = "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char body[BODY];

static const __u32 head_end = sizeof(post) - 1, end = sizeof(post) - 1 + BODY;

/* The server has `acked` bytes of the client's when it answers. */
static void answered_early(struct doubt_scene *s, const char *head, __u32 acked)
{
	doubt_open(s);
	assert_int_equal(doubt_send(s, 0, head), WEIR_PASS);
	doubt_server_answers_early(s, acked, OK);
	assert_int_equal(s->conn.phase, WEIR_PHASE_OPAQUE);
}

static void send_body(struct doubt_scene *s, __u32 from, __u32 to)
{
	struct weir_segment g = doubt_segment(s, head_end + from, to - from);

	assert_int_equal(doubt_offer(s, &g, body, false), WEIR_PASS);
	assert_int_equal(s->asks, 0);
}

static void goes_on_unread(struct doubt_scene *s, __u32 at)
{
	assert_int_equal(doubt_send(s, at, GET), WEIR_PASS);
	assert_int_equal(s->got, 0);
	assert_int_equal(s->conn.phase, WEIR_PHASE_OPAQUE);
}

static void is_read(struct doubt_scene *s, __u32 at, const char *text)
{
	assert_int_equal(doubt_send(s, at, text), WEIR_PASS);
	assert_int_equal(s->got, 1);
	assert_int_equal(s->conn.phase, WEIR_PHASE_FOLLOWED);
	doubt_check_at(s, at + strlen(text), 2);
}

static void test_request_behind_the_body(void **state)
{
	struct doubt_scene s;
	struct weir_segment g;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, 200);
	send_body(&s, 200, BODY);
	doubt_server_has(&s, end, "");
	is_read(&s, end, GET);
	doubt_server_has(&s, end + strlen(GET), OK);
	/* And the next one may be refused. */
	g = doubt_segment(&s, end + strlen(GET), strlen(GET));
	assert_int_equal(doubt_offer(&s, &g, GET, true), WEIR_ANSWER);
}

/* The server has the body, and its acknowledgement is still on its way. */
static void test_server_has_more_than_it_said(void **state)
{
	struct doubt_scene s;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	s.socket.next = CLIENT + end;
	is_read(&s, end, GET);
}

/* Nobody knows yet whether the server takes that end for a request: it goes on alone. */
static void test_end_of_the_body_in_the_same_segment(void **state)
{
	struct doubt_scene s;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY - 2);
	s.socket.next = CLIENT + end - 2;
	assert_int_equal(doubt_send(&s, end - 2, "bb" GET), WEIR_CUT);
	assert_int_equal(s.start, end);
	assert_int_equal(s.conn.splice.passed_end, CLIENT + end);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	s.socket.next = CLIENT + end;
	is_read(&s, end, GET);

	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY - 2);
	s.socket.next = CLIENT + end - 2;
	assert_int_equal(doubt_send(&s, end - 2, "bb" GET), WEIR_CUT);
	doubt_server_has(&s, end, OK);
	goes_on_unread(&s, end);
}

/* It comes once more, with what is behind it. */
static void test_end_of_the_body_again(void **state)
{
	struct doubt_scene s;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	s.socket.next = CLIENT + end;
	is_read(&s, end - 2, "bb" GET);
}

/* The rest was withheld, or is lost: nothing is said of what is behind it before it has come. */
static void test_request_waits_for_the_body(void **state)
{
	struct doubt_scene s;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	for (int early = 0; early < 2; early++) {
		s.socket.next = CLIENT + end - 1;
		s.socket.early = early;
		assert_int_equal(doubt_send(&s, end, GET), WEIR_DROP);
		assert_int_equal(s.why, WEIR_UNCONFIRMED);
		assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	}
	s.socket.next = CLIENT + end;
	s.socket.early = 0;
	is_read(&s, end, GET);
}

/* It took the body for a request. */
static void test_server_says_more(void **state)
{
	struct doubt_scene s;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	doubt_server_has(&s, end, OK);
	goes_on_unread(&s, end);
	assert_int_equal(s.asks, 0);
}

/* What is ahead of the first request waits for it, as anywhere else. */
static void test_segment_ahead_of_the_request(void **state)
{
	struct doubt_scene s;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	s.socket.next = CLIENT + end;
	assert_int_equal(doubt_send(&s, end + strlen(GET), GET), WEIR_DROP);
	assert_int_equal(s.why, WEIR_UNCONFIRMED);
	is_read(&s, end, GET);
}

/* Nobody could be asked: what has gone on by then may be at the server, and nothing is read behind it. */
static void test_something_has_gone_on(void **state)
{
	struct doubt_scene s;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	s.socket.known = 0;
	goes_on_unread(&s, end + strlen(GET));
	s.socket.known = 1;
	s.socket.next = CLIENT + end;
	goes_on_unread(&s, end);
	assert_int_equal(s.asks, 1);
}

static void test_socket_has_something_from_behind(void **state)
{
	struct doubt_scene s;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	s.socket.next = CLIENT + end;
	s.socket.early = 1;
	goes_on_unread(&s, end);
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	s.socket.next = CLIENT + end + 1;
	goes_on_unread(&s, end);
}

/* In fragments, say: the socket may have it by the time it is asked, or just afterwards. */
static void test_comes_unread_to_the_socket(void **state)
{
	struct doubt_scene s;
	struct weir_segment g;

	(void)state;
	for (int behind = 0; behind < 2; behind++) {
		for (int badged = 0; badged < 2; badged++) {
			answered_early(&s, post, head_end);
			send_body(&s, 0, BODY);
			s.socket.next = CLIENT + end;
			g = doubt_segment(&s, end - 1, 1 + behind);
			assert_int_equal(weir_hold_meet(&s.conn, &s.socket, &g, badged, true), WEIR_REASON_NONE);
			if (behind && !badged)
				goes_on_unread(&s, end);
			else
				is_read(&s, end, GET);
		}
	}
	/* What the socket drops anyone may send. */
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	g = doubt_segment(&s, end, 10);
	g.ack += 1000;
	assert_int_equal(weir_hold_meet(&s.conn, &s.socket, &g, false, true), WEIR_REASON_NONE);
	s.socket.next = CLIENT + end;
	is_read(&s, end, GET);
}

/* Without the lock it cannot be told from what is behind it, where another CPU reads on at the same moment. */
static void test_body_takes_the_lock(void **state)
{
	struct doubt_scene s;
	struct weir_segment g;

	(void)state;
	answered_early(&s, post, head_end);
	s.conn.unconfirmed.n = 0;
	g = doubt_segment(&s, head_end, 10);
	assert_true(weir_conn_client_may_pass(&s.conn, &g));
	assert_false(weir_conn_client_goes_by(&s.conn, s.conn.id, &g));
	send_body(&s, 0, BODY);
	s.socket.next = CLIENT + end;
	is_read(&s, end, GET);
	assert_int_equal(s.conn.opaque_why, WEIR_ANSWERED_EARLY);
}

static void test_nobody_can_be_asked(void **state)
{
	struct doubt_scene s;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	s.socket.known = 0;
	goes_on_unread(&s, end);
}

static void test_end_is_not_known(void **state)
{
	struct doubt_scene s;
	__u32 at = strlen(endless);

	(void)state;
	answered_early(&s, endless, at);
	assert_int_equal(doubt_send(&s, at, "0\r\n\r\n"), WEIR_PASS);
	s.socket.next = CLIENT + at + 5;
	goes_on_unread(&s, at + 5);
	assert_int_equal(s.asks, 0);
}

/* Its client has heard everything, and says so. */
static bool may_rest(struct doubt_scene *s, __u32 at)
{
	struct weir_segment g = doubt_segment(s, at, 0);

	doubt_server_has(s, at, "");
	assert_int_equal(doubt_offer(s, &g, "", false), WEIR_PASS);
	return weir_conn_can_rest(&s->conn);
}

static void rests(struct doubt_scene *s, __u32 at)
{
	struct weir_resting r;

	assert_true(may_rest(s, at));
	weir_resting_note(&r, &s->conn);
	memset(&s->conn, 0, sizeof(s->conn));
	weir_resting_wake(&r, &s->conn);
}

/* A resting connection does not know where the body ends, so it rests only where nothing of it is to come. */
static void test_rest(void **state)
{
	struct doubt_scene s;

	(void)state;
	answered_early(&s, post, head_end);
	send_body(&s, 0, 200);
	assert_false(may_rest(&s, head_end + 200));
	send_body(&s, 200, BODY);
	rests(&s, end);
	is_read(&s, end, GET);

	answered_early(&s, post, head_end);
	send_body(&s, 0, BODY);
	doubt_server_has(&s, end, "");
	s.socket.known = 0;
	goes_on_unread(&s, end);
	s.socket.known = 1;
	rests(&s, end + strlen(GET));
	goes_on_unread(&s, end + strlen(GET));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_behind_the_body),
		cmocka_unit_test(test_server_has_more_than_it_said),
		cmocka_unit_test(test_end_of_the_body_in_the_same_segment),
		cmocka_unit_test(test_end_of_the_body_again),
		cmocka_unit_test(test_request_waits_for_the_body),
		cmocka_unit_test(test_server_says_more),
		cmocka_unit_test(test_segment_ahead_of_the_request),
		cmocka_unit_test(test_something_has_gone_on),
		cmocka_unit_test(test_socket_has_something_from_behind),
		cmocka_unit_test(test_comes_unread_to_the_socket),
		cmocka_unit_test(test_body_takes_the_lock),
		cmocka_unit_test(test_nobody_can_be_asked),
		cmocka_unit_test(test_end_is_not_known),
		cmocka_unit_test(test_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
