/* SPDX-License-Identifier: GPL-2.0 */
/* Limits of servers, what they allow single subjects, and what they have counted. */
#ifndef WEIR_USER_DATAPATH_LIMITS_H
#define WEIR_USER_DATAPATH_LIMITS_H

#include "weir/abi/abi.h"

#include "base/error.h"
#include "datapath/answer_text.h"

struct datapath;

/* How much of a limit: of a rate, or of seats. set false: nothing, only subjects with an override are limited. */
struct datapath_amount {
	bool set;
	bool deny; /* none, ever */
	__u64 per_ns, burst;
	__u32 seats;
};

struct datapath_limit {
	enum weir_limit_kind kind;
	enum weir_reason reason; /* of the group SHED: what is counted when it refuses */
	__u8 key;		 /* enum weir_key_part */
	__u32 flags;		 /* enum weir_limit_flags */
	__u32 epoch;		 /* differs from that of the limit that had the slot before */
	__u32 keys;		 /* size of its bucket map, used when that is made; 0: WEIR_DEFAULT_KEYS */
	struct weir_groups groups;
	struct datapath_amount amount; /* of subjects without an override */
	struct weir_backoff penalty;   /* without parts: none */
	char name[WEIR_ANSWER_NAME];   /* as its answers name it; "": they name none; a longer one is cut */
};

/* A change keeps the buckets of those who are still limited. An override needs its limit. */
int datapath_limit_set(struct datapath *dp, __u32 server, __u32 slot, const struct datapath_limit *limit,
		       struct error *err);
/* All of a server's limits, by their slots (a bit for each), and their overrides: these and no others. */
struct datapath_slots {
	__u64 words[WEIR_SERVER_LIMITS / 64];
};
static inline void datapath_slots_add(struct datapath_slots *slots, __u32 slot)
{
	slots->words[slot / 64] |= 1ULL << (slot % 64);
}
static inline bool datapath_slots_have(const struct datapath_slots *slots, __u32 slot)
{
	return slots->words[slot / 64] >> (slot % 64) & 1;
}
struct datapath_override {
	__u32 slot;
	__u64 subject;
	struct datapath_amount amount;
};
int datapath_limits_keep(struct datapath *dp, __u32 server, const struct datapath_slots *slots, struct error *err);
/* Of the limits in these slots, which are there. */
int datapath_overrides_set(struct datapath *dp, __u32 server, const struct datapath_slots *slots,
			   const struct datapath_override *overrides, size_t n, struct error *err);
/* With its overrides and its buckets. */
int datapath_limit_delete(struct datapath *dp, __u32 server, __u32 slot, struct error *err);
int datapath_override_set(struct datapath *dp, __u32 server, __u32 slot, __u64 subject,
			  const struct datapath_amount *amount, struct error *err);
int datapath_overrides_delete(struct datapath *dp, __u32 server, __u32 slot, const __u64 *subjects, size_t n,
			      struct error *err);

/* Sums over CPUs, and the highest of all. */
int datapath_limit_counts(struct datapath *dp, __u32 server, __u32 slot, struct weir_limit_counts *counts,
			  struct error *err);

/*
 * Of n servers from this one on, WEIR_SERVER_LIMITS of each, by slot: seats that are taken, of all subjects together. Adds to what is
 * there. The whole table is read, however many servers are asked for.
 */
int datapath_in_flight(struct datapath *dp, __u32 server, __u32 n, __u64 *taken, struct error *err);
/* Those of one subject of a limit. */
__u32 datapath_in_flight_of(struct datapath *dp, __u32 server, __u32 slot, __u32 epoch, __u64 subject);

#endif
