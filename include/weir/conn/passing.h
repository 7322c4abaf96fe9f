/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Most segments bring nothing to read: acknowledgements, and what belongs to a body that is passed over. Here they are known
 * at a glance. When one passes here, the connection is what it would be after weir_conn_begin_client() or _server() had
 * passed it; else it is untouched, and those are asked (tests/unit/conn/test_passing.c).
 */
#ifndef WEIR_CONN_PASSING_H
#define WEIR_CONN_PASSING_H

#include "weir/conn/early.h"

/* Nothing was cut, and nothing of the connection ends or begins here: what is to come needs no more than to be seen. */
WEIR_INLINE bool weir_conn_runs(const struct weir_conn *c, const struct weir_segment *g)
{
	return (g->flags & (WEIR_TCP_SYN | WEIR_TCP_FIN | WEIR_TCP_RST | WEIR_TCP_ACK)) == WEIR_TCP_ACK &&
	       !c->splice.cuts && !c->splice.fins && c->phase != WEIR_PHASE_CLOSED;
}

/* Is all of it read, or never to be? */
WEIR_INLINE bool weir_conn_is_behind(const struct weir_conn *c, const struct weir_segment *g)
{
	if (!g->len)
		return true;
	if (c->phase == WEIR_PHASE_OPAQUE)
		return !weir_conn_leaves_body(c, g);
	return c->phase == WEIR_PHASE_FOLLOWED && !seq_after(g->seq + g->len, c->request_next);
}

/* Might it pass? To be asked without the lock, which then need not be taken for nothing. */
WEIR_INLINE bool weir_conn_client_may_pass(const struct weir_conn *c, const struct weir_segment *g)
{
	return weir_conn_runs(c, g) && weir_conn_is_behind(c, g);
}

/* A client's segment, under the lock. */
WEIR_INLINE bool weir_conn_client_passes(struct weir_conn *c, const struct weir_segment *g)
{
	if (!weir_conn_client_may_pass(c, g) || weir_conn_doubts(c, g))
		return false;
	weir_unconfirmed_settle(&c->unconfirmed, weir_conn_acked(c));
	weir_splice_see_client(&c->splice, g);
	if (g->len)
		weir_unconfirmed_pass(&c->unconfirmed, c->last_ns);
	weir_splice_pass(&c->splice, g);
	return true;
}

/* Might it pass, as above? Where requests have seats, each of the server's segments may free some. */
WEIR_INLINE bool weir_conn_server_may_pass(const struct weir_conn *c, const struct weir_segment *g)
{
	return weir_conn_runs(c, g) && !weir_conn_has_seats(c) &&
	       (!g->len || c->phase == WEIR_PHASE_OPAQUE || !seq_after(g->seq + g->len, c->response_next));
}

/* A server's segment, under the lock. */
WEIR_INLINE bool weir_conn_server_passes(struct weir_conn *c, const struct weir_segment *g)
{
	if (!weir_conn_server_may_pass(c, g))
		return false;
	weir_splice_see_server(&c->splice, g);
	if (c->phase == WEIR_PHASE_HUNTING && g->len)
		c->hold.answers = 1;
	return true;
}

/*
 * Most of what passes needs its connection's entry and nothing else: neither the lock nor the time. Such a segment goes by.
 *
 * - It moves only marks that grow, and each of them is read by itself. Those of a client are swapped, so that an older segment takes
 *   none back. One that a segment under the lock writes over is as if it had been lost on the way: nothing waits for it where nothing
 *   was cut, and the next segment brings it again. Bytes that pass are before request_next, where no cut is made. What a server's
 *   segment moves is moved by its socket alone.
 * - If another CPU cuts meanwhile, it came before the cut. What it acknowledges has the same number on both sides of it. What it
 *   brings is known to the other side by then, or nothing would be cut.
 * - Reads that it confirms are settled when the next segment is looked at. Bytes do not go by while there is one.
 * - Silence is counted in seconds, and only where an entry is to go.
 */
WEIR_INLINE bool weir_conn_is_quiet(const struct weir_conn *c, const struct weir_segment *g, __u32 end)
{
	return !c->dying && weir_conn_runs(c, g) && (g->len || !seq_after(g->seq, end));
}

/* Behind which byte is all that a client has sent, and all that has passed? In one word, to be swapped. */
typedef __u64 __attribute__((may_alias)) weir_ends;
_Static_assert((__builtin_offsetof(struct weir_conn, splice) + __builtin_offsetof(struct weir_splice, client_end)) %
				       8 ==
			       0 &&
		       __builtin_offsetof(struct weir_splice, passed_end) ==
			       __builtin_offsetof(struct weir_splice, client_end) + 4,
	       "the two ends are no word");

WEIR_INLINE bool weir_splice_pass_by(struct weir_splice *s, __u32 end)
{
	weir_ends *ends = (weir_ends *)&s->client_end, before = WEIR_FRESH(*ends), after;
	struct {
		__u32 seen, passed;
	} both;

	__builtin_memcpy(&both, &before, sizeof(both));
	both.seen = seq_max(both.seen, end);
	both.passed = seq_max(both.passed, end);
	__builtin_memcpy(&after, &both, sizeof(after));
	return before == after || __sync_bool_compare_and_swap(ends, before, after);
}

/* A client's, without the lock. False: nothing has changed, but marks that the segment moves in any case. */
WEIR_INLINE bool weir_conn_client_goes_by(struct weir_conn *c, const struct weir_segment *g)
{
	struct weir_splice *s = &c->splice;
	__u32 acked = WEIR_FRESH(s->client_acked), server_end = WEIR_FRESH(s->server_end);
	bool possible = !seq_after(g->ack, server_end);

	if (!weir_conn_is_quiet(c, g, s->client_end) || (g->has_ts && !s->client_has_ts))
		return false;
	if (g->len && (WEIR_FRESH(c->unconfirmed.n) || !weir_conn_is_behind(c, g) || weir_conn_doubts_place(c, g)))
		return false;
	if (possible && seq_after(g->ack, acked) && !__sync_bool_compare_and_swap(&s->client_acked, acked, g->ack))
		return false;
	if (g->len && !weir_splice_pass_by(s, g->seq + g->len))
		return false;
	if (possible && seq_after(g->ack, s->told))
		s->told = g->ack;
	if (g->has_ts && seq_after(g->tsval, s->client_tsval))
		s->client_tsval = g->tsval;
	return true;
}

/*
 * A server's, likewise. First the window: with it and an older acknowledgement, the window's edge is not too far ahead. Last what it
 * brings, for an answer is over with its last byte.
 */
WEIR_INLINE bool weir_conn_server_goes_by(struct weir_conn *c, const struct weir_segment *g)
{
	struct weir_splice *s = &c->splice;

	if (!weir_conn_is_quiet(c, g, s->server_end) || !weir_conn_server_may_pass(c, g) || (g->has_ts && !s->has_ts))
		return false;
	if (g->len && c->phase == WEIR_PHASE_HUNTING)
		return false;
	if (g->has_ts && seq_after(g->tsval, s->server_tsval))
		s->server_tsval = g->tsval;
	s->server_window = g->window;
	WEIR_FRESH_ALL();
	if (seq_after(g->ack, s->server_acked))
		s->server_acked = g->ack;
	WEIR_FRESH_ALL();
	if (seq_after(g->seq + g->len, s->server_end))
		s->server_end = g->seq + g->len;
	return true;
}

/*
 * Was a segment that bears its connection's badge read on its way, and is there nothing to do for the hold? Without the lock:
 * one that changes the connection meanwhile came later. In this order, for a cut moves passed_end behind what is cut.
 */
WEIR_INLINE bool weir_hold_passes(const struct weir_conn *c, const struct weir_segment *g)
{
	__u32 passed_end = WEIR_FRESH(c->splice.passed_end);

	return !(g->flags & (WEIR_TCP_SYN | WEIR_TCP_RST)) && WEIR_FRESH(c->phase) == WEIR_PHASE_FOLLOWED &&
	       !WEIR_FRESH(c->splice.cuts) && !WEIR_FRESH(c->strays) && !seq_after(g->seq + g->len, passed_end);
}

#endif
