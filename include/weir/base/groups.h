/* SPDX-License-Identifier: GPL-2.0 */
/* Sets of the groups that a server's settings name. Each has a bit; of all others nothing is known. */
#ifndef WEIR_BASE_GROUPS_H
#define WEIR_BASE_GROUPS_H

#include "weir/base/types.h"

#define WEIR_GROUPS_MAX 128

struct weir_groups {
	__u64 bits[2];
};
WEIR_ASSERT_SIZE(struct weir_groups, 16);

/* bit: below WEIR_GROUPS_MAX, or nothing is added */
WEIR_INLINE void weir_groups_add(struct weir_groups *g, __u32 bit)
{
	if (bit < 64)
		g->bits[0] |= 1ULL << bit;
	else if (bit < WEIR_GROUPS_MAX)
		g->bits[1] |= 1ULL << (bit - 64);
}

/*
 * The bit of a name's length in a set of lengths; lengths that differ by 64 have the same bit. Settings name few groups, so most names have
 * a length that is not in the set, and need not be looked up.
 */
WEIR_INLINE __u64 weir_length_bit(__u64 length)
{
	return 1ULL << (length & 63);
}

WEIR_INLINE bool weir_groups_have(const struct weir_groups *g, __u32 bit)
{
	return bit < WEIR_GROUPS_MAX && g->bits[bit / 64] >> (bit % 64) & 1;
}

WEIR_INLINE void weir_groups_join(struct weir_groups *g, const struct weir_groups *more)
{
	g->bits[0] |= more->bits[0];
	g->bits[1] |= more->bits[1];
}

WEIR_INLINE bool weir_groups_meet(const struct weir_groups *a, const struct weir_groups *b)
{
	return (a->bits[0] & b->bits[0]) | (a->bits[1] & b->bits[1]);
}

#endif
