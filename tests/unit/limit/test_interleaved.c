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

#include "bucket_scene.h"

#define ORDERS_MAX 6

static struct outcome orders[ORDERS_MAX];
static int n_orders;

static void order_end(void)
{
	scene.now.left = weir_bucket_tokens(&scene.shared.bucket, &scene.shared.history, NOW);
	orders[n_orders++] = scene.now;
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
	scene.now.left = weir_bucket_tokens(&scene.shared.bucket, &scene.shared.history, NOW);
	for (int i = 0; i < n_orders; i++)
		if (same(&scene.now, &orders[i]))
			return;
	fail_msg("%d %d %d: taken %d %d %d, left %lld + %llu / 2^64: so in no order", scene.deeds[0], scene.deeds[1],
		 scene.deeds[2], scene.now.taken[0], scene.now.taken[1], scene.now.taken[2], scene.now.left.high,
		 scene.now.left.low);
}

static unsigned long all(int actors)
{
	n_orders = 0;
	scene_orders(actors, order_end);
	return scene_play(actors, turns_end);
}

static void pairs(void)
{
	static const enum deed deeds[][2] = {
		{ TAKE, TAKE }, { TAKE, TAKE_HEAVY }, { TAKE, REFUND },	  { TAKE, SETTLE },   { TAKE, WAIT },
		{ WAIT, WAIT }, { WAIT, REFUND },     { REFUND, REFUND }, { REFUND, SETTLE },
	};

	for (size_t i = 0; i < sizeof(deeds) / sizeof(*deeds); i++) {
		memcpy(scene.deeds, deeds[i], sizeof(deeds[i]));
		assert_true(all(2) > 1);
	}
}

static void threes(const enum deed (*deeds)[3], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		memcpy(scene.deeds, deeds[i], sizeof(deeds[i]));
		assert_true(all(3) > 1);
	}
}

static void three(void)
{
	static const enum deed deeds[][3] = {
		{ TAKE, TAKE, TAKE },
		{ TAKE, TAKE, REFUND },
		{ TAKE, TAKE_HEAVY, SETTLE },
		{ TAKE, REFUND, SETTLE },
	};

	threes(deeds, sizeof(deeds) / sizeof(*deeds));
}

/* The limit is changed in the midst of it: who knows the old rate only, and who knows the new one, meet at one bucket. */
static void takes_and_changes(void)
{
	static const enum deed deeds[][3] = {
		{ TAKE, TAKE, CHANGE }, { TAKE, TAKE_HEAVY, CHANGE },	{ TAKE, SETTLE, CHANGE },
		{ WAIT, TAKE, CHANGE }, { TAKE, CHANGE, CHANGE_AGAIN },
	};

	scene.changes = true;
	threes(deeds, sizeof(deeds) / sizeof(*deeds));
	scene.changes = false;
}

static void refunds_and_changes(void)
{
	static const enum deed deeds[][3] = {
		{ TAKE, REFUND, CHANGE },
		{ REFUND, SETTLE, CHANGE },
		{ REFUND, CHANGE, CHANGE_AGAIN },
	};

	scene.changes = true;
	threes(deeds, sizeof(deeds) / sizeof(*deeds));
	scene.changes = false;
}

static void three_and_changes(void)
{
	takes_and_changes();
	refunds_and_changes();
}

static void test_new(void **state)
{
	(void)state;
	scene_bucket(QPS(5), 1, 0, 0);
	pairs();
}

static void test_one_left(void **state)
{
	(void)state;
	scene_bucket(QPS(5), 3, 2, 0);
	pairs();
}

/* None is left, and the next is there in 100 ms. */
static void test_none_left(void **state)
{
	(void)state;
	scene_bucket(QPS(5), 1, 1, WEIR_NS_PER_S / 10);
	pairs();
}

static void test_full_again(void **state)
{
	(void)state;
	scene_bucket(QPS(123), 2, 2, 900 * WEIR_NS_PER_S + 7);
	pairs();
}

static void test_never_again(void **state)
{
	(void)state;
	scene_bucket(0, 2, 1, 0);
	pairs();
}

/* The rate was changed since it was used: whoever comes first brings it up to date. */
static void test_changed(void **state)
{
	(void)state;
	scene_bucket(QPS(5), 4, 3, WEIR_NS_PER_S / 10);
	weir_rate_history_push(&scene.history_at_first, QPS(20), 2, NOW - WEIR_NS_PER_S / 20);
	pairs();
}

static void test_three(void **state)
{
	(void)state;
	scene_bucket(QPS(5), 1, 0, 0);
	three();
	scene_bucket(QPS(5), 3, 2, 0);
	three();
}

static void test_changes(void **state)
{
	(void)state;
	scene_bucket(QPS(5), 1, 0, 0);
	three_and_changes();
	scene_bucket(QPS(5), 4, 3, WEIR_NS_PER_S / 10);
	three_and_changes();
	scene_bucket(0, 3, 2, 0);
	three_and_changes();
}

/*
 * It was changed so often that nobody knows the rate any more under which the bucket was last used: it is empty where the history
 * begins, and only the last rate brings tokens.
 */
static void test_forgotten(void **state)
{
	(void)state;
	scene_bucket(QPS(5), 4, 3, WEIR_NS_PER_S / 10);
	for (int i = WEIR_RATES; i > 1; i--)
		weir_rate_history_push(&scene.history_at_first, 0, 4 + i, NOW - i * WEIR_NS_PER_S / 100);
	weir_rate_history_push(&scene.history_at_first, QPS(150), 4, NOW - WEIR_NS_PER_S / 100);
	takes_and_changes();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),	   cmocka_unit_test(test_one_left),    cmocka_unit_test(test_none_left),
		cmocka_unit_test(test_full_again), cmocka_unit_test(test_never_again), cmocka_unit_test(test_changed),
		cmocka_unit_test(test_three),	   cmocka_unit_test(test_changes),     cmocka_unit_test(test_forgotten),
	};

	return cmocka_run_group_tests_name("interleaved", tests, NULL, NULL);
}
