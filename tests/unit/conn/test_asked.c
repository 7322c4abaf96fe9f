/* SPDX-License-Identifier: GPL-2.0 */
/* A list that a client has asked for: it is waited for until it is answered, and no longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weir/conn/conn.h"

#define CLIENT 1000
#define SERVER 5000
#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

static struct weir_conn conn;
static struct weir_busy busy;

/* The second of two requests asks for a list. */
static int asked(void **state)
{
	const struct weir_asked_list list = { .list = 7, .request = 1, .whole = 1 };

	(void)state;
	memset(&conn, 0, sizeof(conn));
	memset(&busy, 0, sizeof(busy));
	weir_conn_open(&conn, 0, WEIR_PHASE_FOLLOWED, CLIENT, SERVER, 1000);
	conn.requests = 2;
	assert_false(weir_conn_wants_busy(&conn));
	weir_conn_commit_list(&conn, &busy, &list);
	assert_true(weir_conn_wants_busy(&conn));
	return 0;
}

static void answer(__u32 at)
{
	struct weir_segment g = {
		.seq = SERVER + at, .ack = CLIENT, .len = strlen(OK), .flags = WEIR_TCP_ACK, .window = 1000
	};
	enum weir_reason why = WEIR_REASON_NONE;
	struct weir_response_reader r;

	assert_int_equal(weir_conn_begin_server(&conn, &busy, &g, &r, &why), WEIR_FRAME);
	while (seq_before(r.next, g.seq + g.len))
		weir_response_reader_feed(&r, OK[r.next - g.seq]);
	weir_conn_commit_server(&conn, &busy, &r, &why);
	assert_int_equal(why, WEIR_REASON_NONE);
}

static void test_until_it_is_answered(void **state)
{
	(void)state;
	answer(0);
	assert_true(weir_conn_wants_busy(&conn));
	answer(strlen(OK));
	assert_int_equal(conn.responses, 2);
	assert_false(weir_conn_wants_busy(&conn));
}

/* No answer is read any more. */
static void test_until_it_is_opaque(void **state)
{
	(void)state;
	weir_conn_opaque(&conn, CLIENT, WEIR_GAP);
	assert_false(weir_conn_wants_busy(&conn));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_until_it_is_answered, asked),
		cmocka_unit_test_setup(test_until_it_is_opaque, asked),
	};

	return cmocka_run_group_tests_name("asked", tests, NULL, NULL);
}
