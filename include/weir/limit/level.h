/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What there is in a token bucket (bucket.h) at an instant. Nothing here changes one.
 *
 * No lock: a bucket is one word, changed by compare-and-swap. It is the *mark*: the tokens that were ever taken, counted
 * like the volume that the rate has gained since it came into force. The tokens there are now are volume - mark, at most
 * the burst. So time moves no word, a take is an addition, and a refund a subtraction; only a bucket that has run full
 * gets a new mark. The lowest bits are the generation of the rate under which it was written, the others the mark modulo
 * 2^56, as finely divided as fits (weir_rate_divide). What is finer stands beside the word. It is written after it, and counts
 * only where the two agree, so a race may lose it: less than 2 ns of gain for a bucket that has just run full.
 */
#ifndef WEIR_LIMIT_LEVEL_H
#define WEIR_LIMIT_LEVEL_H

#include "weir/limit/owned.h"
#include "weir/limit/rate.h"

#define WEIR_LONGEST_NS (1ULL << 63) /* 292 years: what takes longer never comes */

/* The counters are the caller's, who alone knows what became of the request: no function here touches them. */
struct weir_bucket {
	__u64 word; /* the mark and its generation, as its subject writes it (owned.h); 0: no token was ever taken, full */
	__u64 fine;    /* the mark behind its point, all 64 bits of it */
	__u64 seen_ns; /* the latest instant at which a token was asked for and taken */
	__u64 subject; /* whose it is; 0, where all share one */
	__u64 passed;  /* requests that took a token and kept it */
	__u64 shed;    /* requests refused by this bucket */
	__u64 watched; /* those that it would have refused, were it not for a dry run */
};
WEIR_ASSERT_SIZE(struct weir_bucket, 56);

/* A bucket as it was read, at an instant. */
struct weir_level {
	__u64 subject;		   /* whose it is to be: given */
	__u64 word, fine, seen_ns; /* as in the bucket, of this subject's */
	__u64 clock_ns;		   /* the instant at which it counts as asked */
	struct weir_tokens volume; /* gained until then under the rate in force */
	struct weir_tokens tokens;
};

/* --- words */

WEIR_INLINE __u64 weir_mark_word(struct weir_tokens mark, const struct weir_rate *rate)
{
	__u32 bits = rate->fraction & 63;
	__u64 units = (__u64)mark.high << bits | mark.low >> (64 - bits);

	return units << WEIR_GENERATION_BITS | rate->generation;
}

/*
 * The tokens there are when so much was gained: volume - mark, of which the word has the difference. There must be no more
 * of them, nor fewer, than a mark tells apart.
 */
WEIR_INLINE struct weir_tokens weir_mark_tokens(__u64 word, __u64 fine, struct weir_tokens volume,
						const struct weir_rate *rate)
{
	__s64 units = (__s64)(weir_mark_word(volume, rate) - word) >> WEIR_GENERATION_BITS;
	__u32 bits = rate->fraction & 63;
	bool agree = (fine >> (64 - bits) ^ word >> WEIR_GENERATION_BITS) << (64 - bits) == 0;
	struct weir_tokens coarse = {
		.high = units >> bits,
		.low = (__u64)units << (64 - bits) | volume.low << bits >> bits,
	};

	fine = WEIR_MOSTLY(fine << bits >> bits, !agree, 0);
	return weir_tokens_difference(coarse, (struct weir_tokens){ .low = fine });
}

/* When a bucket was last used under the rate, no later than at `at_ns`. */
WEIR_INLINE __u64 weir_rate_used_ns(const struct weir_rate *rate, __u64 seen_ns, __u64 at_ns)
{
	__u64 used_ns = WEIR_MOSTLY(seen_ns, seen_ns > at_ns, at_ns);

	return WEIR_MOSTLY(used_ns, used_ns < rate->since_ns, rate->since_ns);
}

/*
 * The tokens at `at_ns`, which may be years after the bucket was last used: what there was then, and what it has gained since.
 * Who sees a new mark beside an older seen_ns finds the first less by as much as the second is more; only after WEIR_IDLE_NS
 * does that not come out even, and of two who ask at the same instant the second may miss what the first has taken.
 */
WEIR_INLINE struct weir_tokens weir_mark_tokens_at(__u64 word, __u64 fine, const struct weir_rate *rate, __u64 seen_ns,
						   __u64 at_ns)
{
	__u64 used_ns = weir_rate_used_ns(rate, seen_ns, at_ns);
	struct weir_tokens volume = weir_rate_gain(rate, used_ns - rate->since_ns);

	return weir_tokens_sum(weir_mark_tokens(word, fine, volume, rate),
			       weir_tokens_difference(weir_rate_gain(rate, at_ns - rate->since_ns), volume));
}

/* --- levels */

/* Was it last used under a rate that is not in force any more? The word may be as it stands in memory, too. */
WEIR_INLINE bool weir_bucket_is_stale(__u64 word, const struct weir_rate_history *h)
{
	return word & WEIR_GENERATIONS && (word & WEIR_GENERATIONS) != h->rates[0].generation;
}

/* The rate under which the word was written; NULL: the history has it no more, or not yet. */
WEIR_INLINE const struct weir_rate *weir_bucket_rate(__u64 word, const struct weir_rate_history *h)
{
	for (int i = 0; i < WEIR_RATES; i++)
		if (h->rates[i].generation == (word & WEIR_GENERATIONS))
			return &h->rates[i];
	return NULL;
}

/* False: it is not level->subject's. */
WEIR_INLINE bool weir_bucket_read(const struct weir_bucket *b, struct weir_level *level)
{
	bool his = weir_owned_read(&b->word, &b->subject, level->subject, WEIR_GENERATIONS, &level->word);

	level->fine = WEIR_FRESH(b->fine);
	level->seen_ns = level->word ? WEIR_FRESH(b->seen_ns) : 0;
	return his;
}

/* The instant at which a bucket is asked: never before it was last used, nor before the rate in force began. */
WEIR_INLINE void weir_level_at(struct weir_level *level, const struct weir_rate *rate, __u64 now_ns)
{
	__u64 earliest_ns = WEIR_MOSTLY(level->seen_ns, level->seen_ns < rate->since_ns, rate->since_ns);

	level->clock_ns = WEIR_MOSTLY(now_ns, now_ns < earliest_ns, earliest_ns);
	level->volume = weir_rate_gain(rate, level->clock_ns - rate->since_ns);
}

/* The tokens at the bucket's clock. The bucket is not stale, or it is taken as a new one. */
WEIR_INLINE void weir_level_now(struct weir_level *level, const struct weir_rate *rate)
{
	level->tokens = weir_tokens_whole(rate->burst);
	if (level->word)
		level->tokens = weir_tokens_min(weir_mark_tokens_at(level->word, level->fine, rate, level->seen_ns,
								    level->clock_ns),
						level->tokens);
}

/* The same, if the bucket was used so lately that its mark cannot have come round. Takes one product less. False: it was not. */
WEIR_INLINE bool weir_level_recent(struct weir_level *level, const struct weir_rate *rate)
{
	if (level->clock_ns - weir_rate_used_ns(rate, level->seen_ns, level->clock_ns) > WEIR_IDLE_NS)
		return false;
	level->tokens = weir_tokens_at_most(weir_mark_tokens(level->word, level->fine, level->volume, rate),
					    rate->burst);
	return true;
}

/*
 * Of a bucket that was last used under an earlier rate: what it had when this rate ended. For one rate after the other, the oldest
 * first. Of a bucket that was last used before the history begins nothing is known: it is taken as empty then.
 */
WEIR_INLINE void weir_level_settle(struct weir_level *level, const struct weir_rate *rate, __u64 until_ns)
{
	__u64 from_ns = rate->since_ns;

	if (!rate->generation)
		return;
	if (rate->generation == (level->word & WEIR_GENERATIONS)) {
		from_ns = weir_rate_used_ns(rate, level->seen_ns, until_ns);
		level->tokens = weir_mark_tokens(level->word, level->fine,
						 weir_rate_gain(rate, from_ns - rate->since_ns), rate);
	}
	level->tokens = weir_tokens_min(weir_tokens_sum(level->tokens, weir_rate_gain(rate, until_ns - from_ns)),
					weir_tokens_whole(rate->burst));
}

/* The last step of settling: what was gained under the rate in force. */
WEIR_INLINE void weir_level_settled(struct weir_level *level, const struct weir_rate *rate)
{
	level->tokens = weir_tokens_min(weir_tokens_sum(level->tokens, level->volume), weir_tokens_whole(rate->burst));
}

/* False: it is not level->subject's. */
WEIR_INLINE bool weir_bucket_level(const struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns,
				   struct weir_level *level)
{
	if (!weir_bucket_read(b, level))
		return false;
	weir_level_at(level, &h->rates[0], now_ns);
	weir_level_now(level, &h->rates[0]);
	if (!weir_bucket_is_stale(level->word, h))
		return true;
	level->tokens = (struct weir_tokens){};
	for (int i = WEIR_RATES - 1; i > 0; i--)
		weir_level_settle(level, &h->rates[i], h->rates[i - 1].since_ns);
	weir_level_settled(level, &h->rates[0]);
	return true;
}

/* The tokens a bucket has at `now_ns`. */
WEIR_INLINE struct weir_tokens weir_bucket_tokens(const struct weir_bucket *b, const struct weir_rate_history *h,
						  __u64 now_ns)
{
	struct weir_level level = { .subject = b->subject };

	weir_bucket_level(b, h, now_ns, &level);
	return level.tokens;
}

/* Is there a whole token after so many ns, or less than the gain of 1 ns missing for it? */
WEIR_INLINE bool weir_level_admits(const struct weir_level *level, const struct weir_rate *rate, __u64 after_ns)
{
	struct weir_tokens later = weir_rate_gain(rate, level->clock_ns - rate->since_ns + after_ns);
	struct weir_tokens gained = weir_tokens_difference(later, level->volume);
	struct weir_tokens missing = weir_tokens_missing(weir_tokens_sum(level->tokens, gained));

	return missing.high < 0 || !(missing.high | missing.low) || weir_tokens_less(missing, weir_rate_gain(rate, 1));
}

/*
 * The time in which the rate gains so much, with an error of 1 ns. What does not fit in a word is divided as by hand: 64 bits of
 * it, and then four at a time, as a rate is below 2^60 units a ns. More than 2^80 units, some 1.2 million tokens, are never gained: so
 * many is the most that anybody stands behind, at any rate. Below 20,000 tokens a second the longest wait is over before.
 */
WEIR_INLINE __u64 weir_rate_gains_ns(const struct weir_rate *rate, struct weir_tokens tokens)
{
	struct weir_tokens units = weir_product(tokens.high, WEIR_TOKEN);
	__u64 top, ns, rest;

	units = weir_tokens_sum(units, (struct weir_tokens){ .low = weir_product(tokens.low, WEIR_TOKEN).high });
	if (!units.high && units.low / rate->per_ns < WEIR_LONGEST_NS)
		return units.low / rate->per_ns;
	if (units.high >> 16)
		return WEIR_NEVER_NS;
	top = (__u64)units.high << 48 | units.low >> 16;
	ns = top / rate->per_ns;
	rest = top % rate->per_ns;
	if (ns >= WEIR_LONGEST_NS >> 16)
		return WEIR_NEVER_NS;
	for (int shift = 12; shift >= 0; shift -= 4) {
		rest = rest << 4 | (units.low >> shift & 15);
		ns = ns << 4 | rest / rate->per_ns;
		rest %= rate->per_ns;
	}
	return ns;
}

/* The shortest time from the level's clock after which it admits; WEIR_NEVER_NS: at this rate, never. */
WEIR_INLINE __u64 weir_level_wait_ns(const struct weir_level *level, const struct weir_rate *rate)
{
	__u64 wait_ns;

	if (!rate->burst)
		return WEIR_NEVER_NS;
	if (weir_level_admits(level, rate, 0))
		return 0;
	if (!rate->per_ns)
		return WEIR_NEVER_NS;
	wait_ns = weir_rate_gains_ns(rate, weir_tokens_missing(level->tokens));
	if (wait_ns == WEIR_NEVER_NS)
		return wait_ns;
	wait_ns -= !!wait_ns;
	for (int i = 0; i < 2 && !weir_level_admits(level, rate, wait_ns); i++)
		wait_ns++;
	return wait_ns;
}

/* The same from now_ns, which may be before the clock: then nobody who has to wait is let in before it. */
WEIR_INLINE __u64 weir_level_turn_ns(const struct weir_level *level, const struct weir_rate *rate, __u64 now_ns)
{
	__u64 wait_ns = weir_level_wait_ns(level, rate);

	return !wait_ns || wait_ns == WEIR_NEVER_NS ? wait_ns : wait_ns + (level->clock_ns - now_ns);
}

/* The shortest time from `now_ns` after which a token may be taken; WEIR_NEVER_NS: at these rates, never. */
WEIR_INLINE __u64 weir_bucket_wait_ns(const struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns)
{
	struct weir_level level = { .subject = b->subject };

	weir_bucket_level(b, h, now_ns, &level);
	return weir_level_turn_ns(&level, &h->rates[0], now_ns);
}

#endif
