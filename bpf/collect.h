/* SPDX-License-Identifier: GPL-2.0 */
/* Before somebody reads who makes the load, all of it is brought to the rows: one CPU's after the other's, some sets at a time. */
#ifndef WEIR_BPF_COLLECT_H
#define WEIR_BPF_COLLECT_H

#include "heavy.h"
#include "packet.h"

static __always_inline void collect_entry(struct weir_recent_set *set, __u32 at, __u32 cpu)
{
	__u64 key = WEIR_FRESH(set->keys[at]);

	if (key == WEIR_HEAVY_FREE || key == WEIR_HEAVY_BUSY || weir_recent_is_counted(&set->entries[at]))
		return;
	if (__sync_val_compare_and_swap(&set->keys[at], key, WEIR_HEAVY_BUSY) != key)
		return;
	recent_move(&set->entries[at], cpu);
	__sync_val_compare_and_swap(&set->keys[at], WEIR_HEAVY_BUSY, key);
}

static long collect_step(__u32 i, struct weir_collect *from)
{
	__u32 at = from->first + i;
	struct weir_recent_set *set = bpf_map_lookup_percpu_elem(&recent, &at, from->cpu);

	if (!set)
		return 1;
#pragma GCC unroll 4
	for (__u32 way = 0; way < WEIR_RECENT_WAYS; way++)
		collect_entry(set, way, from->cpu);
	return 0;
}

SEC("tc")
int weir_collect(struct __sk_buff *skb)
{
	struct weir_collect from;

	if (!bpf_skb_load_bytes(skb, ETHERNET_BYTES, &from, sizeof(from)))
		bpf_loop(WEIR_COLLECT_SETS, collect_step, &from, 0);
	return 0;
}

#endif
