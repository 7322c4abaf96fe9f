/* SPDX-License-Identifier: GPL-2.0 */
/* Heavy hitters, against exact counts of the same stream. */
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
#define SUBJECTS 100000

static struct weir_heavy_set *sets;

static int setup(void **state)
{
	(void)state;
	sets = calloc(WEIR_HEAVY_SETS, sizeof(*sets));
	return !sets;
}

static int teardown(void **state)
{
	(void)state;
	free(sets);
	return 0;
}

static struct weir_heavy_what user(__u64 subject)
{
	return (struct weir_heavy_what){ .by = WEIR_HEAVY_USER, .subjects = { subject } };
}

static enum weir_heavy_outcome ask(__u64 subject, __u64 now_ns, bool refused)
{
	const struct weir_heavy_counts counts = { .requests = 1, .refused = refused };
	struct weir_heavy_what what = user(subject);
	__u64 key = weir_heavy_key(&what, 0);

	return weir_heavy_add(&sets[weir_heavy_set_of(key)], key, &what, &counts, now_ns, now_ns);
}

static const struct weir_heavy_row *row_of(__u64 subject)
{
	struct weir_heavy_what what = user(subject);
	__u64 key = weir_heavy_key(&what, 0);
	const struct weir_heavy_set *set = &sets[weir_heavy_set_of(key)];
	__u32 at = weir_heavy_find(set, key);

	return at < WEIR_HEAVY_WAYS ? &set->rows[at] : NULL;
}

/* Subjects are hashes: spread over all 64 bits. */
static __u64 subject_of(__u32 n)
{
	__u64 x = (n + 1) * 0xd6e8feb86659fd93ULL;

	x ^= x >> 32;
	return x * 0xd6e8feb86659fd93ULL | 1;
}

static void exact_while_there_is_room(void **state)
{
	(void)state;
	for (__u32 round = 0; round < 3; round++) {
		for (__u32 n = 0; n < 500; n++)
			for (__u32 i = 0; i <= n; i++)
				ask(subject_of(n), 1000 + round, i == 0);
	}
	for (__u32 n = 0; n < 500; n++) {
		const struct weir_heavy_row *row = row_of(subject_of(n));

		assert_non_null(row);
		assert_int_equal(row->counts.requests, 3 * (n + 1));
		assert_int_equal(row->counts.refused, 3);
		assert_int_equal(row->counts.held, 0);
		assert_int_equal(row->first_ns, 1000);
		assert_int_equal(row->last_ns, 1002);
		assert_int_equal(row->what.subjects[0], subject_of(n));
	}
}

/* A hundred who ask much, in a crowd of which each comes a few times: no heavy one is missed, and none is counted too high. */
static void heavy_ones_in_a_crowd(void **state)
{
	__u64 *exact = calloc(SUBJECTS, sizeof(*exact)), asked = 0, kept = 0;
	struct random random = { 7 };

	(void)state;
	assert_non_null(exact);
	for (__u32 i = 0; i < 2000000; i++) {
		__u32 n = random_below(&random, 2) ? random_below(&random, 100) : random_below(&random, SUBJECTS);

		exact[n]++;
		asked++;
		ask(subject_of(n), 1 + i * 1000ULL, false);
	}
	for (__u32 n = 0; n < SUBJECTS; n++) {
		const struct weir_heavy_row *row = row_of(subject_of(n));

		if (!row)
			continue;
		assert_true(row->counts.requests <= exact[n]);
		kept += row->counts.requests;
	}
	assert_true(kept <= asked);
	for (__u32 n = 0; n < 100; n++) {
		const struct weir_heavy_row *row = row_of(subject_of(n));

		assert_non_null(row);
		assert_true(row->counts.requests * 100 >= exact[n] * 99);
	}
	free(exact);
}

/* A flood from a million, of whom each sends a few: those with one part in a thousand of it have their rows, nearly from the beginning. */
static void heavy_ones_in_a_flood(void **state)
{
	const __u32 heavy = 20, each = 4000, crowd = 4000000;
	struct random random = { 11 };

	(void)state;
	for (__u32 i = 0; i < crowd; i++) {
		ask(subject_of(heavy + random_below(&random, 1 << 20)), 1 + i * 1000ULL, true);
		if (i % (crowd / (heavy * each)) == 0)
			ask(subject_of(i / (crowd / (heavy * each)) % heavy), 1 + i * 1000ULL, true);
	}
	for (__u32 i = 0; i < heavy; i++) {
		const struct weir_heavy_row *row = row_of(subject_of(i));

		assert_non_null(row);
		assert_in_range(row->counts.requests, each * 95 / 100, each);
	}
}

/* The bound that the algorithm promises: more than 1/WAYS of a set's weight. */
static void the_bound(void **state)
{
	__u64 others = 0, key;
	struct weir_heavy_what what = user(subject_of(0));
	__u32 set = weir_heavy_set_of(weir_heavy_key(&what, 0)), n = 1;

	(void)state;
	while (others < 6999) {
		what = user(subject_of(n));
		key = weir_heavy_key(&what, 0);
		if (weir_heavy_set_of(key) == set) {
			ask(subject_of(n), 1, false);
			others++;
			if (others % 6 == 0)
				ask(subject_of(0), 1, false);
		}
		n++;
	}
	assert_non_null(row_of(subject_of(0)));
}

/* Those who were heavy yesterday do not keep out those who are today. */
static void yesterdays_give_way(void **state)
{
	struct weir_heavy_what what = user(subject_of(0));
	__u32 set = weir_heavy_set_of(weir_heavy_key(&what, 0)), found = 0, n;
	__u64 subjects[2 * WEIR_HEAVY_WAYS];

	(void)state;
	for (n = 0; found < 2 * WEIR_HEAVY_WAYS; n++) {
		what = user(subject_of(n));
		if (weir_heavy_set_of(weir_heavy_key(&what, 0)) == set)
			subjects[found++] = subject_of(n);
	}
	for (__u32 i = 0; i < WEIR_HEAVY_WAYS; i++)
		for (__u32 times = 0; times < 100000; times++)
			ask(subjects[i], 1, false);
	for (__u32 times = 0; times < 3; times++)
		for (__u32 i = WEIR_HEAVY_WAYS; i < 2 * WEIR_HEAVY_WAYS; i++)
			ask(subjects[i], 1 + 20 * EPOCH, false);
	for (__u32 i = 0; i < WEIR_HEAVY_WAYS; i++)
		assert_null(row_of(subjects[i]));
	for (__u32 i = WEIR_HEAVY_WAYS; i < 2 * WEIR_HEAVY_WAYS; i++) {
		assert_non_null(row_of(subjects[i]));
		assert_int_equal(row_of(subjects[i])->counts.requests, 3);
		assert_int_equal(row_of(subjects[i])->first_ns, 1 + 20 * EPOCH);
	}
}

static void weights_halve(void **state)
{
	struct weir_heavy_weight w = { .weight = 1000, .epoch = 5 };

	(void)state;
	assert_int_equal(weir_heavy_weight(&w, 5), 1000);
	assert_int_equal(weir_heavy_weight(&w, 6), 500);
	assert_int_equal(weir_heavy_weight(&w, 14), 1);
	assert_int_equal(weir_heavy_weight(&w, 15), 0);
	assert_int_equal(weir_heavy_weight(&w, 5 + 31), 0);
	assert_int_equal(weir_heavy_weight(&w, 5 + 32), 0);
	assert_int_equal(weir_heavy_weight(&w, 4), 1000);
	w = (struct weir_heavy_weight){ .weight = ~0U, .epoch = ~0U };
	assert_int_equal(weir_heavy_weight(&w, 0), ~0U >> 1);
}

static void weights_are_saturated(void **state)
{
	struct weir_heavy_weight w = { .weight = ~0U - 1 };
	struct weir_heavy_row row = {};
	const struct weir_heavy_counts counts = { .requests = 3, .held = 4 };

	(void)state;
	weir_heavy_add_to(&row, &w, &counts, 1);
	assert_int_equal(w.weight, ~0U);
	assert_int_equal(row.counts.requests, 3);
	assert_int_equal(row.counts.held, 4);
}

/* What was collected for a minute has, where it takes a row over, the weight that the row has by then: not halved again. */
static void what_takes_over_late(void **state)
{
	const struct weir_heavy_counts counts = { .requests = 1 };
	struct weir_heavy_what what = user(1);
	__u64 key = weir_heavy_key(&what, 0);
	struct weir_heavy_set *set = &sets[weir_heavy_set_of(key)];

	(void)state;
	for (__u32 way = 0; way < WEIR_HEAVY_WAYS; way++) {
		set->keys[way] = 1000 + way;
		set->weights[way] = (struct weir_heavy_weight){ .weight = 1000, .epoch = 8 };
	}
	assert_int_equal(weir_heavy_add(set, key, &what, &counts, WEIR_HEAVY_EPOCH_NS, 8 * WEIR_HEAVY_EPOCH_NS),
			 WEIR_HEAVY_COUNTED);
	assert_int_equal(set->weights[weir_heavy_find(set, key)].weight, 1001);
	assert_int_equal(row_of(1)->first_ns, WEIR_HEAVY_EPOCH_NS);
}

/* Of those who find no row where all have weight, one in so many takes one over, the first one; where one has none, everybody. */
static void a_crowd_is_passed_by(void **state)
{
	const struct weir_heavy_counts one = { .requests = 1 };
	const struct weir_heavy_what what = user(1);
	struct weir_heavy_set *set = &sets[0];
	__u32 counted = 0;

	(void)state;
	for (__u32 way = 0; way < WEIR_HEAVY_WAYS; way++) {
		set->keys[way] = 1000 + way;
		set->weights[way].weight = 100;
	}
	for (__u32 key = 1; key <= 8 * WEIR_HEAVY_CROWD + 1; key++) {
		bool takes = weir_heavy_add(set, key, &what, &one, 1, 1) == WEIR_HEAVY_COUNTED;

		assert_int_equal(takes, key % WEIR_HEAVY_CROWD == 1);
		assert_int_equal(weir_heavy_find(set, key) < WEIR_HEAVY_WAYS, takes);
		counted += takes;
	}
	assert_int_equal(counted, 9);
	set->weights[3].weight = 0;
	assert_int_equal(weir_heavy_add(set, 5000, &what, &one, 1, 1), WEIR_HEAVY_COUNTED);
	assert_int_equal(set->keys[3], 5000);
	assert_int_equal(set->rows[3].counts.requests, 1);
	assert_int_equal(weir_heavy_add(set, 5001, &what, &one, 1, 1), WEIR_HEAVY_PASSED_BY);
}

/* What is brought late takes no weight away, and is not seen last. */
static void what_comes_late(void **state)
{
	struct weir_heavy_weight w = { .weight = 1000, .epoch = 5 };
	struct weir_heavy_row row = { .last_ns = 5 * EPOCH + 7 };
	const struct weir_heavy_counts one = { .requests = 1 };

	(void)state;
	weir_heavy_add_to(&row, &w, &one, 2 * EPOCH);
	assert_int_equal(w.weight, 1001);
	assert_int_equal(w.epoch, 5);
	assert_int_equal(row.last_ns, 5 * EPOCH + 7);
	weir_heavy_add_to(&row, &w, &one, 6 * EPOCH);
	assert_int_equal(w.weight, 501);
	assert_int_equal(w.epoch, 6);
	assert_int_equal(row.last_ns, 6 * EPOCH);
}

static void what_is_being_taken_over(void **state)
{
	struct weir_heavy_set *set = &sets[0];
	const struct weir_heavy_counts one = { .requests = 1 };
	const struct weir_heavy_what what = user(1);

	(void)state;
	for (__u32 i = 0; i < WEIR_HEAVY_WAYS; i++)
		set->keys[i] = WEIR_HEAVY_BUSY;
	assert_int_equal(weir_heavy_add(set, 1, &what, &one, 1, 1), WEIR_HEAVY_CONTENDED);
	set->keys[3] = WEIR_HEAVY_FREE;
	for (__u32 i = 0; i < WEIR_HEAVY_WAYS; i++)
		set->weights[i].weight = i == 3 ? 99 : 1;
	assert_int_equal(weir_heavy_add(set, 1, &what, &one, 1, 1), WEIR_HEAVY_COUNTED);
	assert_int_equal(set->keys[3], 1);
	assert_int_equal(set->rows[3].counts.requests, 1);
}

/* --- which rows a request has */

static __u32 rows_of(const struct weir_asked *asked)
{
	struct weir_heavy_what what;
	__u32 rows = 0;

	for (__u32 by = 0; by < WEIR_HEAVY_BYS; by++) {
		if (!weir_asked_what(asked, by, &what))
			continue;
		rows |= 1U << by;
		assert_int_equal(what.by, by);
		assert_int_equal(what.server, asked->server);
	}
	return rows;
}

#define ROW(by) (1U << WEIR_HEAVY_##by)

static void rows_of_requests(void **state)
{
	struct weir_asked asked = {
		.server = 63, .slot = WEIR_ASKED_NO_SLOT, .user = 5, .has_address = 1, .is_path = 1
	};

	(void)state;
	assert_int_equal(rows_of(&asked), ROW(USER) | ROW(VERB) | ROW(RESOURCE) | ROW(SOURCE) | ROW(REQUEST));
	asked.namespace = 6;
	asked.slot = 255;
	assert_int_equal(rows_of(&asked), ROW(CONNECTION) - 1);
	asked.is_record = 1;
	assert_int_equal(rows_of(&asked), ROW(SOURCE));
	asked.is_record = 0;
	asked.connects = 1;
	assert_int_equal(rows_of(&asked), ROW(CONNECTION));
	asked.has_address = 0;
	assert_int_equal(rows_of(&asked), 0);
}

/* Whatever differs is another row. */
static void keys_differ(void **state)
{
	static const struct weir_heavy_what whats[] = {
		{ .by = WEIR_HEAVY_USER, .subjects = { 5 } },
		{ .by = WEIR_HEAVY_USER, .subjects = { 6 } },
		{ .by = WEIR_HEAVY_USER, .subjects = { 5 }, .server = 1 },
		{ .by = WEIR_HEAVY_NAMESPACE, .subjects = { 5 } },
		{ .by = WEIR_HEAVY_RESOURCE, .subjects = { 5 } },
		{ .by = WEIR_HEAVY_RESOURCE, .subjects = { 5 }, .is_path = 1 },
		{ .by = WEIR_HEAVY_LIMIT, .subjects = { 5, 0 }, .slot = 1 },
		{ .by = WEIR_HEAVY_LIMIT, .subjects = { 5, 7 }, .slot = 1 },
		{ .by = WEIR_HEAVY_LIMIT, .subjects = { 5, 0 }, .slot = 2 },
		{ .by = WEIR_HEAVY_VERB, .verb = 0 },
		{ .by = WEIR_HEAVY_VERB, .verb = 15 },
		{ .by = WEIR_HEAVY_REQUEST, .subjects = { 1, 2, 3 } },
		{ .by = WEIR_HEAVY_REQUEST, .subjects = { 1, 3, 2 } },
		{ .by = WEIR_HEAVY_REQUEST, .subjects = { 2, 1, 3 } },
		{ .by = WEIR_HEAVY_REQUEST, .subjects = { 1, 2, 3 }, .verb = 1 },
	};
	const struct weir_heavy_what source = { .by = WEIR_HEAVY_SOURCE }, connection = { .by = WEIR_HEAVY_CONNECTION };

	(void)state;
	for (size_t i = 0; i < sizeof(whats) / sizeof(*whats); i++)
		for (size_t j = 0; j < i; j++)
			assert_true(weir_heavy_key(&whats[i], 0) != weir_heavy_key(&whats[j], 0));
	assert_true(weir_heavy_key(&source, 1) != weir_heavy_key(&source, 2));
	assert_true(weir_heavy_key(&source, 1) != weir_heavy_key(&connection, 1));
}

static void sources_are_keyed(void **state)
{
	static const __u64 seed[2] = { 1, 2 }, other[2] = { 1, 3 };
	const __u8 a[16] = { [10] = 0xff, [11] = 0xff, [15] = 1 }, b[16] = { [10] = 0xff, [11] = 0xff, [15] = 2 };

	(void)state;
	assert_true(weir_asked_source(seed, a) == weir_asked_source(seed, a));
	assert_true(weir_asked_source(seed, a) != weir_asked_source(seed, b));
	assert_true(weir_asked_source(seed, a) != weir_asked_source(other, a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(exact_while_there_is_room, setup, teardown),
		cmocka_unit_test_setup_teardown(heavy_ones_in_a_crowd, setup, teardown),
		cmocka_unit_test_setup_teardown(heavy_ones_in_a_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(the_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(yesterdays_give_way, setup, teardown),
		cmocka_unit_test(weights_halve),
		cmocka_unit_test(weights_are_saturated),
		cmocka_unit_test_setup_teardown(what_takes_over_late, setup, teardown),
		cmocka_unit_test_setup_teardown(a_crowd_is_passed_by, setup, teardown),
		cmocka_unit_test(what_comes_late),
		cmocka_unit_test_setup_teardown(what_is_being_taken_over, setup, teardown),
		cmocka_unit_test(rows_of_requests),
		cmocka_unit_test(keys_differ),
		cmocka_unit_test(sources_are_keyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
