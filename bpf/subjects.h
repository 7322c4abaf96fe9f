/* SPDX-License-Identifier: GPL-2.0 */
/* Whom a limit charges: the subject of a request under the limit's key. */
#ifndef WEIR_BPF_SUBJECTS_H
#define WEIR_BPF_SUBJECTS_H

#include "decision.h"
#include "match.h"

/* The subject that an Event is charged to: its user, where its own key is not known. */
static __always_inline __u64 event_subject(const struct decision *d)
{
	if (d->event_key == WEIR_REASON_NONE)
		return 0;
	return d->event_key == WEIR_EVENT_KEYED ? d->event_subject : d->identity.user;
}

/* The first one of the request's groups that the limit has a count for. */
static __always_inline __u64 group_subject(const struct decision *d, __u32 limit)
{
	const struct weir_terms *terms = &d->terms[limit & (WEIR_MATCHES_MAX - 1)];
	const struct weir_rules *r = rules_of(d);
	__u64 low, high;

	if (!r)
		return 0;
	low = d->identity.groups.bits[0] & terms->groups.bits[0];
	high = d->identity.groups.bits[1] & terms->groups.bits[1];
	if (!(low | high))
		return 0;
	return r->groups[(low ? weir_lowest_bit(low) : 64 + weir_lowest_bit(high)) & (WEIR_GROUPS_MAX - 1)];
}

/* One part of the key of one of the request's limits; 0: the request has no such thing. */
static __always_inline __u64 part_subject(struct decision *d, __u32 part, __u32 limit)
{
	switch (part) {
	case WEIR_KEY_NAMESPACE:
		return d->identity.namespace;
	case WEIR_KEY_USER:
		return d->identity.user;
	case WEIR_KEY_SOURCE:
		return d->source;
	case WEIR_KEY_OBJECT:
		return event_subject(d);
	case WEIR_KEY_GROUP:
		return group_subject(d, limit);
	default:
		return 0;
	}
}

__noinline __u64 key_part(struct decision *d, __u32 part, __u32 limit)
{
	return d ? part_subject(d, part, limit) : 0;
}

/* 0: the limit is not for this request, if it has a key. */
__noinline __u64 limit_subject(struct decision *d, __u32 limit)
{
	__u64 subject = 0, part;
	__u32 key;

	if (!d)
		return 0;
	key = d->terms[limit & (WEIR_MATCHES_MAX - 1)].key;
	/* Of one part, which is what most have. */
	if (!(key & (key - 1)))
		return part_subject(d, key, limit);
#pragma GCC unroll 5
	for (__u32 n = 0; n < WEIR_KEY_PARTS; n++) {
		if (!(key >> n & 1))
			continue;
		part = part_subject(d, 1U << n, limit);
		if (!part)
			return 0;
		subject = subject ? weir_pair(subject, part) : part;
	}
	return subject;
}

#endif
