/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Places of limits on requests in flight that a request inside a server holds until it ends.
 *
 *   map           type   key                      value
 *   inside_places HASH   struct weir_inside_key   struct weir_inside_places
 */
#ifndef WEIR_INSIDE_PLACES_H
#define WEIR_INSIDE_PLACES_H

#include "weir/conn/places.h"
#include "weir/inside/process.h"

/* Whoever makes the word 0 gives the places back: nobody else does. */
struct weir_inside_places {
	__u64 word; /* a tag of the key, and of when they were taken: the entry's memory may become another request's */
	__u32 server;
	__u32 pad;
	struct weir_place places[WEIR_PLACES_MAX];
};
WEIR_ASSERT_SIZE(struct weir_inside_places, 208);

WEIR_INLINE __u64 weir_inside_places_tag(const struct weir_inside_key *key)
{
	__u64 mixed = (key->goroutine ^ (__u64)key->process << 32) * 0x9e3779b97f4a7c15ULL;

	return mixed >> 32 << 32;
}

WEIR_INLINE __u64 weir_inside_places_word(const struct weir_inside_key *key, __u64 now_ns)
{
	return weir_inside_places_tag(key) | (__u32)(now_ns >> 10) | 1;
}

WEIR_INLINE bool weir_inside_places_are_of(__u64 word, const struct weir_inside_key *key)
{
	return word && word >> 32 << 32 == weir_inside_places_tag(key);
}

#endif
