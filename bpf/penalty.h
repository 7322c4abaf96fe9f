/* SPDX-License-Identifier: GPL-2.0 */
/* Penalties of subjects that do not back off (include/weir/limit/backoff.h) on the maps. */
#ifndef WEIR_BPF_PENALTY_H
#define WEIR_BPF_PENALTY_H

#include "buckets.h"
#include "subjects.h"

/* Nobody is penalised by a limit that is there to be watched only. */
static __always_inline bool limit_penalises(const struct weir_limit *limit)
{
	return limit->penalty.parts && !(limit->flags & WEIR_LIMIT_DRY_RUN);
}

/* Everything there is to the penalty of limit n's subject. */
struct penal {
	struct weir_limit *limit;
	struct weir_kept *kept;
	struct lock *lock;
	__u32 index;
};

/* False: there is none. */
static __always_inline bool penalty_find(struct work *w, __u32 n, struct penal *p)
{
	p->index = weir_limit_index(w->server, w->limits[n]);
	p->limit = bpf_map_lookup_elem(&limits, &p->index);
	if (!p->limit || !limit_penalises(p->limit))
		return false;
	if (!w->subjects[n] && p->limit->key)
		return false;
	p->kept = kept_seen(w, n, p->index);
	p->lock = lock_of(p->index, w->subjects[n]);
	return p->kept && p->lock;
}

/* Refuses if the subject of limit n has not waited for as long as it was told. */
__noinline int penalty_ask(struct work *w, __u32 n)
{
	struct penal p;
	__u64 wait_ns;

	if (!w || n >= WEIR_MATCHES_MAX || !penalty_find(w, n, &p))
		return 0;
	bpf_spin_lock(&p.lock->lock);
	wait_ns = weir_penalty_wait_ns(&p.kept->penalty, w->now_ns);
	if (wait_ns && p.limit->kind == WEIR_LIMIT_RATE)
		p.kept->bucket.shed += w->asked_anew;
	bpf_spin_unlock(&p.lock->lock);
	if (!wait_ns)
		return 0;
	w->refused |= 1U << n;
	w->penalised |= 1U << n;
	if (wait_ns > w->wait_ns)
		w->wait_ns = wait_ns;
	limit_count(w, p.index, p.limit, 0, w->asked_anew);
	return 0;
}

/* A token of the bucket that all subjects of the limit share, where its policy has one. */
static __always_inline __u64 penalty_bucket_ns(struct work *w, const struct penal *p)
{
	struct weir_kept *shared = kept_of(p->index, WEIR_SUBJECT_PENALTY);
	struct lock *lock = lock_of(p->index, WEIR_SUBJECT_PENALTY);
	__u64 wait_ns;

	if (!(p->limit->penalty.parts & WEIR_BACKOFF_BUCKET) || !shared || !lock)
		return 0;
	bpf_spin_lock(&lock->lock);
	wait_ns = w->look ? weir_bucket_turn_ns(&shared->bucket, &p->limit->penalty.bucket, w->now_ns) :
			    weir_backoff_bucket_ns(&p->limit->penalty, &shared->bucket, w->now_ns);
	bpf_spin_unlock(&lock->lock);
	return weir_backoff_cap(&p->limit->penalty, wait_ns);
}

/* Limit n has refused after wait_ns, and its subject was not penalised. */
__noinline int penalty_begin(struct work *w, __u32 n)
{
	struct weir_backoff_state state;
	struct penal p;
	__u64 wait_ns;

	if (!w || n >= WEIR_MATCHES_MAX || !penalty_find(w, n, &p))
		return 0;
	wait_ns = penalty_bucket_ns(w, &p);
	if (w->waits_ns[n] > wait_ns)
		wait_ns = w->waits_ns[n];
	bpf_spin_lock(&p.lock->lock);
	state = p.kept->penalty;
	wait_ns = weir_penalty_refused(&p.limit->penalty, &state, NULL, w->now_ns, wait_ns);
	if (!w->look)
		p.kept->penalty = state;
	bpf_spin_unlock(&p.lock->lock);
	w->failed |= 1U << n;
	w->waits_ns[n] = wait_ns;
	if (wait_ns > w->wait_ns)
		w->wait_ns = wait_ns;
	return 0;
}

/* Every limit has admitted: the subject has waited. */
__noinline int penalty_end(struct work *w, __u32 n)
{
	struct penal p;

	if (!w || n >= WEIR_MATCHES_MAX || !penalty_find(w, n, &p))
		return 0;
	bpf_spin_lock(&p.lock->lock);
	weir_penalty_admitted(&p.kept->penalty);
	bpf_spin_unlock(&p.lock->lock);
	return 0;
}

/* The refusal is to be decided anew. A token of the shared bucket is not given back: so much is the price of it. */
__noinline int penalty_undo(struct work *w, __u32 n)
{
	struct penal p;

	if (!w || n >= WEIR_MATCHES_MAX || !penalty_find(w, n, &p))
		return 0;
	bpf_spin_lock(&p.lock->lock);
	weir_penalty_undo(&p.limit->penalty, &p.kept->penalty, NULL, w->now_ns);
	bpf_spin_unlock(&p.lock->lock);
	return 0;
}

#endif
