/* SPDX-License-Identifier: GPL-2.0 */
/* A limit whose terms are known from the request before (bpf/limit_ready.h) is asked as what it has become meanwhile. */
#include "limited.h"

#define ROUNDS 3 /* from the second request on its terms are known */

static void assert_all(bool pass)
{
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(passes(false, get_pod), pass);
}

static void test_another_amount(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "1000", 1000);
	assert_all(true);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	assert_all(false);
}

/* Its place is another one's among those of a request. */
static void test_another_place(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "1000", 1000);
	assert_all(true);
	limit(WEIR_BUILTIN_USER, "0", 0);
	assert_all(false);
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_USER, &error));
	assert_all(true);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	assert_all(false);
}

static void test_deleted_and_made_anew(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "1000", 1000);
	assert_all(true);
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_TOTAL, &error));
	assert_all(true);
	limit(WEIR_BUILTIN_TOTAL, "0", 1);
	assert_true(passes(false, get_pod));
	assert_all(false);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = { TEST(another_amount), TEST(another_place), TEST(deleted_and_made_anew) };

	return cmocka_run_group_tests_name("limit_ready", tests, attached_open, attached_close);
}
