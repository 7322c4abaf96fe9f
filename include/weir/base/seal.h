/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Values that are replaced while others read them: the kernel gives the memory of what was replaced to the next value at once, so
 * who reads it in the midst of that gets parts of both. Such a value has a seal: a sum of its words and its key. Who reads it
 * copies it, and looks it up again if the copy does not fit its seal. Parts of two values fit by chance, once in 2^64, and so does
 * another key's value.
 *
 * It also tells two values apart that nobody chooses who wants them to look alike (weir_reading_seal()).
 */
#ifndef WEIR_BASE_SEAL_H
#define WEIR_BASE_SEAL_H

#include "weir/base/types.h"

typedef __u64 __attribute__((may_alias)) weir_sealed_word;

/* Odd numbers without any relation to each other (splitmix64). Compilers make constants of them. */
WEIR_INLINE __u64 weir_seal_factor(__u64 n)
{
	n = (n + 1) * 0x9e3779b97f4a7c15ULL;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ULL;
	n = (n ^ n >> 27) * 0x94d049bb133111ebULL;
	return (n ^ n >> 31) | 1;
}

/* Of whole words: no more than 32 of them. Memory that is all 0 has none. */
WEIR_INLINE __u64 weir_seal(const void *value, __u32 bytes, __u64 key)
{
	const weir_sealed_word *words = value;
	__u64 sum = weir_seal_factor(33) + key * weir_seal_factor(32);

#pragma GCC unroll 32
	for (__u32 i = 0; i < bytes / sizeof(*words); i++)
		sum += words[i] * weir_seal_factor(i);
	return sum;
}

#endif
