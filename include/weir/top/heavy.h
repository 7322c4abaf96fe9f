/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who makes the load: the heavy hitters of a stream of requests, counted in bounded memory, without locks.
 *
 * The algorithm is SpaceSaving (A. Metwally, D. Agrawal, A. El Abbadi, "Efficient Computation of Frequent and Top-k
 * Elements in Data Streams", ICDT 2005), in sets of WEIR_HEAVY_WAYS rows as a cache has them: a key belongs to one set,
 * and what finds no row of its own there takes over the lightest. Weights are halved every WEIR_HEAVY_EPOCH_NS, when a
 * row is next looked at, so that yesterday's load gives way to today's. Where all rows of a set have weight, only one in
 * WEIR_HEAVY_CROWD of those without one takes one over, and the others are passed by: a crowd of which nobody comes again
 * drives out so many fewer of those who do, and costs so many fewer rows that are written.
 *
 * Error: a key that has more than 1/WEIR_HEAVY_WAYS of the recent weight of its set comes to be there, and stays: on average
 * when WEIR_HEAVY_CROWD of its own were passed by. Keys are spread by a keyed hash, so that is about one part in
 * WEIR_HEAVY_SETS * WEIR_HEAVY_WAYS of all. Only weights are estimates, too high by what a row took over. The counts of a row
 * are exact from first_ns on: a row that is taken over begins at 0. What no row holds is the difference to the server's counters.
 *
 * Each CPU has a table of its own; who reads adds them up. Counts are added atomically, for a program of a task may be
 * interrupted by a softirq. One that takes over the row of a count that is just being added can get that one, too.
 */
#ifndef WEIR_TOP_HEAVY_H
#define WEIR_TOP_HEAVY_H

#include "weir/base/types.h"

#define WEIR_HEAVY_WAYS 8U
#define WEIR_HEAVY_SETS 1024U /* of one CPU; a power of 2 */
#define WEIR_HEAVY_CROWD 8U   /* a power of 2 */
#define WEIR_HEAVY_EPOCH_SHIFT 33
#define WEIR_HEAVY_EPOCH_NS (1ULL << WEIR_HEAVY_EPOCH_SHIFT) /* 8.6 s */

#define WEIR_HEAVY_FREE 0ULL
#define WEIR_HEAVY_BUSY (~0ULL) /* it is being taken over */

/* What rows are of. */
enum weir_heavy_by {
	WEIR_HEAVY_USER,       /* subjects: the user */
	WEIR_HEAVY_NAMESPACE,  /* the namespace */
	WEIR_HEAVY_VERB,       /* verb: enum weir_verb */
	WEIR_HEAVY_RESOURCE,   /* the resource; with is_path the first segment of the path, 0 where it has none */
	WEIR_HEAVY_SOURCE,     /* address */
	WEIR_HEAVY_LIMIT,      /* slot; subjects: the user whom it refused, the limit's epoch */
	WEIR_HEAVY_REQUEST,    /* user, namespace, resource and verb: who asks for what */
	WEIR_HEAVY_CONNECTION, /* address: who opens connections */
	WEIR_HEAVY_BYS,
};

struct weir_heavy_what {
	union {
		__u64 subjects[3]; /* in the order in which enum weir_heavy_by has them; 0: none */
		__u8 address[16];  /* network order, IPv4 as ::ffff:a.b.c.d, IPv6 cut to its /64 */
	};
	__u32 slot; /* of a limit */
	__u16 server;
	__u8 by;      /* enum weir_heavy_by */
	__u8 verb;    /* enum weir_verb */
	__u8 is_path; /* the resource is none of Kubernetes' */
	__u8 pad[7];
};
WEIR_ASSERT_SIZE(struct weir_heavy_what, 40);

struct weir_heavy_counts {
	__u64 requests;
	__u64 refused; /* of these: answered by weir */
	__u64 dry_run; /* of these: it would have refused them */
	__u64 held; /* records of connections that cannot be read which had to wait; or of the requests, those that are owed */
};
WEIR_ASSERT_SIZE(struct weir_heavy_counts, 32);

struct weir_heavy_row {
	struct weir_heavy_counts counts;
	__u64 first_ns, last_ns; /* CLOCK_MONOTONIC */
	struct weir_heavy_what what;
	__u32 weight; /* of a copy, as its reader wants it; in a set: nothing */
	__u32 pad;
};
WEIR_ASSERT_SIZE(struct weir_heavy_row, 96);

struct weir_heavy_weight {
	__u32 weight; /* as of epoch */
	__u32 epoch;  /* of WEIR_HEAVY_EPOCH_NS */
};

/* The keys of all rows stand together, so a look-up that finds none reads few cache lines. */
struct weir_heavy_set {
	__u64 keys[WEIR_HEAVY_WAYS];
	struct weir_heavy_weight weights[WEIR_HEAVY_WAYS];
	struct weir_heavy_row rows[WEIR_HEAVY_WAYS];
	__u32 crowd; /* how many found no row here, where all had weight */
	__u32 pad;
};
WEIR_ASSERT_SIZE(struct weir_heavy_set, 904);

enum weir_heavy_outcome {
	WEIR_HEAVY_COUNTED,
	WEIR_HEAVY_PASSED_BY, /* not counted: it has no row, nor gets one */
	WEIR_HEAVY_CONTENDED, /* not counted: somebody else has taken the row meanwhile */
};

WEIR_INLINE __u32 weir_heavy_epoch(__u64 now_ns)
{
	return now_ns >> WEIR_HEAVY_EPOCH_SHIFT;
}

WEIR_INLINE __u64 weir_heavy_rotate(__u64 x, __u32 bits)
{
	return x << bits | x >> (64 - bits);
}

/* Never FREE, never BUSY. */
WEIR_INLINE __u64 weir_heavy_mixed(__u64 key)
{
	key ^= key >> 32;
	key *= 0x9e3779b97f4a7c15ULL;
	key ^= key >> 29;
	return key == WEIR_HEAVY_FREE || key == WEIR_HEAVY_BUSY ? 1 : key;
}

/* Subjects are keyed hashes already; an address is told by `source`, a keyed hash of it. */
WEIR_INLINE __u64 weir_heavy_key(const struct weir_heavy_what *what, __u64 source)
{
	__u64 key = (__u64)what->slot << 32 | (__u32)what->server << 16 | (__u32)what->is_path << 15 |
		    (__u32)what->verb << 8 | what->by;

	key *= 0x9e3779b97f4a7c15ULL; /* 2^64 by the golden ratio */
	if (what->by == WEIR_HEAVY_SOURCE || what->by == WEIR_HEAVY_CONNECTION)
		key ^= source;
	else
		key ^= what->subjects[0] ^ weir_heavy_rotate(what->subjects[1], 21) ^
		       weir_heavy_rotate(what->subjects[2], 42);
	return weir_heavy_mixed(key);
}

WEIR_INLINE __u32 weir_heavy_set_of(__u64 key)
{
	return key & (WEIR_HEAVY_SETS - 1);
}

/* What is left of a row's weight. A CPU that is late may ask as of an epoch before the row's. */
WEIR_INLINE __u32 weir_heavy_weight(const struct weir_heavy_weight *w, __u32 epoch)
{
	__s32 age = epoch - w->epoch;

	return age > 31 ? 0 : w->weight >> (age > 0 ? age : 0);
}

/* WEIR_HEAVY_WAYS: it has no row. */
WEIR_INLINE __u32 weir_heavy_find(const struct weir_heavy_set *set, __u64 key)
{
	__u32 found = WEIR_HEAVY_WAYS;

#pragma GCC unroll 8
	for (__u32 i = 0; i < WEIR_HEAVY_WAYS; i++) {
		if (set->keys[i] == key)
			found = i;
	}
	return found;
}

WEIR_INLINE __u32 weir_heavy_lightest(const struct weir_heavy_set *set, __u32 epoch, __u32 *least)
{
	__u32 lightest = 0;

	*least = ~0U;
#pragma GCC unroll 8
	for (__u32 i = 0; i < WEIR_HEAVY_WAYS; i++) {
		__u32 weight = set->keys[i] == WEIR_HEAVY_FREE ? 0 : weir_heavy_weight(&set->weights[i], epoch);

		if (weight < *least) {
			*least = weight;
			lightest = i;
		}
	}
	return lightest;
}

/* The row begins anew, with the weight that it took over. False: somebody else was faster. */
WEIR_INLINE bool weir_heavy_take_over(struct weir_heavy_set *set, __u32 at, __u64 key, __u32 weight,
				      const struct weir_heavy_what *what, __u64 first_ns, __u64 last_ns)
{
	__u64 old = set->keys[at & (WEIR_HEAVY_WAYS - 1)];
	struct weir_heavy_row *row = &set->rows[at & (WEIR_HEAVY_WAYS - 1)];

	if (old == WEIR_HEAVY_BUSY ||
	    __sync_val_compare_and_swap(&set->keys[at & (WEIR_HEAVY_WAYS - 1)], old, WEIR_HEAVY_BUSY) != old)
		return false;
	row->counts = (struct weir_heavy_counts){};
	row->first_ns = first_ns;
	row->last_ns = last_ns;
	row->what = *what;
	set->weights[at & (WEIR_HEAVY_WAYS - 1)] = (struct weir_heavy_weight){
		.weight = weight, .epoch = weir_heavy_epoch(last_ns)
	}; /* as of which it is */
	__sync_val_compare_and_swap(&set->keys[at & (WEIR_HEAVY_WAYS - 1)], WEIR_HEAVY_BUSY, key);
	return true;
}

/* Counts that others add to at the same time. */
WEIR_INLINE void weir_heavy_counts_add(struct weir_heavy_counts *to, const struct weir_heavy_counts *counts)
{
	if (counts->requests)
		__sync_fetch_and_add(&to->requests, counts->requests);
	if (WEIR_UNLIKELY(counts->refused))
		__sync_fetch_and_add(&to->refused, counts->refused);
	if (WEIR_UNLIKELY(counts->dry_run))
		__sync_fetch_and_add(&to->dry_run, counts->dry_run);
	if (WEIR_UNLIKELY(counts->held))
		__sync_fetch_and_add(&to->held, counts->held);
}

/* A weight may miss some of what is added at the same time: it only says who gives way. */
WEIR_INLINE void weir_heavy_add_to(struct weir_heavy_row *row, struct weir_heavy_weight *w,
				   const struct weir_heavy_counts *counts, __u64 last_ns)
{
	__u32 epoch = weir_heavy_epoch(last_ns), weight = weir_heavy_weight(w, epoch);
	__u32 more = counts->requests + counts->held;

	if ((__s32)(epoch - w->epoch) > 0)
		w->epoch = epoch;
	w->weight = weight + more < weight ? ~0U : weight + more;
	if (row->last_ns < last_ns)
		row->last_ns = last_ns;
	weir_heavy_counts_add(&row->counts, counts);
}

/* Counts what was asked for from first_ns to last_ns. set: that of the key. */
WEIR_INLINE enum weir_heavy_outcome weir_heavy_add(struct weir_heavy_set *set, __u64 key,
						   const struct weir_heavy_what *what,
						   const struct weir_heavy_counts *counts, __u64 first_ns,
						   __u64 last_ns)
{
	__u32 at = weir_heavy_find(set, key), weight = 0;

	if (at == WEIR_HEAVY_WAYS) {
		at = weir_heavy_lightest(set, weir_heavy_epoch(last_ns), &weight);
		if (weight && set->crowd++ & (WEIR_HEAVY_CROWD - 1))
			return WEIR_HEAVY_PASSED_BY;
		if (!weir_heavy_take_over(set, at, key, weight, what, first_ns, last_ns))
			return WEIR_HEAVY_CONTENDED;
	}
	at &= WEIR_HEAVY_WAYS - 1;
	weir_heavy_add_to(&set->rows[at], &set->weights[at], counts, last_ns);
	return WEIR_HEAVY_COUNTED;
}

#endif
