/* SPDX-License-Identifier: GPL-2.0 */
/* The word that counts a subject's requests in flight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/limit/limit.h"

static const struct weir_in_flight_key key = { .subject = 0x1234567890abcdef, .limit = 7, .epoch = 3 };

static void test_whose_it_is(void **state)
{
	const struct weir_in_flight_key subject = { key.subject + 1, key.limit, key.epoch };
	const struct weir_in_flight_key limit = { key.subject, key.limit + 1, key.epoch };
	const struct weir_in_flight_key epoch = { key.subject, key.limit, key.epoch + 1 };
	__u64 none = weir_in_flight_none(&key);

	(void)state;
	assert_int_equal(weir_in_flight_taken(none), 0);
	assert_int_equal(weir_in_flight_taken(none + 5), 5);
	for (__u32 taken = 0; taken < 100; taken++)
		assert_true(weir_in_flight_is_of(none + taken, &key));
	assert_true(weir_in_flight_is_of(none + ~0U, &key));
	assert_false(weir_in_flight_is_of(none, &subject));
	assert_false(weir_in_flight_is_of(none, &limit));
	assert_false(weir_in_flight_is_of(none, &epoch));
	/* One seat too many given back, or taken, is seen. */
	assert_false(weir_in_flight_is_of(none - 1, &key));
	assert_false(weir_in_flight_is_of(none + ~0U + 1ULL, &key));
}

static void test_what_fits(void **state)
{
	__u64 none = weir_in_flight_none(&key);

	(void)state;
	assert_true(weir_in_flight_fits(none, 1, 1));
	assert_false(weir_in_flight_fits(none, 1, 0));
	assert_true(weir_in_flight_fits(none + 3, 2, 5));
	assert_false(weir_in_flight_fits(none + 4, 2, 5));
	assert_false(weir_in_flight_fits(none + 6, 1, 5));
	assert_false(weir_in_flight_fits(none + ~0U, 1, ~0U));
	assert_true(weir_in_flight_fits(none + ~0U - 1, 1, ~0U));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose_it_is),
		cmocka_unit_test(test_what_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
