/* SPDX-License-Identifier: GPL-2.0 */
/* The token bucket when its rate changes: what is there stays, and is counted by the rate of its time. */
#include "bucket_units.h"

static void test_change_keeps_tokens_clipped(void **state)
{
	struct weir_rate_history h = {};
	struct weir_bucket b = {};

	(void)state;
	weir_rate_history_push(&h, qps("1"), 10, 100 * SECOND);
	assert_int_equal(takes(&b, &h, 100 * SECOND, 4), 4);
	/* 6 + 2, then clipped to 3, then 3 + 10 * 0.1, then under a wide burst 4 + 2 * 5. */
	weir_rate_history_push(&h, qps("0.1"), 3, 102 * SECOND);
	weir_rate_history_push(&h, qps("0.1"), 50, 103 * SECOND);
	weir_rate_history_push(&h, qps("5"), 60, 113 * SECOND);
	assert_true(same(tokens_at(&b, &h, 115 * SECOND), (units)14 * WEIR_TOKEN));
	assert_int_equal(takes(&b, &h, 115 * SECOND, 100), 14);
	/* Brought up to date at each step or all at once: the same. */
	assert_int_equal(takes(&b, &h, 116 * SECOND, 100), 5);
}

static void test_change_while_full(void **state)
{
	struct weir_rate_history h = {};
	struct weir_bucket b = {};

	(void)state;
	weir_rate_history_push(&h, qps("1"), 2, SECOND);
	assert_int_equal(takes(&b, &h, SECOND, 1), 1);
	/* Raised at the instant of that request: the one left stays, nothing is clipped to the old burst later. */
	weir_rate_history_push(&h, qps("100"), 1000, SECOND);
	assert_int_equal(takes(&b, &h, 2 * SECOND, 1000), 101);
	/* A request that read the clock before the change is asked under the new rate, at its beginning. */
	weir_rate_history_push(&h, qps("100"), 3, 3 * SECOND - 1);
	weir_rate_history_push(&h, qps("0"), 7, 3 * SECOND);
	assert_int_equal(takes(&b, &h, 2 * SECOND, 1000), 3);
	b = (struct weir_bucket){};
	assert_int_equal(takes(&b, &h, 2 * SECOND, 1), 1);
	assert_int_equal(takes(&b, &h, 4 * SECOND, 1000), 6);
	/* qps 0 keeps what there is as well. */
	weir_rate_history_push(&h, qps("1"), 7, 1000 * SECOND);
	assert_int_equal(takes(&b, &h, 1002 * SECOND, 1000), 2);
}

static void test_history(void **state)
{
	struct weir_rate_history h = {}, before;
	struct weir_bucket b = {};

	(void)state;
	weir_rate_history_push(&h, 1, 1, 10);
	weir_rate_history_push(&h, 1, 2, 10);
	weir_rate_history_push(&h, 1, 3, 5);
	assert_int_equal(h.rates[0].since_ns, 12);
	assert_int_equal(h.rates[1].since_ns, 11);
	assert_int_equal(h.rates[2].since_ns, 10);
	before = h;
	weir_rate_history_push(&h, 1, 3, 99);
	assert_memory_equal(&h, &before, sizeof(h));

	/* Five changes after its last use nothing is known of a bucket before the oldest that is kept: it is empty then. */
	h = (struct weir_rate_history){};
	weir_rate_history_push(&h, qps("1"), 100, SECOND);
	assert_int_equal(takes(&b, &h, SECOND, 100), 100);
	for (__u64 i = 1; i <= 4; i++)
		weir_rate_history_push(&h, qps("1"), 100 + i, SECOND + i * 10 * SECOND);
	assert_int_equal(takes(&b, &h, 51 * SECOND, 1000), 40);

	/* So is one of which no rate is known (its limit was deleted and made anew), and gains from then on. */
	assert_int_equal(takes(&b, &h, 61 * SECOND, 3), 3);
	h = (struct weir_rate_history){};
	weir_rate_history_push(&h, qps("1"), 100, 1000 * SECOND);
	assert_int_equal(takes(&b, &h, 1000 * SECOND, 1000), 0);
	assert_int_equal(takes(&b, &h, 1007 * SECOND, 1000), 7);
}

/* Changes that come faster than tokens do not starve a bucket that is only refused in between. */
static void test_many_changes(void **state)
{
	struct weir_rate_history h = {};
	struct weir_bucket b = {};
	__u32 passed = 0;

	(void)state;
	weir_rate_history_push(&h, qps("0.01"), 1, 0);
	assert_int_equal(takes(&b, &h, 1, 2), 1);
	for (__u64 now = 1; now <= 1000 * SECOND; now += SECOND) {
		passed += takes(&b, &h, now, 1);
		weir_rate_history_push(&h, qps("0.01"), 1 + now / SECOND % 2, now + SECOND / 2);
	}
	passed += takes(&b, &h, 1 + 1000 * SECOND, 1);
	assert_int_equal(passed, 10);
}

/* A take is undone under the rate under which the bucket was last used. One whose rate nobody knows any more stays as it is. */
static void test_given_back(void **state)
{
	struct weir_rate_history h = {}, anew = {};
	struct weir_bucket b = {}, last;

	(void)state;
	weir_rate_history_push(&h, qps("1"), 10, 100 * SECOND);
	assert_int_equal(takes(&b, &h, 103 * SECOND, 10), 10);
	weir_rate_history_push(&h, qps("1000000"), 1 << 20, 104 * SECOND);
	assert_true(weir_bucket_give_back(&b, &h, 4));
	assert_true(same(tokens_at(&b, &h, 104 * SECOND), (units)5 * WEIR_TOKEN));
	last = b;
	weir_rate_history_push(&anew, qps("1"), 10, 105 * SECOND);
	anew.rates[0].generation = WEIR_GENERATIONS;
	assert_false(weir_bucket_give_back(&b, &anew, 4));
	assert_memory_equal(&b, &last, sizeof(b));
}

/* What a bucket has under one history it has under another, up to that one's burst. One that was never asked stays full. */
static void test_handed_over(void **state)
{
	struct weir_rate_history from = rate("1", 10), wide = rate("2", 50), narrow = rate("2", 3);
	struct weir_bucket b = {}, other;
	struct weir_level level = {};

	(void)state;
	assert_true(weir_bucket_level(&b, &from, 100 * SECOND, &level));
	assert_true(weir_bucket_hand_over_try(&b, &wide, &level));
	assert_int_equal(takes(&b, &wide, 100 * SECOND, 100), 50);

	b = (struct weir_bucket){};
	assert_int_equal(takes(&b, &from, 100 * SECOND, 4), 4);
	other = b;
	assert_true(weir_bucket_level(&b, &from, 101 * SECOND, &level));
	assert_true(weir_bucket_hand_over_try(&b, &wide, &level));
	assert_int_equal(takes(&b, &wide, 102 * SECOND, 100), 7 + 2);
	assert_true(weir_bucket_level(&other, &from, 101 * SECOND, &level));
	assert_true(weir_bucket_hand_over_try(&other, &narrow, &level));
	assert_int_equal(takes(&other, &narrow, 101 * SECOND, 100), 3);
	/* Taken from meanwhile: to be tried again. */
	assert_false(weir_bucket_hand_over_try(&other, &narrow, &level));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change_keeps_tokens_clipped),
		cmocka_unit_test(test_change_while_full),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_many_changes),
		cmocka_unit_test(test_given_back),
		cmocka_unit_test(test_handed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
