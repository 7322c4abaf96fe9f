/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The stream that is read must be the stream that the server reads. A client's segment that the server may not take, or
 * that brings again what was read and is not acknowledged, is in doubt: then its socket is asked. No segment of ordinary
 * traffic is.
 */
#ifndef WEIR_CONN_DOUBT_H
#define WEIR_CONN_DOUBT_H

#include "weir/conn/request_reader.h"

/* The first byte of the client's stream that the server has not acknowledged, in the client's numbers. */
WEIR_INLINE __u32 weir_conn_acked(const struct weir_conn *c)
{
	return c->splice.server_acked + c->splice.in_off;
}

/* By its header alone: is it outside the window, or too old, or does it acknowledge what cannot be? */
WEIR_INLINE bool weir_conn_doubts_place(const struct weir_conn *c, const struct weir_segment *g)
{
	const struct weir_splice *s = &c->splice;

	if (seq_after(g->seq + g->len, weir_splice_edge(s)))
		return true;
	if (c->phase == WEIR_PHASE_OPAQUE)
		return false;
	return s->server_reset || (g->has_ts && s->client_has_ts && seq_before(g->tsval, s->client_tsval)) ||
	       seq_before(g->ack, s->client_acked) || seq_after(g->ack, s->server_end + s->out_off);
}

WEIR_INLINE bool weir_conn_doubts(const struct weir_conn *c, const struct weir_segment *g)
{
	__u32 from = seq_max(g->seq, weir_conn_acked(c)), end = g->seq + g->len;

	if ((!g->len && !weir_segment_has(g, WEIR_TCP_FIN)) || weir_segment_has(g, WEIR_TCP_RST | WEIR_TCP_SYN))
		return false;
	return weir_conn_doubts_place(c, g) || weir_unconfirmed_find(&c->unconfirmed, from, end) < WEIR_READS;
}

/*
 * Is the connection over for the server? Its RST may not have come to the client. What the client sends must meet another
 * one: it may neither be read nor wait.
 */
WEIR_INLINE bool weir_conn_socket_gone(const struct weir_conn *c, const struct weir_socket *k)
{
	return c->splice.server_reset && k->asked && k->gone;
}

/* Would the server's socket drop this segment? One that meets a shut window is weir_conn_probes()'s. */
WEIR_INLINE bool weir_conn_socket_drops(const struct weir_conn *c, const struct weir_socket *k,
					const struct weir_segment *g)
{
	struct weir_segment there = *g;

	if (!k->known)
		return false;
	weir_splice_to_server(&c->splice, &there);
	return weir_socket_drops(k, &there, c->splice.server_end) && !weir_socket_shut(k);
}

/*
 * The socket has no room at all: none of this segment's bytes may come to it, for by the time it looks at them it may have
 * some. But the client has to hear of its window.
 */
WEIR_INLINE bool weir_conn_probes(const struct weir_conn *c, const struct weir_socket *k, const struct weir_segment *g)
{
	return k->known && g->len && weir_socket_shut(k) && seq_after(g->seq + g->len, k->next + c->splice.in_off);
}

/* Segments that are signed cannot be changed. */
WEIR_INLINE enum weir_action weir_conn_probe(const struct weir_conn *c, enum weir_reason *why)
{
	*why = WEIR_OUT_OF_WINDOW;
	return c->phase == WEIR_PHASE_OPAQUE && c->opaque_why == WEIR_SIGNED ? WEIR_DROP : WEIR_PROBE;
}

/* Does the client acknowledge what the server's socket has sent, and was not seen here? Where something was cut, its numbers do not tell. */
WEIR_INLINE bool weir_conn_answers_unseen(const struct weir_conn *c, const struct weir_socket *k,
					  const struct weir_segment *g)
{
	return k->known && !c->splice.cuts && seq_after(g->ack, c->splice.server_end) && !seq_after(g->ack, k->sent);
}

/* What was read is not what the server has or will get from `next` on, in its numbers. */
WEIR_INLINE void weir_conn_contradicted(struct weir_conn *c, __u32 next)
{
	weir_conn_give_up(c, next, c->phase == WEIR_PHASE_OPAQUE ? c->opaque_why : WEIR_CONTRADICTED);
}

/* The server has nothing from this read on, which began with a request: it is read again. */
WEIR_INLINE void weir_conn_retake(struct weir_conn *c, const struct weir_read *read)
{
	struct weir_splice *s = &c->splice;
	__u32 anew = c->requests - read->requests;

	c->version++;
	c->hold.decided -= c->hold.decided < anew ? c->hold.decided : anew;
	c->requests = read->requests;
	c->request_next = read->start;
	if (weir_conn_preamble_begins(c, read->start))
		weir_preamble_start(&c->preamble);
	weir_conn_start_request(c);
	s->passed_end = read->start;
	if (seq_after(s->client_fin, read->start))
		s->fins &= ~WEIR_SPLICE_CLIENT_FIN;
	c->unconfirmed.n = 0;
}

/* The server has nothing of this read: it is compared with what comes in its place. */
WEIR_INLINE void weir_conn_reread(struct weir_conn *c, const struct weir_socket *k, const struct weir_read *read,
				  struct weir_request_reader *r)
{
	weir_request_reader_open(r, c, NULL);
	weir_request_start(&r->request);
	if (weir_conn_preamble_begins(c, read->start))
		weir_preamble_start(&r->preamble);
	r->next = read->start;
	r->outstanding = read->requests - c->responses;
	r->again = 1;
	r->early = k->early;
	r->again_start = read->start;
	r->again_end = c->request_next;
	r->again_heads = c->requests - read->requests;
}

/*
 * Has the server got what was read in this segment's place? FRAME: all of it, or r->again. CUT: what comes before
 * r->start may pass, for it was not read. DROP: it cannot be told yet, and the segment comes again. PASS: what was read
 * cannot be relied on, nor read again; from where the server stands on the connection is opaque.
 */
WEIR_INLINE enum weir_action weir_conn_confirm(struct weir_conn *c, const struct weir_socket *k,
					       const struct weir_segment *g, struct weir_request_reader *r,
					       enum weir_reason *why)
{
	struct weir_unconfirmed *u = &c->unconfirmed;
	__u32 next = k->next + c->splice.in_off, from = seq_max(g->seq, next);
	__u32 at = weir_unconfirmed_find(u, from, g->seq + g->len);
	struct weir_read read;

	if (at >= WEIR_READS)
		return WEIR_FRAME;
	read = *weir_unconfirmed_read(u, at);
	if (seq_after(read.start, from)) {
		u->passed_ns = c->last_ns;
		r->start = read.start;
		return WEIR_CUT;
	}
	if (from != next || k->busy || c->last_ns - u->read_ns < WEIR_UNDER_WAY_NS) {
		*why = WEIR_UNCONFIRMED;
		return WEIR_DROP;
	}
	if (c->phase == WEIR_PHASE_OPAQUE || read.start != next || !(u->boundaries >> at & 1) ||
	    seq_before(read.requests, c->responses)) {
		*why = c->phase == WEIR_PHASE_OPAQUE ? WEIR_REASON_NONE : WEIR_CONTRADICTED;
		weir_conn_contradicted(c, k->next);
		return WEIR_PASS;
	}
	weir_conn_reread(c, k, &read, r);
	return WEIR_FRAME;
}

/*
 * Of what was read again. PASS, CUT: it is the same, all is well. Else the server has nothing of what was read, and DROP:
 * when it comes once more, it is read anew; or it has what was read behind it, and nothing can be relied on. What has
 * just passed, unread, as part of a body may be on its way there: that is waited for.
 */
WEIR_INLINE enum weir_action weir_conn_commit_again(struct weir_conn *c, const struct weir_segment *g,
						    struct weir_request_reader *r, enum weir_reason *why)
{
	struct weir_unconfirmed *u = &c->unconfirmed;
	__u32 at = weir_unconfirmed_find(u, r->again_start, g->seq + g->len);

	if (r->next == r->again_end && r->heads == r->again_heads && weir_preamble_same(&r->preamble, &c->preamble) &&
	    r->digest == c->request_digest) {
		/* It is on its way again: another reading of it, under way meanwhile, must come once more, and ask then. */
		c->version++;
		u->passed_ns = c->last_ns;
		r->start = r->again_end;
		return seq_after(g->seq + g->len, r->again_end) || r->lost == WEIR_HEAD_CUT ? WEIR_CUT : WEIR_PASS;
	}
	if (r->early || at >= WEIR_READS) {
		*why = WEIR_CONTRADICTED;
		weir_conn_contradicted(c, weir_splice_seq_to_server(&c->splice, r->again_start));
		return WEIR_PASS;
	}
	if (c->last_ns - u->passed_ns < WEIR_UNDER_WAY_NS) {
		*why = WEIR_UNCONFIRMED;
		return WEIR_DROP;
	}
	*why = WEIR_RETAKEN;
	weir_conn_retake(c, weir_unconfirmed_read(u, at));
	return WEIR_DROP;
}

/* There is a gap, and a segment that is about to be read is too far ahead of it. Whether there is one must be asked. */
WEIR_INLINE bool weir_conn_too_far_ahead(struct weir_conn *c, const struct weir_socket *k, const struct weir_segment *g)
{
	struct weir_unconfirmed *u = &c->unconfirmed;
	if (!weir_unconfirmed_full(u, weir_conn_acked(c)) || weir_unconfirmed_continues(u, g->seq))
		return false;
	return !k->asked || (k->early && weir_unconfirmed_full(u, k->next + c->splice.in_off));
}

/* What a segment brought was read up to r->next, and goes on to the server. Before request_next is moved. */
WEIR_INLINE void weir_conn_note_read(struct weir_conn *c, const struct weir_segment *g,
				     const struct weir_request_reader *r, __u32 next)
{
	struct weir_read read = {
		.start = c->request_next,
		.end = seq_after(next, g->seq + g->len) ? r->skipped : next,
		.requests = c->requests,
	};

	if (next != c->request_next)
		weir_unconfirmed_note(&c->unconfirmed, g->seq, &read, weir_conn_at_boundary(c), c->last_ns);
}

#endif
