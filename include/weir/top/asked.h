/* SPDX-License-Identifier: GPL-2.0 */
/* A request that was decided for good (or the records of a packet, or a connection), as it is counted for who makes the load. */
#ifndef WEIR_TOP_ASKED_H
#define WEIR_TOP_ASKED_H

#include "weir/base/subject.h"
#include "weir/top/heavy.h"

#define WEIR_ASKED_NO_SLOT (~0U)

struct weir_asked {
	struct weir_heavy_counts counts; /* what is added to each row */
	__u64 first_ns, last_ns;	 /* CLOCK_MONOTONIC: when it came, or the first and the last of several */
	__u64 user, namespace, resource; /* subjects; 0: none */
	__u64 source;			 /* weir_asked_source(); 0: not asked for yet */
	__u8 address[16];		 /* network order, IPv4 as ::ffff:a.b.c.d, IPv6 cut to its /64 */
	__u32 server;
	__u32 slot;	/* of the narrowest limit that refused it, or would have; WEIR_ASKED_NO_SLOT */
	__u32 epoch;	/* of that limit: of the one that has the slot now */
	__u32 start;	/* client's sequence number of its first byte, where it has one */
	__u8 verb;	/* enum weir_verb */
	__u8 is_path;	/* resource is the first segment of a path that names none of Kubernetes' resources */
	__u8 is_record; /* nothing is known but the address */
	__u8 can_name;	/* its names are at hand: whoever counts can remember them */
	__u8 connects;	/* it is a connection: that is no request */
	__u8 has_address;
	__u8 pad[2];
};
WEIR_ASSERT_SIZE(struct weir_asked, 120);

/*
 * Tells addresses apart, with the rounds of SipHash-1-3: it only has to keep clients from choosing addresses that fall
 * together.
 */
WEIR_INLINE __u64 weir_asked_source(const __u64 seed[2], const __u8 address[16])
{
	struct weir_subject_hash h;
	__u64 words[2];

	__builtin_memcpy(words, address, sizeof(words));
	weir_subject_start(&h, seed, 0);
	for (int i = 0; i < 2; i++) {
		h.state[3] ^= words[i];
		weir_subject_round(h.state);
		h.state[0] ^= words[i];
	}
	h.state[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		weir_subject_round(h.state);
	return h.state[0] ^ h.state[1] ^ h.state[2] ^ h.state[3];
}

/* Has the request a row of this kind? Then *what is the name of that row. */
WEIR_INLINE bool weir_asked_what(const struct weir_asked *asked, enum weir_heavy_by by, struct weir_heavy_what *what)
{
	*what = (struct weir_heavy_what){ .server = asked->server, .by = by };
	if (asked->connects != (by == WEIR_HEAVY_CONNECTION) || (asked->is_record && by != WEIR_HEAVY_SOURCE))
		return false;
	switch (by) {
	case WEIR_HEAVY_USER:
		what->subjects[0] = asked->user;
		return asked->user;
	case WEIR_HEAVY_NAMESPACE:
		what->subjects[0] = asked->namespace;
		return asked->namespace;
	case WEIR_HEAVY_VERB:
		what->verb = asked->verb;
		return true;
	case WEIR_HEAVY_RESOURCE:
		what->subjects[0] = asked->resource;
		what->is_path = asked->is_path;
		return true;
	case WEIR_HEAVY_SOURCE:
	case WEIR_HEAVY_CONNECTION:
		__builtin_memcpy(what->address, asked->address, sizeof(what->address));
		return asked->has_address;
	case WEIR_HEAVY_LIMIT:
		what->subjects[0] = asked->user;
		what->subjects[1] = asked->epoch;
		what->slot = asked->slot;
		return asked->slot != WEIR_ASKED_NO_SLOT;
	case WEIR_HEAVY_REQUEST:
		what->subjects[0] = asked->user;
		what->subjects[1] = asked->namespace;
		what->subjects[2] = asked->resource;
		what->is_path = asked->is_path;
		what->verb = asked->verb;
		return true;
	default:
		return false;
	}
}

#endif
