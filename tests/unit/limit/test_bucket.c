/* SPDX-License-Identifier: GPL-2.0 */
/* The token bucket at its edges, its arithmetic against the compiler's, and many threads at once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bucket_units.h"

static void test_starts_full_and_refills(void **state)
{
	struct weir_rate_history h = rate("5", 10);
	struct weir_bucket b = {};

	(void)state;
	assert_int_equal(takes(&b, &h, 100 * SECOND, 20), 10);
	assert_int_equal(takes(&b, &h, 101 * SECOND, 20), 5);
	assert_int_equal(takes(&b, &h, 102 * SECOND - 1, 20), 4);
	assert_int_equal(takes(&b, &h, 102 * SECOND, 20), 1);
	assert_int_equal(takes(&b, &h, 104 * SECOND, 20), 10);
	assert_int_equal(takes(&b, &h, 10000 * SECOND, 20), 10);
}

static void test_refused_changes_nothing(void **state)
{
	struct weir_rate_history h = rate("0.5", 3);
	struct weir_bucket b = { .passed = 7, .shed = 8 }, before;

	(void)state;
	assert_int_equal(takes(&b, &h, SECOND, 3), 3);
	assert_int_equal(b.passed, 7);
	assert_int_equal(b.shed, 8);
	before = b;
	assert_int_equal(takes(&b, &h, 2 * SECOND, 5), 0);
	assert_memory_equal(&b, &before, sizeof(b));
	/* Asking each ns does not lose what a refused request saw. */
	for (__u64 now = 3 * SECOND - 1000; now < 3 * SECOND; now++)
		assert_int_equal(takes(&b, &h, now, 1), 0);
	assert_int_equal(takes(&b, &h, 3 * SECOND, 5), 1);
}

static void test_qps_zero(void **state)
{
	struct weir_rate_history h = rate("0", 2);
	struct weir_bucket b = {};

	(void)state;
	assert_int_equal(takes(&b, &h, SECOND, 5), 2);
	assert_int_equal(takes(&b, &h, 365 * DAY, 5), 0);
	assert_int_equal(weir_bucket_wait_ns(&b, &h, 365 * DAY), WEIR_NEVER_NS);
}

static void test_burst_zero(void **state)
{
	struct weir_rate_history h = rate("1000000000", 0);
	struct weir_bucket b = {}, untouched = {};

	(void)state;
	assert_int_equal(takes(&b, &h, DAY, 5), 0);
	assert_memory_equal(&b, &untouched, sizeof(b));
	assert_int_equal(weir_bucket_wait_ns(&b, &h, DAY), WEIR_NEVER_NS);
	/* Nothing was ever taken from it: it is full at the burst it gets. */
	weir_rate_history_push(&h, qps("1"), 4, 2 * DAY);
	assert_int_equal(takes(&b, &h, 2 * DAY, 5), 4);
}

/* No product and no sum overflows at the largest numbers that there are. */
static void test_extremes(void **state)
{
	struct weir_rate_history h = rate("1000000000", WEIR_BURST_MAX);
	struct weir_bucket b = {};

	(void)state;
	assert_true(exact(weir_bucket_tokens(&b, &h, 0)) == (units)WEIR_BURST_MAX * WEIR_TOKEN);
	assert_int_equal(takes(&b, &h, 1, 1), 1);
	assert_true(exact(weir_bucket_tokens(&b, &h, 1)) == (units)(WEIR_BURST_MAX - 1) * WEIR_TOKEN);
	for (__u64 days = 200; days < 100 * 365; days *= 3) {
		assert_true(exact(weir_bucket_tokens(&b, &h, days * DAY)) == (units)WEIR_BURST_MAX * WEIR_TOKEN);
		assert_int_equal(takes(&b, &h, days * DAY, 1000), 1000);
		assert_true(exact(weir_bucket_tokens(&b, &h, days * DAY)) ==
			    (units)(WEIR_BURST_MAX - 1000) * WEIR_TOKEN);
	}

	h = rate("0.000000001", 1);
	b = (struct weir_bucket){};
	assert_int_equal(takes(&b, &h, 1, 2), 1);
	assert_int_equal(weir_bucket_wait_ns(&b, &h, 1), SECOND * SECOND);
	assert_int_equal(takes(&b, &h, SECOND * SECOND, 1), 0);
	assert_int_equal(takes(&b, &h, SECOND * SECOND + 1, 2), 1);
}

static __int128 whole(struct weir_tokens tokens)
{
	return tokens.high * ((__int128)1 << 64) + tokens.low;
}

static void test_arithmetic(void **state)
{
	static const __u64 numbers[] = {
		0,	    1,		2,	    0xffffffff, 0x100000000, 0x100000001,
		WEIR_TOKEN, 1ULL << 63, ~0ULL >> 1, ~0ULL - 1,	~0ULL,	     0x123456789abcdef
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		for (size_t j = 0; j < sizeof(numbers) / sizeof(*numbers); j++) {
			__u64 a = numbers[i], b = numbers[j];
			unsigned __int128 product = (unsigned __int128)a * b;
			struct weir_tokens tokens = weir_product(a, b);
			struct weir_tokens x = { .high = -1, .low = a }, y = { .low = b };

			assert_true(tokens.low == (__u64)product);
			assert_true((__u64)tokens.high == (__u64)(product >> 64));
			assert_true(whole(weir_tokens_sum(x, y)) == whole(x) + whole(y));
			assert_true(whole(weir_tokens_difference(x, y)) == whole(x) - whole(y));
			assert_true(whole(weir_tokens_difference((struct weir_tokens){}, x)) == -whole(x));
			assert_true(whole(weir_tokens_min(x, y)) == whole(x));
			assert_true(whole(weir_tokens_min(y, x)) == whole(x));
			x.high = 0;
			assert_true(whole(weir_tokens_min(x, y)) == (a < b ? a : b));
		}
	}
}

/* The sign decides first, then the size: also of what lies as far apart as it can. */
static void test_order(void **state)
{
	static const __s64 highs[] = { INT64_MIN, -(1LL << 62), -5, -1, 0, 1, 1LL << 62, INT64_MAX };
	static const __u64 lows[] = { 0, 1, 1ULL << 63, ~0ULL };

	(void)state;
	for (size_t i = 0; i < 8 * 4; i++) {
		for (size_t j = 0; j < 8 * 4; j++) {
			struct weir_tokens a = { .high = highs[i / 4], .low = lows[i % 4] };
			struct weir_tokens b = { .high = highs[j / 4], .low = lows[j % 4] };

			assert_int_equal(weir_tokens_less(a, b), whole(a) < whole(b));
		}
	}
}

/* The time in which a rate gains so much, against one long division: where the units fit in a word, and where they do not. */
static void test_time_of_a_gain(void **state)
{
	static const __s64 highs[] = { 0, 1, 17, 18, 19, 1000, 65537, 1 << 20 };
	static const __u64 lows[] = { 0, 12345, 1ULL << 63, ~0ULL };

	(void)state;
	for (__u64 per_ns = 1; per_ns <= WEIR_TOKEN; per_ns = per_ns < WEIR_TOKEN ? per_ns * 7 + 3 : per_ns + 1) {
		struct weir_rate made = weir_rate_made(per_ns, 10, 0, 1);

		for (size_t i = 0; i < 8 * 4; i++) {
			struct weir_tokens tokens = { .high = highs[i / 4], .low = lows[i % 4] };
			__uint128_t part = (__uint128_t)tokens.low * WEIR_TOKEN >> 64;
			__uint128_t ns = (tokens.high * (__uint128_t)WEIR_TOKEN + part) / per_ns;

			assert_true(weir_rate_gains_ns(&made, tokens) == (ns < WEIR_LONGEST_NS ? ns : WEIR_NEVER_NS));
		}
	}
}

/* Nobody stands behind more than 2^80 units; a minute's debt at 20,000 a second is less. */
static void test_no_time_of_too_large_a_gain(void **state)
{
	const struct weir_rate made = weir_rate_made(20000 * WEIR_QPS, 10, 0, 1);

	(void)state;
	assert_true(weir_rate_gains_ns(&made, (struct weir_tokens){ .high = 60 * 20000 }) == 60 * SECOND);
	assert_true(weir_rate_gains_ns(&made, (struct weir_tokens){ .high = 1208925 }) == 1208925 * (SECOND / 20000));
	assert_true(weir_rate_gains_ns(&made, (struct weir_tokens){ .high = 1208926 }) == WEIR_NEVER_NS);
}

/* A rate's gain against the exact product, for rates of every size and times up to ten years. */
static void test_gain(void **state)
{
	static const __u64 times[] = { 0, 1, 999, SECOND, DAY + 1, 400 * DAY + 12345, 3650 * DAY };

	(void)state;
	for (__u64 per_ns = 1; per_ns <= WEIR_TOKEN; per_ns = per_ns < WEIR_TOKEN ? per_ns * 7 + 3 : per_ns + 1) {
		struct weir_rate made = weir_rate_made(per_ns, 10, 0, 1);

		assert_true(made.factor >> 63);
		assert_in_range(made.fraction, 1, WEIR_MARK_BITS);
		for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
			units wanted = (units)times[i] * per_ns, got = exact(weir_rate_gain(&made, times[i]));

			/* One part in 2^63, and what the last place cannot say. */
			assert_true(got <= wanted + 1);
			assert_true(wanted - got <= (wanted >> 63) + 1);
		}
	}
	assert_int_equal(weir_rate_gain(&(struct weir_rate){ .scale = 64 }, DAY).high, 0);
	assert_int_equal(weir_rate_made(WEIR_TOKEN, 1, 0, 1).scale, 63);
}

/* Half a token a nanosecond, a quarter, and so on: a binary fraction says these without a rest. */
static void test_gain_without_a_rest(void **state)
{
	(void)state;
	for (int halved = 0; halved <= 18; halved++) {
		struct weir_rate made = weir_rate_made(WEIR_TOKEN >> halved, 10, 0, 1);

		assert_true(made.factor == 1ULL << 63);
		assert_true(whole(weir_rate_gain(&made, 3ULL << halved)) == whole(weir_tokens_whole(3)));
	}
}

static void test_time_that_goes_back(void **state)
{
	struct weir_rate_history h = rate("1", 2);
	struct weir_bucket b = {};

	(void)state;
	assert_int_equal(takes(&b, &h, 10 * SECOND, 5), 2);
	assert_int_equal(takes(&b, &h, 11 * SECOND, 1), 1);
	assert_int_equal(takes(&b, &h, 5 * SECOND, 1), 0);
	assert_int_equal(weir_bucket_wait_ns(&b, &h, 5 * SECOND), 7 * SECOND);
	assert_int_equal(takes(&b, &h, 12 * SECOND, 1), 1);
	/* One is left, taken at an earlier time: the same second does not count twice. */
	assert_int_equal(takes(&b, &h, 14 * SECOND, 1), 1);
	assert_int_equal(takes(&b, &h, 13 * SECOND, 1), 1);
	assert_int_equal(b.seen_ns, 14 * SECOND);
	assert_int_equal(takes(&b, &h, 14 * SECOND, 1), 0);
}

/* 600,000 tokens (45 hours at 3.7 qps, 2 years at 0.01) taken as they come: one for each that is due and not one more. */
static void test_exact_over_days(void **state)
{
	static const char *const rates[] = { "0.333333333", "3.7", "0.01", "0.001", "1000000", "999999.999999999" };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct weir_rate_history h = rate(rates[i], 100);
		units per_ns = h.rates[0].per_ns, taken = 0;
		struct weir_bucket b = {};
		__u64 now = 0;

		assert_int_equal(takes(&b, &h, now, 1000), 100);
		for (__u64 n = 0; n < 40000; n++) {
			now += n * 7919 % 30000 * (WEIR_TOKEN / h.rates[0].per_ns) / 1000;
			while (weir_bucket_take(&b, &h, now))
				taken++;
			/* A token that is there within the next ns is given now. */
			assert_true(taken <= (now + 1) * per_ns / WEIR_TOKEN);
			assert_true(taken >= now * per_ns / WEIR_TOKEN);
		}
		assert_true(taken > 590000);
		assert_true(same(tokens_at(&b, &h, now), now * per_ns - taken * WEIR_TOKEN));
	}
}

static void test_give_back(void **state)
{
	struct weir_rate_history h = rate("1", 5);
	struct weir_bucket b = {}, other = {};

	(void)state;
	/* The second of each pair is refused elsewhere: b is asked twice as often as other and gives the same. */
	for (__u64 now = SECOND; now < 100 * SECOND; now += SECOND / 3) {
		bool reserved = weir_bucket_take(&b, &h, now);
		bool taken = weir_bucket_take(&other, &h, now + 100);

		if (reserved)
			weir_bucket_give_back(&b, &h, 1);
		assert_int_equal(weir_bucket_take(&b, &h, now + 100), taken);
		assert_true(tokens_at(&b, &h, now + 100) == tokens_at(&other, &h, now + 100));
	}
	/* Other requests in between, and never above the burst. */
	b = (struct weir_bucket){};
	assert_true(weir_bucket_take(&b, &h, 0));
	assert_true(weir_bucket_take(&b, &h, 60 * SECOND));
	weir_bucket_give_back(&b, &h, 1);
	assert_true(tokens_at(&b, &h, 60 * SECOND) == (units)5 * WEIR_TOKEN);
	weir_bucket_give_back(&b, &h, 1);
	assert_true(tokens_at(&b, &h, 60 * SECOND) == (units)5 * WEIR_TOKEN);
}

static void test_wait_is_the_shortest(void **state)
{
	static const char *const rates[] = { "3.7", "0.01", "7", "123456.789", "700000000", "1000000000" };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct weir_rate_history h = rate(rates[i], 3);
		struct weir_bucket b = {};
		__u64 now = 5;

		for (int n = 0; n < 100; n++) {
			struct weir_bucket before = b;
			__u64 wait = weir_bucket_wait_ns(&b, &h, now);

			assert_int_equal(weir_bucket_take(&before, &h, now), wait == 0);
			if (wait)
				assert_false(weir_bucket_take(&b, &h, now + wait - 1));
			assert_true(weir_bucket_take(&b, &h, now + wait));
			now += wait / 2;
		}
	}
}

/*
 * Threads that read a clock, and take from one bucket in any order; some give their token back. The bucket is empty at the start and never
 * fills, so each unit that it gains is in it, or was kept by a request.
 */
#define THREADS 8
#define TAKES 50000
#define STEP_NS 997

static struct {
	struct weir_bucket bucket;
	struct weir_rate_history history;
	atomic_ullong clock_ns;
	atomic_ullong kept;
	atomic_ullong contended;
} shared;

static void *take_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < TAKES; i++) {
		__u64 now = atomic_fetch_add(&shared.clock_ns, STEP_NS);
		bool give_back = i % 5 == 0, taken;

		taken = weir_bucket_take(&shared.bucket, &shared.history, now);
		if (!taken)
			continue;
		if (!give_back) {
			atomic_fetch_add(&shared.kept, 1);
			continue;
		}
		while (!weir_bucket_give_back(&shared.bucket, &shared.history, 1))
			atomic_fetch_add(&shared.contended, 1);
	}
	return NULL;
}

static void test_many_threads(void **state)
{
	pthread_t threads[THREADS];
	units gained, given;
	__u64 end_ns;

	(void)state;
	shared.history = rate("123456.789", 50);
	atomic_store(&shared.kept, takes(&shared.bucket, &shared.history, 0, 100));
	assert_int_equal(shared.kept, 50);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);

	end_ns = atomic_load(&shared.clock_ns);
	assert_int_equal(end_ns, (__u64)THREADS * TAKES * STEP_NS);
	/* Never more than burst + qps * t (and what comes within the ns that x/time/rate rounds away) ... */
	gained = (units)(end_ns + 1) * shared.history.rates[0].per_ns;
	given = (units)shared.kept * WEIR_TOKEN;
	assert_true(given <= 50 * (units)WEIR_TOKEN + gained);
	/* ... and nothing lost or made: what the bucket gained is what was kept and what is left. */
	gained = (units)end_ns * shared.history.rates[0].per_ns;
	assert_true(same(given + tokens_at(&shared.bucket, &shared.history, end_ns), 50 * (units)WEIR_TOKEN + gained));
	assert_true(shared.kept > 50 + 1000);
}

static void test_retry_after(void **state)
{
	(void)state;
	assert_int_equal(weir_retry_after_s(0), 1);
	assert_int_equal(weir_retry_after_s(1), 1);
	assert_int_equal(weir_retry_after_s(SECOND), 1);
	assert_int_equal(weir_retry_after_s(SECOND + 1), 2);
	assert_int_equal(weir_retry_after_s(2 * SECOND), 2);
	assert_int_equal(weir_retry_after_s(3599 * SECOND), 3599);
	assert_int_equal(weir_retry_after_s(3599 * SECOND + 1), 3600);
	assert_int_equal(weir_retry_after_s(3600 * SECOND), 3600);
	assert_int_equal(weir_retry_after_s(3600 * SECOND + 1), WEIR_RETRY_MAX_S);
	assert_int_equal(weir_retry_after_s(WEIR_NEVER_NS), WEIR_RETRY_MAX_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_starts_full_and_refills),
		cmocka_unit_test(test_refused_changes_nothing),
		cmocka_unit_test(test_qps_zero),
		cmocka_unit_test(test_burst_zero),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_time_of_a_gain),
		cmocka_unit_test(test_no_time_of_too_large_a_gain),
		cmocka_unit_test(test_gain),
		cmocka_unit_test(test_gain_without_a_rest),
		cmocka_unit_test(test_time_that_goes_back),
		cmocka_unit_test(test_exact_over_days),
		cmocka_unit_test(test_give_back),
		cmocka_unit_test(test_wait_is_the_shortest),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_retry_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
