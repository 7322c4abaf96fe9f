/* SPDX-License-Identifier: GPL-2.0 */
/* The server's side of a connection: its segments are followed, so that it is known when no answer is outstanding. */
#ifndef WEIR_CONN_SERVER_H
#define WEIR_CONN_SERVER_H

#include "weir/conn/early.h"

#define WEIR_SETTINGS_HEADER 9 /* bytes of a frame's: length, type, flags, stream */

/* A segment's worth of framing, on a copy of the machine. */
struct weir_response_reader {
	__u32 next;
	__u32 began;		      /* of the response now being read, or read last */
	__u32 first;		      /* number of the request that the segment's first response answers */
	struct weir_asked_list asked; /* as in struct weir_conn */
	__u32 responses;
	__u32 outstanding;
	__u16 lost;
	__u8 settings;	 /* bytes of weir_response_reader_unasked()'s header */
	__u8 tls;	 /* the client has begun TLS, for all that is known */
	__u64 took_ns;	 /* until the answer began; 0: it had begun, or several are outstanding */
	__u64 head_bits; /* bit 0: the oldest outstanding request is a HEAD */
	struct weir_response response;
};

/* Passes over more of a body that is too long to be passed over at once, but for its last byte: who brings that ends the response. */
WEIR_INLINE bool weir_conn_skip_response(struct weir_conn *c, struct weir_busy *busy)
{
	__u64 more = weir_place_is_midway(c->response_place) ? weir_response_skippable(&busy->response) : 0;
	__u32 n = more > WEIR_SKIP_MAX ? WEIR_SKIP_MAX : more ? more - 1 : 0;

	if (!n)
		return false;
	weir_response_skip(&busy->response, n);
	c->response_next += n;
	return true;
}

/* Which of the outstanding requests are HEADs; bit 0: the oldest. */
WEIR_INLINE __u64 weir_conn_head_bits(const struct weir_conn *c)
{
	__u32 at = c->responses % WEIR_OUTSTANDING_MAX;

	return at ? c->head_bits >> at | c->head_bits << (WEIR_OUTSTANDING_MAX - at) : c->head_bits;
}

/* Ready to be fed what comes next. */
WEIR_INLINE void weir_response_reader_open(struct weir_response_reader *r, const struct weir_conn *c,
					   const struct weir_busy *busy)
{
	r->next = c->response_next;
	r->began = c->response_began;
	r->first = c->responses;
	r->asked = busy && c->asks ? busy->asked : (struct weir_asked_list){};
	r->responses = 0;
	r->outstanding = c->requests - c->responses;
	r->lost = WEIR_REASON_NONE;
	r->settings = 0;
	r->tls = weir_conn_is_untold(c) && c->hold.by_records;
	r->head_bits = weir_conn_head_bits(c);
	weir_conn_response(c, busy, &r->response);
}

/* An answer has begun. */
WEIR_INLINE void weir_conn_answered(struct weir_conn *c, struct weir_response_reader *r)
{
	r->took_ns = c->asked_ns && c->last_ns > c->asked_ns ? c->last_ns - c->asked_ns : 0; /* CPUs' clocks */
	c->asked_ns = 0;
}

/* Takes a server's segment. FRAME: its payload must be fed to `r` and committed before it goes out; it passes. */
WEIR_INLINE enum weir_action weir_conn_begin_server(struct weir_conn *c, struct weir_busy *busy,
						    const struct weir_segment *g, struct weir_response_reader *r,
						    enum weir_reason *why)
{
	__u32 seq = g->seq, end = g->seq + g->len;
	bool untold = weir_conn_is_untold(c);

	if (c->phase == WEIR_PHASE_CLOSED || weir_splice_judge_server(&c->splice, g) == WEIR_SPLICE_DROP) {
		*why = WEIR_HELD;
		return WEIR_DROP;
	}
	if (c->phase == WEIR_PHASE_HUNTING && g->len)
		c->hold.answers = 1;
	if ((c->phase == WEIR_PHASE_OPAQUE && !untold) || !g->len || !seq_after(end, c->response_next))
		return WEIR_PASS;
	if (untold && seq_after(seq, c->response_next))
		return WEIR_PASS;
	if (c->phase == WEIR_PHASE_HUNTING && !c->requests)
		return WEIR_PASS;
	if (!busy && (c->asks || weir_place_is_midway(c->response_place))) {
		*why = WEIR_CONTENDED;
		return WEIR_DROP;
	}
	if (seq_after(seq, c->response_next)) {
		if (busy && weir_conn_skip_response(c, busy))
			return WEIR_PASS;
		if (c->phase == WEIR_PHASE_FOLLOWED)
			*why = WEIR_GAP;
		weir_conn_hunt(c);
		return WEIR_PASS;
	}
	weir_response_reader_open(r, c, busy);
	weir_conn_answered(c, r);
	return WEIR_FRAME;
}

/* To be called before the next byte is taken: it may begin a response. */
WEIR_INLINE void weir_response_reader_begin(struct weir_response_reader *r)
{
	if (weir_response_ended(&r->response) && r->responses < r->outstanding)
		weir_response_start(&r->response);
	if (weir_response_fresh(&r->response))
		r->began = r->next;
}

/* The method that matters of the request that is being answered. */
WEIR_INLINE enum weir_method weir_response_reader_method(const struct weir_response_reader *r)
{
	return r->head_bits >> (r->responses % WEIR_OUTSTANDING_MAX) & 1 ? WEIR_METHOD_HEAD : WEIR_METHOD_GET;
}

/* A byte has been fed to the machine. */
WEIR_INLINE enum weir_frame_event weir_response_reader_fed(struct weir_response_reader *r, enum weir_frame_event event)
{
	__u64 more;

	r->next++;
	if (event == WEIR_FRAME_LOST) {
		r->lost = r->response.lost;
		return event;
	}
	more = weir_response_skippable(&r->response);
	if (more) {
		__u32 n = more < WEIR_SKIP_MAX ? more : WEIR_SKIP_MAX;

		r->next += n;
		weir_response_skip(&r->response, n);
	}
	if (weir_response_ended(&r->response))
		r->responses++;
	return event;
}

/* May the byte be where it is in what a server says first: in the header of SETTINGS, or as a TLS record's type? */
WEIR_INLINE bool weir_response_reader_fits_first(const struct weir_response_reader *r, __u8 byte)
{
	if (r->first || r->responses || !weir_response_fresh(&r->response))
		return false;
	if (r->tls)
		return byte == WEIR_RECORD_HANDSHAKE || byte == WEIR_RECORD_ALERT;
	return r->settings == 2 ? byte % 6 == 0 : byte == (r->settings == 3 ? 4 : 0);
}

/*
 * Nobody asked: an answer of the server's own, such as 408, ends the following. A server of HTTP/2 may speak before its client does: its
 * first bytes are the header of SETTINGS (RFC 9113, 3.4), here of no more than 42 in one segment. That says what the server speaks, and
 * nothing of the client: its bytes are believed to be HTTP/2 where they are by themselves (hold.h). To a client that has begun TLS it says a
 * record, to one of HTTP/2 its SETTINGS; a server of HTTP/1 says neither.
 */
WEIR_INLINE enum weir_frame_event weir_response_reader_unasked(struct weir_response_reader *r, __u8 byte)
{
	r->lost = WEIR_BAD_RESPONSE;
	if (!weir_response_reader_fits_first(r, byte))
		return WEIR_FRAME_LOST;
	r->next++;
	if (++r->settings < WEIR_SETTINGS_HEADER && !r->tls)
		return WEIR_FRAME_MORE;
	r->lost = r->tls ? WEIR_TLS : WEIR_HTTP2;
	return WEIR_FRAME_LOST;
}

/* The next byte of the server's stream, at r->next. */
WEIR_INLINE enum weir_frame_event weir_response_reader_feed(struct weir_response_reader *r, __u8 byte)
{
	if (weir_response_ended(&r->response))
		weir_response_start(&r->response);
	if (weir_response_fresh(&r->response))
		r->began = r->next;
	if (r->responses >= r->outstanding)
		return weir_response_reader_unasked(r, byte);
	return weir_response_reader_fed(r, weir_response_byte(&r->response, weir_response_reader_method(r), byte));
}

/* The same, where it is the LF that ends a head, or trailers (WEIR_AT_END_LF), and somebody asked. */
WEIR_INLINE enum weir_frame_event weir_response_reader_end_fields(struct weir_response_reader *r)
{
	r->response.framing.position++;
	return weir_response_reader_fed(r, weir_response_fields_end(&r->response, weir_response_reader_method(r)));
}

/* As feeding, for what it takes of the next eight bytes at once (run.h); 0: feed it the next one. */
WEIR_INLINE __u32 weir_response_reader_take(struct weir_response_reader *r, __u64 word)
{
	__u32 n = weir_response_take(&r->response, word);

	r->next += n;
	return n;
}

/* Why can the response not be followed from here on? What is midway needs room; a server's segment does not wait for any. */
WEIR_INLINE enum weir_reason weir_conn_keep_response(struct weir_conn *c, struct weir_busy *busy,
						     const struct weir_response_reader *r)
{
	c->response_place = weir_response_place(&r->response);
	if (r->lost != WEIR_REASON_NONE || !weir_place_is_midway(c->response_place))
		return r->lost;
	if (busy) {
		busy->response = r->response;
		return WEIR_REASON_NONE;
	}
	c->response_place = WEIR_PLACE_LOST;
	return c->phase == WEIR_PHASE_OPAQUE ? WEIR_REASON_NONE : WEIR_BUSY_MAP_FULL;
}

/* The server has said its first word on a connection that is not read any more: is it what its client has begun? */
WEIR_INLINE void weir_conn_tell(struct weir_conn *c, const struct weir_response_reader *r)
{
	bool fits = r->lost == (c->hold.by_records ? WEIR_TLS : WEIR_HTTP2);

	c->bare &= ~WEIR_BARE_UNTOLD;
	c->response_next = r->next;
	if (fits)
		return;
	if (c->opaque_why == WEIR_UNSEEN)
		c->bare |= WEIR_BARE_MIDWAY;
	else
		weir_conn_opaque(c, c->splice.server_acked, WEIR_BAD_RESPONSE);
}

/* Where an answer cannot be followed: is it one that nobody asked for, and may a body have been taken for its request? */
WEIR_INLINE bool weir_conn_served_body(const struct weir_conn *c)
{
	return c->requests == c->responses && c->bare & WEIR_BARE_BODY;
}

/* A socket sends one segment at a time, so nobody else has moved this side. */
WEIR_INLINE void weir_conn_commit_server(struct weir_conn *c, struct weir_busy *busy,
					 const struct weir_response_reader *r, enum weir_reason *why)
{
	enum weir_reason lost;

	/* A hunt has begun meanwhile. */
	if (r->responses > c->requests - c->responses)
		return;
	if (weir_conn_is_untold(c)) {
		weir_conn_tell(c, r);
		return;
	}
	lost = weir_conn_keep_response(c, busy, r);
	c->response_next = r->next;
	c->response_began = r->began;
	c->responses += r->responses;
	if (r->asked.list && seq_after(c->responses, r->asked.request))
		c->asks = 0;
	if (r->responses && weir_conn_answered_early(c)) {
		*why = WEIR_ANSWERED_EARLY;
		weir_conn_opaque(c, c->splice.server_acked, *why);
		return;
	}
	if (lost == WEIR_REASON_NONE)
		return;
	if (c->phase == WEIR_PHASE_HUNTING) {
		weir_conn_hunt(c);
		return;
	}
	*why = lost == WEIR_BAD_RESPONSE && weir_conn_served_body(c) ? WEIR_BODY_SERVED : lost;
	if (lost == WEIR_HTTP2 && c->request_place == WEIR_PLACE_FRESH && !weir_preamble_awaited(&c->preamble))
		c->bare |= WEIR_BARE_FIRST;
	weir_conn_opaque(c, weir_splice_seq_to_server(&c->splice, c->request_next), lost);
}

/*
 * May the segment be read at once, without the lock? Most may: an answer begins with it, nothing was cut out of the connection, and nothing
 * is under way that needs struct weir_busy. When it is committed, weir_conn_take_server() compares the connection with what the reader was
 * opened from.
 */
WEIR_INLINE bool weir_conn_reads_server_at_once(const struct weir_conn *c, const struct weir_segment *g)
{
	return g->len && !(g->flags & (WEIR_TCP_SYN | WEIR_TCP_RST)) && c->phase == WEIR_PHASE_FOLLOWED &&
	       !c->splice.cuts && g->seq == c->response_next && !c->asks && !weir_place_is_midway(c->response_place) &&
	       !weir_conn_has_seats(c);
}

/* Would a reader that is opened now be the same as this one was when it was opened? Then the connection has not changed. */
WEIR_INLINE bool weir_response_reader_fits(const struct weir_response_reader *r, const struct weir_conn *c,
					   const struct weir_segment *g)
{
	return weir_conn_reads_server_at_once(c, g) && r->first == c->responses &&
	       r->outstanding == c->requests - c->responses && r->head_bits == weir_conn_head_bits(c);
}

/*
 * Begins and commits in one. FRAME: the connection has changed meanwhile, and nothing has been done; it is to be begun and committed as
 * others are. PASS: it passes.
 */
WEIR_INLINE enum weir_action weir_conn_take_server(struct weir_conn *c, struct weir_busy *busy,
						   const struct weir_segment *g, struct weir_response_reader *r,
						   enum weir_reason *why)
{
	if (!weir_response_reader_fits(r, c, g))
		return WEIR_FRAME;
	weir_splice_see_server(&c->splice, g);
	weir_conn_answered(c, r);
	weir_conn_commit_server(c, busy, r, why);
	return WEIR_PASS;
}

#endif
