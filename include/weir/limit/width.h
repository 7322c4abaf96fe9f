/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The seats that a LIST takes of a priority level. Kubernetes reckons a seat for each 100 objects, and
 * ten at most. How many objects a list has is not known before it is answered; how many bytes the latest answers had is. So
 * a LIST takes one seat until its list is known to be wide: by the mean of what the server has answered to it.
 *
 * What a client asks for must not make the lists of others look narrower than they are. An answer to a request that asks
 * for a part (a page, a selector), or one that was cut, says how wide its list is at least: it only raises the mean.
 */
#ifndef WEIR_LIMIT_WIDTH_H
#define WEIR_LIMIT_WIDTH_H

#include "weir/base/types.h"

#define WEIR_SEATS_MAX 10
#define WEIR_SEAT_OBJECTS 100
#define WEIR_OBJECT_BYTES 1000 /* of an answer, where a server's settings say nothing else */
#define WEIR_WIDTH_PARTS 8     /* the latest answer is one part of the mean */
/* A mean that no answer has confirmed for so long is forgotten. Otherwise a list that has become narrow, but is only read in parts, stays wide. */
#define WEIR_WIDTH_NS (600 * WEIR_NS_PER_S)

struct weir_width_key {
	__u32 server;
	__u32 pad;
	__u64 list; /* weir_list_of(); of the namespace, or of all of them */
};
WEIR_ASSERT_SIZE(struct weir_width_key, 16);

/* A LIST that is outstanding, whose answer will tell how wide its list is. */
struct weir_asked_list {
	__u64 list;    /* weir_list_of(); 0: there is none */
	__u32 request; /* as struct weir_conn counts them */
	__u32 whole;   /* it asks for all that there is */
};
WEIR_ASSERT_SIZE(struct weir_asked_list, 16);

/* Several CPUs may learn at once, without a lock: an answer may be forgotten then, and no more than that. */
struct weir_width {
	__u64 mean;    /* bytes */
	__u64 said_ns; /* CLOCK_MONOTONIC of the latest answer that counted */
};
WEIR_ASSERT_SIZE(struct weir_width, 16);

/* How many bytes a list is known to have; 0: nothing is known. */
WEIR_INLINE __u64 weir_width_bytes(const struct weir_width *width, __u64 now_ns)
{
	return now_ns > width->said_ns && now_ns - width->said_ns > WEIR_WIDTH_NS ? 0 : width->mean;
}

/* object_bytes 0: WEIR_OBJECT_BYTES */
WEIR_INLINE __u64 weir_seat_bytes(__u32 object_bytes)
{
	return (__u64)(object_bytes ? object_bytes : WEIR_OBJECT_BYTES) * WEIR_SEAT_OBJECTS;
}

/* Is the list wide enough to be remembered? A list without an entry counts as narrow, so narrow lists take no room. */
WEIR_INLINE bool weir_width_is_news(__u64 bytes, __u32 object_bytes)
{
	return bytes > weir_seat_bytes(object_bytes);
}

/* An answer of so many bytes; whole: to a request for all of the list. */
WEIR_INLINE void weir_width_learn(struct weir_width *width, __u64 bytes, bool whole, __u64 now_ns)
{
	__u64 mean = weir_width_bytes(width, now_ns);

	if (!whole && bytes < mean)
		return;
	width->mean = mean ? mean - mean / WEIR_WIDTH_PARTS + bytes / WEIR_WIDTH_PARTS : bytes;
	width->said_ns = now_ns;
}

WEIR_INLINE __u32 weir_seats_of_bytes(__u64 bytes, __u32 object_bytes)
{
	__u64 seat = weir_seat_bytes(object_bytes);

	if (bytes <= seat)
		return 1;
	return bytes > (WEIR_SEATS_MAX - 1) * seat ? WEIR_SEATS_MAX : (bytes + seat - 1) / seat;
}

/* Seats of a page of so many objects at most. limit 0: all there are. */
WEIR_INLINE __u32 weir_seats_of_page(__u32 limit)
{
	if (!limit || limit > WEIR_SEATS_MAX * WEIR_SEAT_OBJECTS)
		return WEIR_SEATS_MAX;
	return (limit + WEIR_SEAT_OBJECTS - 1) / WEIR_SEAT_OBJECTS;
}

/* Why a LIST takes as many seats as it does. */
enum weir_width_why {
	WEIR_WIDTH_NONE,    /* it is no LIST, or of no level */
	WEIR_WIDTH_UNKNOWN, /* its list is not known to be wide */
	WEIR_WIDTH_LEARNED,
	WEIR_WIDTH_SET,	 /* by the server's settings */
	WEIR_WIDTH_PAGE, /* it asks for fewer objects than its list has */
	WEIR_WIDTH_NAME, /* it asks for one object, by name */
};

struct weir_width_said {
	__u64 bytes; /* that its list is known to have; 0: nothing is known */
	__u32 seats;
	__u32 why; /* enum weir_width_why */
};
WEIR_ASSERT_SIZE(struct weir_width_said, 16);

/* bytes: as above. set: the seats that every list of the server has; 0: they are learned. page: 0 where it is none */
WEIR_INLINE struct weir_width_said weir_list_width(__u64 bytes, __u32 object_bytes, __u32 set, __u32 page, bool named)
{
	struct weir_width_said said = { .bytes = bytes, .seats = 1 };

	if (named) {
		said.why = WEIR_WIDTH_NAME;
		return said;
	}
	said.seats = set ? set : weir_seats_of_bytes(bytes, object_bytes);
	said.why = set ? WEIR_WIDTH_SET : bytes ? WEIR_WIDTH_LEARNED : WEIR_WIDTH_UNKNOWN;
	if (weir_seats_of_page(page) < said.seats) {
		said.seats = weir_seats_of_page(page);
		said.why = WEIR_WIDTH_PAGE;
	}
	return said;
}

#endif
