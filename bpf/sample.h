/* SPDX-License-Identifier: GPL-2.0 */
/* Refusals that are told of though nobody traces: some of each server. */
#ifndef WEIR_BPF_SAMPLE_H
#define WEIR_BPF_SAMPLE_H

#include "weir/conn/trace.h"

#include "maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WEIR_MAX_SERVERS);
	__type(key, __u32);
	__type(value, struct weir_sample);
} samples SEC(".maps");

/* Is this refusal one of them? Those that are not are counted. */
static __always_inline bool sample_refusal(__u32 server, __u64 now_ns)
{
	struct weir_sample *s = bpf_map_lookup_elem(&samples, &server);

	if (s && weir_sample_take(s, now_ns))
		return true;
	count(server, WEIR_EVENTS_SKIPPED);
	return false;
}

#endif
