/* SPDX-License-Identifier: GPL-2.0 */
/* Whose turn it is on a connection, and when (include/weir/inside/turn.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/inside/turn.h"

#define NOW_NS (1000 * WEIR_NS_PER_S)
#define SECOND WEIR_NS_PER_S

enum {
	ALICE = 1,
	BOB,
	CAROL
};

/* As bpf/turns.h does it. */
static void note(struct weir_turns *turns, __u64 tag, __u64 at_ns, __u64 now_ns)
{
	__u64 *word = &turns->words[weir_turns_place(turns->words[0], turns->words[1], tag, now_ns)];

	*word = weir_turn_next(*word, tag, at_ns);
}

static enum weir_turn_said say(const struct weir_turns *turns, __u64 now_ns)
{
	return weir_turns_say(turns->words[0], turns->words[1], now_ns);
}

static void test_one_user(void **state)
{
	struct weir_turns turns = {};

	(void)state;
	assert_int_equal(say(&turns, NOW_NS), WEIR_TURN_FREE);
	note(&turns, ALICE, NOW_NS, NOW_NS);
	assert_int_equal(say(&turns, NOW_NS), WEIR_TURN_FREE);
	note(&turns, ALICE, NOW_NS + 3 * SECOND, NOW_NS);
	assert_int_equal(say(&turns, NOW_NS), WEIR_TURN_HELD);
	assert_int_equal(say(&turns, NOW_NS + 3 * SECOND - 2 * WEIR_TURN_UNIT_NS), WEIR_TURN_HELD);
	assert_int_equal(say(&turns, NOW_NS + 3 * SECOND), WEIR_TURN_FREE);
}

/* Two requests are noted in another order than they were charged: the later turn stays. */
static void test_order(void **state)
{
	struct weir_turns turns = {};

	(void)state;
	note(&turns, ALICE, NOW_NS + 3 * SECOND, NOW_NS);
	note(&turns, ALICE, NOW_NS + 2 * SECOND, NOW_NS);
	assert_int_equal(say(&turns, NOW_NS + 2 * SECOND), WEIR_TURN_HELD);
	assert_int_equal(turns.words[1], 0);
}

static void test_another_user_frees_it(void **state)
{
	struct weir_turns turns = {};

	(void)state;
	note(&turns, ALICE, NOW_NS + 9 * SECOND, NOW_NS);
	note(&turns, BOB, NOW_NS, NOW_NS);
	assert_int_equal(say(&turns, NOW_NS), WEIR_TURN_SHARED);
	note(&turns, ALICE, NOW_NS + 10 * SECOND, NOW_NS + SECOND);
	assert_int_equal(say(&turns, NOW_NS + SECOND), WEIR_TURN_SHARED);
	assert_int_equal(say(&turns, NOW_NS + 10 * SECOND), WEIR_TURN_FREE);
}

/* The first of them to be out of debt frees it. */
static void test_all_users_are_in_debt(void **state)
{
	struct weir_turns turns = {};

	(void)state;
	note(&turns, ALICE, NOW_NS + 9 * SECOND, NOW_NS);
	note(&turns, BOB, NOW_NS + 4 * SECOND, NOW_NS);
	assert_int_equal(say(&turns, NOW_NS + 3 * SECOND), WEIR_TURN_HELD);
	assert_int_equal(say(&turns, NOW_NS + 4 * SECOND), WEIR_TURN_SHARED);
}

/* Of three, those stay known who are in debt for the shortest time. */
static void test_more_users(void **state)
{
	struct weir_turns turns = {};

	(void)state;
	note(&turns, ALICE, NOW_NS + 9 * SECOND, NOW_NS);
	note(&turns, BOB, NOW_NS + 8 * SECOND, NOW_NS);
	note(&turns, CAROL, NOW_NS, NOW_NS);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(say(&turns, NOW_NS), WEIR_TURN_SHARED);
		note(&turns, ALICE, NOW_NS + (9 + i) * SECOND, NOW_NS);
		assert_int_equal(say(&turns, NOW_NS), WEIR_TURN_SHARED);
		note(&turns, BOB, NOW_NS + (8 + i) * SECOND, NOW_NS);
	}
}

/* Who does not come by any more does not keep others from waiting. */
static void test_users_are_forgotten(void **state)
{
	struct weir_turns turns = {};
	__u64 later_ns = NOW_NS + WEIR_TURN_FORGET_NS;

	(void)state;
	note(&turns, BOB, NOW_NS, NOW_NS);
	note(&turns, ALICE, later_ns + 5 * SECOND, later_ns - SECOND);
	assert_int_equal(say(&turns, later_ns - SECOND), WEIR_TURN_SHARED);
	assert_int_equal(say(&turns, later_ns), WEIR_TURN_HELD);
	note(&turns, CAROL, later_ns + SECOND, later_ns);
	assert_int_equal(say(&turns, later_ns), WEIR_TURN_HELD);
	assert_true(weir_turn_is_of(turns.words[0], CAROL));
}

/* What a connection has of its address goes as soon as a user of its own is known. */
static void test_turn_of_the_address(void **state)
{
	struct weir_turns turns = {};

	(void)state;
	note(&turns, WEIR_TURN_NOBODY, NOW_NS + 3 * SECOND, NOW_NS);
	assert_int_equal(say(&turns, NOW_NS), WEIR_TURN_HELD);
	note(&turns, ALICE, NOW_NS + 5 * SECOND, NOW_NS + 3 * SECOND);
	assert_int_equal(say(&turns, NOW_NS + 4 * SECOND), WEIR_TURN_HELD);
	assert_int_equal(turns.words[1], 0);
}

static void test_words(void **state)
{
	const __u64 day_ns = 24 * 3600 * SECOND;

	(void)state;
	for (__u64 at_ns = WEIR_TURN_UNIT_NS; at_ns < 10000 * day_ns; at_ns = at_ns * 3 + 12345) {
		__u64 word = weir_turn(weir_turn_tag(~0ULL), at_ns);

		assert_in_range(weir_turn_ns(word), at_ns - WEIR_TURN_UNIT_NS, at_ns);
		assert_true(weir_turn_is_of(word, weir_turn_tag(~0ULL)));
		assert_false(weir_turn_is_of(word, weir_turn_tag(0)));
		assert_false(weir_turn_is_of(word, WEIR_TURN_NOBODY));
	}
	assert_int_equal(weir_turn_tag(5), 1);
	assert_false(weir_turn_is_of(0, WEIR_TURN_NOBODY));
	assert_int_equal(weir_turn_longest_ns(0), 10 * SECOND);
	assert_int_equal(weir_turn_longest_ns(3), 3 * SECOND);
}

/* A new connection waits as its address does, up to a bound. */
static void test_new_connection(void **state)
{
	(void)state;
	assert_int_equal(weir_turn_of_new_ns(0, NOW_NS), 0);
	for (int more = -1; more <= 1; more++)
		assert_int_equal(weir_turn_of_new_ns(NOW_NS + WEIR_TURN_NEW_NS + more, NOW_NS),
				 NOW_NS + WEIR_TURN_NEW_NS + (more < 0 ? more : 0));
	assert_int_equal(weir_turn_of_new_ns(NOW_NS + 1000 * SECOND, NOW_NS), NOW_NS + WEIR_TURN_NEW_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_user),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_another_user_frees_it),
		cmocka_unit_test(test_all_users_are_in_debt),
		cmocka_unit_test(test_more_users),
		cmocka_unit_test(test_users_are_forgotten),
		cmocka_unit_test(test_turn_of_the_address),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_new_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
