/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of a bucket becomes another subject's in the midst of what the first one does, in every order in which their steps may
 * come: neither of them changes anything of the other's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bucket_scene.h"

/* What the other subject has is what he would have by himself, whatever the first one did. */
static void other_end(void)
{
	struct weir_bucket alone = weir_kept_new(OTHER).bucket;

	assert_true(scene.shared.evicted);
	for (int i = 0; i < INTERLEAVED_ACTORS; i++)
		if (scene.deeds[i] == EVICT_USED)
			assert_true(weir_bucket_take(&alone, &scene.shared.history, NOW));
	assert_int_equal(scene.shared.bucket.subject, OTHER);
	assert_true(same_tokens(weir_bucket_tokens(&scene.shared.bucket, &scene.shared.history, NOW),
				weir_bucket_tokens(&alone, &scene.shared.history, NOW)));
}

static void evictions(int actors, const enum deed *deeds)
{
	memcpy(scene.deeds, deeds, actors * sizeof(*deeds));
	scene.evicts = true;
	for (int first = 0; first < 2; first++) {
		scene.subject_first = first;
		assert_true(scene_play(actors, other_end) > 1);
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
	scene_bucket(QPS(5), 3, 0, 0);
	evictions(2, (enum deed[]){ TAKE, EVICT_USED });
	all_evictions();
	scene_bucket(QPS(5), 3, 2, 0);
	all_evictions();
	scene_bucket(0, 3, 2, 0);
	all_evictions();
}

/* Who looked before it was evicted has the rate of a while ago. */
static void test_evicted_and_changed(void **state)
{
	(void)state;
	scene_bucket(QPS(5), 4, 3, WEIR_NS_PER_S / 10);
	weir_rate_history_push(&scene.history_at_first, QPS(20), 2, NOW - WEIR_NS_PER_S / 20);
	all_evictions();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_evicted),
		cmocka_unit_test(test_evicted_and_changed),
	};

	return cmocka_run_group_tests_name("evicted", tests, NULL, NULL);
}
