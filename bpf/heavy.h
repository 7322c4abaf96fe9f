/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who makes the load (include/weir/top/heavy.h): the map `heavy`. Any program may count here, whatever it is attached to:
 * there are no locks, and nothing is known of packets.
 */
#ifndef WEIR_BPF_HEAVY_H
#define WEIR_BPF_HEAVY_H

#include "weir/top/asked.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_HEAVY_SETS);
	__type(key, __u32);
	__type(value, struct weir_heavy_set);
} heavy SEC(".maps");

/* Counts one row. by: enum weir_heavy_by. Returns enum weir_heavy_outcome. */
__noinline int heavy_add(const struct weir_asked *asked, __u32 by)
{
	struct weir_heavy_what what;
	struct weir_heavy_set *set;
	__u64 key;
	__u32 at;

	if (!asked || !weir_asked_what(asked, by, &what))
		return WEIR_HEAVY_COUNTED;
	key = weir_heavy_key(&what, asked->source);
	at = weir_heavy_set_of(key);
	set = bpf_map_lookup_elem(&heavy, &at);
	return set ? weir_heavy_add(set, key, &what, &asked->counts, asked->now_ns, asked->can_name) :
		     WEIR_HEAVY_CONTENDED;
}

/* Counts all rows of a request. Returns a bit (1 << enum weir_heavy_by) for each whose names are to be remembered. */
__noinline int heavy_count(const struct weir_asked *asked)
{
	int nameless = 0;

	if (!asked)
		return 0;
#pragma GCC unroll 8
	for (__u32 by = 0; by < WEIR_HEAVY_CONNECTION; by++) {
		if (heavy_add(asked, by) == WEIR_HEAVY_NAMELESS)
			nameless |= 1 << by;
	}
	return nameless;
}

#endif
