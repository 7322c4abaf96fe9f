/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The translation core: a TCP connection out of whose client stream bytes are cut (a shed request, which the server
 * never sees) and into whose server stream bytes are put (its answer, which the server never sent).
 *
 *   client's numbers   ... passed ... |cut_start  shed request  cut_end| ... passed later ...
 *   server's numbers   ... passed ... |q                               | ... passed later ...
 *   client's numbers   ... replies .. |answer_start   the answer   answer_end| ... replies later ...
 *   server's numbers   ... replies .. |p                                     | ... replies later ...
 *
 * Only the latest cut needs to be known, because one is made only when everything before it is settled on both
 * sides (weir_splice_settled): the client has acknowledged every byte of the server and the answer before, the server
 * every byte of the client. What is older can only be a duplicate, which the receiver discards wherever it lands, as
 * long as it lands at or below what is settled; every rule below keeps to that.
 *
 * Nothing but the answer itself acknowledges a shed request: until the client acknowledges the answer, the server's
 * acknowledgements of q are shown as cut_start, and whatever the client sends beyond the cut is held
 * (dropped: TCP sends it again). So a lost answer is asked for again by the client's own retransmission.
 *
 * All numbers are host byte order. "Client's numbers" are those the client sees on the wire, "server's numbers" those
 * the server's socket uses. Sequence comparisons hold within 2^31 of each other; the marks are moved along behind a
 * stream that runs on (weir_splice_trail), so that long transfers after a cut do not wrap around them.
 */
#ifndef WEIR_TCP_SPLICE_H
#define WEIR_TCP_SPLICE_H

#include "weir/base/seq.h"
#include "weir/tcp/segment.h"

struct weir_splice {
	__u32 cuts;	     /* sheds so far; 0: both sides use the same numbers and packets are left untouched */
	__u32 in_off;	     /* client bytes cut in all: past the cut, server's number = client's - in_off */
	__u32 cut_start;     /* client's numbers */
	__u32 cut_end;	     /* grows while a body is swallowed */
	__u32 out_off;	     /* bytes put in in all: past the answer, client's number = server's + out_off */
	__u32 answer_start;  /* client's numbers */
	__u32 answer_length; /* 0 until the answer is made, or when the cut has none */
	__u32 client_acked;  /* client's numbers: the highest acknowledgement seen from the client */
	__u32 client_end;    /* client's numbers: behind the highest byte (or FIN) the client sent */
	__u32 passed_end; /* client's numbers: behind the highest byte (or FIN) that went on to the server, or was cut */
	__u32 server_end;    /* server's numbers: behind the highest byte (or FIN) the server sent */
	__u32 server_acked;  /* server's numbers: the highest acknowledgement seen from the server */
	__u32 server_tsval;  /* the latest timestamp of the server, with has_ts */
	__u32 client_fin;    /* client's numbers: behind the client's FIN, with fins */
	__u32 server_fin;    /* server's numbers: behind the server's FIN, with fins */
	__u32 told;	     /* server's numbers: the highest acknowledgement passed on to the server */
	__u32 client_tsval;  /* the latest timestamp of the client, with client_has_ts */
	__u16 server_window; /* the window field of the server's latest segment */
	__u8 server_scale;   /* by which it is to be shifted */
	__u8 has_ts;
	__u8 client_has_ts;
	__u8 fins;	   /* WEIR_SPLICE_*_FIN seen */
	__u8 owed;	   /* a cut is open: its request is still being swallowed and its answer not yet made */
	__u8 server_reset; /* the server has sent a RST, or has ended: its socket may be gone */
};
WEIR_ASSERT_SIZE(struct weir_splice, 76);

#define WEIR_SPLICE_CLIENT_FIN 1
#define WEIR_SPLICE_SERVER_FIN 2

/* Marks further behind than this are moved up to half of it behind the stream's end. */
#define WEIR_SPLICE_TRAIL (1U << 30)

/* client_next, server_next: the first byte each side will send after the handshake. */
WEIR_INLINE void weir_splice_open(struct weir_splice *s, __u32 client_next, __u32 server_next, __u16 server_window)
{
	*s = (struct weir_splice){
		.cut_start = client_next,
		.cut_end = client_next,
		.answer_start = server_next,
		.client_acked = server_next,
		.client_end = client_next,
		.passed_end = client_next,
		.server_end = server_next,
		.server_acked = client_next,
		.told = server_next - 1, /* the handshake's own acknowledgement may still be news */
		.server_window = server_window,
	};
}

WEIR_INLINE __u32 weir_splice_answer_end(const struct weir_splice *s)
{
	return s->answer_start + s->answer_length;
}

/* Offsets that hold before the latest cut. */
WEIR_INLINE __u32 weir_splice_in_before(const struct weir_splice *s)
{
	return s->in_off - (s->cut_end - s->cut_start);
}

WEIR_INLINE __u32 weir_splice_out_before(const struct weir_splice *s)
{
	return s->out_off - s->answer_length;
}

/* Where the cut is in the server's numbers (q above), and the answer (p above). */
WEIR_INLINE __u32 weir_splice_cut_at(const struct weir_splice *s)
{
	return s->cut_end - s->in_off;
}

WEIR_INLINE __u32 weir_splice_answer_at(const struct weir_splice *s)
{
	return weir_splice_answer_end(s) - s->out_off;
}

/* The right edge of the window that the server has offered last, in the client's numbers. */
WEIR_INLINE __u32 weir_splice_edge(const struct weir_splice *s)
{
	return s->server_acked + s->in_off + ((__u32)s->server_window << (s->server_scale & 15));
}

/* Has the client all answers? Where there is none, no mark says so: what the server sends may be past it by more than 2^31. */
WEIR_INLINE bool weir_splice_answer_acked(const struct weir_splice *s)
{
	return !WEIR_FRESH(s->cuts) ||
	       (!WEIR_FRESH(s->owed) && !seq_before(s->client_acked, weir_splice_answer_end(s)));
}

/* Keeps the marks of a settled cut within reach of the streams, so that they never wrap around. */
WEIR_INLINE void weir_splice_trail(struct weir_splice *s)
{
	if (!weir_splice_answer_acked(s))
		return;
	if (s->client_end - s->cut_end > WEIR_SPLICE_TRAIL) {
		s->cut_end = s->client_end - WEIR_SPLICE_TRAIL / 2;
		s->cut_start = s->cut_end;
	}
	if (s->server_end + s->out_off - weir_splice_answer_end(s) > WEIR_SPLICE_TRAIL) {
		s->answer_start = s->server_end + s->out_off - WEIR_SPLICE_TRAIL / 2;
		s->answer_length = 0;
	}
}

/* client's acknowledgement (or SACK edge) of the server's stream -> server's numbers */
WEIR_INLINE __u32 weir_splice_ack_to_server(const struct weir_splice *s, __u32 ack)
{
	if (!seq_before(ack, weir_splice_answer_end(s)))
		return ack - s->out_off;
	if (seq_after(ack, s->answer_start))
		return weir_splice_answer_at(s);
	return ack - weir_splice_out_before(s);
}

/* server's SACK edges of the client's stream -> client's numbers: an edge at the cut belongs to the block's own side */
WEIR_INLINE __u32 weir_splice_sack_start_to_client(const struct weir_splice *s, __u32 edge)
{
	return edge + (seq_before(edge, weir_splice_cut_at(s)) ? weir_splice_in_before(s) : s->in_off);
}

WEIR_INLINE __u32 weir_splice_sack_end_to_client(const struct weir_splice *s, __u32 edge)
{
	return edge + (seq_after(edge, weir_splice_cut_at(s)) ? s->in_off : weir_splice_in_before(s));
}

/*
 * server's acknowledgement of the client's stream -> client's numbers. While a body is swallowed, what weir itself has
 * acknowledged is shown, or the client would pass over the window that comes with it.
 */
WEIR_INLINE __u32 weir_splice_ack_to_client(const struct weir_splice *s, __u32 ack)
{
	__u32 at = weir_splice_cut_at(s);

	if (ack == at)
		return seq_before(s->client_acked, weir_splice_answer_end(s)) ? s->cut_start : s->cut_end;
	return ack + (seq_before(ack, at) ? weir_splice_in_before(s) : s->in_off);
}

WEIR_INLINE __u32 weir_splice_seq_to_server(const struct weir_splice *s, __u32 seq)
{
	if (!seq_before(seq, s->cut_end))
		return seq - s->in_off;
	if (!seq_after(seq, s->cut_start))
		return seq - weir_splice_in_before(s);
	/* A keep-alive probe names the byte before the next one: it must look old to the server, too. */
	return weir_splice_cut_at(s) - (seq == s->cut_end - 1);
}

/* Rewrites a client's segment that may go on into the server's numbers. */
WEIR_INLINE void weir_splice_to_server(const struct weir_splice *s, struct weir_segment *g)
{
	if (!s->cuts)
		return;
	g->seq = weir_splice_seq_to_server(s, g->seq);
	if (weir_segment_has(g, WEIR_TCP_ACK))
		g->ack = weir_splice_ack_to_server(s, g->ack);
	for (int i = 0; i < WEIR_SACK_BLOCKS; i++) {
		if (i >= g->sacks)
			break;
		g->sack[i].start = weir_splice_ack_to_server(s, g->sack[i].start);
		g->sack[i].end = weir_splice_ack_to_server(s, g->sack[i].end);
	}
}

/* Rewrites a server's segment that may go on into the client's numbers. */
WEIR_INLINE void weir_splice_to_client(const struct weir_splice *s, struct weir_segment *g)
{
	__u32 at = weir_splice_answer_at(s);
	__u32 end = g->seq + g->len + weir_segment_has(g, WEIR_TCP_FIN);
	bool old = end == g->seq ? seq_before(end, at) : !seq_after(end, at);

	if (!s->cuts)
		return;
	g->seq += old ? weir_splice_out_before(s) : s->out_off;
	if (weir_segment_has(g, WEIR_TCP_ACK))
		g->ack = weir_splice_ack_to_client(s, g->ack);
	for (int i = 0; i < WEIR_SACK_BLOCKS; i++) {
		if (i >= g->sacks)
			break;
		g->sack[i].start = weir_splice_sack_start_to_client(s, g->sack[i].start);
		g->sack[i].end = weir_splice_sack_end_to_client(s, g->sack[i].end);
	}
}

#endif
