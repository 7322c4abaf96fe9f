/* SPDX-License-Identifier: GPL-2.0 */
/* Waiting for tokens of a bucket: whose turn is when, and that nobody departs before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "weir/conn/pace.h"
#include "weir/limit/penalty.h"

#define SECOND WEIR_NS_PER_S
#define MS (SECOND / 1000)

static struct weir_rate_history rate(__u64 qps, __u64 burst)
{
	return weir_rate_always(qps * WEIR_QPS, burst);
}

static bool try_reserve(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns, __u64 latest_ns,
			__u32 weight, __u64 *turn_ns)
{
	struct weir_ask ask = { .now_ns = now_ns, .longest_ns = latest_ns - now_ns, .weight = weight };
	bool taken = weir_bucket_ask(b, h, &ask) == WEIR_TAKEN;

	*turn_ns = ask.wait_ns;
	return taken;
}

static __u64 reserve(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns, __u32 weight)
{
	__u64 turn_ns;

	assert_true(try_reserve(b, h, now_ns, now_ns + WEIR_PACE_MAX_NS, weight, &turn_ns));
	return turn_ns;
}

static void test_reserved_in_turn(void **state)
{
	struct weir_rate_history h = rate(10, 2);
	struct weir_bucket b = {};
	__u64 wait_ns;

	(void)state;
	assert_int_equal(reserve(&b, &h, SECOND, 1), 0);
	assert_int_equal(reserve(&b, &h, SECOND, 1), 0);
	assert_int_equal(reserve(&b, &h, SECOND, 1), 100 * MS);
	assert_int_equal(reserve(&b, &h, SECOND, 1), 200 * MS);
	assert_int_equal(reserve(&b, &h, SECOND + 50 * MS, 1), 250 * MS);
	/* What is over one token is owed by those behind. */
	assert_int_equal(reserve(&b, &h, SECOND, 5), 400 * MS);
	assert_int_equal(reserve(&b, &h, SECOND, 1), 900 * MS);
	/* Who would not wait comes behind those who do. */
	assert_false(try_reserve(&b, &h, SECOND, SECOND, 1, &wait_ns));
	assert_int_equal(wait_ns, 1000 * MS);
	assert_false(try_reserve(&b, &h, SECOND + 1000 * MS - 1, SECOND + 1000 * MS - 1, 1, &wait_ns));
	assert_int_equal(wait_ns, 1);
	assert_true(try_reserve(&b, &h, SECOND + 1000 * MS, SECOND + 1000 * MS, 1, &wait_ns));
	/* Full again. */
	assert_int_equal(reserve(&b, &h, 10 * SECOND, 1), 0);
	assert_int_equal(reserve(&b, &h, 10 * SECOND, 1), 0);
	assert_int_equal(reserve(&b, &h, 10 * SECOND, 1), 100 * MS);
}

static void refused(const struct weir_rate_history *h, struct weir_bucket *b, __u64 now_ns)
{
	struct weir_bucket before = *b;
	__u64 wait_ns;

	assert_false(try_reserve(b, h, now_ns, now_ns + WEIR_PACE_MAX_NS, 1, &wait_ns));
	assert_true(wait_ns > WEIR_PACE_MAX_NS);
	assert_memory_equal(b, &before, sizeof(before));
}

static void test_too_long_to_wait(void **state)
{
	struct weir_rate_history slow = rate(1, 1), once = rate(0, 1), never = rate(1, 0);
	struct weir_bucket b = {};

	(void)state;
	for (__u64 i = 0; i <= 5; i++)
		assert_int_equal(reserve(&b, &slow, SECOND, 1), i * SECOND);
	refused(&slow, &b, SECOND);
	assert_int_equal(reserve(&b, &slow, 2 * SECOND, 1), 5 * SECOND);
	b = (struct weir_bucket){};
	assert_int_equal(reserve(&b, &once, SECOND, 1), 0);
	refused(&once, &b, SECOND);
	b = (struct weir_bucket){};
	refused(&never, &b, SECOND);
}

/* Also what is given back is there only at its time. */
static void test_given_back(void **state)
{
	struct weir_rate_history h = rate(10, 1);
	struct weir_bucket b = {};

	(void)state;
	assert_int_equal(reserve(&b, &h, SECOND, 1), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(reserve(&b, &h, SECOND, 3), 100 * MS);
		weir_bucket_give_back(&b, &h, 3);
	}
	assert_int_equal(reserve(&b, &h, SECOND, 1), 100 * MS);
	assert_int_equal(reserve(&b, &h, SECOND, 1), 200 * MS);
}

/* A clock that was read before another CPU's, and used after it, is no reason to wait. */
static void test_clocks_that_differ(void **state)
{
	struct weir_rate_history h = rate(10, 3);
	struct weir_bucket b = {};

	(void)state;
	assert_int_equal(reserve(&b, &h, 2 * SECOND, 1), 0);
	assert_int_equal(reserve(&b, &h, SECOND, 1), 0);
	assert_int_equal(reserve(&b, &h, SECOND, 1), 0);
	assert_int_equal(reserve(&b, &h, 2 * SECOND, 1), 100 * MS);
	/* Once full, the bucket has forgotten who waited. */
	assert_int_equal(reserve(&b, &h, 9 * SECOND, 1), 0);
	assert_int_equal(reserve(&b, &h, 8 * SECOND, 1), 0);
}

/* However they come: between two that depart there is the time that the ones between them took to gain. */
static void test_nobody_before_its_time(void **state)
{
	enum {
		MANY = 400
	};
	static __u64 departs_ns[MANY], weights[MANY];
	struct weir_rate_history h = rate(100, 7);
	struct weir_bucket b = {};
	__u64 now_ns = SECOND, wait_ns;
	int n = 0;

	(void)state;
	srandom(1);
	while (n < MANY) {
		__u32 weight = random() % 10 ? 1 : 1 + random() % 20;

		now_ns += random() % 3 ? 0 : random() % (40 * MS);
		if (!try_reserve(&b, &h, now_ns, now_ns + WEIR_PACE_MAX_NS, weight, &wait_ns))
			continue;
		departs_ns[n] = now_ns + wait_ns;
		weights[n++] = weight;
	}
	for (int first = 0; first < n; first++) {
		__u64 taken = 0;

		for (int last = first; last < n; last++) {
			/* The one that is let in by its first token owes the rest. */
			assert_true((taken + 1) * 10 * MS <= 7 * 10 * MS + departs_ns[last] - departs_ns[first] + 1);
			taken += weights[last];
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserved_in_turn),
		cmocka_unit_test(test_too_long_to_wait),
		cmocka_unit_test(test_given_back),
		cmocka_unit_test(test_clocks_that_differ),
		cmocka_unit_test(test_nobody_before_its_time),
	};

	return cmocka_run_group_tests_name("pace_turns", tests, NULL, NULL);
}
