/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tells who traces what became of each request. A packet's requests are noted as they are decided and written to the
 * ring when the packet is committed: one that is dropped comes again, and is decided again.
 */
#ifndef WEIR_BPF_TRACE_H
#define WEIR_BPF_TRACE_H

#include "weir/conn/trace.h"

#include "names_read.h"
#include "sample.h"
#include "work.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_TRACE_REQUESTS);
	__type(key, __u32);
	__type(value, struct weir_trace);
} noted SEC(".maps");

/* Is the request told of? decision: enum weir_reason, of the group DECISION */
static __always_inline bool trace_wants(const struct work *w, __u32 decision)
{
	if (w->settings.tracing)
		return true;
	return (decision == WEIR_SHED || decision == WEIR_REJECTED) && sample_refusal(w->server, w->now_ns);
}

struct trace_walk {
	struct __sk_buff *skb;
	struct work *work;
};

/* Each is written down, and kept if it refused: a branch would double what verifiers follow, for each of them. */
static __always_inline void trace_refusals(const struct work *w, struct weir_trace *t, __u32 refused)
{
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		t->refused[t->n_refused & (WEIR_MATCHES_MAX - 1)] = w->decision.limits[n];
		t->n_refused += refused >> n & 1;
	}
}

/* Whom it is of, as w->decision has it. */
static __always_inline void trace_whose(struct __sk_buff *skb, struct work *w, struct weir_trace *t)
{
	t->user = w->decision.identity.user;
	t->groups = w->decision.identity.groups;
	t->by = w->decision.identity.by;
	t->attributes.namespace = w->decision.identity.namespace;
	find_client(w->hook);
	remember_name(skb, w->hook, WEIR_KEY_USER);
	if (w->decision.identity.namespace)
		remember_name(skb, w->hook, WEIR_KEY_NAMESPACE);
}

/* Nobody has read whom a rejected request is of. What w->decision has is of another one: maybe of somebody else's. */
static __always_inline void trace_client(struct work *w, struct weir_trace *t)
{
	__u8 address[16] __attribute__((aligned(8)));

	find_client(w->hook);
	client_address(w, address);
	t->user = weir_subject_of_address(w->settings.seed, WEIR_NAME_ADDRESS, address);
	t->by = WEIR_IDENTIFIED_BY_NOBODY;
	remember_address(w->hook, t->user);
}

/* The request whose head has just been read, and what became of it: enum weir_reason, of the group DECISION. */
__noinline int trace_note(struct __sk_buff *skb, struct work *w, __u32 decision)
{
	bool refused = decision == WEIR_SHED || decision == WEIR_DRY_RUN_SHED;
	struct weir_trace *t;
	__u32 index;

	if (!w)
		return 0;
	index = w->tally.n_traced;
	t = bpf_map_lookup_elem(&noted, &index);
	if (!t)
		return 0;
	w->tally.n_traced++;
	__builtin_memset(t, 0, sizeof(*t));
	weir_trace_request(t, &w->request, &w->decision.attributes, &w->packet.segment);
	t->time_ns = w->now_ns;
	t->server = w->server;
	t->decision = decision;
	if (refused)
		trace_refusals(w, t,
			       decision == WEIR_SHED ? w->decision.refused :
						       w->decision.refused | w->decision.overlooked);
	t->retry_s = refused ? w->decision.retry_s : 0;
	t->named = w->decision.slowest;
	if (decision == WEIR_REJECTED || decision == WEIR_DRY_RUN_REJECTED)
		trace_client(w, t);
	else
		trace_whose(skb, w, t);
	t->client_port = w->packet.source_port;
	__builtin_memcpy(t->client, w->whose.peer.address, sizeof(t->client));
	return 0;
}

static long trace_step(__u32 i, struct trace_walk *walk)
{
	struct work *w = walk->work;
	struct weir_trace *t = bpf_map_lookup_elem(&noted, &i);
	__u32 kept, at;

	if (!t)
		return 1;
	kept = t->line_kept;
	at = t->start - w->packet.segment.seq;
	w->entry.record.trace = *t;
	if (kept) {
		kept = ((kept - 1) & (WEIR_TRACE_LINE - 1)) + 1; /* as it is: for the verifier */
		if (bpf_skb_load_bytes(walk->skb, w->packet.payload + at, w->entry.record.line, kept))
			w->entry.record.trace.line_kept = kept = 0;
	}
	if (bpf_ringbuf_output(&trace, &w->entry.record, sizeof(*t) + kept, 0))
		count(w->server, WEIR_TRACE_LOST);
	return 0;
}

/* The packet is committed, and stands as it came. */
__noinline int trace_write(struct __sk_buff *skb, struct work *w)
{
	struct trace_walk walk = { .skb = skb, .work = w };

	if (!w)
		return 0;
	bpf_loop(w->tally.n_traced, trace_step, &walk, 0);
	return 0;
}

#endif
