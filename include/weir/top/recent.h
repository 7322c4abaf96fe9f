/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who has asked for what of late: a small cache before the rows of weir/top/heavy.h. A request has up to seven rows there, and
 * most requests ask what was asked a moment ago: by the same user, from the same address, for the same. So all of that is one
 * entry here, and one count. An entry's counts move to the rows when it gives way to another (the one that was used
 * least recently), and before anybody reads the rows (bpf/heavy.h).
 *
 * Each CPU has a cache of its own. A key is BUSY while its entry changes hands or its counts are moved. Who finds it so counts
 * in the rows at once, so nobody waits. Counts are taken out by exchange: what another CPU adds meanwhile stays for the next
 * time. As in the rows, a program that was interrupted between finding its entry and adding to it may find another there: its
 * one count is that one's.
 */
#ifndef WEIR_TOP_RECENT_H
#define WEIR_TOP_RECENT_H

#include "weir/top/asked.h"

#define WEIR_RECENT_WAYS 4U
#define WEIR_RECENT_SETS 256U /* of one CPU; a power of 2 */

struct weir_recent {
	struct weir_heavy_counts counts; /* those that are not in the rows */
	struct weir_asked asked;	 /* whom they are of, and from when to when; its counts are those that move */
	__u32 named;			 /* epoch in which its names were remembered last */
	__u32 pad;
};
WEIR_ASSERT_SIZE(struct weir_recent, 160);

struct weir_recent_set {
	__u64 keys[WEIR_RECENT_WAYS]; /* as those of struct weir_heavy_set */
	struct weir_recent entries[WEIR_RECENT_WAYS];
};
WEIR_ASSERT_SIZE(struct weir_recent_set, 672);

/* Input of the program weir_collect: the counts of a CPU's next WEIR_COLLECT_SETS sets are moved to its rows. */
#define WEIR_COLLECT_SETS 64U
struct weir_collect {
	__u32 cpu;
	__u32 first; /* set */
};
WEIR_ASSERT_SIZE(struct weir_collect, 8);

/*
 * Subjects are keyed hashes: nobody can choose users or namespaces whose keys fall together. Addresses are none, and are
 * compared.
 */
WEIR_INLINE __u64 weir_recent_key(const struct weir_asked *asked)
{
	__u64 key = asked->user ^ weir_heavy_rotate(asked->namespace, 21) ^ weir_heavy_rotate(asked->resource, 42);
	__u64 address[2];

	__builtin_memcpy(address, asked->address, sizeof(address));
	key ^= ((__u64)asked->slot << 32 | (__u32)asked->server << 16 | (__u32)asked->verb << 8 |
		(__u32)asked->is_path << 1 | asked->is_record) *
	       0x9e3779b97f4a7c15ULL;
	key ^= (address[0] ^ asked->epoch) * 0xbf58476d1ce4e5b9ULL;
	key ^= address[1] * 0x94d049bb133111ebULL;
	return weir_heavy_mixed(key);
}

WEIR_INLINE __u32 weir_recent_set_of(__u64 key)
{
	return key & (WEIR_RECENT_SETS - 1);
}

WEIR_INLINE bool weir_recent_is_from(const struct weir_recent *entry, const struct weir_asked *asked)
{
	__u64 there[2], wanted[2];

	__builtin_memcpy(there, entry->asked.address, sizeof(there));
	__builtin_memcpy(wanted, asked->address, sizeof(wanted));
	return there[0] == wanted[0] && there[1] == wanted[1];
}

/* WEIR_RECENT_WAYS: it has no entry. Which of the keys is the first one is counted: who compared them would jump each time. */
WEIR_INLINE __u32 weir_recent_find(const struct weir_recent_set *set, __u64 key, const struct weir_asked *asked)
{
	__u64 others = 1;
	__u32 at = 0;

#pragma GCC unroll 4
	for (__u32 i = 0; i < WEIR_RECENT_WAYS; i++) {
		others &= weir_differ(set->keys[i], key);
		at += others;
	}
	if (WEIR_UNLIKELY(at >= WEIR_RECENT_WAYS) || WEIR_UNLIKELY(!weir_recent_is_from(&set->entries[at], asked)))
		return WEIR_RECENT_WAYS;
	return at;
}

/* The one that gives way. */
WEIR_INLINE __u32 weir_recent_oldest(const struct weir_recent_set *set)
{
	__u64 least = ~0ULL;
	__u32 oldest = 0;

#pragma GCC unroll 4
	for (__u32 i = 0; i < WEIR_RECENT_WAYS; i++) {
		__u64 last_ns = set->keys[i] == WEIR_HEAVY_FREE ? 0 : set->entries[i].asked.last_ns;

		if (last_ns < least) {
			least = last_ns;
			oldest = i;
		}
	}
	return oldest;
}

/* Counts the entry's request once more. Returns whether its names are to be remembered now. */
WEIR_INLINE bool weir_recent_again(struct weir_recent *entry, const struct weir_asked *asked)
{
	__u32 epoch = weir_heavy_epoch(asked->last_ns);

	if (WEIR_UNLIKELY(!(entry->counts.requests | entry->counts.held)))
		entry->asked.first_ns = asked->first_ns;
	entry->asked.last_ns = asked->last_ns;
	weir_heavy_counts_add(&entry->counts, &asked->counts);
	if (WEIR_LIKELY(entry->named == epoch))
		return false;
	if (!asked->can_name)
		return false;
	entry->named = epoch;
	return true;
}

/*
 * A BUSY entry, of which everything has been counted, becomes that of *asked. A crowd that passes by is not worth names: where
 * somebody has to give way who came a moment ago, those who come again get theirs, and one in 16 at once. Returns whether they
 * are to be remembered now.
 */
WEIR_INLINE bool weir_recent_begin(struct weir_recent *entry, const struct weir_asked *asked, bool was_free)
{
	__u32 epoch = weir_heavy_epoch(asked->last_ns);
	bool quiet = was_free || epoch - weir_heavy_epoch(entry->asked.last_ns) > 1;
	/* One in 16, by time, at once: a crowd may be one user who never asks for the same twice. */
	bool nameless = asked->can_name && (quiet || !(asked->last_ns >> 6 & 15));
	/* A crowd behind a proxy has one address, which is hashed for its rows once. */
	__u64 source = weir_recent_is_from(entry, asked) ? entry->asked.source : asked->source;

	entry->asked = *asked;
	entry->asked.source = source;
	entry->counts = asked->counts;
	entry->named = nameless ? epoch : epoch - 1;
	return nameless;
}

WEIR_INLINE bool weir_recent_is_counted(const struct weir_recent *entry)
{
	const struct weir_heavy_counts *counts = &entry->counts;

	return !(counts->requests | counts->refused | counts->dry_run | counts->held);
}

/* Takes the counts out, to be moved. */
WEIR_INLINE void weir_recent_take(struct weir_recent *entry)
{
	struct weir_heavy_counts *taken = &entry->asked.counts;

	taken->requests = __sync_lock_test_and_set(&entry->counts.requests, 0);
	taken->refused = __sync_lock_test_and_set(&entry->counts.refused, 0);
	taken->dry_run = __sync_lock_test_and_set(&entry->counts.dry_run, 0);
	taken->held = __sync_lock_test_and_set(&entry->counts.held, 0);
}

#endif
