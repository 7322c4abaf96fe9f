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

#include <cmocka.h>

#include "base/rate.h"
#include "weir/limit/bucket.h"

#define SECOND WEIR_NS_PER_S
#define DAY (86400 * SECOND)

typedef __int128 units;

/* Units, of which the part behind the point is rounded to the nearest: it stands for some that a binary fraction cannot say. */
static units exact(struct weir_tokens tokens)
{
	return tokens.high * (units)WEIR_TOKEN +
	       (units)(((unsigned __int128)tokens.low * WEIR_TOKEN + (1ULL << 63)) >> 64);
}

/* The same to a million millionth of a token, as the oracle has it. */
static bool same(units a, units b)
{
	units difference = a > b ? a - b : b - a;

	return difference <= (units)(WEIR_TOKEN / 1000000000000);
}

static units tokens_at(const struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns)
{
	return exact(weir_bucket_tokens(b, h, now_ns));
}

static __u64 qps(const char *text)
{
	__u64 per_ns;

	assert_int_equal(weir_qps_parse(text, &per_ns), 0);
	return per_ns;
}

static struct weir_rate_history rate(const char *text, __u64 burst)
{
	return weir_rate_always(qps(text), burst);
}

static __u32 takes(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns, __u32 asked)
{
	__u32 passed = 0;

	for (__u32 i = 0; i < asked; i++)
		passed += weir_bucket_take(b, h, now_ns);
	return passed;
}

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

/*
 * Threads that read a clock, and take from one bucket in any order; some give their token back. The bucket is empty from the start and never fills, so each unit gained is either in it or was kept by a request.
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
		cmocka_unit_test(test_starts_full_and_refills),
		cmocka_unit_test(test_refused_changes_nothing),
		cmocka_unit_test(test_qps_zero),
		cmocka_unit_test(test_burst_zero),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_gain),
		cmocka_unit_test(test_time_that_goes_back),
		cmocka_unit_test(test_exact_over_days),
		cmocka_unit_test(test_give_back),
		cmocka_unit_test(test_wait_is_the_shortest),
		cmocka_unit_test(test_change_keeps_tokens_clipped),
		cmocka_unit_test(test_change_while_full),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_many_changes),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_retry_after),
		cmocka_unit_test(test_weight),
		cmocka_unit_test(test_weight_owed_for_long),
		cmocka_unit_test(test_weight_owed_for_ever),
		cmocka_unit_test(test_weight_given_back),
		cmocka_unit_test(test_weight_in_the_long_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
