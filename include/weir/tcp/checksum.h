/* SPDX-License-Identifier: GPL-2.0 */
/* Internet checksums (RFC 1071): sums of 16-bit words in ones' complement, kept wide and folded at the end. */
#ifndef WEIR_TCP_CHECKSUM_H
#define WEIR_TCP_CHECKSUM_H

#include "weir/base/types.h"

/* A sum of less than 2^48, as there is none of a packet that is larger. */
WEIR_INLINE __u16 weir_sum_fold(__u64 sum)
{
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/*
 * Is this what a sum folds to, which is not 0? Both have the same remainder by 0xffff then. Whether a number is a multiple of 0xffff, one product
 * with the inverse of 0xffff modulo 2^64 says: that of a multiple is the quotient, and so is small (Granlund and Montgomery, "Division by Invariant
 * Integers using Multiplication", 1994).
 */
WEIR_INLINE bool weir_sum_is(__u64 sum, __u16 folded)
{
	return folded && (sum + 0xffff - folded) * 0xfffefffefffeffffULL <= ~0ULL / 0xffff;
}

#endif
