/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Seats of limits on requests in flight that a request inside a server has until it ends.
 *
 *   map            type   key                      value
 *   inside_seats   HASH   struct weir_inside_key   struct weir_inside_seats
 */
#ifndef WEIR_INSIDE_SEATS_H
#define WEIR_INSIDE_SEATS_H

#include "weir/conn/seats.h"
#include "weir/inside/process.h"

/* Whoever sets the word to 0 gives the seats back, and nobody else does. */
struct weir_inside_seats {
	__u64 word; /* a tag of the key, and of when they were taken: the entry's memory may become another request's */
	__u32 server;
	__u32 pad;
	struct weir_seats seats[WEIR_SEAT_SLOTS];
};
WEIR_ASSERT_SIZE(struct weir_inside_seats, 208);

WEIR_INLINE __u64 weir_inside_seats_tag(const struct weir_inside_key *key)
{
	__u64 mixed = (key->goroutine ^ (__u64)key->process << 32) * 0x9e3779b97f4a7c15ULL;

	return mixed >> 32 << 32;
}

WEIR_INLINE __u64 weir_inside_seats_word(const struct weir_inside_key *key, __u64 now_ns)
{
	return weir_inside_seats_tag(key) | (__u32)(now_ns >> 10) | 1;
}

WEIR_INLINE bool weir_inside_seats_are_of(__u64 word, const struct weir_inside_key *key)
{
	return word && word >> 32 << 32 == weir_inside_seats_tag(key);
}

#endif
