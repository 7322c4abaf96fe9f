/* SPDX-License-Identifier: GPL-2.0 */
/* What was read and is not acknowledged, where the stream's numbers come round, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/tcp/unconfirmed.h"

#define START 0xffffff00U /* two reads on, the numbers have come round */
#define SIZE 0x100

/* Reads of SIZE bytes, one behind the other, each of which begins with a request. */
static void read_many(struct weir_unconfirmed *u, __u32 n)
{
	*u = (struct weir_unconfirmed){ 0 };
	for (__u32 i = 0; i < n; i++) {
		const struct weir_read read = { .start = START + i * SIZE,
						.end = START + (i + 1) * SIZE,
						.requests = i };

		weir_unconfirmed_note(u, read.start, &read, true, 7);
	}
}

/* It is all settled as soon as the server has the last byte, and none of it before. */
static void test_settle(void **state)
{
	struct weir_unconfirmed u;

	(void)state;
	for (__u32 n = 0; n <= WEIR_READS; n++) {
		for (__u32 acked = 0; acked <= n * SIZE + 2; acked++) {
			read_many(&u, n);
			weir_unconfirmed_settle(&u, START + acked);
			assert_int_equal(u.n, acked < n * SIZE ? n : 0);
		}
	}
}

/* The first read makes room when the server has it. */
static void test_full(void **state)
{
	struct weir_unconfirmed u;

	(void)state;
	read_many(&u, WEIR_READS - 1);
	assert_false(weir_unconfirmed_full(&u, START));
	read_many(&u, WEIR_READS);
	assert_true(weir_unconfirmed_full(&u, START + SIZE - 1));
	assert_false(weir_unconfirmed_full(&u, START + SIZE));
	assert_int_equal(u.n, WEIR_READS - 1);
	assert_int_equal(u.boundaries, (1 << (WEIR_READS - 1)) - 1);
	for (__u32 i = 0; i + 1 < WEIR_READS; i++)
		assert_int_equal(u.read[i].requests, i + 1);
}

/* Which read has something of one byte, and of none. */
static void test_find(void **state)
{
	struct weir_unconfirmed u;

	(void)state;
	read_many(&u, 3);
	for (__u32 at = 0; at < 3 * SIZE; at++)
		assert_int_equal(weir_unconfirmed_find(&u, START + at, START + at + 1), at / SIZE);
	assert_int_equal(weir_unconfirmed_find(&u, START + 3 * SIZE, START + 3 * SIZE + 1), WEIR_READS);
	assert_int_equal(weir_unconfirmed_find(&u, START - 1, START), WEIR_READS);
	assert_int_equal(weir_unconfirmed_find(&u, START + 5, START + 5), WEIR_READS);
	assert_int_equal(weir_unconfirmed_find(&u, START - 9, START + 3 * SIZE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settle),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
