/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet's requests are decided one after the other, and it may turn out at the end that the packet cannot be committed: it comes
 * again, and so do they. What the latest one took is in the working memory; what those before it took is kept here until
 * then, so that all of it can go back.
 */
#ifndef WEIR_BPF_UNDO_PACKET_H
#define WEIR_BPF_UNDO_PACKET_H

#include "tally.h"
#include "undo.h"
#include "work.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_OUTSTANDING_MAX);
	__type(key, __u32);
	__type(value, struct decided);
} decided SEC(".maps");

static __always_inline void decision_keep(struct work *w)
{
	__u32 index = w->tally.n_decided;
	struct decided *kept = bpf_map_lookup_elem(&decided, &index);

	/* Nothing is kept of one that took nothing, nor was refused anything. */
	if (!kept || !(w->decision.charged | w->decision.refused | w->decision.overlooked))
		return;
	w->tally.n_decided++;
	decided_keep(kept, &w->decision);
}

/* What bpf_loop() hands to its callbacks must be on the stack. */
struct decided_walk {
	struct work *work;
};

/* 1: that was all. */
static long tally_step(__u32 i, struct decided_walk *walk)
{
	struct decided *kept = bpf_map_lookup_elem(&decided, &i);

	if (!kept)
		return 1;
	tally_decided(kept, walk->work->server, walk->work->server_flags);
	return 0;
}

/* The packet is committed, and all of its decisions stand. */
static __always_inline void tally_packet(struct work *w)
{
	struct decided_walk walk = { .work = w };

	tally_latest(&w->decision);
	if (w->tally.n_decided)
		bpf_loop(w->tally.n_decided, tally_step, &walk, 0);
}

/* 1: that was all. */
static long undo_step(__u32 i, struct decided_walk *walk)
{
	struct decision *d = &walk->work->decision;
	struct decided *kept = bpf_map_lookup_elem(&decided, &i);

	if (!kept)
		return 1;
	decided_recall(d, kept);
	each_limit(d, terms_again);
	undo_decision(d);
	return 0;
}

/* The packet is not committed: as if none of its requests had been asked for. What has gone back once is not known any more. */
__noinline int undo_packet(struct work *w)
{
	struct decided_walk walk = { .work = w };
	__u32 n;

	if (!w)
		return 0;
	/* Else the draft is not of this packet: it is another server's, or that of a connection that was admitted. */
	if (w->decision.traits & WEIR_SERVER_IN_FLIGHT)
		seats_undo(&w->decision, true);
	undo_decision(&w->decision);
	n = w->tally.n_decided;
	w->tally.n_decided = 0;
	bpf_loop(n, undo_step, &walk, 0);
	return 0;
}

#endif
