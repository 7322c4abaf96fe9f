/* SPDX-License-Identifier: GPL-2.0 */
/* Requests that take several tokens at once, and may owe them. */
#include "bucket_units.h"

static bool takes_weight(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns, __u32 weight)
{
	bool open = !weir_bucket_wait_ns(b, h, now_ns);

	assert_int_equal(weir_bucket_take_weight(b, h, now_ns, weight), open);
	return open;
}

/* One token lets in any weight; what is owed is gained before the next. */
static void test_weight(void **state)
{
	struct weir_rate_history h = rate("2", 3);
	struct weir_bucket b = {};
	__u64 now_ns = 100 * SECOND;

	(void)state;
	assert_true(takes_weight(&b, &h, now_ns, 2));
	assert_true(takes_weight(&b, &h, now_ns, 8));
	assert_true(tokens_at(&b, &h, now_ns) == -7 * (units)WEIR_TOKEN);
	assert_int_equal(weir_bucket_wait_ns(&b, &h, now_ns), 4 * SECOND);
	assert_false(takes_weight(&b, &h, now_ns + 4 * SECOND - 1, 1));
	assert_true(takes_weight(&b, &h, now_ns + 4 * SECOND, 1));
	assert_true(tokens_at(&b, &h, now_ns + 4 * SECOND) == 0);
}

/* Far below zero, where the units missing are more than 64 bits: refused to the nanosecond, the wait told a little long. */
static void test_weight_owed_for_long(void **state)
{
	static const __u32 weights[] = { 17, 18, 19, 20, 1000, 65536, 1 << 20 };
	static const char *const rates[] = { "0.001", "1", "7", "1000000000" };

	(void)state;
	for (size_t i = 0; i < sizeof(weights) / sizeof(*weights) * 4; i++) {
		struct weir_rate_history h = rate(rates[i % 4], 1);
		struct weir_bucket b = {};
		units owed = weights[i / 4] * (units)WEIR_TOKEN;
		__u64 now_ns = 100 * SECOND, repaid_ns, told_ns;

		assert_true(takes_weight(&b, &h, now_ns, weights[i / 4]));
		assert_true(tokens_at(&b, &h, now_ns) == (units)WEIR_TOKEN - owed);
		/* As in x/time/rate, less than 1 ns may be missing. */
		repaid_ns = owed / h.rates[0].per_ns;
		told_ns = weir_bucket_wait_ns(&b, &h, now_ns);
		assert_in_range(told_ns - repaid_ns, 0, 1 << 17);
		assert_false(takes_weight(&b, &h, now_ns + repaid_ns - 1, 1));
		assert_true(takes_weight(&b, &h, now_ns + repaid_ns, 1));
	}
}

/* There is a most that can be owed: 2^21 tokens at slow rates, months of gain at fast ones. */
static void test_weight_owed_for_ever(void **state)
{
	struct weir_rate_history h = rate("0.0000001", 1);
	struct weir_bucket b = {};

	(void)state;
	assert_true(takes_weight(&b, &h, 100 * SECOND, 0xffffffff));
	assert_true(tokens_at(&b, &h, 100 * SECOND) <= -((units)1 << 21) * WEIR_TOKEN + WEIR_TOKEN);
	assert_true(weir_bucket_wait_ns(&b, &h, 100 * SECOND) == WEIR_NEVER_NS);
	assert_false(takes_weight(&b, &h, 365 * DAY, 1));
	weir_bucket_give_back(&b, &h, 0xffffffff);
	assert_true(takes_weight(&b, &h, 365 * DAY, 1));
}

/* Who would have to wait behind more than a million tokens is refused, however patient: it might come to owe more than a mark can tell. */
static void test_weight_that_nobody_waits_for(void **state)
{
	struct weir_rate_history h = rate("1", 1);
	struct weir_ask ask = { .now_ns = 100 * SECOND, .longest_ns = WEIR_NEVER_NS - 1, .weight = 0xffffffff };
	struct weir_bucket b = {}, last;

	(void)state;
	assert_int_equal(weir_bucket_ask(&b, &h, &ask), WEIR_TAKEN);
	last = b;
	ask.wait_ns = 1;
	assert_int_equal(weir_bucket_ask(&b, &h, &ask), WEIR_REFUSED);
	assert_true(ask.wait_ns == WEIR_NEVER_NS);
	assert_memory_equal(&b, &last, sizeof(b));
}

static void test_weight_given_back(void **state)
{
	struct weir_rate_history h = rate("1", 5);
	struct weir_bucket b = {};

	(void)state;
	assert_true(takes_weight(&b, &h, 100 * SECOND, 2));
	assert_true(takes_weight(&b, &h, 100 * SECOND, 40));
	weir_bucket_give_back(&b, &h, 40);
	assert_int_equal(takes(&b, &h, 100 * SECOND, 20), 3);
	weir_bucket_give_back(&b, &h, 40);
	assert_int_equal(takes(&b, &h, 100 * SECOND, 20), 5);
}

/* Whatever the weights, what passes in the long run is what the rate allows. */
static void test_weight_in_the_long_run(void **state)
{
	struct weir_rate_history h = rate("100", 10);
	struct weir_bucket b = {};
	__u64 taken = 0, last = 0;

	(void)state;
	for (__u64 ms = 0; ms < 100000; ms++) {
		__u32 weight = 1 + ms * 7919 % 50;

		if (takes_weight(&b, &h, 100 * SECOND + ms * SECOND / 1000, weight)) {
			taken += weight;
			last = weight;
		}
	}
	assert_true(taken <= 10 + 100 * 100 + last);
	assert_true(taken >= 100 * 100 - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weight),
		cmocka_unit_test(test_weight_owed_for_long),
		cmocka_unit_test(test_weight_owed_for_ever),
		cmocka_unit_test(test_weight_that_nobody_waits_for),
		cmocka_unit_test(test_weight_given_back),
		cmocka_unit_test(test_weight_in_the_long_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
