/* SPDX-License-Identifier: GPL-2.0 */
/* The client's side of a connection: its segments are judged, framed, and passed, held or cut. */
#ifndef WEIR_CONN_CLIENT_H
#define WEIR_CONN_CLIENT_H

#include "weir/conn/doubt.h"
#include "weir/conn/state.h"

/* Why must the request that starts with this segment not be answered? WEIR_REASON_COUNT: it may be. */
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
	return WEIR_REASON_COUNT;
}

/* The client is sending a body, and the server's answer to it has begun, or has ended already. */
WEIR_INLINE bool weir_conn_answer_begun(const struct weir_conn *c)
{
	__u32 outstanding = c->requests - c->responses;

	if (!weir_request_in_body(&c->request) || outstanding > 1)
		return false;
	return !outstanding || !(weir_response_fresh(&c->response) || weir_response_ended(&c->response));
}

/* The client is sending a body, and the server's next byte, if there is one, belongs to the answer to it. */
WEIR_INLINE bool weir_conn_answer_due(const struct weir_conn *c)
{
	return weir_request_in_body(&c->request) && c->requests - c->responses == 1 &&
	       c->splice.server_end == c->response_next;
}

/* The server has the first part of a head, or of the preamble. */
WEIR_INLINE bool weir_conn_in_head(const struct weir_conn *c)
{
	return weir_preamble_midway(&c->preamble) || weir_request_in_head(&c->request);
}

/* A request's head, or the preamble, has begun and not ended. */
WEIR_INLINE bool weir_head_is_open(const struct weir_preamble *preamble, const struct weir_request *request)
{
	return weir_preamble_midway(preamble) || weir_request_line_begun(request);
}

/*
 * The client's FIN ends a head whose bytes the server has, or will get. Some servers take that for the head's end, and
 * serve a request that nobody has decided. One that has closed its side answers nothing more.
 */
WEIR_INLINE bool weir_conn_cuts_head(const struct weir_conn *c, const struct weir_segment *g)
{
	return c->phase == WEIR_PHASE_FOLLOWED && weir_segment_has(g, WEIR_TCP_FIN) &&
	       g->seq + g->len == c->request_next && !(c->splice.fins & WEIR_SPLICE_SERVER_FIN) &&
	       weir_head_is_open(&c->preamble, &c->request);
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
		return WEIR_HOLD;
	if (!seq_after(g->seq, s->cut_end) && seq_after(end, s->cut_end))
		weir_splice_swallow(s, end - s->cut_end);
	return seq_after(s->client_acked, weir_splice_answer_end(s)) ? WEIR_ACK : WEIR_ANSWER;
}

/*
 * Takes a client's segment as far as its header goes. With FRAME, `r` is ready to be fed. ASK: nothing has changed; it is
 * to be called again when `k` is what the server's socket says.
 */
WEIR_INLINE enum weir_action weir_conn_begin_client(struct weir_conn *c, const struct weir_socket *k,
						    const struct weir_segment *g, struct weir_request_reader *r,
						    enum weir_reason *why)
{
	struct weir_splice *s = &c->splice;
	__u32 end = g->seq + g->len;
	enum weir_splice_verdict verdict;
	enum weir_action action;
	bool cuts_head;

	if (c->phase == WEIR_PHASE_CLOSED)
		return weir_conn_after_close(c, g);
	if (!weir_splice_acceptable(g)) {
		*why = WEIR_UNACCEPTABLE;
		return WEIR_HOLD;
	}
	weir_unconfirmed_settle(&c->unconfirmed, weir_conn_acked(c));
	if (!k->asked && weir_conn_doubts(c, g))
		return WEIR_ASK;
	if (weir_conn_socket_drops(c, k, g)) {
		*why = WEIR_UNACCEPTABLE;
		return WEIR_HOLD;
	}

	if (s->owed && g->seq == s->cut_end && !weir_segment_has(g, WEIR_TCP_RST)) {
		weir_splice_see_client(s, g);
		if (g->len) {
			*why = WEIR_SWALLOWED;
			return weir_conn_swallow(c, g);
		}
		/* The client gave up in the middle of a body: the server sees a clean end at the boundary before it. */
		if (weir_segment_has(g, WEIR_TCP_FIN))
			weir_splice_answer(s, 0);
	}

	verdict = weir_splice_judge_client(s, g);
	if (verdict == WEIR_SPLICE_HOLD) {
		*why = WEIR_HELD;
		return WEIR_HOLD;
	}
	if (verdict == WEIR_SPLICE_AGAIN) {
		*why = WEIR_ANSWERED_AGAIN;
		return s->answer_length ? WEIR_ANSWER : WEIR_ACK;
	}
	if (weir_splice_fin_behind(s, g)) {
		*why = WEIR_UNACCEPTABLE;
		return WEIR_HOLD;
	}

	if (weir_segment_has(g, WEIR_TCP_RST | WEIR_TCP_SYN))
		goto pass;
	/* To say so by another RST the kernel needs none of the bytes, which a listener might take for a new connection's. */
	if (weir_conn_socket_gone(c, k)) {
		r->start = g->seq;
		return g->len ? WEIR_CUT : WEIR_PASS;
	}
	if (weir_conn_probes(c, k, g))
		return weir_conn_probe(c, why);
	if (k->known && g->len) {
		r->again = 0;
		action = weir_conn_confirm(c, k, g, r, why);
		if (action == WEIR_PASS)
			goto pass;
		if (action != WEIR_FRAME || r->again)
			return action;
	}
	if (c->phase == WEIR_PHASE_OPAQUE)
		goto pass;
	if (weir_splice_fin_ahead(s, g)) {
		*why = WEIR_OUT_OF_ORDER;
		return WEIR_HOLD;
	}
	cuts_head = weir_conn_cuts_head(c, g);
	if (!g->len && !cuts_head)
		goto pass;

	if (c->phase == WEIR_PHASE_HUNTING) {
		if (c->requests && weir_conn_idle(c) && g->seq == c->request_next) {
			c->phase = WEIR_PHASE_FOLLOWED;
			c->hold.answers = 0;
			c->hold.decided = 0;
		} else if (weir_conn_hunt_begins(c, g)) {
			weir_conn_hunt(c);
			c->request_next = g->seq;
			c->response_next = s->server_end;
		} else if (!c->requests) {
			goto pass;
		}
	}

	if (!seq_after(end, c->request_next) && !cuts_head)
		goto pass;
	if (weir_conn_crosses_fin(c, g)) {
		weir_splice_cut(s, g);
		weir_splice_swallow(s, g->len);
		weir_splice_answer(s, 0);
		c->request_next = s->cut_end;
		c->version++;
		c->phase = WEIR_PHASE_FOLLOWED; /* all that follows will be cut in its order */
		*why = WEIR_SWALLOWED;
		return WEIR_ACK;
	}
	if (seq_after(g->seq, c->request_next)) {
		__u64 more = weir_request_skippable(&c->request);
		__u32 n = more < WEIR_SKIP_MAX ? more : WEIR_SKIP_MAX;

		if (n) {
			weir_request_skip(&c->request, n);
			c->request_next += n;
			goto pass;
		}
		/* The server may have what was never seen here: then it does not come again, either. */
		if (c->phase == WEIR_PHASE_HUNTING || seq_after(s->server_acked + s->in_off, c->request_next)) {
			if (c->phase == WEIR_PHASE_FOLLOWED)
				*why = WEIR_GAP;
			weir_conn_hunt(c);
			goto pass;
		}
		/* What comes ahead of its turn cannot be judged yet: TCP brings it again. */
		*why = WEIR_OUT_OF_ORDER;
		return WEIR_HOLD;
	}

	if (weir_conn_too_far_ahead(c, k, g)) {
		if (!k->asked)
			return WEIR_ASK;
		*why = WEIR_OUT_OF_ORDER;
		return WEIR_HOLD;
	}

	weir_request_reader_open(r, c);
	r->must_close = weir_conn_may_only_close(c, g);
	r->why_not = r->must_close && weir_conn_in_head(c) ? WEIR_REASON_COUNT : weir_conn_why_not(c, g);
	r->first = !c->requests && !s->cuts;
	r->begun = weir_conn_answer_begun(c);
	return WEIR_FRAME;

pass:
	if (g->len)
		c->unconfirmed.passed_ns = c->last_ns;
	weir_splice_pass(s, g);
	return WEIR_PASS;
}

WEIR_INLINE void weir_request_reader_skip(struct weir_request_reader *r)
{
	__u64 more = weir_request_skippable(&r->request);
	__u32 n = more < WEIR_SKIP_MAX ? more : WEIR_SKIP_MAX;

	if (!n)
		return;
	r->skipped = r->next;
	r->next += n;
	weir_request_skip(&r->request, n);
}

/* The preamble has ended, and a request may follow: it is not answered before the server has the preamble. */
WEIR_INLINE void weir_request_reader_introduced(struct weir_request_reader *r)
{
	r->start = r->next;
	r->must_close = 0;
	if (r->why_not == WEIR_REASON_COUNT || r->why_not == WEIR_SPLIT_HEAD)
		r->why_not = WEIR_UNACKED;
	if (r->again && r->next == r->again_end)
		r->held = 1;
}

WEIR_INLINE enum weir_frame_event weir_request_reader_preamble(struct weir_request_reader *r,
							       enum weir_frame_event event)
{
	if (event == WEIR_FRAME_LOST)
		r->lost = WEIR_BAD_PREAMBLE;
	else if (event == WEIR_FRAME_MESSAGE)
		weir_request_reader_introduced(r);
	return event;
}

/* The next byte of the client's stream, at r->next, as long as weir_preamble_awaited(&r->preamble). */
WEIR_INLINE enum weir_frame_event weir_request_reader_feed_preamble(struct weir_request_reader *r, __u8 byte)
{
	r->next++;
	return weir_request_reader_preamble(r, weir_preamble_byte(&r->preamble, byte));
}

/* As feeding n bytes that are passed over; n: at most weir_preamble_skippable(). */
WEIR_INLINE enum weir_frame_event weir_request_reader_skip_preamble(struct weir_request_reader *r, __u32 n)
{
	r->next += n;
	return weir_request_reader_preamble(r, weir_preamble_skip(&r->preamble, n));
}

/* To be called before the next byte is taken, or fed (which calls it, too): it may begin a request. */
WEIR_INLINE void weir_request_reader_begin(struct weir_request_reader *r)
{
	if (weir_request_ended(&r->request))
		weir_request_start(&r->request);
	if (!weir_request_fresh(&r->request))
		return;
	r->start = r->next;
	r->whole = 1;
}

/* The next byte of the client's stream behind the preamble, at r->next. After HEAD the caller decides, then calls _passed(), or sets shed or held. */
WEIR_INLINE enum weir_frame_event weir_request_reader_feed(struct weir_request_reader *r,
							   const struct weir_reading *how, __u8 byte)
{
	enum weir_frame_event event;

	weir_request_reader_begin(r);
	event = weir_request_byte(&r->request, how, byte);
	r->next++;
	if (event == WEIR_FRAME_LOST)
		r->lost = r->request.lost;
	else if (event != WEIR_FRAME_HEAD || r->request.method != WEIR_METHOD_CONNECT)
		weir_request_reader_skip(r);
	return event;
}

/* As feeding, for what it takes of the next eight bytes at once (run.h); 0: feed it the next one. */
WEIR_INLINE __u32 weir_request_reader_take(struct weir_request_reader *r, __u64 word)
{
	__u32 n = weir_request_take(&r->request, word);

	r->next += n;
	return n;
}

/* All bytes of the segment have been fed, or nothing came of them. A FIN behind them must not end a head. */
WEIR_INLINE void weir_request_reader_end(struct weir_request_reader *r, const struct weir_segment *g)
{
	if (weir_segment_has(g, WEIR_TCP_FIN) && r->next == g->seq + g->len && r->lost == WEIR_REASON_COUNT &&
	    !r->shed && !r->held && weir_head_is_open(&r->preamble, &r->request))
		r->lost = WEIR_HEAD_CUT;
}

/* Is there no room for the request whose head has just ended? It waits until others have been answered. */
WEIR_INLINE bool weir_request_reader_full(const struct weir_request_reader *r)
{
	return r->outstanding + r->heads >= WEIR_OUTSTANDING_MAX;
}

/* What follows a CONNECT is for another protocol, or for HTTP if the server refuses it: who can tell beforehand? */
WEIR_INLINE void weir_request_reader_passed(struct weir_request_reader *r)
{
	if (r->request.method == WEIR_METHOD_CONNECT)
		r->lost = WEIR_CONNECT;
	if (r->request.method == WEIR_METHOD_HEAD)
		r->head_bits |= 1ULL << (r->heads % WEIR_OUTSTANDING_MAX);
	r->heads++;
	if (r->again && r->next == r->again_end)
		r->held = 1;
}

/* Is there room for one more request on this connection? More outstanding ones than bits cannot be told apart. */
WEIR_INLINE void weir_conn_count_requests(struct weir_conn *c, const struct weir_request_reader *r)
{
	__u32 at = c->requests % WEIR_OUTSTANDING_MAX;
	__u64 mask = r->heads < WEIR_OUTSTANDING_MAX ? (1ULL << r->heads) - 1 : ~0ULL;
	__u64 place = at ? mask << at | mask >> (WEIR_OUTSTANDING_MAX - at) : mask;
	__u64 bits = at ? r->head_bits << at | r->head_bits >> (WEIR_OUTSTANDING_MAX - at) : r->head_bits;

	c->head_bits = (c->head_bits & ~place) | (bits & place);
	c->requests += r->heads;
	if (c->phase == WEIR_PHASE_HUNTING)
		c->hold.decided += r->heads;
	c->pipelines |= c->requests - c->responses > 1;
}

WEIR_INLINE enum weir_action weir_conn_shed(struct weir_conn *c, const struct weir_segment *g,
					    const struct weir_request_reader *r)
{
	struct weir_splice *s = &c->splice;

	c->answer = r->answer;
	c->unconfirmed.n = 0;
	weir_splice_cut(s, g);
	if (r->answer.kind == WEIR_ANSWER_CLOSE) {
		weir_splice_swallow(s, g->len + weir_segment_has(g, WEIR_TCP_FIN));
		weir_splice_answer(s, c->answer.length);
		c->phase = WEIR_PHASE_CLOSED;
		return WEIR_CLOSE;
	}
	return weir_conn_swallow(c, g);
}

/* What is before a held request, or was passed before, passes; the rest comes again, and is asked again. */
WEIR_INLINE enum weir_action weir_conn_cut(struct weir_conn *c, const struct weir_segment *g,
					   const struct weir_request_reader *r)
{
	struct weir_segment before = *g;

	before.len = r->start - g->seq;
	before.flags &= ~WEIR_TCP_FIN;
	weir_conn_note_read(c, g, r, r->start);
	c->version++;
	c->request_next = r->start;
	if (r->lost != WEIR_BAD_PREAMBLE)
		c->preamble = r->preamble;
	if (r->whole)
		weir_request_start(&c->request);
	weir_conn_count_requests(c, r);
	weir_splice_pass(&c->splice, &before);
	return WEIR_CUT;
}

/*
 * Makes the fed copy the state. HOLD: someone else moved the state meanwhile, or a shed is no longer safe, or the segment
 * has nothing but a request that must wait; nothing has changed and the segment must be dropped: it comes again.
 */
WEIR_INLINE enum weir_action weir_conn_commit_client(struct weir_conn *c, const struct weir_segment *g,
						     struct weir_request_reader *r, enum weir_reason *why)
{
	bool unsafe = r->must_close ? !weir_conn_may_only_close(c, g) : weir_conn_why_not(c, g) != WEIR_REASON_COUNT;

	if (c->version != r->version || (r->shed && unsafe)) {
		*why = WEIR_CONTENDED;
		return WEIR_HOLD;
	}
	if (r->again)
		return weir_conn_commit_again(c, g, r, why);
	if (r->held) {
		*why = WEIR_HELD;
		return seq_after(r->start, g->seq) ? weir_conn_cut(c, g, r) : WEIR_HOLD;
	}
	if (!r->shed)
		weir_conn_note_read(c, g, r, r->next);
	c->version++;
	c->preamble = r->preamble;
	c->request = r->request;
	c->request_next = r->next;
	if (r->shed) {
		if (r->answer.rejected)
			*why = r->answer.rejected;
		return weir_conn_shed(c, g, r);
	}

	weir_conn_count_requests(c, r);
	if (c->phase == WEIR_PHASE_HUNTING) {
		/* What was lost is for the hold to charge, from its first byte. */
		if (r->lost != WEIR_REASON_COUNT)
			c->request_next = r->lost == WEIR_CONNECT ? r->next : r->start;
		if (r->lost != WEIR_REASON_COUNT || c->pipelines)
			weir_conn_hunt(c);
	} else if (r->lost != WEIR_REASON_COUNT) {
		__u32 from = r->lost == WEIR_CONNECT ? r->next : r->start;

		*why = r->lost;
		weir_conn_opaque(c, weir_splice_seq_to_server(&c->splice, from), r->lost);
		weir_unconfirmed_trim(&c->unconfirmed, from);
	} else if (c->requests - c->responses > WEIR_OUTSTANDING_MAX) {
		*why = WEIR_TOO_MANY_PIPELINED;
		weir_conn_opaque(c, weir_splice_seq_to_server(&c->splice, c->request_next), *why);
	}
	weir_splice_pass(&c->splice, g);
	return WEIR_PASS;
}

#endif
