/* SPDX-License-Identifier: GPL-2.0 */
/* Values that are read while they are replaced: of all mixtures of two, none fits a seal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../random.h"
#include "weir/limit/limit.h"

#define INDEX 7U
#define WORDS (sizeof(struct weir_terms) / sizeof(__u64))

union value {
	struct weir_terms terms;
	__u64 words[WORDS];
};

static union value made(__u64 per_ns, __u64 burst, __u32 seats, __u32 index)
{
	union value value = { .terms = { .reason = 1, .key = WEIR_KEY_USER, .epoch = 1 + seats } };
	struct weir_amount *amount = &value.terms.amount;

	amount->flags = WEIR_LIMIT_SET;
	amount->seats = seats;
	amount->history = weir_rate_always(per_ns, burst);
	weir_rate_history_push(&amount->history, per_ns + 1, burst + 1, WEIR_NS_PER_S);
	amount->seal = weir_terms_seal(&value.terms, index);
	return value;
}

static bool fits(const union value *value, __u32 index)
{
	return weir_terms_seal(&value->terms, index) == value->terms.amount.seal;
}

/* Some words of the second in the first; true: that is one of the two, as a whole. */
static bool mix(union value *first, const union value *second, __u64 which)
{
	bool first_whole = true, second_whole = true;

	for (size_t i = 0; i < WORDS; i++) {
		bool same = first->words[i] == second->words[i];

		first_whole &= same || !(which >> i & 1);
		second_whole &= same || which >> i & 1;
		if (which >> i & 1)
			first->words[i] = second->words[i];
	}
	return first_whole || second_whole;
}

/* Up to a word, from a word on, and any others. */
static void mixtures(const union value *first, const union value *second, bool same_key)
{
	struct random random = { 5 };

	for (int i = 0; i < 100000; i++) {
		__u64 which = i < (int)WORDS ? (1ULL << i) - 1 : i < 2 * (int)WORDS ? ~0ULL << (i - WORDS) : 0;
		union value mixed = *first;
		bool whole;

		if (i >= 2 * (int)WORDS)
			which = random_next(&random);
		whole = mix(&mixed, second, which);
		if (same_key)
			assert_int_equal(fits(&mixed, INDEX), whole);
		else if (!whole)
			assert_false(fits(&mixed, INDEX));
	}
}

static void test_mixtures(void **state)
{
	const union value slow = made(WEIR_QPS, 10, 0, INDEX), fast = made(2 * WEIR_QPS, 20, 0, INDEX);
	const union value seats = made(0, 0, 5, INDEX), others = made(0, 0, 0, INDEX + 1);

	(void)state;
	assert_true(fits(&slow, INDEX));
	mixtures(&slow, &fast, true);
	mixtures(&slow, &seats, true);
	mixtures(&fast, &others, false);
}

/* A word is not made up for by another one. */
static void test_differences_that_cancel(void **state)
{
	enum {
		N = 8
	};
	struct random random = { 6 };
	__u64 first[N], second[N], mixed[N];

	(void)state;
	for (int i = 0; i < N; i++) {
		first[i] = random_next(&random);
		second[i] = first[i] + (i % 2 ? -7 : 7);
	}
	for (int which = 1; which < (1 << N) - 1; which++) {
		for (int i = 0; i < N; i++)
			mixed[i] = which >> i & 1 ? second[i] : first[i];
		assert_int_not_equal(weir_seal(mixed, sizeof(mixed), INDEX), weir_seal(first, sizeof(first), INDEX));
		assert_int_not_equal(weir_seal(mixed, sizeof(mixed), INDEX), weir_seal(second, sizeof(second), INDEX));
	}
}

/* All of it is another limit's. */
static void test_another_key(void **state)
{
	const union value value = made(WEIR_QPS, 10, 0, INDEX);

	(void)state;
	assert_false(fits(&value, INDEX + 1));
	assert_false(fits(&value, INDEX - 1));
	assert_int_not_equal(weir_override_seal(&value.terms.amount, INDEX, 5),
			     weir_override_seal(&value.terms.amount, INDEX, 6));
	assert_int_not_equal(weir_override_seal(&value.terms.amount, INDEX, 5),
			     weir_override_seal(&value.terms.amount, INDEX + 1, 5));
}

static void test_nothing(void **state)
{
	const union value none = {};

	(void)state;
	assert_false(fits(&none, 0));
	assert_false(fits(&none, INDEX));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_mixtures),
					    cmocka_unit_test(test_differences_that_cancel),
					    cmocka_unit_test(test_another_key), cmocka_unit_test(test_nothing) };

	return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
