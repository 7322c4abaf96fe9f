/* SPDX-License-Identifier: GPL-2.0 */
/* Whom a limit charges: the subject of a request under the limit's key. */
#ifndef WEIR_BPF_SUBJECTS_H
#define WEIR_BPF_SUBJECTS_H

#include "identify.h"
#include "match.h"

/* Of an Event; its user where what tells it apart is not known. */
static __always_inline __u64 event_subject(const struct work *w)
{
	if (w->event_key == WEIR_REASON_COUNT)
		return 0;
	return w->event_key == WEIR_EVENT_KEYED ? w->event_subject : w->identity.user;
}

/* The first one of the request's groups that the limit has a count for. */
static __always_inline __u64 group_subject(const struct work *w, __u32 index)
{
	const struct weir_limit *limit = bpf_map_lookup_elem(&limits, &index);
	const struct weir_rules *r = rules_of(w);
	__u64 low, high;

	if (!r || !limit)
		return 0;
	low = w->identity.groups.bits[0] & limit->groups.bits[0];
	high = w->identity.groups.bits[1] & limit->groups.bits[1];
	if (!(low | high))
		return 0;
	return r->groups[(low ? weir_lowest_bit(low) : 64 + weir_lowest_bit(high)) & (WEIR_GROUPS_MAX - 1)];
}

/* One part of a key, of the limit with this index; 0: the request has no such thing. */
static __always_inline __u64 part_subject(struct work *w, __u32 part, __u32 index)
{
	switch (part) {
	case WEIR_KEY_NAMESPACE:
		return w->identity.namespace;
	case WEIR_KEY_USER:
		return w->identity.user;
	case WEIR_KEY_SOURCE:
		return w->source;
	case WEIR_KEY_OBJECT:
		return event_subject(w);
	case WEIR_KEY_GROUP:
		return group_subject(w, index);
	default:
		return 0;
	}
}

__noinline __u64 key_part(struct work *w, __u32 part, __u32 index)
{
	return w ? part_subject(w, part, index) : 0;
}

/* 0: the limit is not for this request, if it has a key. */
__noinline __u64 limit_subject(struct work *w, __u32 key, __u32 index)
{
	__u64 subject = 0, part;

	if (!w)
		return 0;
	/* Of one part, which is what most have. */
	if (!(key & (key - 1)))
		return part_subject(w, key, index);
#pragma GCC unroll 5
	for (__u32 n = 0; n < WEIR_KEY_PARTS; n++) {
		if (!(key >> n & 1))
			continue;
		part = part_subject(w, 1U << n, index);
		if (!part)
			return 0;
		subject = subject ? weir_pair(subject, part) : part;
	}
	return subject;
}

/* Sets w->subjects[n], whom limit n of the request charges. */
__noinline int subject_find(struct work *w, __u32 n)
{
	struct weir_limit *limit;
	__u32 index;

	if (!w || n >= WEIR_MATCHES_MAX)
		return 0;
	index = weir_limit_index(w->server, w->limits[n]);
	limit = bpf_map_lookup_elem(&limits, &index);
	w->subjects[n] = limit ? limit_subject(w, limit->key, index) : 0;
	return 0;
}

#endif
