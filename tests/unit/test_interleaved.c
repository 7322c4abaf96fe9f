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

/* Each of these is a step: others may come before it. Whose the bucket is matters only where someone evicts. */
static void step(const void *read);
#undef WEIR_FRESH
#define WEIR_FRESH(x)                                                              \
	({                                                                         \
		step(&(x));                                                        \
		const __typeof__(x) read_ = *(const volatile __typeof__(x) *)&(x); \
		interleaved_saw(read_);                                            \
		read_;                                                             \
	})
#define __sync_val_compare_and_swap(place, before, after)                                        \
	({                                                                                       \
		__typeof__(*(place)) there_is = before;                                          \
		interleaved_turn();                                                              \
		__atomic_compare_exchange_n(place, &there_is, after, false, 5 /* SEQ_CST */, 5); \
		interleaved_saw(there_is);                                                       \
		there_is;                                                                        \
	})

#include "weir/limit/penalty.h"

#define NOW (1000 * WEIR_NS_PER_S)
#define QPS(n) ((n)*WEIR_QPS)
#define ORDERS_MAX 6

/* What an actor does. */
enum deed {
	NOTHING,
	TAKE,
	TAKE_HEAVY,   /* weighs 3 */
	WAIT,	      /* takes, also if the token is there only later */
	SETTLE,	      /* only looks, and brings the bucket to the rate in force */
	REFUND,	      /* of a token that was taken before */
	CHANGE,	      /* the limit gets another rate */
	CHANGE_AGAIN, /* or this one */
	EVICT,	      /* the memory is another subject's, whose bucket is full */
	EVICT_USED,   /* and who takes a token at once */
};

#define MINE 0x1122334455667788ULL
#define OTHER 0x1122334455667789ULL

struct outcome {
	int taken[INTERLEAVED_ACTORS];
	__u64 wait_ns[INTERLEAVED_ACTORS];
	struct weir_tokens left;
};

static struct {
	struct weir_bucket at_first;
	struct weir_rate_history history_at_first;
	enum deed deeds[INTERLEAVED_ACTORS];
	struct {
		struct weir_bucket bucket;
		struct weir_rate_history history;
		bool evicted; /* nobody finds the bucket by its first subject any more */
	} shared;
	bool changes, evicts; /* someone does */
	bool subject_first;   /* of what is written of the other subject's */
	struct outcome now;
	struct outcome orders[ORDERS_MAX];
	int n_orders;
} scene;

static struct weir_bucket *const kept = &scene.shared.bucket;

static void step(const void *read)
{
	if (scene.evicts || read != &kept->subject)
		interleaved_turn();
}

static void begin(void)
{
	memset(&scene.shared, 0, sizeof(scene.shared));
	scene.shared.bucket = scene.at_first;
	scene.shared.history = scene.history_at_first;
	memset(&scene.now, 0, sizeof(scene.now));
}

/* Looked up before each try; NULL: it is not in the table. */
static struct weir_bucket *mine(void)
{
	if (scene.evicts)
		interleaved_turn();
	interleaved_saw(scene.shared.evicted);
	return scene.shared.evicted ? NULL : kept;
}

/* Looked up, too, and copied whole. */
static struct weir_rate_history rates(void)
{
	if (scene.changes)
		interleaved_turn();
	interleaved_saw(scene.shared.history.rates[0].generation);
	return scene.shared.history;
}

/* As bpf/limit_ask.h does. */
static void ask(int actor, struct weir_ask ask)
{
	struct weir_rate_history history = rates();
	enum weir_taken taken = WEIR_LOST_RACE;
	struct weir_bucket *bucket;

	ask.now_ns = NOW;
	ask.level.subject = MINE;
	for (int i = 0; i < WEIR_BUCKET_TRIES && taken == WEIR_LOST_RACE && (bucket = mine()); i++) {
		taken = weir_bucket_try(bucket, &history, &ask);
		if (taken == WEIR_LOST_RACE)
			history = rates();
	}
	scene.now.taken[actor] = taken;
	scene.now.wait_ns[actor] = ask.wait_ns;
}

/* As bpf/limit_undo.h does. */
static void refund(void)
{
	struct weir_rate_history history = rates();
	struct weir_bucket *bucket;

	for (int i = 0; i < WEIR_BUCKET_TRIES && (bucket = mine()); i++) {
		if (weir_bucket_give_back_try(bucket, &history, MINE, 1))
			return;
		history = rates();
	}
	assert_true(scene.shared.evicted);
}

static void change(__u64 per_ns, __u64 burst)
{
	interleaved_turn();
	weir_rate_history_push(&scene.shared.history, per_ns, burst, NOW);
}

static void subject_write(void)
{
	interleaved_turn();
	kept->subject = OTHER;
}

/* As an LRU map does it: the entry goes, is written, and is another's. */
static void evict(bool used)
{
	const struct weir_kept fresh = weir_kept_new(OTHER);

	interleaved_turn();
	scene.shared.evicted = true;
	if (scene.subject_first)
		subject_write();
	interleaved_turn();
	kept->word = fresh.bucket.word;
	interleaved_turn();
	kept->fine = 0;
	kept->seen_ns = 0;
	if (!scene.subject_first)
		subject_write();
	if (used)
		assert_true(weir_bucket_take(kept, &scene.shared.history, NOW));
}

static void act(int actor)
{
	switch (scene.deeds[actor]) {
	case NOTHING:
		break;
	case TAKE:
		ask(actor, (struct weir_ask){ .weight = 1 });
		break;
	case TAKE_HEAVY:
		ask(actor, (struct weir_ask){ .weight = 3 });
		break;
	case WAIT:
		ask(actor, (struct weir_ask){ .weight = 1, .longest_ns = 60 * WEIR_NS_PER_S });
		break;
	case SETTLE:
		ask(actor, (struct weir_ask){ .weight = 1, .look = 1 });
		break;
	case REFUND:
		refund();
		break;
	case CHANGE:
		change(QPS(20), 2);
		break;
	case CHANGE_AGAIN:
		change(QPS(1), 5);
		break;
	case EVICT:
	case EVICT_USED:
		evict(scene.deeds[actor] == EVICT_USED);
		break;
	}
}

static void order_end(void)
{
	scene.now.left = weir_bucket_tokens(kept, &scene.shared.history, NOW);
	scene.orders[scene.n_orders++] = scene.now;
}

/* As near as 4 ns of gain: two may each lose less than 2 of a bucket that has just run full. */
static bool same_tokens(struct weir_tokens a, struct weir_tokens b)
{
	struct weir_tokens gain = weir_rate_gain(&scene.shared.history.rates[0], 4);

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
	scene.now.left = weir_bucket_tokens(kept, &scene.shared.history, NOW);
	for (int i = 0; i < scene.n_orders; i++)
		if (same(&scene.now, &scene.orders[i]))
			return;
	fail_msg("%d %d %d: taken %d %d %d, left %lld + %llu / 2^64: so in no order", scene.deeds[0], scene.deeds[1],
		 scene.deeds[2], scene.now.taken[0], scene.now.taken[1], scene.now.taken[2], scene.now.left.high,
		 scene.now.left.low);
}

static unsigned long all(int actors)
{
	const void *shared = &scene.shared;
	const struct interleaved orders = { begin, act, order_end, actors, shared, sizeof(scene.shared) };
	const struct interleaved turns = { begin, act, turns_end, actors, shared, sizeof(scene.shared) };

	scene.n_orders = 0;
	interleaved_orders(&orders);
	return interleaved_all(&turns);
}

/* Buckets to begin with: `n` tokens were taken `ago_ns` ago. */
static void bucket(__u64 per_ns, __u64 burst, int n, __u64 ago_ns)
{
	scene.history_at_first = weir_rate_always(per_ns, burst);
	scene.at_first = weir_kept_new(MINE).bucket;
	while (n--)
		assert_true(weir_bucket_take(&scene.at_first, &scene.history_at_first, NOW - ago_ns));
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
	weir_rate_history_push(&scene.history_at_first, QPS(20), 2, NOW - WEIR_NS_PER_S / 20);
	pairs();
}

static void test_three(void **state)
{
	(void)state;
	bucket(QPS(5), 1, 0, 0);
	three();
	bucket(QPS(5), 3, 2, 0);
	three();
}

static void test_changes(void **state)
{
	(void)state;
	bucket(QPS(5), 1, 0, 0);
	three_and_changes();
	bucket(QPS(5), 4, 3, WEIR_NS_PER_S / 10);
	three_and_changes();
	bucket(0, 3, 2, 0);
	three_and_changes();
}

/*
 * It was changed so often that nobody knows the rate any more under which the bucket was last used: it is empty where the history
 * begins, and only the last rate brings tokens.
 */
static void test_forgotten(void **state)
{
	(void)state;
	bucket(QPS(5), 4, 3, WEIR_NS_PER_S / 10);
	for (int i = WEIR_RATES; i > 1; i--)
		weir_rate_history_push(&scene.history_at_first, 0, 4 + i, NOW - i * WEIR_NS_PER_S / 100);
	weir_rate_history_push(&scene.history_at_first, QPS(150), 4, NOW - WEIR_NS_PER_S / 100);
	takes_and_changes();
}

/* --- memory that becomes another subject's */

/* What the other subject has is what he would have by himself, whatever the first one did. */
static void other_end(void)
{
	struct weir_bucket alone = weir_kept_new(OTHER).bucket;

	assert_true(scene.shared.evicted);
	for (int i = 0; i < INTERLEAVED_ACTORS; i++)
		if (scene.deeds[i] == EVICT_USED)
			assert_true(weir_bucket_take(&alone, &scene.shared.history, NOW));
	assert_int_equal(kept->subject, OTHER);
	assert_true(same_tokens(weir_bucket_tokens(kept, &scene.shared.history, NOW),
				weir_bucket_tokens(&alone, &scene.shared.history, NOW)));
}

static void evictions(int actors, const enum deed *deeds)
{
	const struct interleaved turns = { begin, act, other_end, actors, &scene.shared, sizeof(scene.shared) };

	memcpy(scene.deeds, deeds, actors * sizeof(*deeds));
	scene.evicts = true;
	for (int first = 0; first < 2; first++) {
		scene.subject_first = first;
		assert_true(interleaved_all(&turns) > 1);
	}
	scene.evicts = false;
}

static void all_evictions(void)
{
	static const enum deed firsts[] = { TAKE, TAKE_HEAVY, WAIT, SETTLE, REFUND };

	for (size_t i = 0; i < sizeof(firsts) / sizeof(*firsts); i++) {
		evictions(2, (enum deed[]){ firsts[i], EVICT });
		evictions(2, (enum deed[]){ firsts[i], EVICT_USED });
	}
	evictions(3, (enum deed[]){ TAKE, REFUND, EVICT });
}

static void test_evicted(void **state)
{
	(void)state;
	bucket(QPS(5), 3, 0, 0);
	evictions(2, (enum deed[]){ TAKE, EVICT_USED });
	all_evictions();
	bucket(QPS(5), 3, 2, 0);
	all_evictions();
	bucket(0, 3, 2, 0);
	all_evictions();
}

/* Who looked before it was evicted has the rate of a while ago. */
static void test_evicted_and_changed(void **state)
{
	(void)state;
	bucket(QPS(5), 4, 3, WEIR_NS_PER_S / 10);
	weir_rate_history_push(&scene.history_at_first, QPS(20), 2, NOW - WEIR_NS_PER_S / 20);
	all_evictions();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_one_left),
		cmocka_unit_test(test_none_left),
		cmocka_unit_test(test_full_again),
		cmocka_unit_test(test_never_again),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_three),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_evicted),
		cmocka_unit_test(test_evicted_and_changed),
	};

	return cmocka_run_group_tests_name("interleaved", tests, NULL, NULL);
}
