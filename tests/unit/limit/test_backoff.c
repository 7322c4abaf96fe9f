/* SPDX-License-Identifier: GPL-2.0 */
/* The limiters of client-go's work queues, and the penalties that limits make of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../random.h"
#include "base/duration.h"
#include "model/backoff_text.h"
#include "weir/limit/penalty.h"

#define MS 1000000ULL
#define SECOND WEIR_NS_PER_S
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static struct weir_backoff policy_of(const char *text)
{
	struct weir_backoff policy;
	struct error err = {};

	if (backoff_parse(text, &policy, &err))
		fail_msg("%s", err.text);
	return policy;
}

static __u64 when(const struct weir_backoff *policy, struct weir_backoff_state *state)
{
	return weir_backoff_when(policy, state, NULL, 0);
}

/* The delay after the last of so many failures. */
static __u64 nth(const struct weir_backoff *policy, __u32 failures)
{
	struct weir_backoff_state state = {};

	while (failures-- > 1)
		when(policy, &state);
	return when(policy, &state);
}

static void test_no_policy(void **state)
{
	struct weir_backoff none = {};
	struct weir_backoff_state item = {};

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(when(&none, &item), 0);
	assert_int_equal(weir_backoff_requeues(&none, &item), 0);
}

/* A policy without a bucket asks none, whatever its caller brings. */
static void test_no_bucket(void **state)
{
	struct weir_backoff policy = policy_of("exponential:1ms..1s");
	struct weir_backoff_state item = {};
	struct weir_bucket bucket = {}, untouched = {};

	(void)state;
	assert_int_equal(weir_backoff_when(&policy, &item, &bucket, SECOND), MS);
	assert_int_equal(weir_backoff_when(&policy, &item, &bucket, SECOND), 2 * MS);
	assert_memory_equal(&bucket, &untouched, sizeof(bucket));
}

static void test_exponential(void **state)
{
	struct weir_backoff policy = policy_of("exponential:1ms..1s");
	struct weir_backoff_state one = {}, two = {};

	(void)state;
	for (__u64 delay = MS; delay <= 16 * MS; delay *= 2)
		assert_int_equal(when(&policy, &one), delay);
	assert_int_equal(weir_backoff_requeues(&policy, &one), 5);
	assert_int_equal(when(&policy, &two), MS);
	assert_int_equal(when(&policy, &two), 2 * MS);
	assert_int_equal(weir_backoff_requeues(&policy, &two), 2);
	weir_backoff_forget(&one);
	assert_int_equal(weir_backoff_requeues(&policy, &one), 0);
	assert_int_equal(when(&policy, &one), MS);
	assert_int_equal(weir_backoff_requeues(&policy, &two), 2);
}

static void test_exponential_does_not_overflow(void **state)
{
	struct weir_backoff short_one = policy_of("exponential:1ms..1000s");
	struct weir_backoff long_one = policy_of("exponential:1m..1000h");
	struct weir_backoff smallest = policy_of("exponential:1ns..9223372036854775807ns");
	struct weir_backoff any = { .parts = WEIR_BACKOFF_EXPONENTIAL, .base_ns = 1, .max_ns = ~0ULL };

	(void)state;
	assert_int_equal(nth(&short_one, 6), 32 * MS);
	assert_int_equal(nth(&short_one, 20), (1ULL << 19) * MS);
	assert_int_equal(nth(&short_one, 21), 1000 * SECOND);
	assert_int_equal(nth(&short_one, 1000), 1000 * SECOND);
	assert_int_equal(nth(&long_one, 3), 4 * MINUTE);
	assert_int_equal(nth(&long_one, 1000), 1000 * HOUR);
	assert_int_equal(nth(&smallest, 63), 1ULL << 62);
	assert_int_equal(nth(&smallest, 64), DURATION_MAX_NS);
	assert_int_equal(nth(&smallest, 65), DURATION_MAX_NS);
	assert_int_equal(nth(&any, 64), 1ULL << 63);
	assert_int_equal(nth(&any, 65), ~0ULL);
	any.base_ns = 3;
	assert_int_equal(nth(&any, 63), 3ULL << 62);
	assert_int_equal(nth(&any, 64), ~0ULL);
	any.base_ns = ~0ULL;
	assert_int_equal(nth(&any, 1), ~0ULL);
	assert_int_equal(nth(&any, 2), ~0ULL);
	any.base_ns = 0;
	assert_int_equal(nth(&any, 2000), 0);
}

static void test_failures_stay_at_their_largest(void **state)
{
	struct weir_backoff policy = policy_of("exponential:1ms..1s+fast-slow:0s,2s,4294967295");
	struct weir_backoff_state item = { .failures = ~0U - 1 };

	(void)state;
	assert_int_equal(when(&policy, &item), SECOND);
	assert_int_equal(weir_backoff_requeues(&policy, &item), ~0U);
	assert_int_equal(when(&policy, &item), 2 * SECOND);
	assert_int_equal(weir_backoff_requeues(&policy, &item), ~0U);
}

/* Three delays of 5 ms, and what is slow after them; each item counts its own. */
static void three_are_fast(const struct weir_backoff *policy, __u64 slow_ns)
{
	struct weir_backoff_state one = {}, two = {};

	for (int i = 0; i < 3; i++)
		assert_int_equal(when(policy, &one), 5 * MS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(when(policy, &one), slow_ns);
	assert_int_equal(weir_backoff_requeues(policy, &one), 5);
	assert_int_equal(when(policy, &two), 5 * MS);
	assert_int_equal(when(policy, &two), 5 * MS);
	assert_int_equal(weir_backoff_requeues(policy, &two), 2);
	weir_backoff_forget(&one);
	assert_int_equal(weir_backoff_requeues(policy, &one), 0);
	assert_int_equal(when(policy, &one), 5 * MS);
}

static void test_fast_slow(void **state)
{
	struct weir_backoff policy = policy_of("fast-slow:5ms,10s,3"), slow = policy_of("fast-slow:5ms,10s,0");

	(void)state;
	three_are_fast(&policy, 10 * SECOND);
	assert_int_equal(nth(&slow, 1), 10 * SECOND);
}

static void test_max_of(void **state)
{
	struct weir_backoff policy = policy_of("fast-slow:5ms,3s,3+exponential:1ms..1s");

	(void)state;
	three_are_fast(&policy, 3 * SECOND);
}

/* What is capped is counted and charged all the same. */
static void test_max_wait(void **state)
{
	struct weir_backoff policy = policy_of("exponential:1ms..1000s+max-wait:5ms");
	struct weir_backoff both = policy_of("fast-slow:2ms,3s,1+bucket:1/1+max-wait:2500ms");
	struct weir_backoff_state item = {};
	struct weir_bucket bucket = {};

	(void)state;
	assert_int_equal(when(&policy, &item), MS);
	assert_int_equal(when(&policy, &item), 2 * MS);
	assert_int_equal(when(&policy, &item), 4 * MS);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(when(&policy, &item), 5 * MS);
	assert_int_equal(weir_backoff_requeues(&policy, &item), 1003);
	weir_backoff_forget(&item);
	assert_int_equal(when(&policy, &item), MS);

	item = (struct weir_backoff_state){};
	assert_int_equal(weir_backoff_when(&both, &item, &bucket, SECOND), 2 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(weir_backoff_when(&both, &item, &bucket, SECOND), 2500 * MS);
	both.parts &= ~WEIR_BACKOFF_MAX_WAIT;
	assert_int_equal(weir_backoff_when(&both, &item, &bucket, SECOND), 5 * SECOND);
}

/* Everyone's failures take its tokens, and nobody's success brings one back. */
static void test_bucket(void **state)
{
	struct weir_backoff policy = policy_of("bucket:10/3");
	struct weir_backoff_state one = {}, two = {};
	struct weir_bucket bucket = {};
	__u64 now = 5 * SECOND;

	(void)state;
	assert_int_equal(weir_backoff_when(&policy, &one, &bucket, now), 0);
	assert_int_equal(weir_backoff_when(&policy, &two, &bucket, now), 0);
	assert_int_equal(weir_backoff_when(&policy, &one, &bucket, now), 0);
	assert_int_equal(weir_backoff_when(&policy, &one, &bucket, now), 100 * MS);
	assert_int_equal(weir_backoff_requeues(&policy, &one), 0);
	weir_backoff_forget(&one);
	assert_int_equal(weir_backoff_when(&policy, &one, &bucket, now), 200 * MS);
	assert_int_equal(weir_backoff_when(&policy, &two, &bucket, now + 50 * MS), 250 * MS);
	assert_int_equal(weir_backoff_when(&policy, &two, &bucket, now + 10 * SECOND), 0);
}

static void test_bucket_that_never_has_one(void **state)
{
	struct weir_backoff policy = { .parts = WEIR_BACKOFF_BUCKET, .bucket = weir_rate_always(0, 1) };
	struct weir_backoff_state item = {};
	struct weir_bucket bucket = {}, last;

	(void)state;
	assert_int_equal(weir_backoff_when(&policy, &item, &bucket, SECOND), 0);
	last = bucket;
	assert_true(weir_backoff_when(&policy, &item, &bucket, HOUR) == WEIR_NEVER_NS);
	assert_memory_equal(&bucket, &last, sizeof(bucket));
	policy.parts |= WEIR_BACKOFF_MAX_WAIT;
	policy.max_wait_ns = MINUTE;
	assert_int_equal(weir_backoff_when(&policy, &item, &bucket, HOUR), MINUTE);
}

/* client-go's DefaultControllerRateLimiter: the bucket is charged although the exponential delay is the longer one. */
static void test_default_of_controllers(void **state)
{
	struct weir_backoff policy = policy_of("exponential:5ms..1000s+bucket:10/100");
	struct weir_backoff_state item = {}, other = {};
	struct weir_bucket bucket = {};

	(void)state;
	for (int i = 0; i < 100; i++) {
		__u64 expected = i < 18 ? 5 * MS << i : 1000 * SECOND;

		assert_int_equal(weir_backoff_when(&policy, &item, &bucket, SECOND), expected);
	}
	assert_int_equal(weir_backoff_when(&policy, &other, &bucket, SECOND), 100 * MS);
	assert_int_equal(weir_backoff_when(&policy, &other, &bucket, SECOND), 200 * MS);
}

/* --- penalties */

/* The wait that is told. */
static __u64 refuse(const struct weir_backoff *policy, __u64 *subject, __u64 now_ns, __u64 wait_ns)
{
	__u64 told_ns;

	*subject = weir_penalty_refused(policy, *subject, now_ns, wait_ns, &told_ns);
	return told_ns;
}

/* A penalty ends when it was told to, or less than 1024 ns before. */
static void assert_penalised(__u64 subject, __u64 now_ns, __u64 left_ns)
{
	assert_in_range(left_ns - weir_penalty_wait_ns(subject, now_ns), 0, 1023);
}

static void test_penalty(void **state)
{
	struct weir_backoff policy = policy_of("exponential:1s..8s");
	__u64 now = HOUR + 77, told[] = { 1, 2, 4, 8, 8 }, subject = 0;

	(void)state;
	assert_int_equal(weir_penalty_wait_ns(subject, now), 0);
	for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
		assert_int_equal(refuse(&policy, &subject, now, 100 * MS), told[i] * SECOND);
		/* However often it asks, it was told the truth. */
		for (__u64 waited = 0; waited < told[i] * SECOND; waited += 10 * MS)
			assert_penalised(subject, now + waited, told[i] * SECOND - waited);
		now += told[i] * SECOND;
		assert_int_equal(weir_penalty_wait_ns(subject, now), 0);
		assert_int_equal(weir_penalty_failures(subject), i + 1);
	}
	subject = 0;
	assert_int_equal(weir_penalty_wait_ns(subject, 0), 0);
	assert_int_equal(refuse(&policy, &subject, now, 100 * MS), SECOND);
}

/* Never shorter than the limit's own wait, never longer than what can be told. */
static void test_penalty_bounds(void **state)
{
	struct weir_backoff policy = policy_of("fast-slow:1s,48h,2");
	__u64 subject = 0;

	(void)state;
	assert_int_equal(refuse(&policy, &subject, HOUR, 5 * SECOND), 5 * SECOND);
	assert_penalised(subject, HOUR, 5 * SECOND);
	assert_int_equal(refuse(&policy, &subject, 2 * HOUR, WEIR_NEVER_NS), HOUR);
	assert_penalised(subject, 2 * HOUR, HOUR);
	assert_int_equal(refuse(&policy, &subject, 3 * HOUR, 1), HOUR);
	assert_int_equal(weir_retry_after_s(weir_penalty_wait_ns(subject, 3 * HOUR)), WEIR_RETRY_MAX_S);
}

/* Nine years after the machine's start, and after more failures than are counted. */
static void test_penalty_far_out(void **state)
{
	struct weir_backoff policy = policy_of("exponential:1s..8s");
	__u64 now = 9 * 365 * 24 * HOUR, subject = 0;

	(void)state;
	for (__u32 i = 0; i < WEIR_PENALTY_FAILURES + 10; i++)
		refuse(&policy, &subject, now, 0);
	assert_int_equal(weir_penalty_failures(subject), WEIR_PENALTY_FAILURES);
	assert_penalised(subject, now, 8 * SECOND);
	assert_int_equal(weir_penalty_wait_ns(subject, now + 8 * SECOND), 0);
}

/* The largest number of failures stands for all above it: more quick tries than that are none. */
static void test_penalty_of_many_tries(void **state)
{
	struct weir_backoff policy = policy_of("fast-slow:1s,30s,1000000");
	__u64 subject = 0;

	(void)state;
	for (__u32 i = 0; i < WEIR_PENALTY_FAILURES; i++)
		assert_int_equal(refuse(&policy, &subject, HOUR, 0), SECOND);
	assert_int_equal(refuse(&policy, &subject, HOUR, 0), 30 * SECOND);
	assert_int_equal(refuse(&policy, &subject, HOUR, 0), 30 * SECOND);
}

/* What is kept of a subject begins with a full bucket and no penalty, and is read by no other subject. */
static void test_kept(void **state)
{
	struct weir_rate_history h = weir_rate_always(SECOND, 3);
	struct weir_kept kept = weir_kept_new(77);
	struct weir_level level = { .subject = 78 };
	__u64 word;

	(void)state;
	assert_true(weir_penalty_read(&kept, 77, &word));
	assert_int_equal(word, 0);
	assert_false(weir_penalty_read(&kept, 78, &word));
	for (int i = 0; i < 5; i++)
		assert_int_equal(weir_bucket_take(&kept.bucket, &h, SECOND), i < 3);
	assert_false(weir_bucket_level(&kept.bucket, &h, SECOND, &level));
	/* Evicted: the next subject has written its words, and not its name yet. */
	kept.bucket.word = weir_owned(0, 78);
	kept.penalty = weir_owned(0, 78);
	level.subject = 77;
	assert_false(weir_bucket_level(&kept.bucket, &h, SECOND, &level));
	assert_false(weir_penalty_read(&kept, 77, &word));
	/* Its name, and not its words. */
	kept = weir_kept_new(77);
	kept.bucket.subject = 78;
	level.subject = 78;
	assert_false(weir_bucket_level(&kept.bucket, &h, SECOND, &level));
	assert_false(weir_penalty_read(&kept, 78, &word));
}

static void test_penalty_undone(void **state)
{
	struct weir_backoff policy = policy_of("exponential:1s..1000s");
	__u64 now = HOUR, subject = 0, before;

	(void)state;
	for (__u64 expected = 1; expected < 500; expected *= 2) {
		for (int again = 0; again < 3; again++) {
			before = subject;
			assert_int_equal(refuse(&policy, &subject, now, 1), expected * SECOND);
			assert_true(weir_penalty_swap(&subject, 0, subject, before));
			assert_int_equal(weir_penalty_wait_ns(subject, now), 0);
			now += MS;
		}
		now += refuse(&policy, &subject, now, 1);
	}
}

/* What has happened to the subject since then stays. */
static void test_penalty_undone_too_late(void **state)
{
	struct weir_backoff policy = policy_of("exponential:1s..1000s");
	__u64 subject = 0, first, second;

	(void)state;
	refuse(&policy, &subject, HOUR, 1);
	first = subject;
	refuse(&policy, &subject, 2 * HOUR, 1);
	second = subject;
	assert_false(weir_penalty_swap(&subject, 0, first, 0));
	assert_int_equal(subject, second);
	/* Admitted, it has failed never. */
	assert_true(weir_penalty_swap(&subject, 0, second, 0));
	assert_false(weir_penalty_swap(&subject, 0, second, first));
	assert_int_equal(weir_penalty_failures(subject), 0);
	assert_int_equal(refuse(&policy, &subject, 3 * HOUR, 1), SECOND);
}

/* --- against a second way to say it, with numbers that are wide enough */

static struct random numbers = { .state = 1 };

static __u64 random_u64(void)
{
	return random_next(&numbers);
}

/* Of any length in bits. */
static __u64 random_length(void)
{
	return random_u64() >> random_u64() % 64;
}

static unsigned __int128 longest_of(const struct weir_backoff *policy, __u64 failures)
{
	unsigned __int128 exponential = policy->base_ns, longest = 0;

	if (policy->parts & WEIR_BACKOFF_EXPONENTIAL) {
		for (__u64 i = 0; i < failures && exponential <= policy->max_ns; i++)
			exponential *= 2;
		longest = exponential > policy->max_ns ? policy->max_ns : exponential;
	}
	if (policy->parts & WEIR_BACKOFF_FAST_SLOW) {
		__u64 delay = failures + 1 <= policy->attempts ? policy->fast_ns : policy->slow_ns;

		longest = delay > longest ? delay : longest;
	}
	if (policy->parts & WEIR_BACKOFF_MAX_WAIT && longest > policy->max_wait_ns)
		longest = policy->max_wait_ns;
	return longest;
}

static void test_random(void **state)
{
	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct weir_backoff policy = {
			.parts = random_u64() & ~WEIR_BACKOFF_BUCKET,
			.attempts = random_u64() % 10,
			.base_ns = random_length(),
			.max_ns = random_length(),
			.fast_ns = random_length(),
			.slow_ns = random_length(),
			.max_wait_ns = random_length(),
		};
		struct weir_backoff_state item = {};
		__u64 failures = 0;

		for (int n = 0; n < 100; n++) {
			if (random_u64() % 40 == 0) {
				weir_backoff_forget(&item);
				failures = 0;
			}
			assert_true(when(&policy, &item) == longest_of(&policy, failures));
			failures++;
			assert_int_equal(weir_backoff_requeues(&policy, &item),
					 policy.parts & (WEIR_BACKOFF_EXPONENTIAL | WEIR_BACKOFF_FAST_SLOW) ? failures :
													      0);
		}
	}
}

/* A subject some of whose refusals are undone, against one that never had those. */
static void test_random_undo(void **state)
{
	struct weir_backoff policy = policy_of("exponential:5ms..10s+fast-slow:30ms,2s,4+max-wait:8s");
	__u64 now = HOUR, undone = 0, never = 0, before;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		__u64 wait = random_u64() % (100 * MS);

		now += random_length() % SECOND;
		assert_int_equal(weir_penalty_wait_ns(undone, now), weir_penalty_wait_ns(never, now));
		if (weir_penalty_wait_ns(never, now))
			continue;
		if (random_u64() % 8 == 0) {
			assert_true(weir_penalty_swap(&undone, 0, undone, 0));
			assert_true(weir_penalty_swap(&never, 0, never, 0));
			continue;
		}
		if (random_u64() % 2) {
			before = undone;
			refuse(&policy, &undone, now, random_u64() % SECOND);
			assert_true(weir_penalty_swap(&undone, 0, undone, before));
		}
		assert_int_equal(refuse(&policy, &undone, now, wait), refuse(&policy, &never, now, wait));
		assert_int_equal(undone, never);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_policy),
		cmocka_unit_test(test_no_bucket),
		cmocka_unit_test(test_exponential),
		cmocka_unit_test(test_exponential_does_not_overflow),
		cmocka_unit_test(test_failures_stay_at_their_largest),
		cmocka_unit_test(test_fast_slow),
		cmocka_unit_test(test_max_of),
		cmocka_unit_test(test_max_wait),
		cmocka_unit_test(test_bucket),
		cmocka_unit_test(test_bucket_that_never_has_one),
		cmocka_unit_test(test_default_of_controllers),
		cmocka_unit_test(test_penalty),
		cmocka_unit_test(test_penalty_bounds),
		cmocka_unit_test(test_penalty_far_out),
		cmocka_unit_test(test_penalty_of_many_tries),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_penalty_undone),
		cmocka_unit_test(test_penalty_undone_too_late),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_random_undo),
	};

	return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
