/* SPDX-License-Identifier: GPL-2.0 */
/* Who makes the load, where no more is known than the source: records, and connections. For tc and for XDP. */
#ifndef WEIR_BPF_TOP_SOURCE_H
#define WEIR_BPF_TOP_SOURCE_H

#include "heavy.h"
#include "identify.h"

/* The requests of a packet, and behind them a place of each hook's for records. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_TRACE_REQUESTS + HOOKS);
	__type(key, __u32);
	__type(value, struct weir_asked);
} asked SEC(".maps");

/* After find_client(). */
static __always_inline void asked_begin(struct work *w, struct weir_asked *a)
{
	__builtin_memset(a, 0, sizeof(*a));
	client_address(w, a->address);
	a->has_address = 1;
	a->first_ns = a->last_ns = w->now_ns;
	a->server = w->server;
	a->slot = WEIR_ASKED_NO_SLOT;
}

static __always_inline struct weir_asked *asked_of_source(struct work *w)
{
	__u32 index = WEIR_TRACE_REQUESTS + w->hook;
	struct weir_asked *a = bpf_map_lookup_elem(&asked, &index);

	if (!a)
		return NULL;
	find_client(w->hook);
	asked_begin(w, a);
	return a;
}

/* Records of a connection that cannot be read: so many have passed, of these so many by a dry run alone, and so many have to wait. */
__noinline int top_records(__u32 hook, __u32 passed, __u32 dry_run, __u32 held)
{
	struct work *w = work_of(hook);
	struct weir_asked *a;

	if (!w || !(passed | held))
		return 0;
	a = asked_of_source(w);
	if (!a)
		return 0;
	a->is_record = 1;
	a->counts.requests = passed;
	a->counts.dry_run = dry_run;
	a->counts.held = held;
	heavy_count(a);
	return 0;
}

/* A connection, and what became of it: enum weir_reason, of the group ADMISSION. */
__noinline int top_connection(__u32 hook, __u32 became)
{
	struct work *w = work_of(hook);
	struct weir_asked *a;

	if (!w)
		return 0;
	a = asked_of_source(w);
	if (!a)
		return 0;
	a->connects = 1;
	a->counts.requests = 1;
	a->counts.refused = became == WEIR_ADMISSION_DROPPED || became == WEIR_ADMISSION_RESET;
	a->counts.dry_run = became == WEIR_ADMISSION_DRY_RUN;
	heavy_connection(a);
	return 0;
}

#endif
