/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The buckets of a limit's subjects, and how many may be made. A subject that is not known yet gets one of its own while
 * there is allowance for it; those beyond share one, so that names and addresses that are always new buy no new bursts.
 */
#ifndef WEIR_BPF_BUCKETS_H
#define WEIR_BPF_BUCKETS_H

#include "identify.h"
#include "maps.h"

/* Subjects are hashes already; the limit is mixed in so that no two limits' subject 0 share a lock. */
static __always_inline struct lock *lock_of(__u32 limit, __u64 subject)
{
	__u32 index = (subject ^ limit) % WEIR_LOCKS;

	return bpf_map_lookup_elem(&locks, &index);
}

static __always_inline struct weir_limit *limit_of(__u32 index, __u64 subject)
{
	struct weir_override_key key = { .limit = index, .subject = subject };
	struct weir_limit *limit = bpf_map_lookup_elem(&overrides, &key);

	if (!limit)
		limit = bpf_map_lookup_elem(&limits, &index);
	return limit && (limit->flags & WEIR_LIMIT_SET) ? limit : NULL;
}

static __always_inline struct weir_bucket *bucket_of(__u32 index, __u64 subject)
{
	void *map = bpf_map_lookup_elem(&buckets, &index);

	return map ? bpf_map_lookup_elem(map, &subject) : NULL;
}

/* Has the server's operator named this subject? There are only so many of them. */
static __always_inline bool has_own_limit(__u32 index, __u64 subject)
{
	struct weir_override_key key = { .limit = index, .subject = subject };

	return bpf_map_lookup_elem(&overrides, &key);
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
	admitted = weir_bucket_take(allowance, &server->newcomers, w->now_ns);
	bpf_spin_unlock(&lock->lock);
	return admitted;
}

/* The subject of a limit, w->subjects[type], has no bucket: it gets one, or becomes the subject that has it. */
__noinline int bucket_make(__u32 hook, __u32 type)
{
	struct work *w = work_of(hook);
	__u64 subject;
	__u32 index;
	void *map;

	if (!w || type >= WEIR_LIMIT_TYPES)
		return 0;
	index = weir_limit_index(w->server, type);
	map = bpf_map_lookup_elem(&buckets, &index);
	if (!map)
		return 0;
	subject = w->subjects[type & 3];
	if (!subject || has_own_limit(index, subject) || newcomer_admitted(w, index)) {
		w->nameless |= 1U << type;
	} else {
		subject = WEIR_SUBJECT_OVERFLOW;
		w->subjects[type & 3] = subject;
		weir_identity_note(&w->identity, WEIR_OVERFLOW);
	}
	bpf_map_update_elem(map, &subject, &w->full, BPF_NOEXIST);
	return 0;
}

#endif
