/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The server has answered a request without waiting for the end of its body. It must read the rest, or close (RFC 9112,
 * 9.3); some do neither, and take the body for requests. So what is left of the body is not read here any more, but held.
 *
 * A server that has all of the body, and has said nothing since, has taken it for one: behind it requests are read again. In another
 * one's body there may have been requests at most that it answers later: such an answer is one that nobody has asked for.
 */
#ifndef WEIR_CONN_EARLY_H
#define WEIR_CONN_EARLY_H

#include "weir/conn/doubt.h"

WEIR_INLINE bool weir_conn_answered_early(const struct weir_conn *c)
{
	bool unread = c->request_place == WEIR_PLACE_ENDED && seq_before(weir_conn_acked(c), c->request_next);

	return c->phase == WEIR_PHASE_FOLLOWED && c->requests == c->responses &&
	       (unread || c->request_place == WEIR_PLACE_BODY);
}

/* Is the end of that body known, and has nothing behind it gone on unread? Otherwise its request is LOST. */
WEIR_INLINE bool weir_conn_body_ends(const struct weir_conn *c)
{
	return c->opaque_why == WEIR_ANSWERED_EARLY && c->request_place == WEIR_PLACE_ENDED;
}

/* Does the segment bring bytes from behind the body's end? */
WEIR_INLINE bool weir_conn_leaves_body(const struct weir_conn *c, const struct weir_segment *g)
{
	return g->len && weir_conn_body_ends(c) && seq_after(g->seq + g->len, c->request_next);
}

/*
 * A segment that was not read on its way brings the socket bytes from behind the body's end (server's numbers). From now on nothing is
 * read behind that body: the socket cannot say what else is on its way to it.
 */
WEIR_INLINE void weir_conn_leaves_body_unseen(struct weir_conn *c, const struct weir_segment *g)
{
	if (c->phase == WEIR_PHASE_OPAQUE && g->len && weir_conn_body_ends(c) &&
	    seq_after(g->seq + g->len + c->splice.in_off, c->request_next))
		c->request_place = WEIR_PLACE_LOST;
}

WEIR_INLINE enum weir_action weir_conn_pass_unread(struct weir_conn *c)
{
	c->request_place = WEIR_PLACE_LOST;
	return WEIR_PASS;
}

/*
 * opaque_why is left as it is. Another CPU may read the phase and then opaque_why, without the lock. It must not take the connection for an
 * opaque one of another kind, whose bytes pass.
 */
WEIR_INLINE enum weir_action weir_conn_read_on(struct weir_conn *c)
{
	c->phase = WEIR_PHASE_FOLLOWED;
	c->bare &= WEIR_BARE_BODY;
	c->version++;
	c->hold.version++;
	c->hold.since_ns = 0;
	return WEIR_FRAME;
}

/* The part of the segment that belongs to the body goes on unread. What the server makes of it is known when it has it. */
WEIR_INLINE enum weir_action weir_conn_cut_behind_body(struct weir_conn *c, const struct weir_segment *g,
						       struct weir_request_reader *r)
{
	struct weir_segment body = *g;

	r->start = c->request_next;
	body.len = r->start - g->seq;
	body.flags &= ~WEIR_TCP_FIN;
	weir_unconfirmed_pass(&c->unconfirmed, c->last_ns);
	weir_splice_pass(&c->splice, &body);
	return WEIR_CUT;
}

/*
 * On an opaque connection: FRAME: it is read again. DROP: the server does not have what is before the segment yet; it comes again. CUT: nor
 * does it have the end of the body, with which the segment begins.
 */
WEIR_INLINE enum weir_action weir_conn_leave_body(struct weir_conn *c, const struct weir_socket *k,
						  const struct weir_segment *g, struct weir_request_reader *r,
						  enum weir_reason *why)
{
	__u32 next = k->next + c->splice.in_off;

	if (!weir_conn_leaves_body(c, g))
		return WEIR_PASS;
	if (!weir_conn_idle(c))
		return weir_conn_pass_unread(c);
	if (!k->asked)
		return WEIR_ASK;
	if (!k->known || seq_after(next, c->request_next))
		return weir_conn_pass_unread(c);
	if (seq_before(next, g->seq)) {
		*why = WEIR_UNCONFIRMED;
		return WEIR_DROP;
	}
	if (seq_before(next, c->request_next))
		return weir_conn_cut_behind_body(c, g, r);
	return k->early ? weir_conn_pass_unread(c) : weir_conn_read_on(c);
}

#endif
