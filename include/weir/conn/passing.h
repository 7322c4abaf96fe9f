/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Most segments bring nothing to read: acknowledgements, and what belongs to a body that is passed over. Here they are known
 * at a glance. When one passes here, the connection is what it would be after weir_conn_begin_client() or _server() had
 * passed it; else it is untouched, and those are asked (tests/unit/conn/test_passing.c).
 */
#ifndef WEIR_CONN_PASSING_H
#define WEIR_CONN_PASSING_H

#include "weir/conn/early.h"

/* Nothing was cut, and no part of the connection begins or ends with this segment: it only has to be noticed. */
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

/*
 * Does a segment of the server's begin behind all that was seen of it? Either something was lost on the way here, or it has other numbers here
 * than the socket gave it. Of an opaque connection it does not matter.
 */
WEIR_INLINE bool weir_conn_server_jumps(const struct weir_conn *c, const struct weir_segment *g)
{
	return seq_after(g->seq, c->splice.server_end) && c->phase != WEIR_PHASE_OPAQUE;
}

/* Might it pass, as above? Where requests have seats, each of the server's segments may free some. */
WEIR_INLINE bool weir_conn_server_may_pass(const struct weir_conn *c, const struct weir_segment *g)
{
	return weir_conn_runs(c, g) && !weir_conn_has_seats(c) && !weir_conn_server_jumps(c, g) &&
	       (!g->len || !seq_after(g->seq + g->len, c->response_next) ||
		(c->phase == WEIR_PHASE_OPAQUE && !(WEIR_FRESH(c->bare) & WEIR_BARE_UNTOLD)));
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
 * - It moves only marks that grow, and swaps them, so that an older segment takes none back. One that a segment under the lock
 *   writes over is as if it had been lost on the way: nothing waits for it where nothing was cut, and the next segment brings it again.
 *   Bytes that pass are before request_next, where no cut is made.
 * - The entry's memory may be another connection's by now. So the marks are looked at first, then the id, then they are swapped: if
 *   it is another one's, either the id does not fit, or the marks do not. What is not swapped are window, timestamps and `told`. With
 *   wrong ones a segment is in doubt for nothing or a window's edge too far ahead, until the next segment of that connection: a read is
 *   confirmed by server_acked, all the same.
 * - If another CPU cuts meanwhile, it came before the cut. What it acknowledges has the same number on both sides of it. What it
 *   brings is known to the other side by then, or nothing would be cut.
 * - Reads that it confirms are settled when the next segment is looked at. Bytes do not go by while there is one.
 * - Silence is counted in seconds, and only where an entry is to go.
 */
WEIR_INLINE bool weir_conn_is_quiet(const struct weir_conn *c, const struct weir_segment *g, __u32 end)
{
	return !c->dying && weir_conn_runs(c, g) && (g->len || !seq_after(g->seq, end));
}

/*
 * The same without the lock, where the connection may change meanwhile: the phase is looked at once, and then what goes with it. What is
 * behind a body that was answered early is told from the body under the lock alone, for it may be read from now on (weir_conn_read_on()).
 */
WEIR_INLINE bool weir_conn_stays_behind(const struct weir_conn *c, const struct weir_segment *g)
{
	__u8 phase = WEIR_FRESH(c->phase);

	if (phase == WEIR_PHASE_OPAQUE)
		return WEIR_FRESH(c->opaque_why) != WEIR_ANSWERED_EARLY;
	return phase == WEIR_PHASE_FOLLOWED && !seq_after(g->seq + g->len, WEIR_FRESH(c->request_next));
}

/* Two marks in one word, to be swapped. */
typedef __u64 __attribute__((may_alias)) weir_marks;

struct weir_two_marks {
	__u32 first, second;
};

#define WEIR_ASSERT_MARKS(FIRST, SECOND)                                                                              \
	_Static_assert(                                                                                               \
		(__builtin_offsetof(struct weir_conn, splice) + __builtin_offsetof(struct weir_splice, FIRST)) % 8 == \
				0 &&                                                                                  \
			__builtin_offsetof(struct weir_splice, SECOND) ==                                             \
				__builtin_offsetof(struct weir_splice, FIRST) + 4,                                    \
		"the two marks are no word")
WEIR_ASSERT_MARKS(client_end, passed_end);
WEIR_ASSERT_MARKS(server_end, server_acked);

WEIR_INLINE struct weir_two_marks weir_marks_look(__u64 word)
{
	struct weir_two_marks m;

	__builtin_memcpy(&m, &word, sizeof(m));
	return m;
}

/* Moves both marks on, if they are still as they were when the word was read. */
WEIR_INLINE bool weir_marks_move(weir_marks *marks, __u64 before, __u32 first, __u32 second)
{
	struct weir_two_marks m = weir_marks_look(before);
	__u64 after;

	m.first = seq_max(m.first, first);
	m.second = seq_max(m.second, second);
	__builtin_memcpy(&after, &m, sizeof(after));
	return before == after || __sync_bool_compare_and_swap(marks, before, after);
}

/*
 * A client's, without the lock. `id`: of the connection that was found. False: nothing has changed, but marks that the segment moves in any
 * case.
 */
WEIR_INLINE bool weir_conn_client_goes_by(struct weir_conn *c, __u64 id, const struct weir_segment *g)
{
	struct weir_splice *s = &c->splice;
	weir_marks *ends = (weir_marks *)&s->client_end;
	__u32 acked = WEIR_FRESH(s->client_acked), server_end = WEIR_FRESH(s->server_end), end = g->seq + g->len;
	__u64 before = g->len ? WEIR_FRESH(*ends) : 0;
	bool possible = !seq_after(g->ack, server_end);

	if (!weir_conn_is_quiet(c, g, s->client_end) || (g->has_ts && !s->client_has_ts) || WEIR_FRESH(c->id) != id)
		return false;
	if (g->len && (WEIR_FRESH(c->unconfirmed.n) || !weir_conn_stays_behind(c, g) || weir_conn_doubts_place(c, g)))
		return false;
	if (possible && seq_after(g->ack, acked) && !__sync_bool_compare_and_swap(&s->client_acked, acked, g->ack))
		return false;
	if (g->len && !weir_marks_move(ends, before, end, end))
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
WEIR_INLINE bool weir_conn_server_goes_by(struct weir_conn *c, __u64 id, const struct weir_segment *g)
{
	struct weir_splice *s = &c->splice;
	weir_marks *marks = (weir_marks *)&s->server_end;
	__u64 before = WEIR_FRESH(*marks);

	if (!weir_conn_is_quiet(c, g, weir_marks_look(before).first) || !weir_conn_server_may_pass(c, g) ||
	    (g->has_ts && !s->has_ts) || WEIR_FRESH(c->id) != id)
		return false;
	if (g->len && c->phase == WEIR_PHASE_HUNTING)
		return false;
	if (g->has_ts && seq_after(g->tsval, s->server_tsval))
		s->server_tsval = g->tsval;
	s->server_window = g->window;
	WEIR_FRESH_ALL();
	return weir_marks_move(marks, before, g->seq + g->len, g->ack);
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
