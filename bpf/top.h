/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What packets ask for, counted for who makes the load. A packet's requests are noted as they are decided, and counted when
 * the packet is committed: one that is dropped comes again.
 */
#ifndef WEIR_BPF_TOP_H
#define WEIR_BPF_TOP_H

#include "names_read.h"
#include "top_source.h"
#include "work.h"

/* The narrowest limit that refused it, or would have. */
static __always_inline void asked_of_limit(const struct work *w, struct weir_asked *a)
{
	__u32 refused = w->decision.refused ?: w->decision.overlooked, n;

	if (!refused)
		return;
	n = weir_lowest_bit(refused) & (WEIR_MATCHES_MAX - 1);
	a->slot = w->decision.limits[n];
	a->epoch = w->decision.terms[n].epoch;
}

static __always_inline bool is_refusal(__u32 decision)
{
	return decision == WEIR_SHED || decision == WEIR_REJECTED;
}

static __always_inline bool is_dry_run(__u32 decision)
{
	return decision == WEIR_DRY_RUN_SHED || decision == WEIR_DRY_RUN_REJECTED;
}

static __always_inline void asked_of_request(const struct work *w, struct weir_asked *a)
{
	const struct weir_attributes *attributes = &w->decision.attributes;

	a->user = w->decision.identity.user;
	a->namespace = w->decision.identity.namespace;
	a->verb = attributes->verb;
	a->is_path = !(attributes->flags & WEIR_ATTRIBUTE_RESOURCE);
	a->resource = a->is_path ? weir_path_subject(&w->request.request.path, 0) : attributes->resource;
	asked_of_limit(w, a);
}

/* The request whose head has just been read, and what became of it: enum weir_reason, of the group DECISION. */
__noinline int top_note(struct work *w, __u32 decision)
{
	bool rejected = decision == WEIR_REJECTED || decision == WEIR_DRY_RUN_REJECTED;
	struct weir_asked *a;
	__u32 index;

	if (!w)
		return 0;
	index = w->tally.n_asked;
	a = bpf_map_lookup_elem(&asked, &index);
	if (!a)
		return 0;
	w->tally.n_asked++;
	if (rejected) /* nobody has asked yet whose it is */
		find_client(w->hook);
	asked_begin(w, a);
	a->start = w->request.start;
	a->counts.requests = 1;
	a->counts.refused = is_refusal(decision);
	a->counts.dry_run = is_dry_run(decision);
	/* Whose it is, and what it asks for, was not read. */
	if (rejected)
		a->is_record = 1;
	else
		asked_of_request(w, a);
	return 0;
}

/* The name of the resource, or the first segment of the path, from this packet. */
__noinline int remember_resource(struct __sk_buff *skb, struct work *w)
{
	const struct weir_path *p;
	__u32 at;
	__u64 subject;

	if (!w)
		return 0;
	p = &w->request.request.path;
	at = w->decision.attributes.flags & WEIR_ATTRIBUTE_RESOURCE ? w->decision.attributes.resource_at : 0;
	if (at >= WEIR_PATH_SEGMENTS)
		return 0;
	subject = weir_path_subject(p, at);
	if (!subject || bpf_map_lookup_elem(&names, &subject))
		return 0;
	w = work_of(w->hook);
	if (!w)
		return 0;
	__builtin_memset(&w->entry.name, 0, sizeof(w->entry.name));
	w->entry.name.kind = WEIR_NAME_NAMESPACE;
	if (!read_name(skb, w, p->segments[at].offset, p->segments[at].length))
		bpf_map_update_elem(&names, &subject, &w->entry.name, BPF_ANY);
	return 0;
}

/* Those of its names that are not known yet. */
__noinline int remember_asked(struct __sk_buff *skb, struct work *w)
{
	if (!w)
		return 0;
	find_client(w->hook);
	remember_name(skb, w->hook, WEIR_KEY_USER);
	remember_name(skb, w->hook, WEIR_KEY_NAMESPACE);
	return remember_resource(skb, w);
}

struct top_walk {
	struct __sk_buff *skb;
	struct work *work;
};

/* Of the latest request alone the reader still says where its names stand; those of others are remembered when they come again. */
static long top_step(__u32 i, struct top_walk *walk)
{
	struct weir_asked *a = bpf_map_lookup_elem(&asked, &i);
	struct work *w = walk->work;

	if (!a)
		return 1;
	a->can_name = !a->is_record && i + 1 == w->tally.n_asked && a->start == w->request.start && w->request.whole;
	if (heavy_count(a) == HEAVY_NAMELESS)
		remember_asked(walk->skb, w);
	return 0;
}

/* The packet is committed, and stands as it came. */
__noinline int top_count(struct __sk_buff *skb, struct work *w)
{
	struct top_walk walk = { .skb = skb, .work = w };

	if (!w)
		return 0;
	bpf_loop(w->tally.n_asked, top_step, &walk, 0);
	return 0;
}

#endif
