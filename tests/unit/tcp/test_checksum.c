/* SPDX-License-Identifier: GPL-2.0 */
/* What a sum folds to is found without folding it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/tcp/checksum.h"

#define LAST_SUM ((1ULL << 48) - 1)

/* Of all that it might fold to, it is what it does fold to. */
static void assert_is_what_it_folds_to(__u64 sum)
{
	for (__u32 folded = 0; folded <= 0xffff; folded++)
		if (weir_sum_is(sum, folded) != (folded == weir_sum_fold(sum)))
			fail_msg("%llx and %x", sum, folded);
}

/* The least sums and the largest, and those beside multiples of 0xffff, where a remainder begins anew. */
static void test_every_remainder(void **state)
{
	static const __u64 multiples[] = { 1, 2, 0xffff, 0x10000, 0x10001, 0xffffffff, 0x100000000 };

	(void)state;
	assert_is_what_it_folds_to(1);
	assert_is_what_it_folds_to(LAST_SUM - 1);
	assert_is_what_it_folds_to(LAST_SUM);
	for (size_t i = 0; i < sizeof(multiples) / sizeof(*multiples); i++)
		for (__u64 sum = multiples[i] * 0xffff - 1; sum <= multiples[i] * 0xffff + 1; sum++)
			assert_is_what_it_folds_to(sum);
}

/* In ones' complement 0 has two forms. No sum of anything folds to the first. */
static void test_zero(void **state)
{
	(void)state;
	assert_int_equal(weir_sum_fold(0xffff), 0xffff);
	assert_int_equal(weir_sum_fold(0xfffe0001ULL), 0xffff);
	assert_true(weir_sum_is(0xffff, 0xffff));
	assert_false(weir_sum_is(0xffff, 0));
	assert_false(weir_sum_is(0xfffe0001ULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_remainder),
		cmocka_unit_test(test_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
