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
 * the same time twice. CPUs read the clock before they ask, so here an earlier time counts as no time.
 *
 * A taker may also weigh more than one token: it is let in by one whole token and takes its weight, so that the bucket
 * is below zero by the rest and nobody is let in before that is gained again. What passes in the long run is still what
 * the rate allows.
 *
 * No lock: a bucket is one word, changed by compare-and-swap. It is the *mark*: the tokens that were ever taken, counted
 * like the volume that the rate has gained since it came into force. The tokens there are now are volume - mark, at most
 * the burst. So time moves no word, a take is an addition, and a refund a subtraction; only a bucket that has run full
 * gets a new mark. The lowest bits are the generation of the rate under which it was written, the others the mark modulo
 * 2^56, as finely divided as fits (weir_rate_divide). What is finer stands beside the word. It is written after it, and counts
 * only where the two agree, so a race may lose it: less than 2 ns of gain for a bucket that has just run full.
 */
#ifndef WEIR_LIMIT_BUCKET_H
#define WEIR_LIMIT_BUCKET_H

#include "weir/limit/rate.h"

#define WEIR_RETRY_MAX_S 3600U	     /* the longest Retry-After told; also when no token will ever come */
#define WEIR_LONGEST_NS (1ULL << 63) /* 292 years: what takes longer never comes */
#define WEIR_BUCKET_TRIES 8	     /* of a compare-and-swap; then it is contended */

/* The two counters are the caller's, who alone knows what became of the request: no function here touches them. */
struct weir_bucket {
	__u64 word;    /* the mark and its generation; 0: no token was ever taken, full */
	__u64 fine;    /* the mark behind its point, all 64 bits of it */
	__u64 seen_ns; /* the latest instant at which a token was asked for and taken */
	__u64 passed;  /* requests that took a token and kept it */
	__u64 shed;    /* requests refused by this bucket */
	__u64 watched; /* those that it would have refused, were it not for a dry run */
};
WEIR_ASSERT_SIZE(struct weir_bucket, 48);

/* A bucket as it was read, at an instant. */
struct weir_level {
	__u64 word;
	__u64 clock_ns;		   /* the instant at which it counts as asked */
	struct weir_tokens volume; /* gained until then under the rate in force */
	struct weir_tokens tokens;
};

/* What is asked of a bucket, and what it says. In memory of the caller's, whose stack may be small. */
struct weir_ask {
	__u64 now_ns;
	__u64 longest_ns; /* that may be waited; below WEIR_NEVER_NS */
	__u64 wait_ns;	  /* after which it admits; where tokens were taken: after which they are there */
	__u32 weight;
	__u32 look; /* nothing is to be taken */
	struct weir_level level;
};

enum weir_taken {
	WEIR_TAKEN,
	WEIR_REFUSED,
	WEIR_LOST_RACE, /* someone else changed the bucket meanwhile: to be tried again */
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

	return weir_tokens_difference(coarse, (struct weir_tokens){ .low = agree ? fine << bits >> bits : 0 });
}

/* When a bucket was last used under the rate, no later than at `at_ns`. */
WEIR_INLINE __u64 weir_rate_used_ns(const struct weir_rate *rate, __u64 seen_ns, __u64 at_ns)
{
	__u64 used_ns = seen_ns < at_ns ? seen_ns : at_ns;

	return used_ns > rate->since_ns ? used_ns : rate->since_ns;
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

/* The instant at which a bucket is asked: never before it was last used, nor before the rate in force began. */
WEIR_INLINE __u64 weir_bucket_clock(const struct weir_bucket *b, __u64 word, const struct weir_rate_history *h,
				    __u64 now_ns)
{
	__u64 seen_ns = word ? WEIR_FRESH(b->seen_ns) : 0;
	__u64 earliest_ns = seen_ns > h->rates[0].since_ns ? seen_ns : h->rates[0].since_ns;

	return now_ns > earliest_ns ? now_ns : earliest_ns;
}

/* Was it last used under a rate that is not in force any more? */
WEIR_INLINE bool weir_bucket_is_stale(__u64 word, const struct weir_rate_history *h)
{
	return word && (word & WEIR_GENERATIONS) != h->rates[0].generation;
}

/* Of a bucket that is not stale, or is to be taken as one of which nothing is known. */
WEIR_INLINE void weir_bucket_level_now(const struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns,
				       struct weir_level *level)
{
	const struct weir_rate *rate = &h->rates[0];
	__u64 word = WEIR_FRESH(b->word), fine = WEIR_FRESH(b->fine);

	level->word = word;
	level->clock_ns = weir_bucket_clock(b, word, h, now_ns);
	level->volume = weir_rate_gain(rate, level->clock_ns - rate->since_ns);
	level->tokens = weir_tokens_whole(rate->burst);
	if (word)
		level->tokens = weir_tokens_min(
			weir_mark_tokens_at(word, fine, rate, WEIR_FRESH(b->seen_ns), level->clock_ns), level->tokens);
}

/*
 * Of a bucket that was last used under an earlier rate: what it had when this rate ended. For one rate after the other, the oldest
 * first. Of a bucket that was last used before the history begins nothing is known: it is taken as empty then.
 */
WEIR_INLINE void weir_level_settle(struct weir_level *level, const struct weir_bucket *b, const struct weir_rate *rate,
				   __u64 until_ns)
{
	__u64 from_ns = rate->since_ns;

	if (!rate->generation)
		return;
	if (rate->generation == (level->word & WEIR_GENERATIONS)) {
		from_ns = weir_rate_used_ns(rate, WEIR_FRESH(b->seen_ns), until_ns);
		level->tokens = weir_mark_tokens(level->word, WEIR_FRESH(b->fine),
						 weir_rate_gain(rate, from_ns - rate->since_ns), rate);
	}
	level->tokens = weir_tokens_min(weir_tokens_sum(level->tokens, weir_rate_gain(rate, until_ns - from_ns)),
					weir_tokens_whole(rate->burst));
}

/* What has come under the rate in force is the last. */
WEIR_INLINE void weir_level_settled(struct weir_level *level, const struct weir_rate *rate)
{
	level->tokens = weir_tokens_min(weir_tokens_sum(level->tokens, level->volume), weir_tokens_whole(rate->burst));
}

WEIR_INLINE void weir_bucket_level(const struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns,
				   struct weir_level *level)
{
	weir_bucket_level_now(b, h, now_ns, level);
	if (!weir_bucket_is_stale(level->word, h))
		return;
	level->tokens = (struct weir_tokens){};
	for (int i = WEIR_RATES - 1; i > 0; i--)
		weir_level_settle(level, b, &h->rates[i], h->rates[i - 1].since_ns);
	weir_level_settled(level, &h->rates[0]);
}

/* The tokens a bucket has at `now_ns`. */
WEIR_INLINE struct weir_tokens weir_bucket_tokens(const struct weir_bucket *b, const struct weir_rate_history *h,
						  __u64 now_ns)
{
	struct weir_level level;

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
 * it, and then four at a time, as a rate is below 2^60 units a ns.
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
	struct weir_level level;

	weir_bucket_level(b, h, now_ns, &level);
	return weir_level_turn_ns(&level, &h->rates[0], now_ns);
}

/* --- changes */

/* The most that a bucket may owe. */
WEIR_INLINE __u64 weir_rate_owed_max(const struct weir_rate *rate)
{
	return 1ULL << (WEIR_MARK_BITS - 3) >> (rate->fraction & 63);
}

/* Writes the mark of so many tokens, or of the most that can be owed, at the level's clock. False: someone else was faster. */
WEIR_INLINE bool weir_bucket_swap(struct weir_bucket *b, const struct weir_level *level, const struct weir_rate *rate,
				  struct weir_tokens tokens)
{
	struct weir_tokens least = { .high = -(__s64)(2 * weir_rate_owed_max(rate)) };
	struct weir_tokens kept = weir_tokens_less(tokens, least) ? least : tokens;
	struct weir_tokens mark = weir_tokens_difference(level->volume, kept);
	__u64 word = weir_mark_word(mark, rate);

	if (__sync_val_compare_and_swap(&b->word, level->word, word) != level->word)
		return false;
	if (WEIR_FRESH(b->fine) != mark.low)
		b->fine = mark.low;
	return true;
}

/*
 * One try to bring a bucket that was last used under an earlier rate to the rate in force, also if it will only be refused: else
 * the history might forget that rate before the bucket has a whole token again.
 */
WEIR_INLINE bool weir_bucket_settle_try(struct weir_bucket *b, const struct weir_rate_history *h,
					struct weir_level *level)
{
	weir_bucket_level(b, h, 0, level);
	return weir_bucket_swap(b, level, &h->rates[0], level->tokens);
}

/* As much of a weight as counts. */
WEIR_INLINE __u64 weir_weight_counted(const struct weir_rate *rate, __u32 weight)
{
	__u64 most = weir_rate_owed_max(rate);

	return weight < most ? weight : most;
}

/* Takes the weight, if nobody has changed the bucket since its level was read. */
WEIR_INLINE enum weir_taken weir_bucket_take_level(struct weir_bucket *b, const struct weir_rate *rate,
						   const struct weir_level *level, __u32 weight)
{
	__u64 counted = weir_weight_counted(rate, weight);

	if (!weir_bucket_swap(b, level, rate, weir_tokens_difference(level->tokens, weir_tokens_whole(counted))))
		return WEIR_LOST_RACE;
	if (WEIR_FRESH(b->seen_ns) < level->clock_ns)
		b->seen_ns = level->clock_ns;
	return WEIR_TAKEN;
}

/* After how long there is a token, at the level that was seen. */
WEIR_INLINE void weir_ask_wait(const struct weir_rate_history *h, struct weir_ask *ask)
{
	const struct weir_rate *rate = &h->rates[0];

	ask->wait_ns = WEIR_NEVER_NS;
	/* Who waits without end might owe more than a mark can tell. */
	if (ask->level.tokens.high >= -(__s64)weir_rate_owed_max(rate))
		ask->wait_ns = weir_level_turn_ns(&ask->level, rate, ask->now_ns);
}

/*
 * Takes the tokens as they were seen. Who has to wait, and no longer than ask->longest_ns, stands behind those who took before, and
 * is let in after ask->wait_ns. WEIR_REFUSED: it would take longer, or ask->look says to look only, and nothing was taken.
 */
WEIR_INLINE enum weir_taken weir_bucket_take_seen(struct weir_bucket *b, const struct weir_rate_history *h,
						  const struct weir_ask *ask)
{
	if (ask->look || ask->wait_ns > ask->longest_ns)
		return WEIR_REFUSED;
	return weir_bucket_take_level(b, &h->rates[0], &ask->level, ask->weight);
}

/* One try. bpf/buckets.h has the same steps. */
WEIR_INLINE enum weir_taken weir_bucket_try(struct weir_bucket *b, const struct weir_rate_history *h,
					    struct weir_ask *ask)
{
	if (weir_bucket_is_stale(WEIR_FRESH(b->word), h))
		weir_bucket_settle_try(b, h, &ask->level);
	weir_bucket_level_now(b, h, ask->now_ns, &ask->level);
	if (weir_bucket_is_stale(ask->level.word, h))
		return WEIR_LOST_RACE;
	weir_ask_wait(h, ask);
	return weir_bucket_take_seen(b, h, ask);
}

/* Tries a few times. WEIR_LOST_RACE: it is contended, and nothing was taken. */
WEIR_INLINE enum weir_taken weir_bucket_ask(struct weir_bucket *b, const struct weir_rate_history *h,
					    struct weir_ask *ask)
{
	enum weir_taken taken = WEIR_LOST_RACE;

	for (int i = 0; i < WEIR_BUCKET_TRIES && taken == WEIR_LOST_RACE; i++)
		taken = weir_bucket_try(b, h, ask);
	return taken;
}

/* Takes `weight` tokens and says true if there is one, or takes nothing. */
WEIR_INLINE bool weir_bucket_take_weight(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns,
					 __u32 weight)
{
	struct weir_ask ask = { .now_ns = now_ns, .weight = weight };

	return weir_bucket_ask(b, h, &ask) == WEIR_TAKEN;
}

/* Takes one token and says true, or takes nothing. */
WEIR_INLINE bool weir_bucket_take(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns)
{
	return weir_bucket_take_weight(b, h, now_ns, 1);
}

/* The rate under which the word was written; NULL: the history has it no more. */
WEIR_INLINE const struct weir_rate *weir_bucket_rate(__u64 word, const struct weir_rate_history *h)
{
	for (int i = 0; i < WEIR_RATES; i++)
		if (h->rates[i].generation == (word & WEIR_GENERATIONS))
			return &h->rates[i];
	return NULL;
}

/*
 * One try to undo a take of `weight`, also when others took in between, or the rate was changed: as if it had never been, except
 * that a bucket which has run full since is not fuller for it. False: to be tried again.
 */
WEIR_INLINE bool weir_bucket_give_back_try(struct weir_bucket *b, const struct weir_rate_history *h, __u32 weight)
{
	struct weir_level level = { .word = WEIR_FRESH(b->word) };
	const struct weir_rate *rate = level.word ? weir_bucket_rate(level.word, h) : NULL;
	__u64 fine = WEIR_FRESH(b->fine), used_ns = WEIR_FRESH(b->seen_ns);

	if (!rate)
		return true;
	used_ns = used_ns > rate->since_ns ? used_ns - rate->since_ns : 0;
	level.volume = weir_rate_gain(rate, used_ns);
	level.tokens = weir_mark_tokens(level.word, fine, level.volume, rate);
	level.tokens.high += weir_weight_counted(rate, weight);
	return weir_bucket_swap(b, &level, rate, weir_tokens_min(level.tokens, weir_tokens_whole(rate->burst)));
}

/* False: it is contended, and the tokens are lost. */
WEIR_INLINE bool weir_bucket_give_back(struct weir_bucket *b, const struct weir_rate_history *h, __u32 weight)
{
	for (int i = 0; i < WEIR_BUCKET_TRIES; i++) {
		if (weir_bucket_give_back_try(b, h, weight))
			return true;
	}
	return false;
}

/*
 * One try to hand a bucket's tokens, at the level it has under one history, over to another, whose generations mean other rates.
 * False: to be tried again.
 */
WEIR_INLINE bool weir_bucket_hand_over_try(struct weir_bucket *b, const struct weir_rate_history *to,
					   struct weir_level *level)
{
	const struct weir_rate *rate = &to->rates[0];

	if (!level->word)
		return true;
	if (level->clock_ns < rate->since_ns)
		level->clock_ns = rate->since_ns;
	level->volume = weir_rate_gain(rate, level->clock_ns - rate->since_ns);
	return weir_bucket_swap(b, level, rate, weir_tokens_min(level->tokens, weir_tokens_whole(rate->burst)));
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
