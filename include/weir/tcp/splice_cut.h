/* SPDX-License-Identifier: GPL-2.0 */
/* Cutting a request out of a client's stream and putting its answer into the server's (splice.h). */
#ifndef WEIR_TCP_SPLICE_CUT_H
#define WEIR_TCP_SPLICE_CUT_H

#include "weir/tcp/splice.h"

/*
 * Does the server have all of the client's stream before this segment, and nothing from beyond its start? What has gone
 * ahead of a gap is stored by the server at its place without the cut.
 */
WEIR_INLINE bool weir_splice_server_settled(const struct weir_splice *s, const struct weir_segment *g)
{
	return s->server_acked + s->in_off == g->seq && !seq_after(s->passed_end, g->seq);
}

/* May the bytes of this client segment, which are new and in order, be cut? (client's numbers, before translation) */
WEIR_INLINE bool weir_splice_settled(const struct weir_splice *s, const struct weir_segment *g)
{
	if (s->owed || !weir_splice_answer_acked(s))
		return false;
	if (!weir_segment_has(g, WEIR_TCP_ACK) || g->ack != s->server_end + s->out_off)
		return false;
	return weir_splice_server_settled(s, g);
}

/* Opens a cut at a settled segment's first byte; its answer is owed. */
WEIR_INLINE void weir_splice_cut(struct weir_splice *s, const struct weir_segment *g)
{
	s->cuts++;
	s->cut_start = g->seq;
	s->cut_end = g->seq;
	s->answer_start = s->server_end + s->out_off;
	s->answer_length = 0;
	s->owed = 1;
}

/* Cuts the next `length` bytes of the client's stream (they start at cut_end). */
WEIR_INLINE void weir_splice_swallow(struct weir_splice *s, __u32 length)
{
	s->cut_end += length;
	s->in_off += length;
	s->client_end = seq_max(s->client_end, s->cut_end);
	s->passed_end = seq_max(s->passed_end, s->cut_end);
}

/* Closes the cut: its answer has `length` bytes; 0: none, the client needs no answer any more. */
WEIR_INLINE void weir_splice_answer(struct weir_splice *s, __u32 length)
{
	s->answer_length = length;
	s->out_off += length;
	s->owed = 0;
}

/*
 * The header of what weir itself says to the client in reply to segment g: the answer (len = answer_length), or the
 * bare acknowledgement of what has been swallowed so far (len 0).
 */
WEIR_INLINE void weir_splice_reply(const struct weir_splice *s, const struct weir_segment *g,
				   struct weir_segment *reply)
{
	*reply = (struct weir_segment){
		.seq = s->answer_start,
		.ack = s->cut_end,
		.len = s->answer_length,
		.window = s->server_window,
		.flags = WEIR_TCP_ACK | (s->answer_length ? WEIR_TCP_PSH : 0),
		.has_ts = g->has_ts,
		.tsecr = g->tsval,
		/* PAWS: never older than the latest timestamp that the client has seen */
		.tsval = s->has_ts ? seq_max(s->server_tsval, g->tsecr) : g->tsecr,
	};
}

/* Makes of a segment whose bytes were cut the bare acknowledgement that the server may see. */
WEIR_INLINE void weir_splice_strip(const struct weir_splice *s, struct weir_segment *g)
{
	g->seq = s->cut_end;
	g->len = 0;
	g->sacks = 0;
	g->flags = WEIR_TCP_ACK;
	weir_splice_to_server(s, g);
}

#endif
