/* SPDX-License-Identifier: GPL-2.0 */
/* A client's segment has been read and decided: it passes, waits, is cut short, or is answered. */
#ifndef WEIR_CONN_CLIENT_COMMIT_H
#define WEIR_CONN_CLIENT_COMMIT_H

#include "weir/conn/client.h"

/* The heads that ended in this segment go on to the server: they are outstanding from now on. */
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
	if (!r->heads)
		return;
	c->asked_ns = c->requests - c->responses == 1 ? c->last_ns : 0;
	c->user = r->user;
	c->namespace = r->namespace;
	c->bare |= r->body ? WEIR_BARE_BODY : 0;
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

/* Passes what comes before a held request, or was passed before. TCP resends the rest, which is decided then. */
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
		weir_conn_start_request(c);
	weir_conn_count_requests(c, r);
	weir_splice_pass(&c->splice, &before);
	return WEIR_CUT;
}

WEIR_INLINE void weir_conn_keep_request(struct weir_conn *c, struct weir_busy *busy,
					const struct weir_request_reader *r)
{
	c->request_place = weir_request_place(&r->request);
	c->request_digest = r->digest;
	if (busy && weir_place_is_midway(c->request_place))
		busy->request = r->request;
}

/* The first byte that is not read any more. */
WEIR_INLINE __u32 weir_request_reader_lost_at(const struct weir_request_reader *r)
{
	return r->lost == WEIR_CONNECT || r->lost == WEIR_BODY_SERVED ? r->next : r->start;
}

/* What was lost is for the hold to charge, from its first byte. */
WEIR_INLINE void weir_conn_hunt_on(struct weir_conn *c, const struct weir_request_reader *r)
{
	if (r->lost != WEIR_REASON_NONE)
		c->request_next = weir_request_reader_lost_at(r);
	if (r->lost != WEIR_REASON_NONE || c->pipelines)
		weir_conn_hunt(c);
}

/* The connection cannot be read any more. Returns why. */
WEIR_INLINE enum weir_reason weir_conn_lose(struct weir_conn *c, const struct weir_request_reader *r)
{
	__u32 from = weir_request_reader_lost_at(r);

	if (r->lost == WEIR_TLS || r->lost == WEIR_HTTP2)
		weir_conn_await_word(c);
	if (r->lost == WEIR_HTTP2 && r->whole && !c->requests) {
		c->bare |= WEIR_BARE_FIRST;
		c->request_next = from;
	}
	weir_conn_opaque(c, weir_splice_seq_to_server(&c->splice, from), r->lost);
	weir_unconfirmed_trim(&c->unconfirmed, from);
	return r->lost;
}

/*
 * Makes the copy that was fed the connection's state. DROP: nothing has changed, and the segment is to be dropped; TCP resends it. That is
 * so if another CPU has moved the state meanwhile, if the request cannot be shed safely any more, if the segment has nothing but a request
 * that must wait, or if there is no room for the machines of what is under way.
 */
WEIR_INLINE enum weir_action weir_conn_commit_client(struct weir_conn *c, struct weir_busy *busy,
						     const struct weir_segment *g, struct weir_request_reader *r,
						     enum weir_reason *why)
{
	bool unsafe = r->must_close ? !weir_conn_may_only_close(c, g) : weir_conn_why_not(c, g) != WEIR_REASON_NONE;

	if (c->version != r->version || (r->shed && unsafe)) {
		*why = WEIR_CONTENDED;
		return WEIR_DROP;
	}
	if (!busy && weir_request_reader_stays_midway(r)) {
		*why = WEIR_BUSY_MAP_FULL;
		return WEIR_DROP;
	}
	WEIR_FRESH_ALL();
	if (r->again)
		return weir_conn_commit_again(c, g, r, why);
	if (r->held) {
		*why = WEIR_HELD;
		return seq_after(r->start, g->seq) ? weir_conn_cut(c, g, r) : WEIR_DROP;
	}
	if (!r->shed)
		weir_conn_note_read(c, g, r, r->next);
	WEIR_FRESH_ALL();
	c->version++;
	c->preamble = r->preamble;
	weir_conn_keep_request(c, busy, r);
	c->request_next = r->next;
	if (r->shed) {
		if (r->answer.rejected)
			*why = r->answer.rejected;
		return weir_conn_shed(c, g, r);
	}

	WEIR_FRESH_ALL();
	weir_conn_count_requests(c, r);
	WEIR_FRESH_ALL();
	if (c->phase == WEIR_PHASE_HUNTING)
		weir_conn_hunt_on(c, r);
	else if (r->lost != WEIR_REASON_NONE)
		*why = weir_conn_lose(c, r);
	weir_splice_pass(&c->splice, g);
	return WEIR_PASS;
}

#endif
