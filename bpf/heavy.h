/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who makes the load: the cache `recent` (include/weir/top/recent.h) and the rows `heavy` (include/weir/top/heavy.h) behind it.
 * Any program may count here, whatever it is attached to: there are no locks, and nothing is known of packets.
 */
#ifndef WEIR_BPF_HEAVY_H
#define WEIR_BPF_HEAVY_H

#include "maps.h"
#include "weir/top/recent.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_HEAVY_SETS);
	__type(key, __u32);
	__type(value, struct weir_heavy_set);
} heavy SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_RECENT_SETS);
	__type(key, __u32);
	__type(value, struct weir_recent_set);
} recent SEC(".maps");

/* --- the rows */

#define HEAVY_HERE (~0U) /* the CPU that the program runs on */

static __always_inline void heavy_source(struct weir_asked *asked)
{
	struct weir_settings *set;
	__u32 zero = 0;

	if (!asked->has_address || asked->source)
		return;
	set = bpf_map_lookup_elem(&settings, &zero);
	if (set)
		asked->source = weir_asked_source(set->seed, asked->address);
}

/* Counts one row, of a CPU. by: enum weir_heavy_by. */
__noinline int heavy_add(const struct weir_asked *asked, __u32 by, __u32 cpu)
{
	struct weir_heavy_what what;
	struct weir_heavy_set *set;
	__u64 key;
	__u32 at;

	if (!asked || !weir_asked_what(asked, by, &what))
		return WEIR_HEAVY_COUNTED;
	key = weir_heavy_key(&what, asked->source);
	at = weir_heavy_set_of(key);
	set = cpu == HEAVY_HERE ? bpf_map_lookup_elem(&heavy, &at) : bpf_map_lookup_percpu_elem(&heavy, &at, cpu);
	return set ? weir_heavy_add(set, key, &what, &asked->counts, asked->first_ns, asked->last_ns) :
		     WEIR_HEAVY_CONTENDED;
}

/* Counts all rows of what was asked for. */
__noinline int heavy_rows(struct weir_asked *asked, __u32 cpu)
{
	if (!asked)
		return 0;
	heavy_source(asked);
	for (__u32 by = 0; by < WEIR_HEAVY_CONNECTION; by++)
		heavy_add(asked, by, cpu);
	return 0;
}

/* Counts a connection in the rows at once. Connections come from many addresses, which would only drive each other out of the cache. */
static __always_inline void heavy_connection(struct weir_asked *asked)
{
	heavy_source(asked);
	heavy_add(asked, WEIR_HEAVY_CONNECTION, HEAVY_HERE);
}

/* --- the cache */

/* A BUSY entry's counts move to the rows of its CPU. */
static __always_inline void recent_move(struct weir_recent *entry, __u32 cpu)
{
	weir_recent_take(entry);
	heavy_rows(&entry->asked, cpu);
}

/* Are the names of those for whom a request counts to be remembered? */
enum heavy_names {
	HEAVY_NAMED,	/* no: they were, a moment ago */
	HEAVY_NAMELESS, /* yes */
	HEAVY_CROWD,	/* no: the request is new here, and may be one of a crowd that passes by */
};

/* The request has no entry in the cache, and gets one. Returns enum heavy_names. */
__noinline int recent_begin(struct weir_recent_set *set, struct weir_asked *asked)
{
	struct weir_recent *entry;
	bool nameless;
	__u64 old;
	__u32 at;

	if (!set || !asked)
		return HEAVY_CROWD;
	at = weir_recent_oldest(set) & (WEIR_RECENT_WAYS - 1);
	old = WEIR_FRESH(set->keys[at]);
	if (old == WEIR_HEAVY_BUSY || __sync_val_compare_and_swap(&set->keys[at], old, WEIR_HEAVY_BUSY) != old) {
		heavy_rows(asked, HEAVY_HERE);
		return HEAVY_CROWD;
	}
	entry = &set->entries[at];
	if (old != WEIR_HEAVY_FREE && !weir_recent_is_counted(entry))
		recent_move(entry, HEAVY_HERE);
	nameless = weir_recent_begin(entry, asked, old == WEIR_HEAVY_FREE);
	__sync_val_compare_and_swap(&set->keys[at], WEIR_HEAVY_BUSY, weir_recent_key(asked));
	return nameless ? HEAVY_NAMELESS : HEAVY_CROWD;
}

/* Reads where a request that is like the latest ones will be counted: so the CPU waits for that while limits are asked. */
static __always_inline void heavy_fetch(const struct weir_asked *asked)
{
	__u32 at = weir_recent_set_of(weir_recent_key(asked));
	struct weir_recent_set *set = bpf_map_lookup_elem(&recent, &at);

	if (WEIR_LIKELY(set)) {
		WEIR_FRESH(set->keys[0]);
		WEIR_FRESH(set->entries[0].asked.last_ns);
		WEIR_FRESH(set->entries[0].named);
	}
}

/* Counts a request, or records. Returns enum heavy_names. */
static __always_inline int heavy_count(struct weir_asked *asked)
{
	struct weir_recent_set *set;
	__u64 key = weir_recent_key(asked);
	__u32 at = weir_recent_set_of(key);

	set = bpf_map_lookup_elem(&recent, &at);
	if (!set)
		return HEAVY_CROWD;
	at = weir_recent_find(set, key, asked);
	if (WEIR_LIKELY(at < WEIR_RECENT_WAYS))
		return weir_recent_again(&set->entries[at], asked) ? HEAVY_NAMELESS : HEAVY_NAMED;
	return recent_begin(set, asked);
}

#endif
