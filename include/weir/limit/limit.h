/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server's limits, by their slots. The first ones are there for every server, and for every request: the built-in limits.
 * Those with rules of their own (match.h) have the slots behind them.
 */
#ifndef WEIR_LIMIT_LIMIT_H
#define WEIR_LIMIT_LIMIT_H

#include "weir/base/groups.h"
#include "weir/base/seal.h"
#include "weir/base/types.h"
#include "weir/limit/backoff_policy.h"
#include "weir/limit/rate.h"

/* They have names of their own, too. */
enum weir_builtin_limit {
	WEIR_BUILTIN_TOTAL,
	WEIR_BUILTIN_NAMESPACE,
	WEIR_BUILTIN_USER,
	WEIR_BUILTIN_SOURCE_AND_OBJECT, /* of Kubernetes Events alone (event.h) */
	WEIR_BUILTIN_LIMITS,
};

#define WEIR_SERVER_LIMITS 256 /* slots of one server */

/* What a limit counts: requests, or connections (admission.h); a rate of them, or how many there are at once. */
enum weir_limit_kind {
	WEIR_LIMIT_RATE,
	WEIR_LIMIT_IN_FLIGHT,
	WEIR_LIMIT_CONNECTION_RATE,
	WEIR_LIMIT_OPEN,
};

/* enum weir_limit_kind: has it seats, instead of tokens? */
WEIR_INLINE bool weir_limit_has_seats(__u32 kind)
{
	return kind == WEIR_LIMIT_IN_FLIGHT || kind == WEIR_LIMIT_OPEN;
}

WEIR_INLINE bool weir_limit_is_of_connections(__u32 kind)
{
	return kind == WEIR_LIMIT_CONNECTION_RATE || kind == WEIR_LIMIT_OPEN;
}

/* For whom a limit keeps a count: for each combination of these. None: one for all. */
enum weir_key_part {
	WEIR_KEY_NAMESPACE = 1 << 0,
	WEIR_KEY_USER = 1 << 1,
	WEIR_KEY_GROUP = 1 << 2,  /* the first one of the request's groups that is one of the limit's */
	WEIR_KEY_SOURCE = 1 << 3, /* the peer's address, IPv6 by its /64 */
	WEIR_KEY_OBJECT = 1 << 4, /* source and object of an Event; of other requests nothing */
};
#define WEIR_KEY_PARTS 5

enum weir_limit_flags {
	WEIR_LIMIT_SET =
		1 << 0, /* of an amount: it is one; else the limit is for the subjects with an override alone */
	WEIR_LIMIT_DENY = 1 << 3,	/* of an amount: none, ever */
	WEIR_LIMIT_DRY_RUN = 1 << 1,	/* what it refuses is counted, and passes */
	WEIR_LIMIT_WIDE_LISTS = 1 << 2, /* IN_FLIGHT: a list takes as many seats as it is wide (width.h) */
	WEIR_LIMIT_RESET = 1 << 3,	/* of connections: who is refused gets a RST, instead of nothing */
	WEIR_LIMIT_PENALISES = 1 << 4,	/* its penalty has parts */
	WEIR_LIMIT_NARROW = 1 << 5,	/* it has rules: it is not for every request */
	WEIR_LIMIT_OVERRIDDEN = 1 << 6, /* some subject has, or had, an override: else none is looked up */
};

/* How much, by default or for one subject: the rate in force and the ones before it, newest first; or seats. */
struct weir_amount {
	__u32 flags; /* WEIR_LIMIT_SET, _DENY */
	__u32 seats; /* requests or connections at once, of a limit that has seats */
	struct weir_rate_history history;
	__u64 seal; /* of what is before it in the map's value, and of its key (seal.h) */
};
WEIR_ASSERT_SIZE(struct weir_amount, 176);

/* What a limit gives to a subject, and how. */
struct weir_terms {
	struct weir_groups groups; /* WEIR_KEY_GROUP: those that have a count */
	__u32 flags;		   /* enum weir_limit_flags */
	__u32 epoch;		   /* differs from that of the limit that had the slot before */
	__u16 reason;		   /* enum weir_reason of the group SHED: what is counted when it refuses */
	__u8 kind;		   /* enum weir_limit_kind */
	__u8 key;		   /* enum weir_key_part */
	__u32 pad;
	struct weir_amount amount;
};
WEIR_ASSERT_SIZE(struct weir_terms, 208);

struct weir_limit {
	struct weir_terms terms;     /* to subjects without an override */
	struct weir_backoff penalty; /* of those who do not back off; without parts: none */
	__u64 penalty_seal;
};
WEIR_ASSERT_SIZE(struct weir_limit, 424);

/* Of a value of `overrides`. */
WEIR_INLINE __u64 weir_override_seal(const struct weir_amount *amount, __u32 limit, __u64 subject)
{
	return weir_seal(amount, __builtin_offsetof(struct weir_amount, seal), subject ^ (__u64)limit << 32);
}

WEIR_INLINE __u64 weir_terms_seal(const struct weir_terms *terms, __u32 limit)
{
	return weir_seal(terms, __builtin_offsetof(struct weir_terms, amount.seal), limit);
}

WEIR_INLINE __u64 weir_backoff_seal(const struct weir_backoff *policy, __u32 limit)
{
	return weir_seal(policy, sizeof(*policy), limit);
}

/* What a limit said to the requests that it is for. */
struct weir_limit_counts {
	__u64 admitted; /* they passed */
	__u64 refused;	/* also those that another limit refused as well */
	__u64 dry_run_refused;
	__u64 highest; /* seats that one subject has ever taken at once */
};
WEIR_ASSERT_SIZE(struct weir_limit_counts, 32);

/* Seats that are taken: map `in_flight`. */
struct weir_in_flight_key {
	__u32 limit; /* weir_limit_index() */
	__u32 epoch;
	__u64 subject;
};
WEIR_ASSERT_SIZE(struct weir_in_flight_key, 16);

/*
 * One word, changed by compare-and-swap or by one addition: seats that are taken, in the low half; above them, whether the
 * entry is about to be deleted, and a tag of the key. An entry's memory may belong to another key a moment later, whose tag
 * is another.
 */
struct weir_in_flight {
	__u64 word;
};
WEIR_ASSERT_SIZE(struct weir_in_flight, 8);

#define WEIR_IN_FLIGHT_DEAD (1ULL << 32)

WEIR_INLINE __u64 weir_in_flight_none(const struct weir_in_flight_key *key)
{
	__u64 mixed = (key->subject ^ key->limit ^ (__u64)key->epoch << 32) * 0x9e3779b97f4a7c15ULL;

	return mixed >> 33 << 33;
}

WEIR_INLINE __u32 weir_in_flight_taken(__u64 word)
{
	return word;
}

/* Does the word belong to the key, and may seats be taken of it? */
WEIR_INLINE bool weir_in_flight_is_of(__u64 word, const struct weir_in_flight_key *key)
{
	return word >> 32 == weir_in_flight_none(key) >> 32;
}

WEIR_INLINE bool weir_in_flight_fits(__u64 word, __u32 wanted, __u32 there_are)
{
	return (__u64)weir_in_flight_taken(word) + wanted <= there_are;
}

/* Limits on requests in flight that one request may be under, and slots of a connection. */
#define WEIR_SEAT_SLOTS 8

#endif
