/* SPDX-License-Identifier: GPL-2.0 */
/* What passes between the two ends of a translated connection (splice.h): what is known from it, and what may go on. */
#ifndef WEIR_TCP_SPLICE_JUDGE_H
#define WEIR_TCP_SPLICE_JUDGE_H

#include "weir/tcp/splice.h"

enum weir_splice_verdict {
	WEIR_SPLICE_PASS,  /* send it on as the segment now says */
	WEIR_SPLICE_DROP,  /* drop it: it comes again, when it can be placed */
	WEIR_SPLICE_AGAIN, /* it repeats a shed request: drop it and send the answer (or its acknowledgement) again */
};

WEIR_INLINE void weir_splice_see_client(struct weir_splice *s, const struct weir_segment *g)
{
	__u32 end = g->seq + g->len + weir_segment_has(g, WEIR_TCP_FIN);

	if (weir_segment_has(g, WEIR_TCP_ACK) && !seq_after(g->ack, s->server_end + s->out_off))
		s->client_acked = seq_max(s->client_acked, g->ack);
	if (weir_segment_has(g, WEIR_TCP_RST))
		return;
	if (WEIR_FRESH(g->has_ts) && (!WEIR_FRESH(s->client_has_ts) || seq_after(g->tsval, s->client_tsval))) {
		s->client_tsval = g->tsval;
		s->client_has_ts = 1;
	}
	s->client_end = seq_max(s->client_end, end);
	/* A FIN before the end of what has passed ends nothing: the server takes it for a duplicate. */
	if (weir_segment_has(g, WEIR_TCP_FIN) && !seq_before(end, s->passed_end)) {
		s->client_fin = end;
		s->fins |= WEIR_SPLICE_CLIENT_FIN;
	}
}

/* A server takes no payload without an acknowledgement (RFC 9293, 3.10.7.4): it must not be read here, either. */
WEIR_INLINE bool weir_splice_acceptable(const struct weir_segment *g)
{
	return !g->len || weir_segment_has(g, WEIR_TCP_ACK | WEIR_TCP_RST);
}

/* Notes the acknowledgement of a segment that passes to the server. */
WEIR_INLINE void weir_splice_tell(struct weir_splice *s, const struct weir_segment *g)
{
	__u32 ack = weir_splice_ack_to_server(s, g->ack);

	if (weir_segment_has(g, WEIR_TCP_ACK) && !seq_after(ack, s->server_end))
		s->told = seq_max(s->told, ack);
}

/* Notes that a whole segment passes to the server. */
WEIR_INLINE void weir_splice_pass(struct weir_splice *s, const struct weir_segment *g)
{
	weir_splice_tell(s, g);
	if (!weir_segment_has(g, WEIR_TCP_RST) && (g->len || weir_segment_has(g, WEIR_TCP_FIN)))
		s->passed_end = seq_max(s->passed_end, g->seq + g->len + weir_segment_has(g, WEIR_TCP_FIN));
}

/* Does a segment acknowledge what the server has not been told yet? */
WEIR_INLINE bool weir_splice_has_news(const struct weir_splice *s, const struct weir_segment *g)
{
	return weir_segment_has(g, WEIR_TCP_ACK) && seq_after(weir_splice_ack_to_server(s, g->ack), s->told);
}

/*
 * May a segment from the client go on to the server? Bytes of a cut that is still open (owed) are the caller's: it cuts
 * those that are new with weir_splice_swallow() before asking here about the rest.
 */
WEIR_INLINE enum weir_splice_verdict weir_splice_judge_client(struct weir_splice *s, const struct weir_segment *g)
{
	__u32 end = g->seq + g->len;

	weir_splice_see_client(s, g);
	if (!s->cuts)
		return WEIR_SPLICE_PASS;
	weir_splice_trail(s);

	if (g->len && seq_before(g->seq, s->cut_end) && seq_after(end, s->cut_start)) {
		bool probe = g->len == 1 && end == s->cut_end && g->seq != s->cut_start;

		return probe && weir_splice_answer_acked(s) ? WEIR_SPLICE_PASS : WEIR_SPLICE_AGAIN;
	}
	if (weir_splice_answer_acked(s) || weir_segment_has(g, WEIR_TCP_RST) || seq_before(g->seq, s->cut_end))
		return WEIR_SPLICE_PASS;
	return g->len || weir_segment_has(g, WEIR_TCP_FIN) ? WEIR_SPLICE_DROP : WEIR_SPLICE_PASS;
}

WEIR_INLINE void weir_splice_see_server(struct weir_splice *s, const struct weir_segment *g)
{
	__u32 end = g->seq + g->len + weir_segment_has(g, WEIR_TCP_FIN);

	if (weir_segment_has(g, WEIR_TCP_RST)) {
		s->server_reset = 1;
		return;
	}
	s->server_end = seq_max(s->server_end, end);
	if (weir_segment_has(g, WEIR_TCP_ACK))
		s->server_acked = seq_max(s->server_acked, g->ack);
	s->server_window = g->window;
	if (g->has_ts && (!s->has_ts || seq_after(g->tsval, s->server_tsval))) {
		s->server_tsval = g->tsval;
		s->has_ts = 1;
	}
	if (weir_segment_has(g, WEIR_TCP_FIN)) {
		s->server_fin = end;
		s->fins |= WEIR_SPLICE_SERVER_FIN;
	}
}

/* May a segment from the server go on to the client? PASS or DROP. */
WEIR_INLINE enum weir_splice_verdict weir_splice_judge_server(struct weir_splice *s, const struct weir_segment *g)
{
	__u32 at, end;

	weir_splice_see_server(s, g);
	if (!s->cuts)
		return WEIR_SPLICE_PASS;
	weir_splice_trail(s);

	at = weir_splice_answer_at(s);
	end = g->seq + g->len + weir_segment_has(g, WEIR_TCP_FIN);
	if (end == g->seq || !seq_after(end, at) || weir_splice_answer_acked(s))
		return WEIR_SPLICE_PASS;
	/*
	 * What follows an answer that is not made yet has no place yet. A retransmission joined over the answer's place
	 * can only be laid over an answer that has arrived.
	 */
	return s->owed || seq_before(g->seq, at) ? WEIR_SPLICE_DROP : WEIR_SPLICE_PASS;
}

/* A bare FIN from beyond a gap: were it stored by the server, the gap's bytes could not be cut any more. */
WEIR_INLINE bool weir_splice_fin_ahead(const struct weir_splice *s, const struct weir_segment *g)
{
	return weir_segment_has(g, WEIR_TCP_FIN) && !g->len && seq_after(g->seq, s->passed_end) &&
	       seq_after(g->seq, s->server_acked + s->in_off);
}

/*
 * A FIN in front of what has gone on to the server, where the server may have got nothing yet: there it would end the
 * stream in the midst of what was read. A client whose stream has an end sends nothing behind it.
 */
WEIR_INLINE bool weir_splice_fin_behind(const struct weir_splice *s, const struct weir_segment *g)
{
	__u32 end = g->seq + g->len;

	return weir_segment_has(g, WEIR_TCP_FIN) && seq_before(end + 1, s->passed_end) &&
	       !seq_before(end, s->server_acked + s->in_off);
}

/* Both sides have closed and acknowledged it. */
WEIR_INLINE bool weir_splice_closed(const struct weir_splice *s)
{
	if (s->fins != (WEIR_SPLICE_CLIENT_FIN | WEIR_SPLICE_SERVER_FIN))
		return false;
	return !seq_before(s->client_acked, s->server_fin + s->out_off) &&
	       !seq_before(s->server_acked + s->in_off, s->client_fin);
}

#endif
