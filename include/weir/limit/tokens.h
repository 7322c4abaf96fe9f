/* SPDX-License-Identifier: GPL-2.0 */
/* Amounts of tokens: fixed point, 64 bits before the point and 64 behind it. */
#ifndef WEIR_LIMIT_TOKENS_H
#define WEIR_LIMIT_TOKENS_H

#include "weir/base/types.h"

/* high + low / 2^64 tokens; below zero: that much is owed. */
struct weir_tokens {
	__s64 high;
	__u64 low;
};

/* a * b, in all its 128 bits: high * 2^64 + low */
WEIR_INLINE struct weir_tokens weir_product(__u64 a, __u64 b)
{
	__u64 a_low = (__u32)a, a_high = a >> 32;
	__u64 b_low = (__u32)b, b_high = b >> 32;
	__u64 low = a_low * b_low;
	__u64 middle = a_high * b_low + (low >> 32);
	__u64 cross = a_low * b_high + (__u32)middle;

	return (struct weir_tokens){
		.high = a_high * b_high + (middle >> 32) + (cross >> 32),
		.low = cross << 32 | (__u32)low,
	};
}

WEIR_INLINE struct weir_tokens weir_tokens_whole(__u64 n)
{
	return (struct weir_tokens){ .high = n };
}

/*
 * Carries and comparisons are made without branches, of which a verifier would follow each way
 * (H. S. Warren, "Hacker's Delight", 2nd ed., 2-13).
 */

WEIR_INLINE struct weir_tokens weir_tokens_sum(struct weir_tokens a, struct weir_tokens b)
{
	__u64 low = a.low + b.low, carry = ((a.low & b.low) | ((a.low | b.low) & ~low)) >> 63;

	return (struct weir_tokens){ .high = (__u64)a.high + b.high + carry, .low = low };
}

WEIR_INLINE struct weir_tokens weir_tokens_difference(struct weir_tokens a, struct weir_tokens b)
{
	__u64 low = a.low - b.low, borrow = ((~a.low & b.low) | (~(a.low ^ b.low) & low)) >> 63;

	return (struct weir_tokens){ .high = (__u64)a.high - b.high - borrow, .low = low };
}

WEIR_INLINE bool weir_tokens_less(struct weir_tokens a, struct weir_tokens b)
{
	__u64 high = weir_tokens_difference(a, b).high;

	return (((__u64)a.high & ~(__u64)b.high) | (~((__u64)a.high ^ b.high) & high)) >> 63;
}

WEIR_INLINE struct weir_tokens weir_tokens_min(struct weir_tokens a, struct weir_tokens b)
{
	__u64 first = -(__u64)weir_tokens_less(a, b);

	return (struct weir_tokens){ .high = b.high ^ (((__u64)a.high ^ b.high) & first),
				     .low = b.low ^ ((a.low ^ b.low) & first) };
}

/* The lesser, and the greater, of an amount and whole tokens: a branch each, which a CPU mostly goes the same way. */
WEIR_INLINE struct weir_tokens weir_tokens_at_most(struct weir_tokens a, __s64 whole)
{
	return WEIR_LIKELY(a.high < whole) ? a : (struct weir_tokens){ .high = whole };
}

WEIR_INLINE struct weir_tokens weir_tokens_at_least(struct weir_tokens a, __s64 whole)
{
	return WEIR_UNLIKELY(a.high < whole) ? (struct weir_tokens){ .high = whole } : a;
}

/* What is missing for one whole token; 0 or less: it is there. */
WEIR_INLINE struct weir_tokens weir_tokens_missing(struct weir_tokens tokens)
{
	return weir_tokens_difference(weir_tokens_whole(1), tokens);
}

#endif
