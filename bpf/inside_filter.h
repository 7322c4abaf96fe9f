/* SPDX-License-Identifier: GPL-2.0 */
/* Where a server may refuse: all of a request is read before it is decided, in the filter of API Priority and Fairness. */
#ifndef WEIR_BPF_INSIDE_FILTER_H
#define WEIR_BPF_INSIDE_FILTER_H

#include "inside.h"

/*
 * Reads all that is to be known of the goroutine's request. Verifiers check a global function once, wherever it is called: as a part of
 * the loop below it took Linux 7.3 more than a million instructions.
 */
__noinline int inside_read_kept(__u64 goroutine, __u32 process_id)
{
	struct weir_inside_key key = { .goroutine = goroutine, .process = process_id };
	struct weir_inside_process *process = bpf_map_lookup_elem(&inside_processes, &process_id);
	const struct weir_server *server = process ? server_of(process->server) : NULL;
	struct inside_request *r = bpf_map_lookup_elem(&inside_requests, &key);

	if (!server || !r)
		return 0;
	inside_read_http(r, process, NULL);
	if (!r->on_wire)
		r->unread = r->unread ?: inside_read_context(r, process, server);
	return 0;
}

/* What is not there at the moment is waited for. No bpf_loop(): with a callback's frame, calls would be one too deep. */
static __always_inline void inside_read_patiently(struct inside_request *r)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < INSIDE_WAITS; i++) {
		inside_read_kept(r->key.goroutine, r->key.process);
		if (r->on_wire || r->unread != WEIR_INSIDE_UNREADABLE || !inside_wait())
			break;
		r->now_ns = bpf_ktime_get_ns();
	}
}

/*
 * The filter of API Priority and Fairness begins. The program may sleep, but it cannot decide: Linux lets none that sleeps look for a
 * source among networks (6.18 refuses it).
 */
SEC("uprobe.s")
int weir_inside_filter(struct pt_regs *ctx)
{
	struct inside_hit hit = {};
	struct inside_request *r;

	own_stack();
	if (!inside_hits_asleep(ctx, &hit))
		return 0;
	r = inside_keep(hit.process, &hit.key, inside_register(ctx, hit.process->layout.filtered_in));
	if (r)
		inside_read_patiently(r);
	return 0;
}

/* --- what later places take of it */

/* A filter that is older may have been another request's, which has gone on in another goroutine. */
#define INSIDE_FILTERED_NS WEIR_NS_PER_S

static __always_inline bool inside_is_undecided(const struct inside_request *r)
{
	return r && r->decision == WEIR_REASON_NONE;
}

static __always_inline bool inside_is_filtered(const struct inside_request *r)
{
	return inside_is_undecided(r) && bpf_ktime_get_ns() - r->now_ns <= INSIDE_FILTERED_NS;
}

/* FILTER has read all of it. */
static __always_inline bool inside_is_whole(const struct inside_request *r)
{
	return inside_is_undecided(r) && r->unread == INSIDE_READ && r->found == INSIDE_HAS_BOTH;
}

static __always_inline bool inside_is_read(const struct inside_request *r)
{
	return inside_is_whole(r) && inside_is_filtered(r);
}

#endif
