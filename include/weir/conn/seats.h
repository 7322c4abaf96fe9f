/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Seats of limits on requests in flight (limit.h) that a connection has. Its server works on one request at a time, so a
 * connection counts for what is under way: of each limit and subject it has seats once, until the last request that wants
 * them has been answered. What a client pipelines takes others, or more, only where it wants them.
 *
 * A packet's requests are decided before it is known whether the packet may pass. What they take stands in a draft until
 * then: as it was (had), before the request that is being decided (before), and now. Slot n of a draft is slot n of the
 * connection, for only commits of the client's side fill slots, and of two at a time one is contended.
 */
#ifndef WEIR_CONN_SEATS_H
#define WEIR_CONN_SEATS_H

#include "weir/base/seq.h"
#include "weir/base/types.h"
#include "weir/limit/limit.h"

struct weir_seats {
	struct weir_in_flight_key key;
	__u32 taken; /* 0: the slot is free */
	__u32 end;   /* behind the last request that wants them, as struct weir_conn counts requests */
};
WEIR_ASSERT_SIZE(struct weir_seats, 24);

struct weir_seats_draft {
	struct weir_seats now;
	__u32 had, had_end;
	__u32 before, before_end;
};
WEIR_ASSERT_SIZE(struct weir_seats_draft, 40);

WEIR_INLINE bool weir_seats_are_of(const struct weir_seats *s, const struct weir_in_flight_key *key)
{
	return s->taken && s->key.limit == key->limit && s->key.epoch == key->epoch && s->key.subject == key->subject;
}

WEIR_INLINE void weir_draft_begin(struct weir_seats_draft *d, const struct weir_seats *s)
{
	d->now = *s;
	d->had = d->before = s->taken;
	d->had_end = d->before_end = s->end;
}

WEIR_INLINE void weir_draft_request(struct weir_seats_draft *d)
{
	d->before = d->now.taken;
	d->before_end = d->now.end;
}

/* The request before `end` wants so many, and the draft, which is of the key or free, has what is missing of them. */
WEIR_INLINE void weir_draft_take(struct weir_seats_draft *d, const struct weir_in_flight_key *key, __u32 missing,
				 __u32 end)
{
	d->now.key = *key;
	d->now.taken += missing;
	d->now.end = end;
}

/* The draft becomes what it was before the request asked. Returns the seats that the request took, which are to be given back. */
WEIR_INLINE __u32 weir_draft_undo_request(struct weir_seats_draft *d)
{
	__u32 taken = d->now.taken - d->before;

	d->now.taken = d->before;
	d->now.end = d->before_end;
	return taken;
}

/* The same for all requests of the packet. */
WEIR_INLINE __u32 weir_draft_undo(struct weir_seats_draft *d)
{
	__u32 taken = d->now.taken - d->had;

	d->now.taken = d->before = d->had;
	d->now.end = d->before_end = d->had_end;
	return taken;
}

/* Not 0: the draft was used. Without a branch: the verifier would follow both ways of it, for each draft of a segment. */
WEIR_INLINE __u32 weir_draft_used(const struct weir_seats_draft *d)
{
	return (d->now.taken ^ d->had) | (d->now.end ^ d->had_end);
}

/* Has the connection given back seats meanwhile that some request of the packet counted on? */
WEIR_INLINE bool weir_draft_lost(const struct weir_seats_draft *d, const struct weir_seats *s)
{
	return d->had && weir_draft_used(d) && !s->taken;
}

/* The packet passes: the connection has what it took. */
WEIR_INLINE void weir_draft_commit(const struct weir_seats_draft *d, struct weir_seats *s)
{
	if (!weir_draft_used(d))
		return;
	s->key = d->now.key;
	s->taken += d->now.taken - d->had;
	s->end = d->now.end;
}

/* Requests up to `done` have been answered: takes out the seats that no later one wants; all: also those that are wanted. */
WEIR_INLINE void weir_seats_take_out(struct weir_seats *s, struct weir_seats *out, __u32 done, bool all)
{
	out->taken = 0;
	if (!s->taken || (!all && seq_after(s->end, done)))
		return;
	*out = *s;
	s->taken = 0;
}

#endif
