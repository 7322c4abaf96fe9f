/* SPDX-License-Identifier: GPL-2.0 */
/* Penalties of subjects that do not back off (include/weir/limit/backoff.h) on the maps. */
#ifndef WEIR_BPF_PENALTY_H
#define WEIR_BPF_PENALTY_H

#include "buckets.h"
#include "subjects.h"

/* Nobody is penalised by a limit that is there to be watched only. */
static __always_inline bool limit_penalises(const struct weir_terms *terms)
{
	return (terms->flags & (WEIR_LIMIT_PENALISES | WEIR_LIMIT_DRY_RUN)) == WEIR_LIMIT_PENALISES;
}

/* Everything there is to the penalty of limit n's subject. */
struct penal {
	struct weir_kept *kept;
	__u32 index;
};

/* False: there is none. */
static __always_inline bool penalty_find(struct decision *d, __u32 n, struct penal *p)
{
	p->index = weir_limit_index(d->server, d->limits[n]);
	if (!limit_penalises(terms_of(d, n)) || (!d->subjects[n] && terms_of(d, n)->key))
		return false;
	p->kept = kept_seen(d, n, p->index);
	return p->kept;
}

/* Refuses if the subject of limit n has not waited for as long as it was told. */
__noinline int penalty_ask(struct decision *d, __u32 n)
{
	struct penal p;
	__u64 word, wait_ns;

	if (!d || n >= WEIR_MATCHES_MAX || !penalty_find(d, n, &p) || !weir_penalty_read(p.kept, d->subjects[n], &word))
		return 0;
	wait_ns = weir_penalty_wait_ns(word, d->now_ns);
	if (!wait_ns)
		return 0;
	if (!weir_limit_has_seats(terms_of(d, n)->kind) && d->asked_anew)
		add(&p.kept->bucket.shed, d->asked_anew);
	d->refused |= 1U << n;
	d->penalised |= 1U << n;
	wait_for(d, n, wait_ns);
	return 0;
}

/* Sets d->penalty. False: there is none any more, or it is replaced time and again. */
__noinline int penalty_policy(struct decision *d, __u32 index)
{
	int copied = TERMS_TORN;

	if (!d)
		return false;
#pragma GCC unroll 4
	for (int i = 0; i < TERMS_TRIES && copied == TERMS_TORN; i++)
		copied = penalty_copy(&d->penalty, index);
	return copied == TERMS_WHOLE;
}

/* One try of the bucket that all subjects of the limit share, where its policy has one. Sets d->ask.wait_ns; says enum weir_taken. */
static __always_inline int penalty_bucket_try(struct decision *d, __u32 index)
{
	struct weir_kept *shared;

	ask_begin(d, WEIR_SUBJECT_PENALTY, d->now_ns, WEIR_NEVER_NS - 1, 1);
	if (!(d->penalty.parts & WEIR_BACKOFF_BUCKET))
		return WEIR_REFUSED;
	shared = kept_of(index, WEIR_SUBJECT_PENALTY);
	return shared ? bucket_try(&shared->bucket, &d->penalty.bucket, &d->ask) : WEIR_REFUSED;
}

/*
 * Takes a token of that bucket. Who loses a race looks the policy up again: there may be another rate by then. False: there is no policy
 * any more, or it is replaced time and again.
 */
static __always_inline bool penalty_bucket_take(struct decision *d, __u32 index)
{
	int taken;

	d->ask.forgotten = 0;
	taken = penalty_bucket_try(d, index);
#pragma GCC unroll 8
	for (int i = 1; i < WEIR_BUCKET_TRIES && taken == WEIR_LOST_RACE; i++) {
		if (!penalty_policy(d, index))
			return false;
		taken = penalty_bucket_try(d, index);
	}
	return true;
}

/* One try to begin the penalty of limit n's subject. False: another CPU has changed its word. */
__noinline int penalty_try(struct decision *d, struct weir_kept *kept, __u32 n)
{
	struct weir_failure f = {};

	if (!d || !kept || n >= WEIR_MATCHES_MAX)
		return true;
	f.wait_ns = d->waits_ns[n];
	f.looks = d->look;
	if (!weir_penalty_try(kept, d->subjects[n], &d->penalty, d->now_ns, &f))
		return false;
	d->waits_ns[n] = f.wait_ns;
	if (!f.begins)
		return true;
	d->failed |= 1U << n;
	d->words_before[n] = f.before;
	d->words_after[n] = f.after;
	return true;
}

/* Limit n has refused after wait_ns, and its subject was not penalised. */
__noinline int penalty_begin(struct decision *d, __u32 n)
{
	struct penal p;

	if (!d || n >= WEIR_MATCHES_MAX || !penalty_find(d, n, &p) || !penalty_policy(d, p.index) ||
	    !penalty_bucket_take(d, p.index))
		return 0;
	d->waits_ns[n] = weir_backoff_longest(d->waits_ns[n], weir_backoff_cap(&d->penalty, d->ask.wait_ns));
	for (int i = 0; i < WEIR_BUCKET_TRIES && !penalty_try(d, p.kept, n); i++)
		;
	wait_for(d, n, d->waits_ns[n]);
	return 0;
}

/* Every limit has admitted: the subject has waited. What has begun meanwhile stays. */
__noinline int penalty_end(struct decision *d, __u32 n)
{
	struct penal p;
	__u64 before;

	if (!d || n >= WEIR_MATCHES_MAX || !penalty_find(d, n, &p))
		return 0;
	if (weir_penalty_read(p.kept, d->subjects[n], &before) && before)
		weir_penalty_swap(&p.kept->penalty, d->subjects[n], before, 0);
	return 0;
}

/*
 * The refusal is to be decided anew: as if it had never been, unless something has happened to the subject since. A token of
 * the shared bucket is not given back: so much is the price of it.
 */
__noinline int penalty_undo(struct decision *d, __u32 n)
{
	struct penal p;

	if (!d || n >= WEIR_MATCHES_MAX || !penalty_find(d, n, &p))
		return 0;
	weir_penalty_swap(&p.kept->penalty, d->subjects[n], d->words_after[n], d->words_before[n]);
	return 0;
}

#endif
