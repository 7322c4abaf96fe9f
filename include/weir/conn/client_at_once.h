/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Most requests begin with a segment that comes in its turn, on a connection on which nothing is in doubt or under way
 * (weir_conn_reads_client_at_once()). Such a segment is read and decided without the lock. Then it is begun and committed in one step.
 */
#ifndef WEIR_CONN_CLIENT_AT_ONCE_H
#define WEIR_CONN_CLIENT_AT_ONCE_H

#include "weir/conn/client_commit.h"
#include "weir/conn/passing.h"

WEIR_INLINE bool weir_conn_reads_client_at_once(const struct weir_conn *c, const struct weir_segment *g)
{
	return g->len && weir_conn_runs(c, g) && c->phase == WEIR_PHASE_FOLLOWED && g->seq == c->request_next &&
	       c->request_place <= WEIR_PLACE_ENDED && !weir_preamble_awaited(&c->preamble) &&
	       !c->splice.server_reset && c->unconfirmed.n < WEIR_READS && !weir_conn_doubts(c, g);
}

/* `r` is ready to be fed. */
WEIR_INLINE void weir_conn_open_reader_at_once(const struct weir_conn *c, const struct weir_segment *g,
					       struct weir_request_reader *r)
{
	weir_conn_open_reader(c, NULL, g, r);
	r->next = g->seq; /* as it was when that was asked */
	r->again = 0;
}

/*
 * Does what weir_conn_begin_client() would do, for a segment that was read at once: the other cases of that function cannot arise here.
 * FRAME: it is to be committed now. DROP: the connection has changed meanwhile; the segment is dropped, and TCP resends it.
 */
WEIR_INLINE enum weir_action weir_conn_begin_read(struct weir_conn *c, const struct weir_segment *g,
						  const struct weir_request_reader *r, enum weir_reason *why)
{
	if (c->version != r->version || !weir_conn_reads_client_at_once(c, g)) {
		*why = WEIR_CONTENDED;
		return WEIR_DROP;
	}
	weir_unconfirmed_settle(&c->unconfirmed, weir_conn_acked(c));
	weir_splice_see_client(&c->splice, g);
	return WEIR_FRAME;
}

#endif
