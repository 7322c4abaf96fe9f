/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long to wait after a failure: the rate limiters of Kubernetes' work queues (k8s.io/client-go/util/workqueue,
 * default_rate_limiters.go). What a limit makes of them for subjects that do not back off: penalty.h.
 *
 *   bucket        BucketRateLimiter: Reserve().Delay() of a token bucket that all items share (bucket.h)
 *   exponential   ItemExponentialFailureRateLimiter: base_ns * 2^failures, at most max_ns
 *   fast-slow     ItemFastSlowRateLimiter: fast_ns for the first `attempts` failures, slow_ns from then on
 *   max-wait      WithMaxWaitRateLimiter around all of them: no delay is longer
 *
 * A policy has any of these, and is then what MaxOfRateLimiter is: every one is asked and charged, the longest delay
 * holds. An item's failures count for each of them alike, so that one count is enough.
 *
 * Where this is not client-go's code to the last bit: that multiplies in float64, which has no exact product for a base
 * above 2^53 ns (104 days), and turns a product of exactly 2^63 ns, or a base of 0 after 1024 failures, into a negative
 * delay, which is none. Here all of it is exact, and what is too long is max_ns.
 */
#ifndef WEIR_LIMIT_BACKOFF_H
#define WEIR_LIMIT_BACKOFF_H

#include "weir/base/types.h"
#include "weir/limit/backoff_policy.h"
#include "weir/limit/bucket.h"

/* An item; all zero: one that has not failed. Its owner's alone. */
struct weir_backoff_state {
	__u32 failures; /* since it was forgotten; ends at its largest value */
};

WEIR_INLINE __u64 weir_backoff_longest(__u64 a_ns, __u64 b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

WEIR_INLINE __u64 weir_backoff_cap(const struct weir_backoff *policy, __u64 delay_ns)
{
	return policy->parts & WEIR_BACKOFF_MAX_WAIT && delay_ns > policy->max_wait_ns ? policy->max_wait_ns : delay_ns;
}

WEIR_INLINE __u64 weir_backoff_exponential_ns(const struct weir_backoff *policy, __u32 failures)
{
	if (!policy->base_ns)
		return 0;
	if (failures > 63 || policy->base_ns > policy->max_ns >> failures)
		return policy->max_ns;
	return policy->base_ns << failures;
}

/*
 * Takes a token of the policy's bucket and says how long it is until then; WEIR_NEVER_NS: there will never be one, and
 * none is taken. Nor is one taken of a bucket that is contended, which is told as it was last seen.
 */
WEIR_INLINE __u64 weir_backoff_bucket_ns(const struct weir_backoff *policy, struct weir_bucket *bucket, __u64 now_ns)
{
	struct weir_ask ask = { .now_ns = now_ns, .longest_ns = WEIR_NEVER_NS - 1, .weight = 1 };

	weir_bucket_ask(bucket, &policy->bucket, &ask);
	return ask.wait_ns;
}

/*
 * When(): the item has failed at now_ns; the delay until it is to be tried again. WEIR_NEVER_NS is rate.InfDuration:
 * the bucket will never have a token. bucket may be NULL where the policy has none.
 */
WEIR_INLINE __u64 weir_backoff_when(const struct weir_backoff *policy, struct weir_backoff_state *state,
				    struct weir_bucket *bucket, __u64 now_ns)
{
	__u64 delay_ns = 0;

	if (policy->parts & WEIR_BACKOFF_BUCKET && bucket)
		delay_ns = weir_backoff_bucket_ns(policy, bucket, now_ns);
	if (policy->parts & WEIR_BACKOFF_EXPONENTIAL)
		delay_ns = weir_backoff_longest(delay_ns, weir_backoff_exponential_ns(policy, state->failures));
	if (policy->parts & WEIR_BACKOFF_FAST_SLOW)
		delay_ns = weir_backoff_longest(delay_ns,
						state->failures < policy->attempts ? policy->fast_ns : policy->slow_ns);
	state->failures += state->failures != ~0U;
	return weir_backoff_cap(policy, delay_ns);
}

/* Forget(): the item has not failed. The bucket keeps what was taken. */
WEIR_INLINE void weir_backoff_forget(struct weir_backoff_state *state)
{
	*state = (struct weir_backoff_state){};
}

/* NumRequeues(): a bucket counts no items. */
WEIR_INLINE __u32 weir_backoff_requeues(const struct weir_backoff *policy, const struct weir_backoff_state *state)
{
	return policy->parts & (WEIR_BACKOFF_EXPONENTIAL | WEIR_BACKOFF_FAST_SLOW) ? state->failures : 0;
}

#endif
