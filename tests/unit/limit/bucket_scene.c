/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "interleaved_steps.h"

#include "bucket_scene.h"

struct bucket_scene scene;

static struct weir_bucket *const kept = &scene.shared.bucket;

/* Whose the bucket is matters only where someone evicts. */
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

void scene_bucket(__u64 per_ns, __u64 burst, int n, __u64 ago_ns)
{
	scene.history_at_first = weir_rate_always(per_ns, burst);
	scene.at_first = weir_kept_new(MINE).bucket;
	while (n--)
		assert_true(weir_bucket_take(&scene.at_first, &scene.history_at_first, NOW - ago_ns));
}

_Static_assert(sizeof(scene.shared) % sizeof(__u64) == 0, "the whole state is compared");

static struct interleaved scenario(int actors, void (*end)(void))
{
	return (struct interleaved){ begin, act, end, actors, &scene.shared, sizeof(scene.shared) };
}

unsigned long scene_play(int actors, void (*end)(void))
{
	const struct interleaved turns = scenario(actors, end);

	return interleaved_all(&turns);
}

void scene_orders(int actors, void (*end)(void))
{
	const struct interleaved orders = scenario(actors, end);

	interleaved_orders(&orders);
}

bool same_tokens(struct weir_tokens a, struct weir_tokens b)
{
	struct weir_tokens gain = weir_rate_gain(&scene.shared.history.rates[0], 4);

	return !weir_tokens_less(weir_tokens_sum(a, gain), b) && !weir_tokens_less(weir_tokens_sum(b, gain), a);
}
