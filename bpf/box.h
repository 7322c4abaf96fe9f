/* SPDX-License-Identifier: GPL-2.0 */
/* The penalty box (include/weir/admission/box.h) on the maps. Programs that decide on requests fill it; XDP looks into it. */
#ifndef WEIR_BPF_BOX_H
#define WEIR_BPF_BOX_H

#include "decide.h"

/* Are there boxes, and may they be shut? flags: as server_is_attached() has set them. */
static __always_inline bool boxes_matter(__u32 flags, __u32 traits)
{
	return traits & WEIR_SERVER_PENALTIES && flags & WEIR_SERVER_XDP &&
	       !(flags & (WEIR_SERVER_PAUSED | WEIR_SERVER_DRY_RUN));
}

/* *box: a copy of the address's box, or an empty one. */
static __always_inline void box_read(const struct weir_box_key *key, struct weir_box *box)
{
	const struct weir_box *there = bpf_map_lookup_elem(&boxes, key);

	if (there) {
		*box = *there;
		COPIED(); /* the memory may come to be another's meanwhile */
	}
	if (!there || weir_box_seal(box, key) != box->seal)
		*box = (struct weir_box){};
}

/* The seal of the box that is in the map now; 0: there is none. */
static __always_inline __u64 box_seal(const struct weir_box_key *key)
{
	const struct weir_box *there = bpf_map_lookup_elem(&boxes, key);

	return there ? there->seal : 0;
}

/* Proxies and balancers bring the requests of many: they have no box, and are not noted in that of their /64. */
__noinline int box_is_of_many(const struct decision *d)
{
	struct weir_proxy_key key = { .prefixlen = 32 + 128 };

	if (!d)
		return 1;
	key.server = d->server;
	__builtin_memcpy(key.address, d->address, sizeof(key.address));
	return bpf_map_lookup_elem(&proxies, &key) || bpf_map_lookup_elem(&balancers, &key);
}

/* XDP does not know what is asked for, so only limits that are for all requests shut boxes. */
static __always_inline bool limit_boxes(const struct weir_terms *terms)
{
	return limit_penalises(terms) && !(terms->flags & WEIR_LIMIT_NARROW) &&
	       (terms->key == WEIR_KEY_SOURCE || terms->key == WEIR_KEY_USER);
}

/* May the subject of limit n of the request be boxed? The verifier reads it once, not once for each limit. */
__noinline int box_limit(const struct decision *d, __u32 n)
{
	return d && limit_boxes(terms_of(d, n));
}

/* Is such a limit for this request? Else it passes here, as a health check under its priority level does, and XDP must not hold it. */
static __always_inline bool box_covers(const struct decision *d)
{
	int covered = 0;

#pragma GCC unroll 16
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (n >= d->n_limits)
			break;
		covered |= box_limit(d, n);
	}
	return covered;
}

/* n + 1, if limit n has refused since its subject's penalty is not over, and the subject may be boxed; else 0. */
__noinline int box_shuts(const struct decision *d, const struct weir_box *box, __u32 n)
{
	if (!d || !box)
		return 0;
	n &= WEIR_MATCHES_MAX - 1;
	if (!((d->refused & d->penalised) >> n & 1) || d->subjects[n] == WEIR_SUBJECT_OVERFLOW || !box_limit(d, n) ||
	    !weir_box_fits(box, d->terms[n].key, d->now_ns))
		return 0;
	return n + 1;
}

/* Whose penalty shuts the box from now on. True: it was not so before. */
static __always_inline bool box_name(const struct decision *d, struct weir_box *box)
{
	__u32 last = 0;

#pragma GCC unroll 16
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++)
		last = box_shuts(d, box, n) ?: last;
	if (!last)
		return weir_box_name(box, 0, 0);
	last = (last - 1) & (WEIR_MATCHES_MAX - 1);
	return weir_box_name(box, weir_limit_index(d->server, d->limits[last]) + 1, d->subjects[last]);
}

/* The decision stands, and its address has asked. exempt: for something that no limit is for. Only where boxes_matter(). */
__noinline int box_asked(const struct decision *d, __u32 exempt)
{
	struct weir_box_key key;
	struct weir_box box;
	bool changed;
	__u64 seal;

	if (!d)
		return 0;
	key = weir_box_key(d->server, d->address);
	box_read(&key, &box);
	seal = box.seal;
	changed = exempt || !box_covers(d) ? weir_box_exempt(&box, d->now_ns) :
					     weir_box_asked(&box, d->identity.user, d->now_ns);
	changed |= box_name(d, &box);
	if (!changed || box_is_of_many(d))
		return 0;
	/* Another CPU has changed the box meanwhile, perhaps so that it has to stay open: then the next request shuts it. */
	if (box.limit && box_seal(&key) != seal)
		return 0;
	box.seal = weir_box_seal(&box, &key);
	bpf_map_update_elem(&boxes, &key, &box, BPF_ANY);
	return 0;
}

/* Is the penalty still there that has shut the box? The limit may have been changed since. terms: memory to copy it to. */
static __always_inline bool box_is_shut(const struct weir_box *box, struct weir_terms *terms, __u64 now_ns)
{
	__u64 subject = box->subject, word;
	__u32 index = box->limit - 1;
	struct weir_kept *kept;

	if (!box->limit || limit_copy(terms, index) != TERMS_WHOLE || !limit_boxes(terms) ||
	    !weir_box_fits(box, terms->key, now_ns))
		return false;
	kept = kept_of(index, subject);
	return kept && weir_penalty_read(kept, subject, &word) && weir_penalty_wait_ns(word, now_ns);
}

#endif
