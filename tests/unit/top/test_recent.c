/* SPDX-License-Identifier: GPL-2.0 */
/* The cache before the rows of who makes the load: nothing is missed, nothing is counted twice, whoever gives way to whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../random.h"
#include "weir/top/recent.h"

#define EPOCH WEIR_HEAVY_EPOCH_NS
#define SUBJECTS 5000

static struct weir_recent_set *sets;
static __u64 moved[SUBJECTS], moved_refused[SUBJECTS]; /* to the rows, by user */

static int setup(void **state)
{
	(void)state;
	sets = calloc(WEIR_RECENT_SETS, sizeof(*sets));
	memset(moved, 0, sizeof(moved));
	memset(moved_refused, 0, sizeof(moved_refused));
	return !sets;
}

static int teardown(void **state)
{
	(void)state;
	free(sets);
	return 0;
}

static void move(struct weir_recent *entry)
{
	weir_recent_take(entry);
	moved[entry->asked.user] += entry->asked.counts.requests;
	moved_refused[entry->asked.user] += entry->asked.counts.refused;
}

/* As bpf/heavy.h does it. */
static bool count(const struct weir_asked *asked)
{
	const __u64 key = weir_recent_key(asked);
	struct weir_recent_set *set = &sets[weir_recent_set_of(key)];
	__u32 at = weir_recent_find(set, key, asked);
	bool was_free, nameless;

	if (at < WEIR_RECENT_WAYS)
		return weir_recent_again(&set->entries[at], asked);
	at = weir_recent_oldest(set);
	was_free = set->keys[at] == WEIR_HEAVY_FREE;
	if (!was_free)
		move(&set->entries[at]);
	nameless = weir_recent_begin(&set->entries[at], asked, was_free);
	set->keys[at] = key;
	return nameless;
}

static struct weir_asked of(__u64 user, __u64 now_ns)
{
	return (struct weir_asked){ .counts = { .requests = 1 },
				    .first_ns = now_ns,
				    .last_ns = now_ns,
				    .user = user,
				    .slot = WEIR_ASKED_NO_SLOT,
				    .can_name = 1 };
}

static struct weir_recent *entry_of(const struct weir_asked *asked)
{
	const __u64 key = weir_recent_key(asked);
	struct weir_recent_set *set = &sets[weir_recent_set_of(key)];
	__u32 at = weir_recent_find(set, key, asked);

	return at < WEIR_RECENT_WAYS ? &set->entries[at] : NULL;
}

/* Five times as many as there is room for, with moves in between as a reader asks for them. */
static void everything_is_counted_once(void **state)
{
	static __u64 exact[SUBJECTS], refused[SUBJECTS];
	struct random random = { 3 };

	(void)state;
	for (__u32 i = 0; i < 500000; i++) {
		__u32 n = random_below(&random, 2) ? random_below(&random, 20) : random_below(&random, SUBJECTS);
		struct weir_asked asked = of(n, 1 + i);

		asked.counts.refused = random_below(&random, 2);
		exact[n]++;
		refused[n] += asked.counts.refused;
		count(&asked);
		if (i % 1000 == 0)
			move(&sets[random_below(&random, WEIR_RECENT_SETS)].entries[0]);
	}
	for (__u32 s = 0; s < WEIR_RECENT_SETS; s++)
		for (__u32 way = 0; way < WEIR_RECENT_WAYS; way++)
			move(&sets[s].entries[way]);
	assert_memory_equal(moved, exact, sizeof(exact));
	assert_memory_equal(moved_refused, refused, sizeof(refused));
}

/* Whatever differs is an entry of its own, addresses even if their keys fell together. */
static void whatever_differs(void **state)
{
	struct weir_asked asked[10], a = of(1, 1);
	size_t n = 0;

	(void)state;
	asked[n++] = a;
	asked[n] = a, asked[n++].user = 2;
	asked[n] = a, asked[n++].namespace = 1;
	asked[n] = a, asked[n++].resource = 1;
	asked[n] = a, asked[n++].server = 1;
	asked[n] = a, asked[n++].slot = 0;
	asked[n] = a, asked[n++].verb = 1;
	asked[n] = a, asked[n++].is_path = 1;
	asked[n] = a, asked[n++].is_record = 1;
	asked[n] = a, asked[n++].epoch = 1;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(weir_recent_key(&asked[i]) != weir_recent_key(&asked[j]));
	count(&a);
	asked[0].address[15] = 1;
	assert_int_equal(weir_recent_find(&sets[weir_recent_set_of(weir_recent_key(&a))], weir_recent_key(&a),
					  &asked[0]),
			 WEIR_RECENT_WAYS);
}

/* From when to when: of what has not moved yet. */
static void times(void **state)
{
	struct weir_asked first = of(1, 10), second = of(1, 20), third = of(1, 30);

	(void)state;
	count(&first);
	count(&second);
	assert_int_equal(entry_of(&first)->asked.first_ns, 10);
	assert_int_equal(entry_of(&first)->asked.last_ns, 20);
	move(entry_of(&first));
	assert_true(weir_recent_is_counted(entry_of(&first)));
	count(&third);
	assert_int_equal(entry_of(&first)->asked.first_ns, 30);
	assert_int_equal(entry_of(&first)->counts.requests, 1);
}

static void the_oldest_gives_way(void **state)
{
	struct weir_recent_set *set = &sets[0];

	(void)state;
	for (__u32 way = 0; way < WEIR_RECENT_WAYS; way++) {
		set->keys[way] = 1 + way;
		set->entries[way].asked.last_ns = 100 - way;
	}
	assert_int_equal(weir_recent_oldest(set), WEIR_RECENT_WAYS - 1);
	set->entries[WEIR_RECENT_WAYS - 1].asked.last_ns = 200;
	assert_int_equal(weir_recent_oldest(set), WEIR_RECENT_WAYS - 2);
	set->keys[0] = WEIR_HEAVY_FREE;
	assert_int_equal(weir_recent_oldest(set), 0);
}

/* Once for who finds a free or a quiet place, then once an epoch; of a crowd, only for who comes again. */
static void names(void **state)
{
	struct weir_recent entry = {};
	struct weir_asked a = of(1, EPOCH + 1), b = of(2, EPOCH + 2), mute = of(3, 9 * EPOCH);

	(void)state;
	assert_true(weir_recent_begin(&entry, &a, true));
	assert_false(weir_recent_again(&entry, &a));
	a.last_ns += EPOCH;
	assert_true(weir_recent_again(&entry, &a));
	assert_false(weir_recent_again(&entry, &a));
	b.last_ns = (a.last_ns & ~1023ULL) + 64; /* the clock names one of 16 of a crowd, and not this one */
	assert_false(weir_recent_begin(&entry, &b, false));
	assert_true(weir_recent_again(&entry, &b));
	assert_false(weir_recent_again(&entry, &b));
	mute.can_name = 0;
	assert_false(weir_recent_begin(&entry, &mute, false));
	assert_false(weir_recent_again(&entry, &mute));
	mute.can_name = 1;
	assert_true(weir_recent_again(&entry, &mute));
	a.last_ns = 11 * EPOCH;
	assert_true(weir_recent_begin(&entry, &a, false));
}

/* What an address was hashed to stays where the next one has the same. */
static void sources_stay(void **state)
{
	struct weir_recent entry = {};
	struct weir_asked a = of(1, 1), b = of(2, 2), c = of(3, 3);

	(void)state;
	c.address[15] = 1;
	weir_recent_begin(&entry, &a, true);
	entry.asked.source = 77; /* as when its counts move to the rows */
	weir_recent_begin(&entry, &b, false);
	assert_int_equal(entry.asked.source, 77);
	assert_int_equal(entry.asked.user, 2);
	weir_recent_begin(&entry, &c, false);
	assert_int_equal(entry.asked.source, 0);
}

/* A user who never asks for the same twice drives out entries of a moment ago each time. */
static void one_of_a_crowd_is_named(void **state)
{
	struct weir_recent entry = {};
	__u32 named = 0;

	(void)state;
	for (__u32 i = 0; i < 1600; i++) {
		struct weir_asked asked = of(1, EPOCH + 64 * i);

		asked.resource = i;
		named += weir_recent_begin(&entry, &asked, false);
	}
	assert_in_range(named, 90, 110);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_is_counted_once, setup, teardown),
		cmocka_unit_test_setup_teardown(whatever_differs, setup, teardown),
		cmocka_unit_test_setup_teardown(times, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_gives_way, setup, teardown),
		cmocka_unit_test(names),
		cmocka_unit_test(sources_stay),
		cmocka_unit_test(one_of_a_crowd_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
