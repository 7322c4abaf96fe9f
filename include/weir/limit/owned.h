/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Words that are changed without a lock, in memory that may come to belong to another subject in the midst of it: LRU maps evict,
 * and give the memory away at once.
 *
 * Each subject writes its words in a way of its own, so that two subjects have the same word only by chance, once in 2^48: who
 * compares and swaps his own word never hits another's. And a word that is read is known for another's, unless that came and
 * went, and the first one came back, between two loads.
 *
 * 0 is written by no one: it is what is there before anything has happened. The lowest bits of all others are not 0.
 */
#ifndef WEIR_LIMIT_OWNED_H
#define WEIR_LIMIT_OWNED_H

#include "weir/base/types.h"

#define WEIR_OWNED_PLAIN 16 /* of so many bits, the lowest, the owner says nothing */

/* A word in memory as its subject reads it, and the other way round. Subject 0 writes it as it is. */
WEIR_INLINE __u64 weir_owned(__u64 word, __u64 subject)
{
	return word ^ subject << WEIR_OWNED_PLAIN;
}

/*
 * Reads a word that should belong to the subject. `plain`: at least one of these bits is set unless the word is 0. False: the
 * memory belongs to another subject by now.
 */
WEIR_INLINE bool weir_owned_read(const __u64 *word, const __u64 *owner, __u64 subject, __u64 plain, __u64 *out)
{
	*out = weir_owned(WEIR_FRESH(*word), subject);
	return WEIR_FRESH(*owner) == subject && (!*out || *out & plain);
}

/* True: nobody has changed the word meanwhile. */
WEIR_INLINE bool weir_owned_swap(__u64 *word, __u64 subject, __u64 before, __u64 after)
{
	__u64 expected = weir_owned(before, subject), was;

	was = __sync_val_compare_and_swap(word, expected, weir_owned(after, subject));
	WEIR_BARRIER(was); /* else LLVM would make a flag of it first, and jump over that */
	return was == expected;
}

#endif
