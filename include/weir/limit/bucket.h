/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A token bucket: the decisions of golang.org/x/time/rate's Limiter.AllowN(now, 1).
 *
 * A bucket starts full, gains qps tokens a second up to burst, and a request takes one or is refused; a refused
 * request changes nothing. As in x/time/rate, a token counts as there when less than 1 ns is missing for it; the
 * bucket then owes that rest. qps 0: the burst is there once and nothing comes back. burst 0: every request is refused,
 * and a bucket that has never given a token is still as good as new.
 *
 * One difference, on purpose: x/time/rate sets its clock back when it is asked about an earlier time, and then gains
 * the same time twice. CPUs read the clock before they get the lock, so here an earlier time counts as no time.
 *
 * A taker may also weigh more than one token (weir_bucket_take_weight): it is let in by one whole token and takes its
 * weight, so that the bucket is below zero by the rest and nobody is let in before that is gained again. What passes in
 * the long run is still what the rate allows.
 *
 * Tokens are counted in 1e-18 and rates in 1e-9 tokens a second, which is 1e-18 a nanosecond: the gain is elapsed
 * nanoseconds times rate, in 128 bits, and nothing is ever rounded. A limit keeps the rates it had, so that a bucket
 * that was last used three changes ago is brought up to date at the rates that held then: a change keeps the tokens a
 * bucket has, clipped to the new burst.
 *
 * Not locked here: callers in BPF hold the subject's lock (an LRU map's values cannot hold one: map `locks`), callers on
 * the host own the bucket.
 */
#ifndef WEIR_LIMIT_BUCKET_H
#define WEIR_LIMIT_BUCKET_H

#include "weir/base/types.h"

#define WEIR_TOKEN 1000000000000000000ULL /* units of one token */
#define WEIR_QPS 1000000000ULL		  /* units a ns of one token a second */
#define WEIR_BURST_MAX 1000000000U	  /* tokens */
#define WEIR_QPS_MAX 1000000000U	  /* at most one token a ns, so that a bucket never owes a whole one */
#define WEIR_RETRY_MAX_S 3600U		  /* the longest Retry-After told; also when no token will ever come */
#define WEIR_RATES 4

#define WEIR_NEVER_NS (~0ULL)

/* since_ns: when this rate came into force (CLOCK_MONOTONIC); 0: since ever */
struct weir_rate {
	__u64 per_ns; /* units gained per ns: qps * WEIR_QPS */
	__u64 burst;  /* whole tokens */
	__u64 since_ns;
};
WEIR_ASSERT_SIZE(struct weir_rate, 24);

/* Newest first; slots not yet used are all zero. What came before the oldest slot is taken as no gain at all. */
struct weir_rate_history {
	struct weir_rate rates[WEIR_RATES];
};
WEIR_ASSERT_SIZE(struct weir_rate_history, 96);

/* high * 2^64 + low units; below zero by what is owed. */
struct weir_tokens {
	__s64 high;
	__u64 low;
};

/* The two counters are the caller's, who alone knows what became of the request: no function here touches them. */
struct weir_bucket {
	__u32 started;		   /* 0: no token was ever taken, full */
	__u32 reserved;		   /* last_ns is when someone who waits is let in, not when someone asked */
	struct weir_tokens tokens; /* at last_ns */
	__u64 last_ns;
	__u64 passed;  /* requests that took a token and kept it */
	__u64 shed;    /* requests refused by this bucket */
	__u64 watched; /* those that it would have refused, were it not for a dry run */
};
WEIR_ASSERT_SIZE(struct weir_bucket, 56);

WEIR_INLINE struct weir_tokens weir_tokens_product(__u64 a, __u64 b)
{
	__u64 a_low = (__u32)a, a_high = a >> 32;
	__u64 b_low = (__u32)b, b_high = b >> 32;
	__u64 low = a_low * b_low;
	__u64 middle = a_high * b_low + (low >> 32);
	__u64 cross = a_low * b_high + (__u32)middle;

	return (struct weir_tokens){
		.high = a_high * b_high + (middle >> 32) + (cross >> 32),
		.low = cross << 32 | (__u32)low,
	};
}

WEIR_INLINE struct weir_tokens weir_tokens_sum(struct weir_tokens a, struct weir_tokens b)
{
	__u64 low = a.low + b.low;

	return (struct weir_tokens){ .high = a.high + b.high + (low < a.low), .low = low };
}

WEIR_INLINE struct weir_tokens weir_tokens_min(struct weir_tokens a, struct weir_tokens b)
{
	bool less = a.high == b.high ? a.low < b.low : a.high < b.high;

	return less ? a : b;
}

WEIR_INLINE struct weir_tokens weir_tokens_minus(struct weir_tokens a)
{
	return (struct weir_tokens){ .high = -a.high - !!a.low, .low = -a.low };
}

#define WEIR_MISSING_MAX (~0ULL)

/* The units that are missing for one whole token, 0: it is there. WEIR_MISSING_MAX: so many, or more. */
WEIR_INLINE __u64 weir_tokens_missing(struct weir_tokens tokens)
{
	if (tokens.high > 0 || (tokens.high == 0 && tokens.low >= WEIR_TOKEN))
		return 0;
	if (tokens.high < -1 || (tokens.high == -1 && tokens.low <= WEIR_TOKEN))
		return WEIR_MISSING_MAX;
	return WEIR_TOKEN - tokens.low;
}

WEIR_INLINE struct weir_tokens weir_rate_gain(const struct weir_rate *rate, struct weir_tokens tokens, __u64 ns)
{
	struct weir_tokens gained = weir_tokens_sum(tokens, weir_tokens_product(ns, rate->per_ns));

	return weir_tokens_min(gained, weir_tokens_product(rate->burst, WEIR_TOKEN));
}

/*
 * Puts a new rate in front and forgets the oldest. No two changes share an instant, so that each was in force for a
 * while; setting what is in force already is no change.
 */
WEIR_INLINE void weir_rate_history_push(struct weir_rate_history *h, __u64 per_ns, __u64 burst, __u64 now_ns)
{
	struct weir_rate *newest = &h->rates[0];
	__u64 earliest = newest->since_ns + 1;

	if (newest->since_ns && newest->per_ns == per_ns && newest->burst == burst)
		return;
	for (int i = WEIR_RATES - 1; i > 0; i--)
		h->rates[i] = h->rates[i - 1];
	*newest = (struct weir_rate){
		.per_ns = per_ns,
		.burst = burst,
		.since_ns = now_ns > earliest ? now_ns : earliest,
	};
}

/*
 * Brings a bucket that was last used under an earlier rate to where the rate in force begins. Nobody can tell, but the
 * history may forget that rate before the bucket, which is perhaps only ever refused, has a whole token again.
 */
WEIR_INLINE void weir_bucket_settle(struct weir_bucket *b, const struct weir_rate_history *h)
{
	if (!b->started || b->last_ns >= h->rates[0].since_ns)
		return;
	for (int i = WEIR_RATES - 1; i > 0; i--) {
		const struct weir_rate *rate = &h->rates[i];
		__u64 until_ns = h->rates[i - 1].since_ns;
		bool used = rate->since_ns || rate->burst;

		if (!used || b->last_ns >= until_ns)
			continue;
		if (b->last_ns < rate->since_ns)
			b->last_ns = rate->since_ns;
		b->tokens = weir_rate_gain(rate, b->tokens, until_ns - b->last_ns);
		b->last_ns = until_ns;
	}
	b->last_ns = h->rates[0].since_ns;
}

/* The instant at which a bucket is asked: never before it was last used, nor before the rate in force began. */
WEIR_INLINE __u64 weir_bucket_clock(const struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns)
{
	__u64 since_ns = h->rates[0].since_ns;
	__u64 earliest = b->started && b->last_ns > since_ns ? b->last_ns : since_ns;

	return now_ns > earliest ? now_ns : earliest;
}

/* The tokens a bucket has at `now_ns`. */
WEIR_INLINE struct weir_tokens weir_bucket_tokens(struct weir_bucket *b, const struct weir_rate_history *h,
						  __u64 now_ns)
{
	const struct weir_rate *newest = &h->rates[0];

	if (!b->started)
		return weir_tokens_product(newest->burst, WEIR_TOKEN);
	weir_bucket_settle(b, h);
	return weir_rate_gain(newest, b->tokens, weir_bucket_clock(b, h, now_ns) - b->last_ns);
}

/* Takes `weight` tokens and says true if there is one, or takes nothing. */
WEIR_INLINE bool weir_bucket_take_weight(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns,
					 __u32 weight)
{
	struct weir_tokens tokens = weir_bucket_tokens(b, h, now_ns);
	__u64 missing = weir_tokens_missing(tokens);

	/* With burst 0 a whole token is missing, and no rate gains more than that in 1 ns. */
	if (missing && missing >= h->rates[0].per_ns)
		return false;
	b->last_ns = weir_bucket_clock(b, h, now_ns);
	b->tokens = weir_tokens_sum(tokens, weir_tokens_minus(weir_tokens_product(weight, WEIR_TOKEN)));
	b->started = 1;
	return true;
}

/* Takes one token and says true, or takes nothing. */
WEIR_INLINE bool weir_bucket_take(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns)
{
	return weir_bucket_take_weight(b, h, now_ns, 1);
}

/* Undoes one weir_bucket_take_weight() that said true, also when others took in between: as if it had never been. */
WEIR_INLINE void weir_bucket_give_back(struct weir_bucket *b, const struct weir_rate_history *h, __u32 weight)
{
	b->tokens = weir_tokens_min(weir_tokens_sum(b->tokens, weir_tokens_product(weight, WEIR_TOKEN)),
				    weir_tokens_product(h->rates[0].burst, WEIR_TOKEN));
}

/* How long a rate takes to make good what a bucket is below zero, in steps of 2^16 ns and rounded up. */
WEIR_INLINE __u64 weir_rate_repays_ns(__u64 per_ns, struct weir_tokens tokens)
{
	struct weir_tokens owed = weir_tokens_minus(tokens);
	__u64 steps;

	if (owed.high >> 16)
		return WEIR_NEVER_NS;
	steps = ((__u64)owed.high << 48 | owed.low >> 16) / per_ns + 1;
	return steps >> 47 ? WEIR_NEVER_NS : steps << 16;
}

/*
 * The shortest time from `now_ns` after which weir_bucket_take() says true; WEIR_NEVER_NS: at these rates, never. A bucket
 * that owes many tokens is told up to 66 us more.
 */
WEIR_INLINE __u64 weir_bucket_wait_ns(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns)
{
	const struct weir_rate *newest = &h->rates[0];
	struct weir_tokens tokens = weir_bucket_tokens(b, h, now_ns);
	__u64 missing = weir_tokens_missing(tokens), wait_ns;

	if (!newest->burst)
		return WEIR_NEVER_NS;
	if (!missing || missing < newest->per_ns)
		return 0;
	if (!newest->per_ns)
		return WEIR_NEVER_NS;
	wait_ns = missing / newest->per_ns;
	if (missing == WEIR_MISSING_MAX) {
		wait_ns = weir_rate_repays_ns(newest->per_ns, tokens);
		if (wait_ns == WEIR_NEVER_NS)
			return WEIR_NEVER_NS;
		wait_ns += WEIR_TOKEN / newest->per_ns;
	}
	return wait_ns + (weir_bucket_clock(b, h, now_ns) - now_ns);
}

/*
 * The same for who is ready to wait, and for who asks while others do: behind those whose instants are still to come.
 * weir_bucket_reserve() then takes `weight` tokens as of that instant, at which the bucket's clock stands from then on: each
 * is let in as if it had asked only then.
 */
WEIR_INLINE __u64 weir_bucket_turn_ns(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns)
{
	__u64 ahead_ns = b->reserved && b->last_ns > now_ns ? b->last_ns - now_ns : 0;
	__u64 wait_ns = weir_bucket_wait_ns(b, h, now_ns + ahead_ns);

	return wait_ns == WEIR_NEVER_NS ? wait_ns : ahead_ns + wait_ns;
}

/* turn_ns: what weir_bucket_turn_ns() has just said, and not WEIR_NEVER_NS. */
WEIR_INLINE void weir_bucket_reserve(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns,
				     __u64 turn_ns, __u32 weight)
{
	weir_bucket_take_weight(b, h, now_ns + turn_ns, weight);
	b->reserved = !!turn_ns;
}

/* Whole seconds for a Retry-After header: rounded up, 1 to WEIR_RETRY_MAX_S. */
WEIR_INLINE __u32 weir_retry_after_s(__u64 wait_ns)
{
	if (wait_ns <= WEIR_NS_PER_S)
		return 1;
	if (wait_ns > (WEIR_RETRY_MAX_S - 1) * WEIR_NS_PER_S)
		return WEIR_RETRY_MAX_S;
	return (wait_ns + WEIR_NS_PER_S - 1) / WEIR_NS_PER_S;
}

#endif
