/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests of one subject that are refused at once, in every order of their steps: one of them begins the penalty, all are told the same, and
 * it alone can be undone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "interleaved_steps.h"
#include "weir/limit/penalty.h"

#define NOW (1000 * WEIR_NS_PER_S)
#define DELAY_MS 8
#define WAIT_NS (WEIR_NS_PER_S / 1000) /* of the limit */
#define SUBJECT 0x1122334455667788ULL
#define TRIES 3 /* of three, one has been before each time that another one loses */

static const struct weir_backoff policy = {
	.parts = WEIR_BACKOFF_EXPONENTIAL,
	.base_ns = DELAY_MS * WEIR_NS_PER_S / 1000,
	.max_ns = WEIR_NS_PER_S,
};

static struct weir_kept kept, kept_at_first;
static struct weir_failure failures[INTERLEAVED_ACTORS];
static int actors, looking;

static void step(const void *read)
{
	if (read != &kept.bucket.subject)
		interleaved_turn();
}

static void begin(void)
{
	kept = kept_at_first;
	memset(failures, 0, sizeof(failures));
}

/* As bpf/penalty.h does. */
static void act(int actor)
{
	struct weir_failure *f = &failures[actor];

	for (int i = 0; i < TRIES; i++) {
		*f = (struct weir_failure){ .wait_ns = WAIT_NS, .looks = actor < looking };
		if (weir_penalty_try(&kept, SUBJECT, &policy, NOW, f))
			return;
	}
	fail_msg("it lost each race");
}

static __u64 word_of(const struct weir_kept *k)
{
	__u64 word;

	assert_true(weir_penalty_read(k, SUBJECT, &word));
	return word;
}

static void end(void)
{
	__u64 before = word_of(&kept_at_first), after = word_of(&kept);
	__u64 wait_ns = weir_penalty_wait_ns(after, NOW);
	int begun = 0;

	assert_int_equal(weir_penalty_failures(after), weir_penalty_failures(before) + (actors > looking));
	for (int i = 0; i < actors; i++) {
		begun += failures[i].begins;
		if (actors > looking)
			assert_in_range(failures[i].wait_ns - wait_ns, 0, 1023); /* a step of the end */
		if (failures[i].begins)
			assert_true(weir_penalty_swap(&kept.penalty, SUBJECT, failures[i].after, failures[i].before));
	}
	assert_int_equal(begun, actors > looking);
	assert_true(word_of(&kept) == before);
}

static void play(int n, int lookers)
{
	const struct interleaved turns = { begin, act, end, n, &kept, sizeof(kept) };

	actors = n;
	looking = lookers;
	assert_true(interleaved_all(&turns) > 1);
}

static void test_first_refusals(void **state)
{
	(void)state;
	kept_at_first = weir_kept_new(SUBJECT);
	for (int n = 2; n <= INTERLEAVED_ACTORS; n++)
		for (int lookers = 0; lookers <= n; lookers++)
			play(n, lookers);
}

/* The last penalty is over. */
static void test_later_refusals(void **state)
{
	struct weir_failure f = { .wait_ns = WAIT_NS };

	(void)state;
	kept_at_first = weir_kept_new(SUBJECT);
	assert_true(weir_penalty_try(&kept_at_first, SUBJECT, &policy, NOW - WEIR_NS_PER_S, &f));
	assert_true(f.begins);
	for (int n = 2; n <= INTERLEAVED_ACTORS; n++)
		play(n, 0);
}

/* What is another subject's by now is left alone, and the wait is the limit's. */
static void test_of_another_subject(void **state)
{
	struct weir_failure f = { .wait_ns = WAIT_NS };
	struct weir_kept other = weir_kept_new(SUBJECT + 1), same = other;

	(void)state;
	assert_true(weir_penalty_try(&other, SUBJECT, &policy, NOW, &f));
	assert_false(f.begins);
	assert_int_equal(f.wait_ns, WAIT_NS);
	assert_memory_equal(&other, &same, sizeof(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_refusals),
		cmocka_unit_test(test_later_refusals),
		cmocka_unit_test(test_of_another_subject),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
