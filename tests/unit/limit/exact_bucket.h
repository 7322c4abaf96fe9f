/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A token bucket without rounding, to compare the one of include/weir/limit/bucket.h with: tokens in units of 1e-18, at an instant.
 * It was weir's own while buckets had locks.
 */
#ifndef WEIR_TESTS_UNIT_EXACT_BUCKET_H
#define WEIR_TESTS_UNIT_EXACT_BUCKET_H

#include "weir/limit/rate.h"

/* since_ns: when this rate came into force (CLOCK_MONOTONIC); 0: since ever */
struct exact_rate {
	__u64 per_ns; /* units gained per ns: qps * WEIR_QPS */
	__u64 burst;  /* whole tokens */
	__u64 since_ns;
};

/* Newest first; slots not yet used are all zero. What came before the oldest slot is taken as no gain at all. */
struct exact_rate_history {
	struct exact_rate rates[WEIR_RATES];
};

/* high * 2^64 + low units; below zero by what is owed. */
struct exact_tokens {
	__s64 high;
	__u64 low;
};

/* The two counters are the caller's, who alone knows what became of the request: no function here touches them. */
struct exact_bucket {
	__u32 started;		    /* 0: no token was ever taken, full */
	__u32 reserved;		    /* last_ns is when someone who waits is let in, not when someone asked */
	struct exact_tokens tokens; /* at last_ns */
	__u64 last_ns;
	__u64 passed; /* requests that took a token and kept it */
	__u64 shed;   /* requests refused by this bucket */
};

WEIR_INLINE struct exact_tokens exact_tokens_product(__u64 a, __u64 b)
{
	__u64 a_low = (__u32)a, a_high = a >> 32;
	__u64 b_low = (__u32)b, b_high = b >> 32;
	__u64 low = a_low * b_low;
	__u64 middle = a_high * b_low + (low >> 32);
	__u64 cross = a_low * b_high + (__u32)middle;

	return (struct exact_tokens){
		.high = a_high * b_high + (middle >> 32) + (cross >> 32),
		.low = cross << 32 | (__u32)low,
	};
}

WEIR_INLINE struct exact_tokens exact_tokens_sum(struct exact_tokens a, struct exact_tokens b)
{
	__u64 low = a.low + b.low;

	return (struct exact_tokens){ .high = a.high + b.high + (low < a.low), .low = low };
}

WEIR_INLINE struct exact_tokens exact_tokens_min(struct exact_tokens a, struct exact_tokens b)
{
	bool less = a.high == b.high ? a.low < b.low : a.high < b.high;

	return less ? a : b;
}

WEIR_INLINE struct exact_tokens exact_tokens_minus(struct exact_tokens a)
{
	return (struct exact_tokens){ .high = -a.high - !!a.low, .low = -a.low };
}

#define EXACT_MISSING_MAX (~0ULL)

/* The units that are missing for one whole token, 0: it is there. EXACT_MISSING_MAX: so many, or more. */
WEIR_INLINE __u64 exact_tokens_missing(struct exact_tokens tokens)
{
	if (tokens.high > 0 || (tokens.high == 0 && tokens.low >= WEIR_TOKEN))
		return 0;
	if (tokens.high < -1 || (tokens.high == -1 && tokens.low <= WEIR_TOKEN))
		return EXACT_MISSING_MAX;
	return WEIR_TOKEN - tokens.low;
}

WEIR_INLINE struct exact_tokens exact_rate_gain(const struct exact_rate *rate, struct exact_tokens tokens, __u64 ns)
{
	struct exact_tokens gained = exact_tokens_sum(tokens, exact_tokens_product(ns, rate->per_ns));

	return exact_tokens_min(gained, exact_tokens_product(rate->burst, WEIR_TOKEN));
}

/*
 * Puts a new rate in front and forgets the oldest. No two changes share an instant, so that each was in force for a
 * while; setting what is in force already is no change.
 */
WEIR_INLINE void exact_rate_history_push(struct exact_rate_history *h, __u64 per_ns, __u64 burst, __u64 now_ns)
{
	struct exact_rate *newest = &h->rates[0];
	__u64 earliest = newest->since_ns + 1;

	if (newest->since_ns && newest->per_ns == per_ns && newest->burst == burst)
		return;
	for (int i = WEIR_RATES - 1; i > 0; i--)
		h->rates[i] = h->rates[i - 1];
	*newest = (struct exact_rate){
		.per_ns = per_ns,
		.burst = burst,
		.since_ns = now_ns > earliest ? now_ns : earliest,
	};
}

/*
 * Brings a bucket that was last used under an earlier rate to where the rate in force begins. Nobody can tell, but the
 * history may forget that rate before the bucket, which is perhaps only ever refused, has a whole token again.
 */
WEIR_INLINE void exact_bucket_settle(struct exact_bucket *b, const struct exact_rate_history *h)
{
	if (!b->started || b->last_ns >= h->rates[0].since_ns)
		return;
	for (int i = WEIR_RATES - 1; i > 0; i--) {
		const struct exact_rate *rate = &h->rates[i];
		__u64 until_ns = h->rates[i - 1].since_ns;
		bool used = rate->since_ns || rate->burst;

		if (!used || b->last_ns >= until_ns)
			continue;
		if (b->last_ns < rate->since_ns)
			b->last_ns = rate->since_ns;
		b->tokens = exact_rate_gain(rate, b->tokens, until_ns - b->last_ns);
		b->last_ns = until_ns;
	}
	b->last_ns = h->rates[0].since_ns;
}

/* The instant at which a bucket is asked: never before it was last used, nor before the rate in force began. */
WEIR_INLINE __u64 exact_bucket_clock(const struct exact_bucket *b, const struct exact_rate_history *h, __u64 now_ns)
{
	__u64 since_ns = h->rates[0].since_ns;
	__u64 earliest = b->started && b->last_ns > since_ns ? b->last_ns : since_ns;

	return now_ns > earliest ? now_ns : earliest;
}

/* The tokens a bucket has at `now_ns`. */
WEIR_INLINE struct exact_tokens exact_bucket_tokens(struct exact_bucket *b, const struct exact_rate_history *h,
						    __u64 now_ns)
{
	const struct exact_rate *newest = &h->rates[0];

	if (!b->started)
		return exact_tokens_product(newest->burst, WEIR_TOKEN);
	exact_bucket_settle(b, h);
	return exact_rate_gain(newest, b->tokens, exact_bucket_clock(b, h, now_ns) - b->last_ns);
}

/* Takes `weight` tokens and says true if there is one, or takes nothing. */
WEIR_INLINE bool exact_bucket_take_weight(struct exact_bucket *b, const struct exact_rate_history *h, __u64 now_ns,
					  __u32 weight)
{
	struct exact_tokens tokens = exact_bucket_tokens(b, h, now_ns);
	__u64 missing = exact_tokens_missing(tokens);

	/* With burst 0 a whole token is missing, and no rate gains more than that in 1 ns. */
	if (missing && missing >= h->rates[0].per_ns)
		return false;
	b->last_ns = exact_bucket_clock(b, h, now_ns);
	b->tokens = exact_tokens_sum(tokens, exact_tokens_minus(exact_tokens_product(weight, WEIR_TOKEN)));
	b->started = 1;
	return true;
}

/* Undoes one exact_bucket_take_weight() that said true, also when others took in between: as if it had never been. */
WEIR_INLINE void exact_bucket_give_back(struct exact_bucket *b, const struct exact_rate_history *h, __u32 weight)
{
	b->tokens = exact_tokens_min(exact_tokens_sum(b->tokens, exact_tokens_product(weight, WEIR_TOKEN)),
				     exact_tokens_product(h->rates[0].burst, WEIR_TOKEN));
}

/* How long a rate takes to make good what a bucket is below zero, in steps of 2^16 ns and rounded up. */
WEIR_INLINE __u64 exact_rate_repays_ns(__u64 per_ns, struct exact_tokens tokens)
{
	struct exact_tokens owed = exact_tokens_minus(tokens);
	__u64 steps;

	if (owed.high >> 16)
		return WEIR_NEVER_NS;
	steps = ((__u64)owed.high << 48 | owed.low >> 16) / per_ns + 1;
	return steps >> 47 ? WEIR_NEVER_NS : steps << 16;
}

/*
 * The shortest time from `now_ns` after which exact_bucket_take_weight() says true; WEIR_NEVER_NS: at these rates, never. A bucket
 * that owes many tokens is told up to 66 us more.
 */
WEIR_INLINE __u64 exact_bucket_wait_ns(struct exact_bucket *b, const struct exact_rate_history *h, __u64 now_ns)
{
	const struct exact_rate *newest = &h->rates[0];
	struct exact_tokens tokens = exact_bucket_tokens(b, h, now_ns);
	__u64 missing = exact_tokens_missing(tokens), wait_ns;

	if (!newest->burst)
		return WEIR_NEVER_NS;
	if (!missing || missing < newest->per_ns)
		return 0;
	if (!newest->per_ns)
		return WEIR_NEVER_NS;
	wait_ns = missing / newest->per_ns;
	if (missing == EXACT_MISSING_MAX) {
		wait_ns = exact_rate_repays_ns(newest->per_ns, tokens);
		if (wait_ns == WEIR_NEVER_NS)
			return WEIR_NEVER_NS;
		wait_ns += WEIR_TOKEN / newest->per_ns;
	}
	return wait_ns + (exact_bucket_clock(b, h, now_ns) - now_ns);
}

/*
 * The same for who is ready to wait, and for who asks while others do: behind those whose instants are still to come.
 * exact_bucket_reserve() then takes `weight` tokens as of that instant, at which the bucket's clock stands from then on: each
 * is let in as if it had asked only then.
 */
WEIR_INLINE __u64 exact_bucket_turn_ns(struct exact_bucket *b, const struct exact_rate_history *h, __u64 now_ns)
{
	__u64 ahead_ns = b->reserved && b->last_ns > now_ns ? b->last_ns - now_ns : 0;
	__u64 wait_ns = exact_bucket_wait_ns(b, h, now_ns + ahead_ns);

	return wait_ns == WEIR_NEVER_NS ? wait_ns : ahead_ns + wait_ns;
}

/* turn_ns: what exact_bucket_turn_ns() has just said, and not WEIR_NEVER_NS. */
WEIR_INLINE void exact_bucket_reserve(struct exact_bucket *b, const struct exact_rate_history *h, __u64 now_ns,
				      __u64 turn_ns, __u32 weight)
{
	exact_bucket_take_weight(b, h, now_ns + turn_ns, weight);
	b->reserved = !!turn_ns;
}

#endif
