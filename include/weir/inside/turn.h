/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Holding the connections of those who are over a limit, where a server can be looked into and not be made to refuse (attach
 * --inside hold). A request takes its tokens when it is seen, also those that its user gets only later. Until then he is in debt,
 * and his connection has to wait for its turn: what else comes on it is withheld (bpf/inside_hold.h).
 *
 *   map           type      key                      value
 *   hold_turns    LRU_HASH  struct weir_turn_key     struct weir_turns
 *
 * A connection may carry several users. The two that are in debt for the shortest time are known, a word for each: as soon as one of
 * them is not in debt, the connection is not held. An address has an entry as well, of port 0: a connection on which nothing was seen
 * yet takes the turn that the users of its address have.
 *
 * Words are changed by compare-and-swap. An entry's memory may become another connection's: what is written late there holds
 * that one for a turn at most.
 */
#ifndef WEIR_INSIDE_TURN_H
#define WEIR_INSIDE_TURN_H

#include "weir/base/types.h"

#define WEIR_MAX_TURNS 65536

#define WEIR_TURN_HOLD_MAX_S 10 /* as long as clients wait without a sign: they ask after 30 seconds */
#define WEIR_TURN_HOLD_LIMIT_S 25
#define WEIR_TURN_NEW_NS (3 * WEIR_NS_PER_S)   /* a new connection's: clients give up a TLS handshake after 10 s */
#define WEIR_TURN_DEBT_NS (60 * WEIR_NS_PER_S) /* what it takes longer to gain, nobody owes */
#define WEIR_TURN_FORGET_NS \
	(60 * WEIR_NS_PER_S) /* a user who has not been seen on it for so long is not carried any more */

struct weir_turn_key {
	__u8 address[16]; /* network order, IPv4 as ::ffff:a.b.c.d */
	__u32 server;
	__u16 port; /* host order; 0: the address, of IPv6 its /64 */
	__u16 pad;
};
WEIR_ASSERT_SIZE(struct weir_turn_key, 24);

#define WEIR_TURN_USERS 2

struct weir_turns {
	__u64 words[WEIR_TURN_USERS]; /* 0: no user; else weir_turn() */
	__u64 since_ns;		      /* what waits now has waited since then; 0: nothing does */
};
WEIR_ASSERT_SIZE(struct weir_turns, 24);

/* A user's turn: when he is out of debt, in units of about a millisecond, and behind it what tells him from others. */
#define WEIR_TURN_TAG_BITS 24
#define WEIR_TURN_UNIT_NS (1ULL << 20)
#define WEIR_TURN_NOBODY 0 /* the tag of a turn that is its address's */

WEIR_INLINE __u64 weir_turn_tag(__u64 user)
{
	return user >> (64 - WEIR_TURN_TAG_BITS) ?: 1;
}

WEIR_INLINE __u64 weir_turn(__u64 tag, __u64 at_ns)
{
	return at_ns / WEIR_TURN_UNIT_NS << WEIR_TURN_TAG_BITS | tag;
}

WEIR_INLINE __u64 weir_turn_ns(__u64 word)
{
	return (word >> WEIR_TURN_TAG_BITS) * WEIR_TURN_UNIT_NS;
}

WEIR_INLINE bool weir_turn_is_of(__u64 word, __u64 tag)
{
	return word && !((word ^ tag) & ((1ULL << WEIR_TURN_TAG_BITS) - 1));
}

/* Does the word belong to a user who was seen lately? */
WEIR_INLINE bool weir_turn_counts(__u64 word, __u64 now_ns)
{
	return word && weir_turn_ns(word) + WEIR_TURN_FORGET_NS > now_ns;
}

/* Which word the user's turn goes into: his own, a free one, or that of the user who is in debt for longest. */
WEIR_INLINE __u32 weir_turns_place(__u64 first, __u64 second, __u64 tag, __u64 now_ns)
{
	if (weir_turn_is_of(first, tag) || weir_turn_is_of(second, tag))
		return !weir_turn_is_of(first, tag);
	if (weir_turn_is_of(first, WEIR_TURN_NOBODY) || !weir_turn_counts(first, now_ns))
		return 0;
	if (weir_turn_is_of(second, WEIR_TURN_NOBODY) || !weir_turn_counts(second, now_ns))
		return 1;
	return weir_turn_ns(second) > weir_turn_ns(first);
}

/* What the word becomes. One more request never ends a debt sooner. */
WEIR_INLINE __u64 weir_turn_next(__u64 there, __u64 tag, __u64 at_ns)
{
	__u64 word = weir_turn(tag, at_ns);

	return weir_turn_is_of(there, tag) && there > word ? there : word;
}

/* The turn that a new connection takes over from its address, cut so that no handshake fails for what others of the address owe. */
WEIR_INLINE __u64 weir_turn_of_new_ns(__u64 address_ns, __u64 now_ns)
{
	return address_ns < now_ns + WEIR_TURN_NEW_NS ? address_ns : now_ns + WEIR_TURN_NEW_NS;
}

enum weir_turn_said {
	WEIR_TURN_FREE,
	WEIR_TURN_HELD,
	WEIR_TURN_SHARED, /* one of its users is in debt, and another one is not */
};

/* When each of the users that count is out of debt, and when the first one is; 0: there is none. */
WEIR_INLINE __u64 weir_turns_first_ns(__u64 first, __u64 second, __u64 now_ns)
{
	__u64 a = weir_turn_counts(first, now_ns) ? weir_turn_ns(first) : 0;
	__u64 b = weir_turn_counts(second, now_ns) ? weir_turn_ns(second) : 0;

	if (!a || !b)
		return a ?: b;
	return a < b ? a : b;
}

WEIR_INLINE enum weir_turn_said weir_turns_say(__u64 first, __u64 second, __u64 now_ns)
{
	if (weir_turns_first_ns(first, second, now_ns) > now_ns)
		return WEIR_TURN_HELD;
	return weir_turn_ns(first) > now_ns || weir_turn_ns(second) > now_ns ? WEIR_TURN_SHARED : WEIR_TURN_FREE;
}

/* The longest wait. After it a packet passes, although a user is still in debt. */
WEIR_INLINE __u64 weir_turn_longest_ns(__u32 hold_max_s)
{
	return (hold_max_s ?: WEIR_TURN_HOLD_MAX_S) * WEIR_NS_PER_S;
}

#endif
