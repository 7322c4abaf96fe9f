/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rates, and what they gain in a time. A rate is given in 1e-18 tokens a nanosecond; beside it stands what it is as a
 * binary fraction, so that a gain is one product, which is off by less than one part in 2^63.
 *
 * A limit keeps the rates it had: a bucket that was last used three changes ago is brought up to date at the rates that
 * held then. A change keeps the tokens a bucket has, cut down to the new burst.
 */
#ifndef WEIR_LIMIT_RATE_H
#define WEIR_LIMIT_RATE_H

#include "weir/limit/tokens.h"

#define WEIR_TOKEN 1000000000000000000ULL /* units of one token */
#define WEIR_QPS 1000000000ULL		  /* units a ns of one token a second */
#define WEIR_BURST_MAX 1000000000U	  /* tokens */
#define WEIR_QPS_MAX 1000000000U	  /* at most one token a ns, so that a bucket never owes a whole one */
#define WEIR_RATES 4

#define WEIR_NEVER_NS (~0ULL)
#define WEIR_RETRY_MAX_S 3600U /* the longest Retry-After told; also when no token will ever come */

/* Of a bucket's word (bucket.h): how it is divided. */
#define WEIR_GENERATION_BITS 8
#define WEIR_GENERATIONS ((1U << WEIR_GENERATION_BITS) - 1) /* 1 and up; 0: no rate */
#define WEIR_MARK_BITS (64 - WEIR_GENERATION_BITS)
#define WEIR_IDLE_NS \
	(1ULL << 53) /* 104 days: so long a bucket may be idle, and yet two who ask at once see each other */
#define WEIR_OWED_MIN (1ULL << 23) /* tokens that a bucket may at least gain, keep or owe */

/* Made by weir_rate_made(). All zero: there is none. */
struct weir_rate {
	__u64 per_ns;	 /* units gained per ns: qps * WEIR_QPS */
	__u64 burst;	 /* whole tokens */
	__u64 since_ns;	 /* when it came into force (CLOCK_MONOTONIC); 0: since ever */
	__u64 factor;	 /* tokens a ns, times 2^scale */
	__u8 scale;	 /* so that the factor has its highest bit */
	__u8 fraction;	 /* bits behind the point of a mark under this rate */
	__u8 generation; /* differs from those of the rates before it */
	__u8 pad[5];
};
WEIR_ASSERT_SIZE(struct weir_rate, 40);

/* Newest first. What came before the oldest rate is taken as no gain at all. */
struct weir_rate_history {
	struct weir_rate rates[WEIR_RATES];
};
WEIR_ASSERT_SIZE(struct weir_rate_history, 160);

/* What the rate gains in so many ns, less than 2^63. */
WEIR_INLINE struct weir_tokens weir_rate_gain(const struct weir_rate *rate, __u64 ns)
{
	struct weir_tokens gain = weir_product(ns, rate->factor);
	__u32 shift = (rate->scale - 64) & 63;

	if (WEIR_UNLIKELY(rate->scale < 64)) /* more than a token a nanosecond */
		return weir_tokens_sum(gain, gain);
	return (struct weir_tokens){
		.high = (__u64)gain.high >> shift,
		.low = (__u64)gain.high << 1 << (63 - shift) | gain.low >> shift,
	};
}

/* --- made where limits are set */

WEIR_INLINE void weir_rate_scale(struct weir_rate *rate)
{
	__u64 rest = rate->per_ns % WEIR_TOKEN;

	rate->factor = rate->per_ns / WEIR_TOKEN;
	rate->scale = rate->per_ns ? 0 : 64;
	while (rate->per_ns && !(rate->factor >> 63)) {
		rest <<= 1;
		rate->factor = rate->factor << 1 | (rest >= WEIR_TOKEN);
		rest -= rest >= WEIR_TOKEN ? WEIR_TOKEN : 0;
		rate->scale++;
	}
}

/* A mark tells apart all amounts between what a bucket may owe and what it gains while it is idle. */
WEIR_INLINE void weir_rate_divide(struct weir_rate *rate)
{
	__u64 gained = weir_rate_gain(rate, WEIR_IDLE_NS).high;
	__u64 most = 2 * rate->burst + WEIR_OWED_MIN;

	most = gained > most ? gained : most;
	rate->fraction = 1;
	while (most << (rate->fraction + 1) < 1ULL << (WEIR_MARK_BITS - 1))
		rate->fraction++;
}

WEIR_INLINE struct weir_rate weir_rate_made(__u64 per_ns, __u64 burst, __u64 since_ns, __u32 generation)
{
	struct weir_rate rate = { .per_ns = per_ns, .burst = burst, .since_ns = since_ns, .generation = generation };

	weir_rate_scale(&rate);
	weir_rate_divide(&rate);
	return rate;
}

/* One rate that was in force since ever. The generation tells it from others that may have stood in its place. */
WEIR_INLINE struct weir_rate_history weir_rate_always(__u64 per_ns, __u64 burst)
{
	__u32 generation = 1 + (per_ns * 31 + burst) % WEIR_GENERATIONS;
	struct weir_rate_history h = {};

	h.rates[0] = weir_rate_made(per_ns, burst, 0, generation);
	return h;
}

/*
 * Puts a new rate in front and forgets the oldest. No two changes share an instant, so that each was in force for a
 * while; setting what is in force already is no change.
 */
WEIR_INLINE void weir_rate_history_push(struct weir_rate_history *h, __u64 per_ns, __u64 burst, __u64 now_ns)
{
	const struct weir_rate *newest = &h->rates[0];
	__u64 earliest = newest->since_ns + 1;
	__u32 generation = newest->generation % WEIR_GENERATIONS + 1;

	if (newest->generation && newest->per_ns == per_ns && newest->burst == burst)
		return;
	for (int i = WEIR_RATES - 1; i > 0; i--)
		h->rates[i] = h->rates[i - 1];
	h->rates[0] = weir_rate_made(per_ns, burst, now_ns > earliest ? now_ns : earliest, generation);
}

#endif
