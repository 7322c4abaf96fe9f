/* SPDX-License-Identifier: GPL-2.0 */
/* The table of connections that limits on them have admitted: when an entry begins, and when its seats go back. */
#ifndef WEIR_BPF_ADMITTED_H
#define WEIR_BPF_ADMITTED_H

#include "weir/admission/admission.h"

#include "admission.h"
#include "in_flight.h"
#include "work.h"

/* Takes the entry away if it still is what was found, and gives its seats back. 1: it is gone. */
__noinline int admitted_end(const struct weir_flow *flow, __u64 word)
{
	struct weir_admitted *a;
	struct weir_flow key;
	struct weir_seats out;

	if (!flow || weir_admitted_state(word) == WEIR_ADMITTED_GONE)
		return 0;
	key = *flow;
	a = bpf_map_lookup_elem(&admitted, &key);
	if (!a || __sync_val_compare_and_swap(&a->word, word, weir_admitted_become(word, WEIR_ADMITTED_GONE)) != word)
		return 0;
	for (__u32 i = 0; i < WEIR_SEAT_SLOTS; i++) {
		out = a->seats[i];
		if (out.taken)
			in_flight_give(&out.key, out.taken);
	}
	bpf_map_delete_elem(&admitted, &key);
	return 1;
}

/* The kernel has made no socket of it. */
static int admitted_expire(void *map __attribute__((unused)), struct weir_flow *key, struct weir_admitted *a)
{
	struct weir_flow flow = *key; /* functions that are verified by themselves do not take a map's key */
	__u64 word = a->word;

	if (weir_admitted_waits(word))
		admitted_end(&flow, word);
	return 0;
}

/* The kernel may have no memory for a timer at that moment: then the agent's sweep finds that there is no socket. */
static __always_inline void admitted_watch(struct weir_admitted *a)
{
	if (bpf_timer_init(&a->timer, &admitted, 1 /* CLOCK_MONOTONIC */))
		return;
	bpf_timer_set_callback(&a->timer, admitted_expire);
	bpf_timer_start(&a->timer, WEIR_EMBRYO_NS, 0);
}

enum admitted_kept {
	ADMITTED_KEPT,
	ADMITTED_BEFORE,  /* by another segment of its handshake, just now */
	ADMITTED_NO_ROOM, /* nobody counts it from now on */
};

static __always_inline int admitted_add(struct work *w)
{
	struct weir_admitted *a;
	long ret = bpf_map_update_elem(&admitted, &w->packet.flow, &w->entry.admitted, BPF_NOEXIST);

	if (ret)
		return ret == -EEXIST ? ADMITTED_BEFORE : ADMITTED_NO_ROOM;
	a = bpf_map_lookup_elem(&admitted, &w->packet.flow);
	if (a)
		admitted_watch(a);
	return ADMITTED_KEPT;
}

/* The packet's connection was admitted, and has taken the decision's seats. Says enum admitted_kept. */
__noinline int admitted_keep(__u32 hook)
{
	struct work *w = work_of(hook);
	int kept;

	if (!w)
		return ADMITTED_NO_ROOM;
	w->entry.admitted.word = weir_admitted_word(w->now_ns, WEIR_ADMITTED_EMBRYO);
	w->entry.admitted.isn = weir_segment_answers(&w->packet.segment);
	w->entry.admitted.server = w->server;
	for (__u32 i = 0; i < WEIR_SEAT_SLOTS; i++)
		w->entry.admitted.seats[i] = w->decision.seats[i].now;
	kept = admitted_add(w);
	if (kept != ADMITTED_NO_ROOM)
		return kept;
	seats_undo(&w->decision, true);
	count(w->server, WEIR_ADMISSION_NO_ROOM);
	return kept;
}

/*
 * The limits are asked for the connection whose handshake the packet completes. Says what becomes of it, and counts that. Its segments may
 * be here on several CPUs at once: one of them counts.
 */
static __always_inline int admission_take(struct work *w)
{
	int became = admission_decide(w->hook);
	bool kept = true;

	if (became == WEIR_ADMITTED || became == WEIR_ADMISSION_DRY_RUN)
		kept = admitted_keep(w->hook) != ADMITTED_BEFORE;
	w->decision.connects = 0;
	if (!kept) {
		undo_decision(&w->decision);
		return WEIR_ADMITTED;
	}
	tally_decision(&w->decision);
	count(w->server, became);
	top_connection(w->hook, became);
	return became;
}

/* The handshake of a connection is complete. What has no seats need not be known any more. */
static __always_inline void admitted_begins(const struct weir_flow *flow)
{
	struct weir_admitted *a = bpf_map_lookup_elem(&admitted, flow);
	bool has = false;
	__u64 word;

	if (!a)
		return;
	word = a->word;
	if (!weir_admitted_waits(word))
		return;
	for (__u32 i = 0; i < WEIR_SEAT_SLOTS; i++)
		has |= !!a->seats[i].taken;
	if (has)
		__sync_val_compare_and_swap(&a->word, word, weir_admitted_become(word, WEIR_ADMITTED_OPEN));
	else
		admitted_end(flow, word);
}

/* A RST of the connection's client passes. */
static __always_inline void admitted_reset(const struct weir_flow *flow)
{
	struct weir_admitted *a = bpf_map_lookup_elem(&admitted, flow);
	__u64 word;

	if (!a)
		return;
	word = a->word;
	if (weir_admitted_state(word) == WEIR_ADMITTED_EMBRYO)
		__sync_val_compare_and_swap(&a->word, word, weir_admitted_become(word, WEIR_ADMITTED_ENDING));
}

/* Its socket has ended. */
static __always_inline void admitted_ends(const struct weir_flow *flow)
{
	struct weir_admitted *a = bpf_map_lookup_elem(&admitted, flow);

	if (a)
		admitted_end(flow, a->word);
}

#endif
