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
 *
 * What was charged here may be lost on its way to the socket, or be overtaken, and other bytes come in its place. So each packet bears
 * what it has paid itself (enum weir_paid), and at the socket's hook it costs what requests may be in it, less that. Only behind a packet
 * that began TLS, or HTTP/2, and has come to the socket, and that the server has answered in kind, this hook's word is taken for the rest
 * of the connection.
 */
#ifndef WEIR_CONN_PACE_H
#define WEIR_CONN_PACE_H

#include "weir/conn/hold.h"

/* What would have to wait for longer is withheld (hold.h): what waits has its tokens, also if its client goes away. */
#define WEIR_PACE_MAX_NS (5 * WEIR_NS_PER_S)

/* A segment whose time has come may still be on its way up: this much later it is not. */
#define WEIR_PACE_SLACK_NS (WEIR_NS_PER_S / 1000)

/* What a packet of a connection that cannot be read has paid before it comes to the socket: tokens, from NOTHING on. */
enum weir_paid {
	WEIR_PAID_WHOLE, /* all of it was read, or charged behind what was */
	WEIR_PAID_NOTHING,
	WEIR_PAID_MOST = 1022,
	WEIR_PAID_BEGINS, /* it begins what is not HTTP/1 */
};

/* Is what cannot be read charged at ingress? */
WEIR_INLINE bool weir_pace_is_on(__u32 server_flags)
{
	return (server_flags & WEIR_SERVER_PACED) && !(server_flags & (WEIR_SERVER_PAUSED | WEIR_SERVER_DRY_RUN));
}

/* Does it bring bytes? Else it goes ahead. */
WEIR_INLINE bool weir_pace_concerns(const struct weir_segment *g)
{
	return g->len && !(g->flags & (WEIR_TCP_SYN | WEIR_TCP_RST));
}

/* Does a segment that departs then have to wait, or may it go on? */
WEIR_INLINE bool weir_pace_waits(__u64 departs_ns, __u64 now_ns)
{
	return departs_ns + WEIR_PACE_SLACK_NS > now_ns;
}

/* Are the connection's segments charged here? Of what could be requests only the socket tells what has come: its hook asks for them. */
WEIR_INLINE bool weir_pace_charges(const struct weir_conn *c)
{
	return c->hold.by_records || (c->opaque_why != WEIR_UNSEEN && !weir_reason_is_body(c->opaque_why));
}

/*
 * PASS: it has no news; or it is ahead of a gap, and those behind it cannot be told apart; or the socket's hook asks for it.
 * *departs_ns: what the segment stands behind departs then. What comes again while nothing waits was lost, and pays again.
 */
WEIR_INLINE enum weir_action weir_pace_begin(const struct weir_conn *c, const struct weir_socket *k,
					     const struct weir_segment *g, __u64 now_ns, struct weir_hold_reader *r,
					     __u64 *departs_ns, enum weir_reason *why)
{
	const struct weir_hold *h = &c->hold;

	if (c->phase != WEIR_PHASE_OPAQUE || !weir_pace_charges(c))
		return WEIR_PASS;
	*departs_ns = h->departs_ns;
	if (seq_after(g->seq, h->next) && seq_after(g->seq, c->splice.server_acked))
		return WEIR_PASS;
	return weir_hold_begin(c, k, g, h->by_records || weir_pace_waits(h->departs_ns, now_ns), r, why);
}

/*
 * at_ns: when the limits let it pass, not before now_ns. As weir_hold_commit(); *departs_ns is when it departs, which may
 * be over.
 */
WEIR_INLINE enum weir_action weir_pace_commit(struct weir_conn *c, const struct weir_hold_reader *r, __u64 now_ns,
					      __u64 at_ns, __u64 *departs_ns, __u64 *held_ns, enum weir_reason *why)
{
	const __u8 none = c->bare & WEIR_BARE_NONE;
	struct weir_hold *h = &c->hold;
	enum weir_action action;

	if (at_ns > now_ns)
		weir_hold_refuse(c, r, now_ns);
	action = weir_hold_commit(c, r, at_ns, held_ns, why);
	if (action != WEIR_PASS)
		return action;
	/* That is known when it has come. */
	c->bare = (c->bare & ~WEIR_BARE_NONE) | none;
	/* What comes again while this waits is not charged again. */
	if (weir_hold_charges_all(c) && !seq_after(r->news, h->next))
		h->next = seq_max(h->next, r->next);
	if (at_ns > now_ns && at_ns > h->departs_ns)
		h->departs_ns = at_ns;
	*departs_ns = h->departs_ns;
	return WEIR_PASS;
}

/* What the segment has paid now. `read`: its requests were decided, up to what was charged here. */
WEIR_INLINE __u32 weir_pace_paid(const struct weir_hold_reader *r, const struct weir_segment *g, bool read)
{
	if (weir_hold_reader_begins(r) && (read || r->news == g->seq))
		return WEIR_PAID_BEGINS;
	if (read)
		return WEIR_PAID_WHOLE;
	return r->weight < WEIR_PAID_MOST - WEIR_PAID_NOTHING ? WEIR_PAID_NOTHING + r->weight : WEIR_PAID_MOST;
}

/* Is the connection no HTTP/1, or only what ingress believes of it? */
WEIR_INLINE bool weir_pace_believes(const struct weir_conn *c)
{
	return (c->bare & WEIR_BARE_NONE) && !weir_hold_may_be_http(c);
}

/* As weir_hold_begin(), of a segment that ingress has seen and that comes to the socket. */
WEIR_INLINE enum weir_action weir_pace_meet(struct weir_conn *c, const struct weir_socket *k,
					    const struct weir_segment *g, __u32 paid, struct weir_hold_reader *r,
					    enum weir_reason *why)
{
	__u32 acked = weir_hold_acked(c, k), end = g->seq + g->len;
	enum weir_action action;
	bool arrives;

	if (paid == WEIR_PAID_BEGINS && g->seq == acked && weir_hold_socket_takes(c, k, g))
		c->bare |= WEIR_BARE_NONE;
	if (c->phase != WEIR_PHASE_OPAQUE || paid == WEIR_PAID_WHOLE || paid == WEIR_PAID_BEGINS ||
	    weir_pace_believes(c) || !weir_pace_charges(c))
		return weir_hold_begin(c, k, g, true, r, why);
	arrives = !seq_after(end, c->hold.next);
	action = weir_hold_begin(c, k, g, false, r, why);
	if (action != WEIR_FRAME || !arrives)
		return action;
	r->next = r->news = seq_max(acked, g->seq);
	r->by_records = r->seeking = r->midway = r->ahead = r->crumbs = r->grants = r->head = 0;
	r->preface = WEIR_HOLD_NO_PREFACE;
	r->by_lines = r->free = r->arrives = 1;
	/* What has paid has paid for one head at least. */
	r->apart = paid == WEIR_PAID_NOTHING;
	return WEIR_FRAME;
}

/* What the requests that may be in it cost, when ingress has charged it. */
WEIR_INLINE void weir_pace_deduct(struct weir_hold_reader *r, __u32 paid)
{
	__u32 tokens = paid > WEIR_PAID_NOTHING ? paid - WEIR_PAID_NOTHING : 0;

	if (!r->arrives)
		return;
	r->weight -= tokens < r->weight ? tokens : r->weight;
	r->records = !!r->weight;
}

#endif
