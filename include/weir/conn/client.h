/* SPDX-License-Identifier: GPL-2.0 */
/* The client's side of a connection: what a segment's header says of it. What was read of it is client_commit.h's. */
#ifndef WEIR_CONN_CLIENT_H
#define WEIR_CONN_CLIENT_H

#include "weir/conn/early.h"

/* Why must the request that starts with this segment not be answered? WEIR_REASON_NONE: it may be. */
WEIR_INLINE enum weir_reason weir_conn_why_not(const struct weir_conn *c, const struct weir_segment *g)
{
	if (c->phase != WEIR_PHASE_FOLLOWED)
		return WEIR_MID_STREAM;
	if (c->splice.fins & WEIR_SPLICE_SERVER_FIN)
		return WEIR_SERVER_CLOSED;
	if (g->seq != c->request_next || !weir_conn_at_boundary(c))
		return WEIR_SPLIT_HEAD;
	if (!weir_conn_idle(c))
		return WEIR_PIPELINED;
	if (!weir_splice_settled(&c->splice, g))
		return WEIR_UNACKED;
	return WEIR_REASON_NONE;
}

/* The client is sending a body, and the server's answer to it has begun, or has ended already. */
WEIR_INLINE bool weir_conn_answer_begun(const struct weir_conn *c)
{
	__u32 outstanding = c->requests - c->responses;

	if (c->request_place != WEIR_PLACE_BODY || outstanding > 1)
		return false;
	return !outstanding || c->response_place > WEIR_PLACE_ENDED;
}

/* The client is sending a body, and the server's next byte, if there is one, belongs to the answer to it. */
WEIR_INLINE bool weir_conn_answer_due(const struct weir_conn *c)
{
	return c->request_place == WEIR_PLACE_BODY && c->requests - c->responses == 1 &&
	       c->splice.server_end == c->response_next;
}

/* The server has the first part of a head, or of the preamble. */
WEIR_INLINE bool weir_conn_in_head(const struct weir_conn *c)
{
	return weir_preamble_midway(&c->preamble) || c->request_place == WEIR_PLACE_BLANK ||
	       c->request_place == WEIR_PLACE_HEAD;
}

/*
 * The client's FIN ends a head whose bytes the server has, or will get. Some servers take that for the head's end, and
 * serve a request that nobody has decided, even behind a FIN of their own.
 */
WEIR_INLINE bool weir_conn_cuts_head(const struct weir_conn *c, const struct weir_segment *g)
{
	return c->phase == WEIR_PHASE_FOLLOWED && weir_segment_has(g, WEIR_TCP_FIN) &&
	       g->seq + g->len == c->request_next && weir_conn_head_is_open(c);
}

/*
 * The server has the first part of a request, of which this segment brings more, and no answer before that one's is
 * outstanding: the request can still be answered, but only together with the end of the connection.
 */
WEIR_INLINE bool weir_conn_may_only_close(const struct weir_conn *c, const struct weir_segment *g)
{
	bool last = weir_conn_in_head(c) ? weir_conn_idle(c) : weir_conn_answer_due(c) || weir_conn_answer_begun(c);

	return last && c->phase == WEIR_PHASE_FOLLOWED && g->seq == c->request_next &&
	       !(c->splice.fins & WEIR_SPLICE_SERVER_FIN) && weir_splice_settled(&c->splice, g);
}

/* Where framing could begin again: the client speaks first after a silence in which both sides had everything. */
WEIR_INLINE bool weir_conn_hunt_begins(const struct weir_conn *c, const struct weir_segment *g)
{
	return c->requests == c->responses && weir_segment_has(g, WEIR_TCP_ACK) &&
	       g->ack == c->splice.server_end + c->splice.out_off &&
	       c->splice.server_acked + c->splice.in_off == g->seq;
}

/*
 * The server has closed while its client was being refused. A request that crosses its FIN would be met by a RST, which
 * may overtake the FIN at the client: it is cut and acknowledged instead, and the client reads a clean end of stream.
 */
WEIR_INLINE bool weir_conn_crosses_fin(const struct weir_conn *c, const struct weir_segment *g)
{
	return c->splice.cuts && (c->splice.fins & WEIR_SPLICE_SERVER_FIN) && weir_splice_answer_acked(&c->splice) &&
	       weir_splice_server_settled(&c->splice, g) && c->requests == c->responses;
}

WEIR_INLINE enum weir_action weir_conn_swallow(struct weir_conn *c, const struct weir_segment *g)
{
	__u32 rest = c->request_next - c->splice.cut_end;

	weir_splice_swallow(&c->splice, g->len < rest ? g->len : rest);
	if (c->splice.cut_end != c->request_next)
		return WEIR_ACK;
	weir_splice_answer(&c->splice, c->answer.length);
	return WEIR_ANSWER;
}

/* The client of a connection that weir ended: its answer is said again until acknowledged, the rest is acknowledged. */
WEIR_INLINE enum weir_action weir_conn_after_close(struct weir_conn *c, const struct weir_segment *g)
{
	struct weir_splice *s = &c->splice;
	__u32 end = g->seq + g->len + weir_segment_has(g, WEIR_TCP_FIN);

	weir_splice_see_client(s, g);
	if (weir_segment_has(g, WEIR_TCP_ACK) && seq_after(g->ack, s->client_acked) &&
	    !seq_after(g->ack, weir_splice_answer_end(s) + 1))
		s->client_acked = g->ack;
	if (weir_segment_has(g, WEIR_TCP_RST) || (!g->len && !weir_segment_has(g, WEIR_TCP_FIN)))
		return WEIR_DROP;
	if (!seq_after(g->seq, s->cut_end) && seq_after(end, s->cut_end))
		weir_splice_swallow(s, end - s->cut_end);
	return seq_after(s->client_acked, weir_splice_answer_end(s)) ? WEIR_ACK : WEIR_ANSWER;
}

/*
 * The steps of beginning. Each says FRAME when it has nothing to say: then the next one is asked.
 */

/*
 * Its acknowledgement has nothing to do with the server's socket. Either the socket drops it, whenever it comes there, or something behind
 * changes its numbers (netfilter's SYNPROXY), and it comes unread. Where something was cut, its place is not known.
 */
WEIR_INLINE bool weir_conn_leaves(const struct weir_conn *c, const struct weir_socket *k, const struct weir_segment *g)
{
	return k->known && !c->splice.cuts && weir_socket_is_out_of_reach(k, g);
}

/* Might the server drop it? Then its socket is asked. */
WEIR_INLINE enum weir_action weir_conn_ask(struct weir_conn *c, const struct weir_socket *k,
					   const struct weir_segment *g, enum weir_reason *why)
{
	bool acceptable = weir_splice_acceptable(g);

	if (acceptable)
		weir_unconfirmed_settle(&c->unconfirmed, weir_conn_acked(c));
	if (acceptable && !k->asked && weir_conn_doubts(c, g))
		return WEIR_ASK;
	if (acceptable && !weir_conn_socket_drops(c, k, g))
		return WEIR_FRAME;
	if (acceptable && weir_conn_leaves(c, k, g))
		return WEIR_LEAVE;
	*why = WEIR_UNACCEPTABLE;
	return WEIR_DROP;
}

/* Is it more of a shed request, whose answer is owed? */
WEIR_INLINE enum weir_action weir_conn_owed(struct weir_conn *c, const struct weir_segment *g, enum weir_reason *why)
{
	struct weir_splice *s = &c->splice;

	if (!s->owed || g->seq != s->cut_end || weir_segment_has(g, WEIR_TCP_RST))
		return WEIR_FRAME;
	weir_splice_see_client(s, g);
	if (g->len) {
		*why = WEIR_SWALLOWED;
		return weir_conn_swallow(c, g);
	}
	/* The client gave up in the middle of a body: the server sees a clean end at the boundary before it. */
	if (weir_segment_has(g, WEIR_TCP_FIN))
		weir_splice_answer(s, 0);
	return WEIR_FRAME;
}

/* What does its place in the translated stream say? */
WEIR_INLINE enum weir_action weir_conn_judge(struct weir_conn *c, const struct weir_segment *g, enum weir_reason *why)
{
	switch (weir_splice_judge_client(&c->splice, g)) {
	case WEIR_SPLICE_DROP:
		*why = WEIR_HELD;
		return WEIR_DROP;
	case WEIR_SPLICE_AGAIN:
		*why = WEIR_ANSWERED_AGAIN;
		return c->splice.answer_length ? WEIR_ANSWER : WEIR_ACK;
	default:
		break;
	}
	if (weir_splice_fin_behind(&c->splice, g)) {
		*why = WEIR_UNACCEPTABLE;
		return WEIR_DROP;
	}
	return weir_segment_has(g, WEIR_TCP_RST | WEIR_TCP_SYN) ? WEIR_PASS : WEIR_FRAME;
}

/*
 * Answers leave by a way on which nothing is read. They tell what the client's bytes are: the rest of a body, or not, and HTTP still, or
 * another protocol. So what the socket does not have yet is held. True: it is from now on.
 */
WEIR_INLINE bool weir_conn_lose_answers(struct weir_conn *c, const struct weir_socket *k)
{
	if (c->phase == WEIR_PHASE_HUNTING)
		c->hold.answers = 1;
	if (c->phase != WEIR_PHASE_FOLLOWED)
		return false;
	weir_conn_give_up(c, k->next, WEIR_UNSEEN);
	return true;
}

/* What does the server's socket say, if it was asked? FRAME with r->again: `r` is ready. */
WEIR_INLINE enum weir_action weir_conn_meet_socket(struct weir_conn *c, const struct weir_socket *k,
						   const struct weir_segment *g, struct weir_request_reader *r,
						   enum weir_reason *why)
{
	/* The kernel answers with another RST. For that it needs no bytes, and a listener might take them for a new connection's. */
	if (weir_conn_socket_gone(c, k)) {
		r->start = g->seq;
		return g->len ? WEIR_CUT : WEIR_PASS;
	}
	if (weir_conn_probes(c, k, g))
		return weir_conn_probe(c, why);
	if (weir_conn_answers_unseen(c, k, g) && weir_conn_lose_answers(c, k)) {
		*why = WEIR_UNSEEN;
		return WEIR_PASS;
	}
	return k->known && g->len ? weir_conn_confirm(c, k, g, r, why) : WEIR_FRAME;
}

/* On a connection that is hunting: is it to be read? */
WEIR_INLINE bool weir_conn_hunts(struct weir_conn *c, const struct weir_segment *g)
{
	if (c->requests && weir_conn_idle(c) && g->seq == c->request_next) {
		c->phase = WEIR_PHASE_FOLLOWED;
		c->hold.answers = 0;
		c->hold.decided = 0;
		c->bare &= WEIR_BARE_BODY;
		return true;
	}
	if (!weir_conn_hunt_begins(c, g))
		return c->requests;
	weir_conn_hunt(c);
	c->request_next = g->seq;
	c->response_next = c->splice.server_end;
	return true;
}

WEIR_INLINE enum weir_action weir_conn_cross_fin(struct weir_conn *c, const struct weir_segment *g,
						 enum weir_reason *why)
{
	struct weir_splice *s = &c->splice;

	weir_splice_cut(s, g);
	weir_splice_swallow(s, g->len);
	weir_splice_answer(s, 0);
	c->request_next = s->cut_end;
	c->version++;
	c->phase = WEIR_PHASE_FOLLOWED; /* all that follows will be cut in its order */
	*why = WEIR_SWALLOWED;
	return WEIR_ACK;
}

/* Passes over more of a body that is too long to be passed over at once. */
WEIR_INLINE bool weir_conn_skip_ahead(struct weir_conn *c, struct weir_busy *busy)
{
	__u64 more = c->request_place == WEIR_PLACE_BODY ? weir_request_skippable(&busy->request) : 0;
	__u32 n = more < WEIR_SKIP_MAX ? more : WEIR_SKIP_MAX;

	if (!n)
		return false;
	weir_request_skip(&busy->request, n);
	c->request_place = weir_request_place(&busy->request);
	c->request_next += n;
	return true;
}

/* The segment begins behind the byte that is to be read next. */
WEIR_INLINE enum weir_action weir_conn_ahead(struct weir_conn *c, struct weir_busy *busy, enum weir_reason *why)
{
	if (busy && weir_conn_skip_ahead(c, busy))
		return WEIR_PASS;
	/* The server may have what was never seen here: then it does not come again, either. */
	if (c->phase == WEIR_PHASE_HUNTING || seq_after(weir_conn_acked(c), c->request_next)) {
		if (c->phase == WEIR_PHASE_FOLLOWED)
			*why = WEIR_GAP;
		weir_conn_hunt(c);
		return WEIR_PASS;
	}
	/* What comes ahead of its turn cannot be judged yet; TCP resends it. */
	*why = WEIR_OUT_OF_ORDER;
	return WEIR_DROP;
}

WEIR_INLINE void weir_conn_open_reader(const struct weir_conn *c, const struct weir_busy *busy,
				       const struct weir_segment *g, struct weir_request_reader *r)
{
	weir_request_reader_open(r, c, busy);
	r->must_close = weir_conn_may_only_close(c, g);
	r->why_not = r->must_close && weir_conn_in_head(c) ? WEIR_REASON_NONE : weir_conn_why_not(c, g);
	r->first = !c->requests && !c->splice.cuts;
	r->begun = weir_conn_answer_begun(c);
}

/* Does the segment bring anything to read? FRAME: it does, and `r` is ready to be fed. */
WEIR_INLINE enum weir_action weir_conn_frame(struct weir_conn *c, struct weir_busy *busy, const struct weir_socket *k,
					     const struct weir_segment *g, struct weir_request_reader *r,
					     enum weir_reason *why)
{
	bool cuts_head = weir_conn_cuts_head(c, g);
	enum weir_action action = WEIR_FRAME;

	if (c->phase == WEIR_PHASE_OPAQUE)
		action = weir_conn_leave_body(c, k, g, r, why);
	if (action != WEIR_FRAME)
		return action;
	if (weir_splice_fin_ahead(&c->splice, g)) {
		*why = WEIR_OUT_OF_ORDER;
		return WEIR_DROP;
	}
	if (!g->len && !cuts_head)
		return WEIR_PASS;
	if (c->phase == WEIR_PHASE_HUNTING && !weir_conn_hunts(c, g))
		return WEIR_PASS;
	if (!seq_after(g->seq + g->len, c->request_next) && !cuts_head)
		return WEIR_PASS;
	if (weir_conn_crosses_fin(c, g))
		return weir_conn_cross_fin(c, g, why);
	if (seq_after(g->seq, c->request_next))
		return weir_conn_ahead(c, busy, why);
	if (weir_conn_too_far_ahead(c, k, g)) {
		if (!k->asked)
			return WEIR_ASK;
		*why = WEIR_OUT_OF_ORDER;
		return WEIR_DROP;
	}
	weir_conn_open_reader(c, busy, g, r);
	return WEIR_FRAME;
}

/*
 * Takes a client's segment as far as its header goes. With FRAME, `r` is ready to be fed. ASK: nothing has changed; it is
 * to be called again when `k` is what the server's socket says.
 */
WEIR_INLINE enum weir_action weir_conn_begin_client(struct weir_conn *c, struct weir_busy *busy,
						    const struct weir_socket *k, const struct weir_segment *g,
						    struct weir_request_reader *r, enum weir_reason *why)
{
	enum weir_action action;

	if (c->phase == WEIR_PHASE_CLOSED)
		return weir_conn_after_close(c, g);
	if (!busy && weir_conn_reads_midway(c)) {
		*why = WEIR_CONTENDED;
		return WEIR_DROP;
	}
	r->again = 0;
	action = weir_conn_ask(c, k, g, why);
	WEIR_FRESH_ALL();
	if (action == WEIR_FRAME)
		action = weir_conn_owed(c, g, why);
	WEIR_FRESH_ALL();
	if (action == WEIR_FRAME)
		action = weir_conn_judge(c, g, why);
	WEIR_FRESH_ALL();
	if (action == WEIR_FRAME)
		action = weir_conn_meet_socket(c, k, g, r, why);
	WEIR_FRESH_ALL();
	if (action == WEIR_FRAME && !r->again)
		action = weir_conn_frame(c, busy, k, g, r, why);
	WEIR_FRESH_ALL();
	if (action != WEIR_PASS)
		return action;
	if (g->len)
		weir_unconfirmed_pass(&c->unconfirmed, c->last_ns);
	weir_splice_pass(&c->splice, g);
	return WEIR_PASS;
}

#endif
