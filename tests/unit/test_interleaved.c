/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is changed without a lock, by two and three at once, in every order in which their steps may come: what each of them is
 * told, and what is left, must be as if they had come one after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "interleaved.h"
#include "weir/base/types.h"

/*
 * Each of these is a step: others may come before it. All ask at the same instant, so nothing depends on when they see or write
 * seen_ns, and that is none. Nor is what stands behind the point, where steps are many.
 */
#undef WEIR_FRESH
#define WEIR_FRESH(x) (step(&(x)), *(const volatile __typeof__(x) *)&(x))
static void step(const void *read);
#define __sync_val_compare_and_swap(place, before, after)                                        \
	({                                                                                       \
		__typeof__(*(place)) expected = before;                                          \
		interleaved_turn();                                                              \
		__atomic_compare_exchange_n(place, &expected, after, false, 5 /* SEQ_CST */, 5); \
		expected;                                                                        \
	})

#include "weir/limit/penalty.h"

#define NOW (1000 * WEIR_NS_PER_S)
#define QPS(n) ((n)*WEIR_QPS)
#define ORDERS_MAX 6

/* What an actor does. */
enum deed {
	NOTHING,
	TAKE,
	TAKE_HEAVY, /* weighs 3 */
	WAIT,	    /* takes, also if the token is there only later */
	SETTLE,
	REFUND, /* of a token that was taken before */
	EVICT,	/* the memory is a new subject's, whose bucket is full */
};

struct outcome {
	int taken[INTERLEAVED_ACTORS];
	__u64 wait_ns[INTERLEAVED_ACTORS];
	struct weir_tokens left;
};

static struct {
	struct weir_bucket at_first;
	struct weir_rate_history history;
	enum deed deeds[INTERLEAVED_ACTORS];
	bool coarse; /* fewer steps */
	struct weir_bucket bucket;
	struct outcome now;
	struct outcome orders[ORDERS_MAX];
	int n_orders;
} scene;

static void step(const void *read)
{
	if (read != &scene.bucket.seen_ns && (read != &scene.bucket.fine || !scene.coarse))
		interleaved_turn();
}

static void begin(void)
{
	scene.bucket = scene.at_first;
	memset(&scene.now, 0, sizeof(scene.now));
}

static void ask(int actor, __u32 weight, __u64 longest_ns)
{
	struct weir_ask ask = { .now_ns = NOW, .weight = weight, .longest_ns = longest_ns };

	scene.now.taken[actor] = weir_bucket_ask(&scene.bucket, &scene.history, &ask);
	scene.now.wait_ns[actor] = ask.wait_ns;
}

static void evict(void)
{
	interleaved_turn();
	scene.bucket.word = 0;
	interleaved_turn();
	scene.bucket.fine = 0;
	interleaved_turn();
	scene.bucket.seen_ns = 0;
}

static void act(int actor)
{
	struct weir_level level;

	switch (scene.deeds[actor]) {
	case NOTHING:
		break;
	case TAKE:
		ask(actor, 1, 0);
		break;
	case TAKE_HEAVY:
		ask(actor, 3, 0);
		break;
	case WAIT:
		ask(actor, 1, 60 * WEIR_NS_PER_S);
		break;
	case SETTLE:
		if (weir_bucket_is_stale(WEIR_FRESH(scene.bucket.word), &scene.history))
			weir_bucket_settle_try(&scene.bucket, &scene.history, &level);
		break;
	case REFUND:
		assert_true(weir_bucket_give_back(&scene.bucket, &scene.history, 1));
		break;
	case EVICT:
		evict();
		break;
	}
}

static void order_end(void)
{
	scene.now.left = weir_bucket_tokens(&scene.bucket, &scene.history, NOW);
	scene.orders[scene.n_orders++] = scene.now;
}

/* As near as 4 ns of gain: two may each lose less than 2 of a bucket that has just run full. */
static bool same_tokens(struct weir_tokens a, struct weir_tokens b)
{
	struct weir_tokens gain = weir_rate_gain(&scene.history.rates[0], 4);

	return !weir_tokens_less(weir_tokens_sum(a, gain), b) && !weir_tokens_less(weir_tokens_sum(b, gain), a);
}

static bool same(const struct outcome *a, const struct outcome *b)
{
	for (int i = 0; i < INTERLEAVED_ACTORS; i++) {
		__s64 difference = a->wait_ns[i] - b->wait_ns[i];

		if (a->taken[i] != b->taken[i] || difference > 4 || difference < -4)
			return false;
	}
	return same_tokens(a->left, b->left);
}

static void turns_end(void)
{
	scene.now.left = weir_bucket_tokens(&scene.bucket, &scene.history, NOW);
	for (int i = 0; i < scene.n_orders; i++)
		if (same(&scene.now, &scene.orders[i]))
			return;
	fail_msg("%d %d %d: taken %d %d %d, left %lld + %llu / 2^64: so in no order", scene.deeds[0], scene.deeds[1],
		 scene.deeds[2], scene.now.taken[0], scene.now.taken[1], scene.now.taken[2], scene.now.left.high,
		 scene.now.left.low);
}

static unsigned long all(int actors)
{
	struct interleaved orders = { begin, act, order_end, actors }, turns = { begin, act, turns_end, actors };

	scene.n_orders = 0;
	interleaved_orders(&orders);
	return interleaved_all(&turns);
}

/* Buckets to begin with: `n` tokens were taken `ago_ns` ago. */
static void bucket(__u64 per_ns, __u64 burst, int n, __u64 ago_ns)
{
	scene.history = weir_rate_always(per_ns, burst);
	scene.at_first = (struct weir_bucket){};
	while (n--)
		assert_true(weir_bucket_take(&scene.at_first, &scene.history, NOW - ago_ns));
}

static void pairs(void)
{
	static const enum deed deeds[][2] = {
		{ TAKE, TAKE },	    { TAKE, TAKE_HEAVY }, { TAKE, REFUND },  { TAKE, SETTLE },
		{ TAKE, WAIT },	    { WAIT, WAIT },	  { WAIT, REFUND },  { REFUND, REFUND },
		{ REFUND, SETTLE }, { TAKE, EVICT },	  { REFUND, EVICT },
	};

	for (size_t i = 0; i < sizeof(deeds) / sizeof(*deeds); i++) {
		memcpy(scene.deeds, deeds[i], sizeof(deeds[i]));
		assert_true(all(2) > 1);
	}
}

static void three(void)
{
	static const enum deed deeds[][3] = {
		{ TAKE, TAKE, TAKE },	  { TAKE, TAKE, REFUND },  { TAKE, TAKE_HEAVY, SETTLE },
		{ TAKE, REFUND, SETTLE }, { TAKE, REFUND, EVICT },
	};

	scene.coarse = true;
	for (size_t i = 0; i < sizeof(deeds) / sizeof(*deeds); i++) {
		memcpy(scene.deeds, deeds[i], sizeof(deeds[i]));
		assert_true(all(3) > 1);
	}
	scene.coarse = false;
}

static void test_new(void **state)
{
	(void)state;
	bucket(QPS(5), 1, 0, 0);
	pairs();
}

static void test_one_left(void **state)
{
	(void)state;
	bucket(QPS(5), 3, 2, 0);
	pairs();
}

/* None is left, and the next is there in 100 ms. */
static void test_none_left(void **state)
{
	(void)state;
	bucket(QPS(5), 1, 1, WEIR_NS_PER_S / 10);
	pairs();
}

static void test_full_again(void **state)
{
	(void)state;
	bucket(QPS(123), 2, 2, 900 * WEIR_NS_PER_S + 7);
	pairs();
}

static void test_never_again(void **state)
{
	(void)state;
	bucket(0, 2, 1, 0);
	pairs();
}

/* The rate was changed since it was used: whoever comes first brings it up to date. */
static void test_changed(void **state)
{
	(void)state;
	bucket(QPS(5), 4, 3, WEIR_NS_PER_S / 10);
	weir_rate_history_push(&scene.history, QPS(20), 2, NOW - WEIR_NS_PER_S / 20);
	scene.coarse = true;
	pairs();
	scene.coarse = false;
}

static void test_three(void **state)
{
	(void)state;
	bucket(QPS(5), 1, 0, 0);
	three();
	bucket(QPS(5), 3, 2, 0);
	three();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),	   cmocka_unit_test(test_one_left),    cmocka_unit_test(test_none_left),
		cmocka_unit_test(test_full_again), cmocka_unit_test(test_never_again), cmocka_unit_test(test_changed),
		cmocka_unit_test(test_three),
	};

	return cmocka_run_group_tests_name("interleaved", tests, NULL, NULL);
}
