/* SPDX-License-Identifier: GPL-2.0 */
/* Servers that leave bodies unread and take them for requests: how one is found out, and what becomes of bodies then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "doubt_scene.h"

#define POST "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: "
#define CHUNKED "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

static const char with_body[] = POST "28\r\n\r\n" GET;
static const char without_body[] = POST "0\r\n\r\n";
static const __u32 body_at = sizeof(POST "28\r\n\r\n") - 1;

static void test_answer_that_nobody_asked_for(void **state)
{
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, with_body), WEIR_PASS);
	doubt_server_has(&s, strlen(with_body), OK);
	assert_int_equal(s.conn.phase, WEIR_PHASE_FOLLOWED);
	assert_int_equal(doubt_server_says(&s, strlen(with_body), OK), WEIR_BODY_SERVED);
	assert_int_equal(s.conn.opaque_why, WEIR_BAD_RESPONSE);
}

/* The body's first request is answered in one segment with the one that it is the body of; and where others have come since. */
static void test_it_comes_at_once_or_late(void **state)
{
	struct doubt_scene s;
	__u32 at = strlen(with_body);

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, with_body), WEIR_PASS);
	assert_int_equal(doubt_server_says(&s, at, OK OK), WEIR_BODY_SERVED);

	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, with_body), WEIR_PASS);
	doubt_server_has(&s, at, OK);
	assert_int_equal(doubt_send(&s, at, GET), WEIR_PASS);
	doubt_server_has(&s, at + strlen(GET), OK);
	assert_int_equal(doubt_server_says(&s, at + strlen(GET), OK), WEIR_BODY_SERVED);
}

static void test_other_bad_responses(void **state)
{
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, GET), WEIR_PASS);
	assert_int_equal(doubt_server_says(&s, strlen(GET), OK OK), WEIR_BAD_RESPONSE);

	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, without_body), WEIR_PASS);
	assert_int_equal(doubt_server_says(&s, strlen(without_body), OK OK), WEIR_BAD_RESPONSE);

	/* An answer to the request itself. */
	doubt_open(&s);
	assert_int_equal(doubt_send(&s, 0, with_body), WEIR_PASS);
	assert_int_equal(doubt_server_says(&s, strlen(with_body), "HTTP/1.1 2x0 OK\r\n\r\n"), WEIR_BAD_RESPONSE);
}

/* It is remembered while the connection is read again behind a body that was answered early. */
static void test_read_on_behind_a_body(void **state)
{
	struct doubt_scene s;
	struct weir_segment g;
	__u32 end = strlen(with_body);

	(void)state;
	doubt_open(&s);
	g = doubt_segment(&s, 0, body_at);
	assert_int_equal(doubt_offer(&s, &g, with_body, false), WEIR_PASS);
	doubt_server_answers_early(&s, body_at, OK);
	assert_int_equal(doubt_send(&s, body_at, GET), WEIR_PASS);
	doubt_server_has(&s, end, "");
	assert_int_equal(doubt_send(&s, end, GET), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_FOLLOWED);
	assert_int_equal(doubt_server_says(&s, end + strlen(GET), OK OK), WEIR_BODY_SERVED);
}

static void check_doubted(const char *text, __u32 from)
{
	struct doubt_scene s;

	doubt_open(&s);
	s.serves_bodies = true;
	assert_int_equal(doubt_send(&s, 0, text), WEIR_PASS);
	assert_int_equal(s.got, 1);
	assert_int_equal(s.why, WEIR_BODY_SERVED);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	assert_int_equal(s.conn.opaque_why, WEIR_BODY_SERVED);
	assert_int_equal(s.conn.hold.next, CLIENT + from);
	assert_true(s.conn.bare & WEIR_BARE_OPEN);
	/* Nothing is read on it any more, whatever the server says. */
	doubt_server_has(&s, strlen(text), OK);
	assert_int_equal(doubt_send(&s, strlen(text), GET), WEIR_PASS);
	assert_int_equal(s.got, 0);
}

static void test_body_is_not_believed(void **state)
{
	(void)state;
	check_doubted(with_body, body_at);
	check_doubted(POST "28\r\n\r\n", body_at);
	check_doubted(POST "28\r\n\r\nG", body_at);
	check_doubted(POST "99999999999\r\n\r\nG", sizeof(POST "99999999999\r\n\r\n") - 1);
	check_doubted(CHUNKED, sizeof(CHUNKED) - 1);
	check_doubted(CHUNKED "1c\r\n" GET "\r\n0\r\n\r\n", sizeof(CHUNKED) - 1);
	/* Behind it there may be whatever the server takes it for. */
	check_doubted(POST "28\r\n\r\n" GET GET, body_at);
}

static void test_request_without_a_body(void **state)
{
	struct doubt_scene s;

	(void)state;
	doubt_open(&s);
	s.serves_bodies = true;
	assert_int_equal(doubt_send(&s, 0, without_body), WEIR_PASS);
	assert_int_equal(doubt_send(&s, strlen(without_body), GET), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_FOLLOWED);
	doubt_check_at(&s, strlen(without_body) + strlen(GET), 2);
}

/* A request in front of it in the same segment is counted, and so is its own. */
static void test_requests_in_front(void **state)
{
	struct doubt_scene s;
	char text[sizeof(GET) + sizeof(with_body)];

	(void)state;
	doubt_open(&s);
	s.serves_bodies = true;
	strcpy(stpcpy(text, GET), with_body);
	assert_int_equal(doubt_send(&s, 0, text), WEIR_PASS);
	assert_int_equal(s.got, 2);
	assert_int_equal(s.conn.requests, 2);
	assert_int_equal(s.conn.hold.next, CLIENT + strlen(GET) + body_at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer_that_nobody_asked_for),
		cmocka_unit_test(test_it_comes_at_once_or_late),
		cmocka_unit_test(test_other_bad_responses),
		cmocka_unit_test(test_read_on_behind_a_body),
		cmocka_unit_test(test_body_is_not_believed),
		cmocka_unit_test(test_request_without_a_body),
		cmocka_unit_test(test_requests_in_front),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
