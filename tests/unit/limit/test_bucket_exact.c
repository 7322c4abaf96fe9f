/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The token bucket that is one word against one without rounding (exact_bucket.h), on random traces that are aimed by the latter: rates
 * and bursts of every size and their changes, weights, refunds, clocks that go back, pauses of up to 400 days, and some who
 * wait for their turn.
 *
 * TRACES: how many of each kind, 1500 unless it is set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../random.h"
#include "exact_bucket.h"
#include "weir/limit/bucket.h"

#define TAKES 600
#define DAY (86400 * WEIR_NS_PER_S)
#define END_NS (1ULL << 62)
#define NEAR (WEIR_TOKEN / 1000000000000)

/* What the exact bucket tells of a longer wait is up to 66 us too long, and so is what the other one does. */
#define OWED_FAR 16
#define OWED_FAR_NS (1 << 17)

typedef __int128 units;

static struct random numbers = { .state = 1 };
static __u64 decisions, ready;

static __u32 traces(void)
{
	const char *text = getenv("TRACES");

	return text && atoi(text) > 0 ? atoi(text) : 1500;
}

static __u64 below(__u64 n)
{
	return random_below(&numbers, n);
}

struct pair {
	struct weir_bucket bucket;
	struct weir_rate_history history;
	struct exact_bucket exact;
	struct exact_rate_history exact_history;
	__u64 now;
	__u32 changed; /* since the last request: older rates than the history has are another matter (test_bucket_changes.c) */
};

static void change(struct pair *p)
{
	__u64 most = 1, per_ns, burst;

	for (__u64 power = below(19); power; power--)
		most *= 10;
	per_ns = below(2) ? below(most + 1) : most;
	burst = below(3) ? below(200) : below(WEIR_BURST_MAX);
	weir_rate_history_push(&p->history, per_ns, burst, p->now);
	exact_rate_history_push(&p->exact_history, per_ns, burst, p->now);
	p->changed++;
}

/* Where the next request comes: at random, or right where a token is due. */
static __u64 random_step(struct pair *p)
{
	__u64 per_ns = p->history.rates[0].per_ns;
	__u64 interval = per_ns ? WEIR_TOKEN / per_ns : WEIR_NS_PER_S / 1000;
	__u64 wait = exact_bucket_wait_ns(&p->exact, &p->exact_history, p->now);

	switch (below(8)) {
	case 0:
		return below(1000);
	case 1:
	case 2:
		return below(interval);
	case 3:
		return below(3 * interval);
	case 4:
	case 5:
		return wait == WEIR_NEVER_NS || !wait ? 1 : wait - 1 + below(16) / 7;
	case 6:
		return wait == WEIR_NEVER_NS ? below(interval) : wait / 2;
	default:
		return below(8) ? below(20 * interval) : below(400 * DAY);
	}
}

/* Is it this close to the instant from which on a token counts as there, that the last place of a binary fraction decides? */
static bool is_near(const struct pair *p, __u64 now)
{
	struct exact_bucket exact = p->exact;
	struct exact_tokens tokens = exact_bucket_tokens(&exact, &p->exact_history, now);
	units missing = (units)WEIR_TOKEN - p->history.rates[0].per_ns - (tokens.high * ((units)1 << 64) + tokens.low);

	return missing <= NEAR && -missing <= NEAR;
}

static void assert_same_wait(__u64 ours, __u64 theirs, __u64 per_ns)
{
	__u64 difference = ours > theirs ? ours - theirs : theirs - ours;
	__u64 token_ns = per_ns ? WEIR_TOKEN / per_ns : 0;

	/* As long as this is never, to one of them. */
	if (theirs >= WEIR_LONGEST_NS)
		assert_true(ours >= WEIR_LONGEST_NS);
	else if (difference > 1 + (per_ns ? NEAR / per_ns : 0))
		assert_true(theirs / OWED_FAR > token_ns && difference <= OWED_FAR_NS);
}

/* What the steps in full come to, and what they leave of the bucket. */
struct in_full {
	struct weir_bucket bucket;
	bool taken;
};

static struct in_full take_in_full(const struct pair *p, __u64 now, __u32 weight)
{
	struct in_full full = { .bucket = p->bucket };
	struct weir_ask ask = { .now_ns = now, .weight = weight };
	enum weir_taken taken = WEIR_LOST_RACE;

	for (int i = 0; i < 2 && taken == WEIR_LOST_RACE; i++)
		taken = weir_bucket_try_in_full(&full.bucket, &p->history, &ask);
	full.taken = taken == WEIR_TAKEN;
	return full;
}

/* The few steps come to the same as those in full, or say that they are not for this bucket, and leave it as it was. */
static void assert_ready_is_in_full(const struct pair *p, __u64 now, __u32 weight)
{
	struct weir_bucket bucket = p->bucket;
	struct weir_ask ask = { .now_ns = now, .weight = weight, .wait_ns = 1 };
	struct in_full full = take_in_full(p, now, weight);

	if (weir_bucket_take_ready(&bucket, &p->history.rates[0], &ask) == WEIR_REFUSED) {
		assert_memory_equal(&bucket, &p->bucket, sizeof(bucket));
		return;
	}
	ready++;
	assert_true(full.taken);
	assert_int_equal(ask.wait_ns, 0);
	assert_memory_equal(&bucket, &full.bucket, sizeof(bucket));
}

/* False: the two have not decided alike, as neither can know better, and go on with other tokens. */
static bool take(struct pair *p, __u64 now, __u32 weight)
{
	__u64 ours_ns = weir_bucket_wait_ns(&p->bucket, &p->history, now);
	__u64 theirs_ns = exact_bucket_wait_ns(&p->exact, &p->exact_history, now);
	bool near = is_near(p, now), ours, theirs;

	assert_ready_is_in_full(p, now, weight);
	ours = weir_bucket_take_weight(&p->bucket, &p->history, now, weight);
	theirs = exact_bucket_take_weight(&p->exact, &p->exact_history, now, weight);

	assert_int_equal(ours, !ours_ns);
	if (ours != theirs) {
		assert_true(near);
		return false;
	}
	if (!ours)
		assert_same_wait(ours_ns, theirs_ns, p->history.rates[0].per_ns);
	if (ours && !below(4)) {
		assert_true(weir_bucket_give_back(&p->bucket, &p->history, weight));
		exact_bucket_give_back(&p->exact, &p->exact_history, weight);
	}
	return true;
}

static bool step(struct pair *p)
{
	__u64 pause = random_step(p), earlier = 0;

	if (pause < END_NS - p->now)
		p->now += pause;
	if (p->changed < WEIR_RATES - 1 && !below(15)) {
		p->now++;
		change(p);
		return true;
	}
	p->changed = 0;
	if (!below(10))
		earlier = below(p->now < 1000000 ? p->now : 1000000);
	return take(p, p->now - earlier, below(4) ? 1 : 1 + below(20));
}

/* Asks for a token that may be there only later, behind those who wait already. False: as above. */
static bool turn(struct pair *p)
{
	__u64 per_ns = p->history.rates[0].per_ns;
	__u64 longest = below(3) ? below(per_ns ? 8 * (WEIR_TOKEN / per_ns) : WEIR_NS_PER_S) : 0;
	struct weir_ask ask = { .now_ns = p->now, .longest_ns = longest, .weight = 1 };
	bool ours = weir_bucket_ask(&p->bucket, &p->history, &ask) == WEIR_TAKEN;
	__u64 theirs_ns = exact_bucket_turn_ns(&p->exact, &p->exact_history, p->now);

	if (theirs_ns <= longest)
		exact_bucket_reserve(&p->exact, &p->exact_history, p->now, theirs_ns, 1);
	assert_same_wait(ask.wait_ns, theirs_ns, per_ns);
	return ours == (theirs_ns <= longest) && ask.wait_ns == theirs_ns;
}

/* A change in the midst of waiting is another matter: who waits goes on at the new rate, and not, as once, until its instant. */
static bool waiting_step(struct pair *p)
{
	__u64 pause = below(3) ? random_step(p) : 0;

	if (pause < END_NS - p->now)
		p->now += pause;
	return turn(p);
}

static void play(bool (*step)(struct pair *p))
{
	__u32 cut_short = 0;

	for (__u32 i = 0; i < traces(); i++) {
		struct pair p = { .now = 1 + below(DAY) };
		int n = 0;

		change(&p);
		while (n < TAKES && step(&p))
			n++;
		decisions += n;
		cut_short += n < TAKES;
	}
	print_message("%llu steps alike, %u traces cut short where neither can know better\n", decisions, cut_short);
	assert_in_range(cut_short, 0, traces() / 4);
	decisions = 0;
}

static void test_against_the_exact_one(void **state)
{
	(void)state;
	play(step);
	print_message("%llu tokens in few steps\n", ready);
	assert_true(ready > 100ULL * traces());
}

static void test_waiting(void **state)
{
	(void)state;
	play(waiting_step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_the_exact_one),
		cmocka_unit_test(test_waiting),
	};

	return cmocka_run_group_tests_name("bucket_exact", tests, NULL, NULL);
}
