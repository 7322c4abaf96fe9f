/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The buckets of a limit's subjects, and how many may be made. A subject that is not known yet gets one of its own while
 * there is allowance for it; those beyond share one, so that names and addresses that are always new buy no new bursts.
 */
#ifndef WEIR_BPF_BUCKETS_H
#define WEIR_BPF_BUCKETS_H

#include "decision.h"
#include "terms.h"

/* Has the subject's name been given by the server's operator, with an amount of its own? */
__noinline int has_override(__u32 index, __u64 subject)
{
	struct weir_override_key key = { .limit = index, .subject = subject };

	return !!bpf_map_lookup_elem(&overrides, &key);
}

static __always_inline struct weir_kept *kept_in_place(__u32 index, __u64 subject)
{
	void *map = bpf_map_lookup_elem(&buckets, &index);

	return WEIR_LIKELY(map) ? bpf_map_lookup_elem(map, &subject) : NULL;
}

/* A function of its own for the same reason as count_many(). */
static __noinline struct weir_kept *kept_of(__u32 index, __u64 subject)
{
	return kept_in_place(index, subject);
}

/* Asks the bucket of `subject`. */
static __always_inline void ask_begin(struct decision *d, __u64 subject, __u64 now_ns, __u64 longest_ns, __u32 weight)
{
	d->ask.level.subject = subject;
	d->ask.now_ns = now_ns;
	d->ask.longest_ns = longest_ns;
	d->ask.wait_ns = 0;
	d->ask.weight = weight;
	d->ask.look = d->look;
}

/* The steps of one try. Functions of their own: each is verified once, and has its stack for itself. */
__noinline int bucket_read(const struct weir_bucket *b, struct weir_level *level)
{
	return b && level && weir_bucket_read(b, level);
}

__noinline int level_at(struct weir_level *level, const struct weir_rate *rate, __u64 now_ns)
{
	if (level && rate)
		weir_level_at(level, rate, now_ns);
	return 0;
}

__noinline int level_now(struct weir_level *level, const struct weir_rate *rate)
{
	if (level && rate)
		weir_level_now(level, rate);
	return 0;
}

__noinline int level_settle(struct weir_level *level, const struct weir_rate *rate, __u64 until_ns)
{
	if (level && rate)
		weir_level_settle(level, rate, until_ns);
	return 0;
}

__noinline int level_settled(struct weir_level *level, const struct weir_rate_history *h)
{
	if (level && h)
		weir_level_settled(level, &h->rates[0]);
	return 0;
}

__noinline int bucket_swap(struct weir_bucket *b, const struct weir_rate_history *h, const struct weir_level *level)
{
	return b && h && level && weir_bucket_swap(b, level, &h->rates[0], level->tokens);
}

/* As weir_bucket_level(). */
static __always_inline bool bucket_level_settled(const struct weir_bucket *b, const struct weir_rate_history *h,
						 __u64 now_ns, struct weir_level *level)
{
	if (!bucket_read(b, level))
		return false;
	level_at(level, &h->rates[0], now_ns);
	level_now(level, &h->rates[0]);
	if (!weir_bucket_is_stale(level->word, h))
		return true;
	level->tokens = (struct weir_tokens){};
	for (int i = WEIR_RATES - 1; i > 0; i--)
		level_settle(level, &h->rates[i], h->rates[i - 1].since_ns);
	level_settled(level, h);
	return true;
}

__noinline int ask_wait(const struct weir_rate_history *h, struct weir_ask *ask)
{
	if (h && ask)
		weir_ask_wait(h, ask);
	return 0;
}

__noinline int bucket_take_seen(struct weir_bucket *b, const struct weir_rate_history *h, const struct weir_ask *ask)
{
	return b && h && ask ? weir_bucket_take_seen(b, h, ask) : WEIR_REFUSED;
}

/* As weir_bucket_try_in_full(): enum weir_taken. */
static __always_inline int bucket_try(struct weir_bucket *b, const struct weir_rate_history *h, struct weir_ask *ask)
{
	if (weir_bucket_is_stale(WEIR_FRESH(b->word), h)) {
		if (bucket_level_settled(b, h, 0, &ask->level) && weir_ask_knows(ask, h))
			bucket_swap(b, h, &ask->level);
	}
	if (!bucket_read(b, &ask->level) || weir_bucket_is_stale(ask->level.word, h))
		return WEIR_LOST_RACE;
	level_at(&ask->level, &h->rates[0], ask->now_ns);
	level_now(&ask->level, &h->rates[0]);
	ask_wait(h, ask);
	return bucket_take_seen(b, h, ask);
}

/* One try: 1: the tokens are back, or the bucket was made anew. */
__noinline int bucket_give_back_try(struct weir_bucket *b, const struct weir_rate_history *h, __u64 subject,
				    __u32 weight)
{
	return b && h ? weir_bucket_give_back_try(b, h, subject, weight) : 1;
}

/* What this limit refuses passes all the same: by its own dry run, or by that of its server. */
static __always_inline bool limit_is_dry(const struct decision *d, const struct weir_terms *terms)
{
	return (terms->flags & WEIR_LIMIT_DRY_RUN) || (d->server_flags & WEIR_SERVER_DRY_RUN);
}

static __always_inline void bucket_count_refused(const struct decision *d, const struct weir_terms *terms,
						 struct weir_bucket *bucket, __u64 refused)
{
	if (refused)
		add(limit_is_dry(d, terms) ? &bucket->watched : &bucket->shed, refused);
}

/*
 * The record of limit n's subject. If this only looks, a new subject gets the record that it would have. The record that the
 * overflow shares is never new.
 */
static __always_inline struct weir_kept *kept_seen(struct decision *d, __u32 n, __u32 index)
{
	bool would_be_new = d->look && (d->nameless >> n & 1);
	struct weir_kept *kept = NULL;

	if (!would_be_new || d->subjects[n] == WEIR_SUBJECT_OVERFLOW)
		kept = kept_of(index, d->subjects[n]);
	if (kept || !would_be_new)
		return kept;
	d->fresh = weir_kept_new(d->subjects[n]);
	return &d->fresh;
}

/* One try: may one more subject of this limit get a bucket? WEIR_LOST_RACE: to be asked again. */
static __always_inline int newcomer_admitted(struct decision *d, __u32 index)
{
	const struct weir_server *server = server_of(d->server);
	struct weir_bucket *allowance;
	int copied, taken;

	if (!server || !server->newcomers.rates[0].burst)
		return WEIR_TAKEN;
	allowance = bpf_map_lookup_elem(&newcomers, &index);
	copied = newcomers_copy(d);
	if (copied == TERMS_TORN)
		return WEIR_LOST_RACE;
	if (!allowance || copied == TERMS_NONE || !d->newcomers.rates[0].burst)
		return WEIR_TAKEN;
	ask_begin(d, 0, d->now_ns, 0, 1);
	taken = bucket_try(allowance, &d->newcomers, &d->ask);
	return d->look && taken == WEIR_REFUSED && !d->ask.wait_ns ? WEIR_TAKEN : taken;
}

/* The subject of limit n of the request has no bucket: it gets one, or becomes the subject that has it. 1: to be tried again. */
__noinline int bucket_make(__u32 memory, __u32 n)
{
	struct decision *d = decision_of(memory);
	int admitted = WEIR_TAKEN;
	__u64 subject;
	__u32 index;
	void *map;

	if (!d || n >= WEIR_MATCHES_MAX)
		return 0;
	index = weir_limit_index(d->server, d->limits[n]);
	map = bpf_map_lookup_elem(&buckets, &index);
	if (!map)
		return 0;
	subject = d->subjects[n];
	/* Subjects with an override always get a bucket: there are no more of them than the operator has named. */
	if (subject && !has_override(index, subject))
		admitted = newcomer_admitted(d, index);
	if (admitted == WEIR_LOST_RACE && d->tries > 1)
		return 1;
	if (admitted == WEIR_TAKEN) {
		d->nameless |= 1U << n;
	} else {
		subject = WEIR_SUBJECT_OVERFLOW;
		d->subjects[n] = subject;
		weir_identity_note(&d->identity, WEIR_OVERFLOW);
	}
	d->fresh = weir_kept_new(subject);
	if (d->look)
		d->nameless |= 1U << n;
	else
		bpf_map_update_elem(map, &subject, &d->fresh, BPF_NOEXIST);
	return 0;
}

#endif
