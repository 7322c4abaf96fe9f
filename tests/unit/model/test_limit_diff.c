/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between a limit's overrides before and after: the same as whoever compares each with each finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../random.h"
#include "model/limit.h"

#define SUBJECTS 12
#define ROUNDS 20000

static void add(struct limit *limit, unsigned int subject, __u64 burst)
{
	const struct datapath_amount amount = { .set = true, .per_ns = 1, .burst = burst };
	char name[16];

	snprintf(name, sizeof(name), "user-%u", subject);
	assert_int_equal(limit_override_add(limit, name, &amount), 0);
}

static bool has(const struct override *const *list, size_t n, const struct override *wanted)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == wanted)
			return true;
	return false;
}

/* Each is in the list, once, if it should be; and nothing else is. */
static void assert_diff(const struct limit *from, const struct limit *to)
{
	CLEANUP_OVERRIDES_DIFF struct overrides_diff diff = { 0 };
	size_t put = 0, gone = 0;

	assert_int_equal(limit_overrides_diff(from, to, &diff), 0);
	for (size_t i = 0; i < to->n_overrides; i++) {
		const struct override *now = &to->overrides[i], *before = limit_override(from, now->subject);
		bool differs = !before || before->amount.burst != now->amount.burst;

		assert_int_equal(has(diff.put, diff.n_put, now), differs);
		put += differs;
	}
	for (size_t i = 0; i < from->n_overrides; i++) {
		const struct override *before = &from->overrides[i];
		bool is_gone = !limit_override(to, before->subject);

		assert_int_equal(has(diff.gone, diff.n_gone, before), is_gone);
		gone += is_gone;
	}
	assert_int_equal(diff.n_put, put);
	assert_int_equal(diff.n_gone, gone);
}

/* Some of the subjects, each once, from any of them on. */
static void fill(struct random *r, struct limit *limit)
{
	unsigned int first = random_below(r, SUBJECTS), step = random_below(r, 2) ? 1 : 5;

	for (unsigned int i = 0; i < SUBJECTS; i++)
		if (random_below(r, 4))
			add(limit, (first + i * step) % SUBJECTS, 1 + random_below(r, 2));
}

static void any(void **state)
{
	struct random random = { .state = 1 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		CLEANUP_LIMIT struct limit from = { 0 }, to = { 0 };

		fill(&random, &from);
		fill(&random, &to);
		assert_diff(&from, &to);
	}
}

static void none_before(void **state)
{
	CLEANUP_LIMIT struct limit to = { 0 };
	CLEANUP_OVERRIDES_DIFF struct overrides_diff diff = { 0 };

	(void)state;
	add(&to, 3, 1);
	add(&to, 1, 1);
	assert_int_equal(limit_overrides_diff(NULL, &to, &diff), 0);
	assert_int_equal(diff.n_put, 2);
	assert_int_equal(diff.n_gone, 0);
}

/* Overrides that differ in one part of the amount are not the same. */
static void parts_of_an_amount(void **state)
{
	const struct datapath_amount amount = { true, false, 1, 2, 3 };
	const struct datapath_amount others[] = {
		{ false, false, 1, 2, 3 }, { true, true, 1, 2, 3 },  { true, false, 2, 2, 3 },
		{ true, false, 1, 3, 3 },  { true, false, 1, 2, 4 },
	};

	(void)state;
	assert_true(amount_equal(&amount, &amount));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(amount_equal(&amount, &others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any),
		cmocka_unit_test(none_before),
		cmocka_unit_test(parts_of_an_amount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
