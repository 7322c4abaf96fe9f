/* SPDX-License-Identifier: GPL-2.0 */
/* Where a server may refuse: all of a request is read before it is decided, in the filter of API Priority and Fairness. */
#ifndef WEIR_BPF_INSIDE_FILTER_H
#define WEIR_BPF_INSIDE_FILTER_H

#include "inside.h"

#define INSIDE_WAITS 64 /* for what is missing, at most: in as many places */

struct inside_read_turn {
	struct inside_request *request;
	struct weir_inside_process *process;
};

/* Reads all that is to be known of the request. What is not there at the moment is waited for. */
static long inside_read_step(__u32 i, struct inside_read_turn *turn)
{
	struct inside_request *r = turn->request;

	(void)i;
	inside_read_http(r, turn->process);
	if (r->on_wire)
		return 1;
	r->unread = r->unread ?: inside_read_context(r, turn->process);
	if (r->unread != WEIR_INSIDE_UNREADABLE || !inside_wait())
		return 1;
	r->now_ns = bpf_ktime_get_ns();
	return 0;
}

/*
 * The filter of API Priority and Fairness begins. The program may sleep, but it cannot decide: Linux lets none that sleeps look for a
 * source among networks (6.18 refuses it).
 */
SEC("uprobe.s")
int weir_inside_filter(struct pt_regs *ctx)
{
	struct weir_inside_key key = {};
	struct weir_inside_process *process = inside_here(ctx, &key);
	struct inside_read_turn turn = { .process = process };

	own_stack_asleep();
	if (!process)
		return 0;
	turn.request = inside_keep(process, &key, inside_register(ctx, process->layout.filtered_in));
	if (turn.request)
		bpf_loop(INSIDE_WAITS, inside_read_step, &turn, 0);
	return 0;
}

/* --- what later places take of it */

/* A filter that is older was another request's, which has gone on in another goroutine. */
#define INSIDE_FILTERED_NS WEIR_NS_PER_S

static __always_inline bool inside_is_filtered(const struct inside_request *r)
{
	return r && r->decision == WEIR_REASON_NONE && bpf_ktime_get_ns() - r->now_ns <= INSIDE_FILTERED_NS;
}

/* FILTER has read all of it. */
static __always_inline bool inside_is_read(const struct inside_request *r)
{
	return inside_is_filtered(r) && r->unread == INSIDE_READ && r->found == INSIDE_HAS_BOTH;
}

#endif
