/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The buckets of a limit's subjects, and how many may be made. A subject that is not known yet gets one of its own while
 * there is allowance for it; those beyond share one, so that names and addresses that are always new buy no new bursts.
 */
#ifndef WEIR_BPF_BUCKETS_H
#define WEIR_BPF_BUCKETS_H

#include "identify.h"
#include "work.h"

/* Subjects are hashes already; the limit is mixed in so that no two limits' subject 0 share a lock. */
static __always_inline struct lock *lock_of(__u32 limit, __u64 subject)
{
	__u32 index = (subject ^ limit) % WEIR_LOCKS;

	return bpf_map_lookup_elem(&locks, &index);
}

static __always_inline struct weir_amount *override_of(__u32 index, __u64 subject)
{
	struct weir_override_key key = { .limit = index, .subject = subject };

	return bpf_map_lookup_elem(&overrides, &key);
}

/* What a subject may have of a limit; NULL: it is not limited. */
static __always_inline struct weir_amount *amount_of(struct weir_limit *limit, __u32 index, __u64 subject)
{
	struct weir_amount *amount = override_of(index, subject) ?: &limit->amount;

	return amount->flags & WEIR_LIMIT_SET ? amount : NULL;
}

static __always_inline struct weir_kept *kept_of(__u32 index, __u64 subject)
{
	void *map = bpf_map_lookup_elem(&buckets, &index);

	return map ? bpf_map_lookup_elem(map, &subject) : NULL;
}

static __always_inline struct weir_bucket *bucket_of(__u32 index, __u64 subject)
{
	struct weir_kept *kept = kept_of(index, subject);

	return kept ? &kept->bucket : NULL;
}

/* What this limit refuses passes all the same: by its own dry run, or by that of its server. */
static __always_inline bool limit_is_dry(const struct work *w, const struct weir_limit *limit)
{
	return (limit->flags & WEIR_LIMIT_DRY_RUN) || (w->server_flags & WEIR_SERVER_DRY_RUN);
}

static __always_inline void bucket_count_refused(const struct work *w, const struct weir_limit *limit,
						 struct weir_bucket *bucket, __u64 refused)
{
	if (limit_is_dry(w, limit))
		bucket->watched += refused;
	else
		bucket->shed += refused;
}

static __always_inline void limit_count(const struct work *w, __u32 index, const struct weir_limit *limit,
					__u64 admitted, __u64 refused)
{
	struct weir_limit_counts *counts = bpf_map_lookup_elem(&limit_counts, &index);

	if (!counts)
		return;
	counts->admitted += admitted;
	if (limit_is_dry(w, limit))
		counts->dry_run_refused += refused;
	else
		counts->refused += refused;
}

/* What is kept for limit n's subject; to who only looks, what a new one would get. */
static __always_inline struct weir_kept *kept_seen(struct work *w, __u32 n, __u32 index)
{
	struct weir_kept *kept = kept_of(index, w->subjects[n]);

	return kept || !w->look || !(w->nameless >> n & 1) ? kept : &w->full;
}

/* May one more subject of this limit get a bucket? */
static __always_inline bool newcomer_admitted(const struct work *w, __u32 index)
{
	struct weir_bucket *allowance = bpf_map_lookup_elem(&newcomers, &index);
	struct lock *lock = lock_of(index, WEIR_SUBJECT_OVERFLOW);
	struct weir_server *server = server_of(w);
	bool admitted;

	if (!allowance || !lock || !server || !server->newcomers.rates[0].burst)
		return true;
	bpf_spin_lock(&lock->lock);
	admitted = w->look ? !weir_bucket_wait_ns(allowance, &server->newcomers, w->now_ns) :
			     weir_bucket_take(allowance, &server->newcomers, w->now_ns);
	bpf_spin_unlock(&lock->lock);
	return admitted;
}

/* The subject of limit n of the request has no bucket: it gets one, or becomes the subject that has it. */
__noinline int bucket_make(__u32 hook, __u32 n)
{
	struct work *w = work_of(hook);
	__u64 subject;
	__u32 index;
	void *map;

	if (!w || n >= WEIR_MATCHES_MAX)
		return 0;
	index = weir_limit_index(w->server, w->limits[n]);
	map = bpf_map_lookup_elem(&buckets, &index);
	if (!map)
		return 0;
	subject = w->subjects[n];
	/* Those that the server's operator has named are only so many. */
	if (!subject || override_of(index, subject) || newcomer_admitted(w, index)) {
		w->nameless |= 1U << n;
	} else {
		subject = WEIR_SUBJECT_OVERFLOW;
		w->subjects[n] = subject;
		weir_identity_note(&w->identity, WEIR_OVERFLOW);
	}
	if (w->look)
		w->nameless |= 1U << n;
	else
		bpf_map_update_elem(map, &subject, &w->full, BPF_NOEXIST);
	return 0;
}

#endif
