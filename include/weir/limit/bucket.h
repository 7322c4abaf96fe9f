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
 * How a bucket is kept without a lock: level.h.
 */
#ifndef WEIR_LIMIT_BUCKET_H
#define WEIR_LIMIT_BUCKET_H

#include "weir/limit/level.h"

#define WEIR_BUCKET_TRIES 8 /* of a compare-and-swap; then it is contended */

/*
 * A question to a bucket, and its answer. The caller provides the memory, because its stack may be small. level.subject says
 * whose bucket it has to be.
 */
struct weir_ask {
	__u64 now_ns;
	__u64 longest_ns; /* that may be waited; below WEIR_NEVER_NS */
	__u64 wait_ns;	  /* after which it admits; where tokens were taken: after which they are there */
	__u32 weight;
	__u32 look;	 /* nothing is to be taken */
	__u64 forgotten; /* a word whose rate was looked up in vain; 0 before the first try */
	struct weir_level level;
};

enum weir_taken {
	WEIR_TAKEN,
	WEIR_REFUSED,
	WEIR_LOST_RACE, /* someone else changed the bucket meanwhile: to be tried again */
};

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
	struct weir_tokens kept = weir_tokens_at_least(tokens, -(__s64)(2 * weir_rate_owed_max(rate)));
	struct weir_tokens mark = weir_tokens_difference(level->volume, kept);
	__u64 word = weir_mark_word(mark, rate);

	if (WEIR_UNLIKELY(!weir_owned_swap(&b->word, level->subject, level->word, word)))
		return false;
	if (WEIR_FRESH(b->fine) != mark.low)
		b->fine = mark.low;
	return true;
}

/* The part of a weight that counts: no more than a bucket may owe. */
WEIR_INLINE __u64 weir_weight_counted(const struct weir_rate *rate, __u32 weight)
{
	__u64 most = weir_rate_owed_max(rate);

	return WEIR_MOSTLY(weight, weight > most, most);
}

/* Takes the weight, if nobody has changed the bucket since its level was read. */
WEIR_INLINE enum weir_taken weir_bucket_take_level(struct weir_bucket *b, const struct weir_rate *rate,
						   const struct weir_level *level, __u32 weight)
{
	__u64 counted = weir_weight_counted(rate, weight);

	if (WEIR_UNLIKELY(!weir_bucket_swap(b, level, rate,
					    weir_tokens_difference(level->tokens, weir_tokens_whole(counted)))))
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

/*
 * May a bucket be brought up to date that was last used under another rate? One whose rate the history has not may have been written
 * under a newer rate: its caller looks the rates up again, and only if they do not have it then, either, it is older than they are.
 */
WEIR_INLINE bool weir_ask_knows(struct weir_ask *ask, const struct weir_rate_history *h)
{
	__u64 word = ask->level.word;
	bool knows = weir_bucket_rate(word, h) || word == ask->forgotten;

	ask->forgotten = word;
	return knows;
}

/*
 * The ordinary case in few steps: a bucket that was last used under the rate in force, and lately, has a token. WEIR_REFUSED: it is
 * to be asked in full, and nothing has changed.
 */
WEIR_INLINE enum weir_taken weir_bucket_take_ready(struct weir_bucket *b, const struct weir_rate *rate,
						   struct weir_ask *ask)
{
	struct weir_level *level = &ask->level;

	if (WEIR_UNLIKELY(!weir_bucket_read(b, level)) || WEIR_UNLIKELY(!level->word) ||
	    WEIR_UNLIKELY((level->word & WEIR_GENERATIONS) != rate->generation))
		return WEIR_REFUSED;
	weir_level_at(level, rate, ask->now_ns);
	if (WEIR_UNLIKELY(!weir_level_recent(level, rate)) || WEIR_UNLIKELY(level->tokens.high < 1) ||
	    WEIR_UNLIKELY(ask->look))
		return WEIR_REFUSED;
	ask->wait_ns = 0;
	return weir_bucket_take_level(b, rate, level, ask->weight);
}

/*
 * One try; after a lost race the rates are to be looked up again. A bucket that was last used under an earlier rate is brought to the
 * rate in force, also if it will only be refused: else the history might forget that rate before the bucket has a whole token again.
 * bpf/buckets.h has the same steps.
 */
WEIR_INLINE enum weir_taken weir_bucket_try_in_full(struct weir_bucket *b, const struct weir_rate_history *h,
						    struct weir_ask *ask)
{
	if (weir_bucket_is_stale(WEIR_FRESH(b->word), h) && weir_bucket_level(b, h, 0, &ask->level) &&
	    weir_ask_knows(ask, h))
		weir_bucket_swap(b, &ask->level, &h->rates[0], ask->level.tokens);
	if (!weir_bucket_read(b, &ask->level) || weir_bucket_is_stale(ask->level.word, h))
		return WEIR_LOST_RACE;
	weir_level_at(&ask->level, &h->rates[0], ask->now_ns);
	weir_level_now(&ask->level, &h->rates[0]);
	weir_ask_wait(h, ask);
	return weir_bucket_take_seen(b, h, ask);
}

/* One try, as bpf/limit_ready.h and behind it bpf/limit_ask.h make it. */
WEIR_INLINE enum weir_taken weir_bucket_try(struct weir_bucket *b, const struct weir_rate_history *h,
					    struct weir_ask *ask)
{
	enum weir_taken taken = weir_bucket_take_ready(b, &h->rates[0], ask);

	return taken == WEIR_REFUSED ? weir_bucket_try_in_full(b, h, ask) : taken;
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
	struct weir_ask ask = { .now_ns = now_ns, .weight = weight, .level.subject = b->subject };

	return weir_bucket_ask(b, h, &ask) == WEIR_TAKEN;
}

/* Takes one token and says true, or takes nothing. */
WEIR_INLINE bool weir_bucket_take(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns)
{
	return weir_bucket_take_weight(b, h, now_ns, 1);
}

/*
 * One try to undo a take of `weight`, also when others took in between, or the rate was changed: as if it had never been, except
 * that a bucket which has run full since is not fuller for it. False: to be tried again, with rates that were looked up again.
 */
WEIR_INLINE bool weir_bucket_give_back_try(struct weir_bucket *b, const struct weir_rate_history *h, __u64 subject,
					   __u32 weight)
{
	struct weir_level level = { .subject = subject };
	const struct weir_rate *rate;
	__u64 used_ns;

	if (!weir_bucket_read(b, &level) || !level.word)
		return true;
	rate = weir_bucket_rate(level.word, h);
	if (!rate)
		return false;
	used_ns = level.seen_ns > rate->since_ns ? level.seen_ns - rate->since_ns : 0;
	level.volume = weir_rate_gain(rate, used_ns);
	level.tokens = weir_mark_tokens(level.word, level.fine, level.volume, rate);
	level.tokens.high += weir_weight_counted(rate, weight);
	return weir_bucket_swap(b, &level, rate, weir_tokens_min(level.tokens, weir_tokens_whole(rate->burst)));
}

/* False: it is contended, or nobody knows its rate any more; the tokens are lost. */
WEIR_INLINE bool weir_bucket_give_back(struct weir_bucket *b, const struct weir_rate_history *h, __u32 weight)
{
	for (int i = 0; i < WEIR_BUCKET_TRIES; i++) {
		if (weir_bucket_give_back_try(b, h, b->subject, weight))
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
