/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Segments that come to the server's socket and were not read on their way. They are dropped; where nothing else comes, the
 * connection cannot be read any more. All numbers are the server's.
 */
#ifndef WEIR_CONN_STRAY_H
#define WEIR_CONN_STRAY_H

#include "weir/conn/conn.h"
#include "weir/conn/passing.h"
#include "weir/tcp/socket.h"

/*
 * Segments that come to the socket and were not read on their way, one after the other. A way on which nothing is read may
 * be all that there is from now on, or a packet may have met programs that were just being replaced: up to here they are
 * dropped, and TCP brings them again.
 */
#define WEIR_STRAYS_MAX 3

/*
 * Will the socket take this segment's bytes? What it would drop now must not be followed, or the client could send something
 * else in its place; and must not come to it, for by the time it looks at them it may take them.
 */
WEIR_INLINE bool weir_hold_socket_takes(const struct weir_conn *c, const struct weir_socket *k,
					const struct weir_segment *g)
{
	return k->listens || !weir_socket_drops(k, g, c->splice.server_end);
}

/*
 * Does a segment bring the socket what was not seen on its way: as fragments, by another device, after its addresses were
 * changed? What was seen bears its connection's badge (`badged`) and has gone on through weir_splice_pass(). Where it stands
 * in the stream says nothing alone: what was read there may have been dropped behind tc, for something else to take its place.
 */
WEIR_INLINE bool weir_hold_overlooked(const struct weir_conn *c, const struct weir_socket *k,
				      const struct weir_segment *g, bool badged)
{
	__u32 end = g->seq + g->len;
	bool fin = weir_segment_has(g, WEIR_TCP_FIN);

	if ((!g->len && !fin) || (g->flags & (WEIR_TCP_SYN | WEIR_TCP_RST)) || c->phase == WEIR_PHASE_OPAQUE)
		return false;
	if (badged && !seq_after(end, c->splice.passed_end - c->splice.in_off))
		return false;
	return k->listens || seq_after(end + fin, k->next);
}

/*
 * Must it be read, or not come at all? What follows the end of a connection that weir ended; and a FIN in the middle of a
 * head, which for some servers ends the request: it weighs nothing that could be charged.
 */
WEIR_INLINE bool weir_hold_must_be_read(const struct weir_conn *c, const struct weir_segment *g)
{
	return c->phase == WEIR_PHASE_CLOSED || (!g->len && weir_conn_in_head(c));
}

/* The end of what the server has. While the socket still listens, that is only what it has acknowledged. */
WEIR_INLINE __u32 weir_hold_acked(const struct weir_conn *c, const struct weir_socket *k)
{
	return k->listens ? c->splice.server_acked : k->next;
}

/* Makes the connection opaque, from the byte that the server waits for. */
WEIR_INLINE void weir_hold_unseen(struct weir_conn *c, const struct weir_socket *k)
{
	weir_conn_give_up(c, weir_hold_acked(c, k), WEIR_UNSEEN);
}

/*
 * Of a segment of the server's that jumps (passing.h): if the socket has never sent it, something on the way changes the numbers (netfilter's SYNPROXY). What is seen here is
 * not what the socket gets: the connection becomes opaque. Where something was cut already, it is too late for that.
 */
WEIR_INLINE bool weir_conn_is_renumbered(struct weir_conn *c, const struct weir_socket *k, const struct weir_segment *g)
{
	if (!k->known || c->splice.cuts || !weir_conn_server_jumps(c, g) ||
	    !(seq_after(g->seq, k->sent) || seq_before(g->seq, k->acked - k->reach)))
		return false;
	weir_hold_unseen(c, k);
	return true;
}

/*
 * Of a segment that comes to the socket: WEIR_REASON_NONE: it was read, or need not be. STRAY: it is to be dropped. UNSEEN:
 * from here on the connection is opaque. `withholds`: the server is one from which something may be dropped.
 */
WEIR_INLINE enum weir_reason weir_hold_meet(struct weir_conn *c, const struct weir_socket *k,
					    const struct weir_segment *g, bool badged, bool withholds)
{
	bool taken;

	if (!badged && weir_hold_socket_takes(c, k, g))
		weir_conn_leaves_body_unseen(c, g);
	if (!weir_hold_overlooked(c, k, g, badged)) {
		if (badged && g->len)
			c->strays = 0;
		return WEIR_REASON_NONE;
	}
	/* What the socket would drop anyone may send: it makes no connection opaque. */
	taken = weir_hold_socket_takes(c, k, g);
	if (withholds && (!taken || weir_hold_must_be_read(c, g) || ++c->strays < WEIR_STRAYS_MAX))
		return WEIR_STRAY;
	if (c->phase == WEIR_PHASE_CLOSED || !taken)
		return WEIR_REASON_NONE;
	weir_hold_unseen(c, k);
	return WEIR_UNSEEN;
}

#endif
