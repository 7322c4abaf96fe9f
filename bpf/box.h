/* SPDX-License-Identifier: GPL-2.0 */
/* The penalty box (include/weir/admission/box.h) on the maps. */
#ifndef WEIR_BPF_BOX_H
#define WEIR_BPF_BOX_H

#include "weir/admission/box.h"

#include "decide.h"
#include "work.h"

/* Addresses that ask of servers with penalties. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WEIR_MAX_BOXES);
	__type(key, struct weir_box_key);
	__type(value, struct weir_box);
} boxes SEC(".maps");

/* Are there boxes, and may they be shut? */
static __always_inline bool boxes_matter(__u32 flags, __u32 traits)
{
	return traits & WEIR_SERVER_PENALTIES && flags & WEIR_SERVER_XDP && flags & WEIR_SERVER_ACTIVE &&
	       !(flags & (WEIR_SERVER_PAUSED | WEIR_SERVER_DRY_RUN));
}

/* Those who bring the requests of many are never boxed. */
static __always_inline bool box_is_of_many(const struct weir_box_key *of)
{
	struct weir_proxy_key key = { .prefixlen = 32 + 128, .server = of->server };

	__builtin_memcpy(key.address, of->address, sizeof(key.address));
	return bpf_map_lookup_elem(&proxies, &key) || bpf_map_lookup_elem(&balancers, &key);
}

/* Limit n has refused the request since its subject's penalty is not over. */
__noinline int box_shut(struct decision *d, __u32 n)
{
	struct weir_box_key key;
	struct weir_box *box;

	if (!d || n >= WEIR_MATCHES_MAX || !((d->refused & d->penalised) >> n & 1) ||
	    d->subjects[n] == WEIR_SUBJECT_OVERFLOW)
		return 0;
	key = weir_box_key(d->server, d->address);
	box = bpf_map_lookup_elem(&boxes, &key);
	if (!box || !weir_box_fits(box, terms_of(d, n)->key, d->now_ns) || box_is_of_many(&key))
		return 0;
	box->subject = d->subjects[n];
	box->limit = weir_limit_index(d->server, d->limits[n]) + 1;
	return 0;
}

/* The decision stands: its address has asked. */
__noinline int box_asked(struct decision *d)
{
	struct weir_box_key key;
	struct weir_box *box, fresh = {};

	if (!d || !boxes_matter(d->server_flags, d->traits))
		return 0;
	key = weir_box_key(d->server, d->address);
	box = bpf_map_lookup_elem(&boxes, &key);
	if (box) {
		weir_box_asked(box, d->identity.user, d->now_ns);
		box->limit = 0;
	} else {
		fresh.user = d->identity.user;
		bpf_map_update_elem(&boxes, &key, &fresh, BPF_NOEXIST);
	}
	if (d->refused & d->penalised)
		each_limit(d, box_shut);
	return 0;
}

/* Does the penalty last? The limit may have been changed since, and somebody else may have asked. */
static __always_inline bool box_is_shut(const struct weir_box *box, __u64 now_ns)
{
	__u64 subject = box->subject, word;
	__u32 index = box->limit - 1;
	const struct weir_limit *limit;
	struct weir_kept *kept;

	if (!box->limit)
		return false;
	limit = bpf_map_lookup_elem(&limits, &index);
	if (!limit || (limit->terms.flags & (WEIR_LIMIT_PENALISES | WEIR_LIMIT_DRY_RUN)) != WEIR_LIMIT_PENALISES ||
	    !weir_box_fits(box, limit->terms.key, now_ns))
		return false;
	kept = kept_of(index, subject);
	return kept && weir_penalty_read(kept, subject, &word) && weir_penalty_wait_ns(word, now_ns);
}

/* Is what comes from the packet's address to be held? */
__noinline int box_holds(__u32 hook)
{
	struct work *w = work_of(hook);
	const struct weir_box *box;
	struct weir_box_key key;

	if (!w)
		return 0;
	key = weir_box_key(w->server, w->packet.source);
	box = bpf_map_lookup_elem(&boxes, &key);
	return box && box_is_shut(box, bpf_ktime_get_ns());
}

#endif
