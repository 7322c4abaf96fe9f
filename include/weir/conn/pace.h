/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Delaying what cannot be read, where the kernel can (its queueing discipline fq): a segment that is over a limit now is
 * charged for the time at which it will be within, waits until then, and goes on. The steps, the reader and the state are
 * those of hold.h, at a hook that comes before the socket's: what was charged here lies below the position there, and is
 * not charged again. Between begin and commit the limits are asked until when the segment has to wait.
 *
 * A connection's segments depart in the order in which they came. So those that cost nothing wait, too, for as long as
 * one before them does; repetitions of what waits among them. What brings no bytes (acknowledgements, a FIN, a RST) goes
 * ahead: the server's side of the connection is not slowed.
 */
#ifndef WEIR_CONN_PACE_H
#define WEIR_CONN_PACE_H

#include "weir/conn/hold.h"

/* What would have to wait for longer is withheld (hold.h): what waits has its tokens, also if its client goes away. */
#define WEIR_PACE_MAX_NS (5 * WEIR_NS_PER_S)

/* A segment whose time has come may still be on its way up: this much later it is not. */
#define WEIR_PACE_SLACK_NS (WEIR_NS_PER_S / 1000)

/* Does it bring bytes? Else it goes ahead. */
WEIR_INLINE bool weir_pace_concerns(const struct weir_segment *g)
{
	return g->len && !(g->flags & (WEIR_TCP_SYN | WEIR_TCP_RST));
}

/*
 * PASS: it has no news; or it is ahead of a gap, and those behind it cannot be told apart; or it could be requests, and only the
 * socket tells what of them has come: its hook asks for them. *departs_ns: what the segment stands behind departs then.
 */
WEIR_INLINE enum weir_action weir_pace_begin(const struct weir_conn *c, const struct weir_socket *k,
					     const struct weir_segment *g, struct weir_hold_reader *r,
					     __u64 *departs_ns, enum weir_reason *why)
{
	const struct weir_hold *h = &c->hold;

	if (c->phase != WEIR_PHASE_OPAQUE)
		return WEIR_PASS;
	if (!h->by_records && (c->opaque_why == WEIR_UNSEEN || c->opaque_why == WEIR_ANSWERED_EARLY))
		return WEIR_PASS;
	*departs_ns = h->departs_ns;
	if (seq_after(g->seq, h->next) && seq_after(g->seq, c->splice.server_acked))
		return WEIR_PASS;
	return weir_hold_begin(c, k, g, true, r, why);
}

/*
 * at_ns: when the limits let it pass, not before now_ns. As weir_hold_commit(); *departs_ns is when it departs, which may
 * be over.
 */
WEIR_INLINE enum weir_action weir_pace_commit(struct weir_conn *c, const struct weir_hold_reader *r, __u64 now_ns,
					      __u64 at_ns, __u64 *departs_ns, __u64 *held_ns, enum weir_reason *why)
{
	struct weir_hold *h = &c->hold;
	enum weir_action action;

	if (at_ns > now_ns)
		weir_hold_refuse(c, r, now_ns);
	action = weir_hold_commit(c, r, at_ns, held_ns, why);
	if (action != WEIR_PASS)
		return action;
	/* What was charged here gets to the socket. */
	if (weir_hold_charges_all(c) && !seq_after(r->news, h->next))
		h->next = seq_max(h->next, r->next);
	if (at_ns > now_ns && at_ns > h->departs_ns)
		h->departs_ns = at_ns;
	*departs_ns = h->departs_ns;
	return WEIR_PASS;
}

/* Does a segment that departs then have to wait, or may it go on? */
WEIR_INLINE bool weir_pace_waits(__u64 departs_ns, __u64 now_ns)
{
	return departs_ns + WEIR_PACE_SLACK_NS > now_ns;
}

#endif
