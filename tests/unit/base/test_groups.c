/* SPDX-License-Identifier: GPL-2.0 */
/* Sets of groups, by the numbers that settings give them: both halves of a set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/base/groups.h"

static struct weir_groups of(__u32 bit)
{
	struct weir_groups g = {};

	weir_groups_add(&g, bit);
	return g;
}

static void test_each_alone(void **state)
{
	(void)state;
	for (__u32 a = 0; a < WEIR_GROUPS_MAX + 2; a++) {
		struct weir_groups one = of(a);

		for (__u32 b = 0; b < WEIR_GROUPS_MAX + 2; b++) {
			struct weir_groups other = of(b);

			assert_int_equal(weir_groups_have(&one, b), a == b && a < WEIR_GROUPS_MAX);
			assert_int_equal(weir_groups_meet(&one, &other), a == b && a < WEIR_GROUPS_MAX);
		}
	}
}

static void test_join(void **state)
{
	struct weir_groups g = of(3), more = of(5);

	(void)state;
	weir_groups_add(&more, 70);
	weir_groups_join(&g, &more);
	for (__u32 bit = 0; bit < WEIR_GROUPS_MAX; bit++)
		assert_int_equal(weir_groups_have(&g, bit), bit == 3 || bit == 5 || bit == 70);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_alone),
		cmocka_unit_test(test_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
