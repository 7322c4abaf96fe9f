/* SPDX-License-Identifier: GPL-2.0 */
/* A client's segment on a copy of the request machine: fed byte by byte, without the lock (conn.h). */
#ifndef WEIR_CONN_REQUEST_READER_H
#define WEIR_CONN_REQUEST_READER_H

#include "weir/conn/state.h"

/* A segment's worth of framing, on a copy of the machine. `why` counts: WEIR_REASON_NONE when there is nothing to count. */
struct weir_request_reader {
	__u32 next;
	__u32 version;
	__u32 start;	   /* of the request now being read; valid when it began in this segment */
	__u32 requests;	   /* before this segment */
	__u32 outstanding; /* of these without an answer */
	__u32 heads;	   /* that ended in this segment, not counting a shed one */
	__u64 head_bits;   /* of these; bit 0 is the first */
	__u16 lost;	   /* enum weir_reason, with phase OPAQUE to come unless shed or held; else WEIR_REASON_NONE */
	__u16 why_not;	   /* the first request may not be answered: enum weir_reason; else WEIR_REASON_NONE */
	__u8 whole;	   /* the request now being read began in this segment */
	__u8 shed;	   /* the first request is refused, and will be answered */
	__u8 held;	   /* the request now being read is refused, and can not be answered now */
	__u8 must_close;   /* what the segment goes on with may be answered, but only with WEIR_ANSWER_CLOSE */
	__u8 first;	   /* no request came before this segment */
	__u8 begun;	   /* the server has begun to answer this request: there is no place for another answer */
	__u8 again;	   /* this was read before: it is only compared, nothing is decided */
	__u8 early;	   /* and the server has bytes from behind it */
	__u8 body;	   /* a request with a body has ended its head in this segment */
	__u8 pad;
	__u32 skipped;	   /* where the latest body that was passed over began */
	__u32 again_start; /* where it began, and ended then */
	__u32 again_end;
	__u32 again_heads;
	struct weir_answer_choice answer; /* with shed */
	__u64 digest;			  /* of the requests that others follow; of all, once all has been fed */
	__u64 user;	 /* whose the latest request is that was decided, or that the connection had before */
	__u64 namespace; /* the same */
	struct weir_preamble preamble;
	struct weir_request request;
};

/* Ready to be fed what comes next; nothing may be answered. */
WEIR_INLINE void weir_request_reader_open(struct weir_request_reader *r, const struct weir_conn *c,
					  const struct weir_busy *busy)
{
	r->next = c->request_next;
	r->version = c->version;
	r->start = c->request_next;
	r->requests = c->requests;
	r->outstanding = c->requests - c->responses;
	r->heads = 0;
	r->head_bits = 0;
	r->lost = WEIR_REASON_NONE;
	r->why_not = WEIR_UNACKED;
	r->whole = 0;
	r->shed = 0;
	r->held = 0;
	r->must_close = 0;
	r->first = 0;
	r->begun = 0;
	r->again = 0;
	r->body = 0;
	r->answer.rejected = 0;
	r->digest = 0;
	r->user = c->user;
	r->namespace = c->namespace;
	r->preamble = c->preamble;
	weir_conn_request(c, busy, &r->request);
}

/* A request's head, or the preamble, has begun and not ended. */
WEIR_INLINE bool weir_head_is_open(const struct weir_preamble *preamble, const struct weir_request *request)
{
	return weir_preamble_midway(preamble) || weir_request_line_begun(request);
}

/* The same of the connection's own. */
WEIR_INLINE bool weir_conn_head_is_open(const struct weir_conn *c)
{
	return weir_preamble_midway(&c->preamble) || c->request_place == WEIR_PLACE_HEAD;
}

/* Is a client's segment to be read from where a machine stands, in struct weir_busy? */
WEIR_INLINE bool weir_conn_reads_midway(const struct weir_conn *c)
{
	return weir_place_is_midway(c->request_place) && c->phase != WEIR_PHASE_OPAQUE;
}

/* Will the machine stand there when the segment is committed? */
WEIR_INLINE bool weir_request_reader_stays_midway(const struct weir_request_reader *r)
{
	return !r->again && !r->held && !r->shed && weir_place_is_midway(weir_request_place(&r->request));
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
	if (r->why_not == WEIR_REASON_NONE || r->why_not == WEIR_SPLIT_HEAD)
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

/* Makes room for another request, if one has ended in this segment: the digest keeps what was read of it. */
WEIR_INLINE void weir_request_reader_follow(struct weir_request_reader *r, const struct weir_digest_keys *keys)
{
	if (!weir_request_ended(&r->request) || !r->request.head_length)
		return;
	weir_request_digest_to(&r->request, keys, &r->digest);
	weir_request_start(&r->request);
}

/*
 * To be called before the next byte is taken, or fed by _feed_on(): it may begin a request. Behind one that has ended in this segment,
 * _follow() has been called.
 */
WEIR_INLINE void weir_request_reader_begin(struct weir_request_reader *r)
{
	/* What ended in an earlier segment is all 0 here, but for its state (weir_conn_request()). */
	if (weir_request_ended(&r->request))
		r->request.framing.state = WEIR_AT_START;
	if (!weir_request_fresh(&r->request))
		return;
	r->start = r->next;
	r->whole = 1;
}

/* A byte has been fed to the machine. */
WEIR_INLINE enum weir_frame_event weir_request_reader_fed(struct weir_request_reader *r, enum weir_frame_event event)
{
	r->next++;
	if (event == WEIR_FRAME_LOST)
		r->lost = r->request.lost;
	else if (event != WEIR_FRAME_HEAD || r->request.method != WEIR_METHOD_CONNECT)
		weir_request_reader_skip(r);
	return event;
}

/* As weir_request_reader_feed(), where _begin() has been called. */
WEIR_INLINE enum weir_frame_event weir_request_reader_feed_on(struct weir_request_reader *r,
							      const struct weir_reading *how, __u8 byte)
{
	return weir_request_reader_fed(r, weir_request_byte(&r->request, how, byte));
}

/*
 * The next byte of the client's stream behind the preamble, at r->next. After HEAD the caller decides, then calls _passed(), or
 * sets shed or held.
 */
WEIR_INLINE enum weir_frame_event weir_request_reader_feed(struct weir_request_reader *r,
							   const struct weir_reading *how,
							   const struct weir_digest_keys *keys, __u8 byte)
{
	weir_request_reader_follow(r, keys);
	weir_request_reader_begin(r);
	return weir_request_reader_feed_on(r, how, byte);
}

/* The same, where it is the LF that ends a head, or trailers (WEIR_AT_END_LF). */
WEIR_INLINE enum weir_frame_event weir_request_reader_end_fields(struct weir_request_reader *r)
{
	r->request.framing.position++;
	return weir_request_reader_fed(r, weir_request_fields_end(&r->request));
}

/* As feeding, for what it takes of the next eight bytes at once (run.h); 0: feed it the next one. */
WEIR_INLINE __u32 weir_request_reader_take(struct weir_request_reader *r, __u64 word)
{
	__u32 n = weir_request_take(&r->request, word);

	r->next += n;
	return n;
}

/* Has one request's head been read, and nothing behind the request? It goes on. */
WEIR_INLINE bool weir_request_reader_has_one(const struct weir_request_reader *r)
{
	return r->heads == 1 && !r->digest && !r->shed && !r->held && r->lost == WEIR_REASON_NONE;
}

/* All bytes of the segment have been fed, or could not be read: to be called before _end(). */
WEIR_INLINE void weir_request_reader_digest(struct weir_request_reader *r, const struct weir_digest_keys *keys)
{
	weir_request_digest_to(&r->request, keys, &r->digest);
}

/* A FIN behind the segment's bytes must not end a head. */
WEIR_INLINE void weir_request_reader_end(struct weir_request_reader *r, const struct weir_segment *g)
{
	if (weir_segment_has(g, WEIR_TCP_FIN) && r->next == g->seq + g->len && r->lost == WEIR_REASON_NONE &&
	    !r->shed && !r->held && weir_head_is_open(&r->preamble, &r->request))
		r->lost = WEIR_HEAD_CUT;
}

/* Is there no room for the request whose head has just ended? It waits until others have been answered. */
WEIR_INLINE bool weir_request_reader_full(const struct weir_request_reader *r)
{
	return r->outstanding + r->heads >= WEIR_OUTSTANDING_MAX;
}

/* The request goes on. Behind a CONNECT comes another protocol, or HTTP if the server refuses it; it cannot be told beforehand which. */
WEIR_INLINE void weir_request_reader_passed(struct weir_request_reader *r)
{
	if (r->request.method == WEIR_METHOD_CONNECT)
		r->lost = WEIR_CONNECT;
	if (r->request.method == WEIR_METHOD_HEAD)
		r->head_bits |= 1ULL << (r->heads % WEIR_OUTSTANDING_MAX);
	r->body |= weir_request_has_body(&r->request);
	r->heads++;
	if (r->again && r->next == r->again_end)
		r->held = 1;
}

/*
 * The same for a server that has served a body as requests, where the request has one: it is not believed to be a body, nor is what
 * comes behind it. Its bytes are held from the first one on.
 */
WEIR_INLINE void weir_request_reader_doubt_body(struct weir_request_reader *r)
{
	if (r->request.content_length)
		r->next = r->skipped;
	r->lost = WEIR_BODY_SERVED;
}

#endif
