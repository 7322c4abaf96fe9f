/* SPDX-License-Identifier: GPL-2.0 */
/* What a splice knows of its connection. The packet player asks what it does to packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/tcp/splice_cut.h"
#include "weir/tcp/splice_judge.h"

#define BOTH (WEIR_SPLICE_CLIENT_FIN | WEIR_SPLICE_SERVER_FIN)

/* It is over when each side has closed, and has acknowledged the other's end: in its own numbers. */
static void test_closed(void **state)
{
	const struct weir_splice over = { .fins = BOTH,
					  .client_fin = 1000,
					  .server_fin = 5000,
					  .in_off = 100,
					  .out_off = 300,
					  .client_acked = 5300,
					  .server_acked = 900 };
	struct weir_splice s = over;

	(void)state;
	assert_true(weir_splice_closed(&s));
	s.fins = WEIR_SPLICE_CLIENT_FIN;
	assert_false(weir_splice_closed(&s));
	s.fins = WEIR_SPLICE_SERVER_FIN;
	assert_false(weir_splice_closed(&s));
	s = over;
	s.client_acked--;
	assert_false(weir_splice_closed(&s));
	s = over;
	s.server_acked--;
	assert_false(weir_splice_closed(&s));
}

/* What is swallowed counts as gone on to the server: nothing of it may be sent there later. */
static void test_swallowed(void **state)
{
	const struct weir_segment g = { .seq = 1000 };
	struct weir_splice s = { .client_end = 1000, .passed_end = 1000 };

	(void)state;
	weir_splice_cut(&s, &g);
	weir_splice_swallow(&s, 50);
	weir_splice_swallow(&s, 20);
	assert_int_equal(s.cut_start, 1000);
	assert_int_equal(s.cut_end, 1070);
	assert_int_equal(s.in_off, 70);
	assert_int_equal(s.client_end, 1070);
	assert_int_equal(s.passed_end, 1070);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_swallowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
