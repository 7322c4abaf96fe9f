/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One connection: the framing of both directions and the translation between them.
 *
 * A segment is taken in three steps, so that the state is locked only while plain numbers change hands:
 *
 *   begin (locked)    what can be said from the header alone; FRAME hands out a copy of the framing machine
 *   feed  (unlocked)  the segment's new bytes run through the copy; what a request may do is decided meanwhile
 *   commit (locked)   the copy becomes the state, if nobody else moved it; the segment passes or is cut
 *
 * When begin or commit has said what is to be done, a view taken under the same lock (weir_conn_look) is all that is
 * needed to do it: to translate the segment (weir_splice_to_server, _to_client), or to make replies (weir_view_reply,
 * weir_view_forward).
 *
 * The framing position may run ahead of the bytes seen: a body of known length is skipped as a whole, so that its
 * segments are below the position and pass without a look, in whatever order they come.
 */
#ifndef WEIR_CONN_H
#define WEIR_CONN_H

#include "abi.h"
#include "answer.h"
#include "record.h"
#include "request.h"
#include "response.h"
#include "splice.h"

#define WEIR_SKIP_MAX (1U << 30)
#define WEIR_OUTSTANDING_MAX 64

enum weir_phase {
	WEIR_PHASE_FOLLOWED, /* both machines are in step with the streams */
	WEIR_PHASE_HUNTING,  /* joined in mid-stream: a whole exchange must be seen before anything is answered */
	WEIR_PHASE_OPAQUE,   /* cannot be followed: passes, still translated if it was */
	WEIR_PHASE_CLOSED,   /* ended by weir: the server's socket was reset, the client has a FIN */
};

enum weir_action {
	WEIR_PASS,   /* send on, translated */
	WEIR_HOLD,   /* drop */
	WEIR_FRAME,  /* feed the new bytes, then commit */
	WEIR_ANSWER, /* drop; say the answer */
	WEIR_ACK,    /* drop; say a bare acknowledgement */
	WEIR_CLOSE,  /* say the answer with FIN; to the server the segment becomes a RST */
	WEIR_CUT,    /* send on, translated, only what comes before the reader's `start`, and no FIN */
};

/* The answer of the latest cut: what is needed to make the same bytes again. */
struct weir_answer_choice {
	__u16 retry_s;
	__u16 length;
	__u8 kind; /* enum weir_answer_kind */
	__u8 head; /* the request was HEAD: no body */
	__u8 pad[2];
};

/* How far the client's side of an opaque connection was let through to the server (hold.h). */
struct weir_hold {
	__u64 since_ns; /* since when what is at `next` is withheld; 0: it is not */
	__u32 next;	/* server's numbers: next byte to look at */
	__u32 version;	/* moves with every commit */
	struct weir_record record;
	__u8 by_records; /* the stream is TLS, and `record` in step with it */
	__u8 pad[3];
};

struct weir_conn {
#ifdef __bpf__
	struct bpf_spin_lock lock;
	__u32 server;
	struct bpf_timer timer;
#else
	__u32 lock;
	__u32 server;
	__u64 timer[2];
#endif
	__u64 last_ns;	 /* CLOCK_MONOTONIC of the latest packet */
	__u64 head_bits; /* bit n % 64: outstanding request n is a HEAD */
	struct weir_splice splice;
	__u32 request_next;  /* client's numbers: next byte to frame */
	__u32 response_next; /* server's numbers */
	__u32 requests;	     /* heads passed to the server */
	__u32 responses;     /* final responses whose end is known */
	__u32 version;	     /* moves with every commit of the client's side, and every hunt */
	__u32 server_isn;    /* tells a repeated SYN-ACK from a new connection's; 0: not known */
	struct weir_answer_choice answer;
	__u8 phase;	 /* enum weir_phase */
	__u8 dying;	 /* the timer runs */
	__u8 pipelines;	 /* the client has sent a request before the answer to the one before */
	__u8 opaque_why; /* enum weir_reason, with phase OPAQUE; MID_STREAM: TLS that was joined in mid-stream */
	__u8 pad[4];
	struct weir_hold hold;
	struct weir_request request;
	struct weir_response response;
};

/* What must be known of a connection to act on a segment once the lock is released. */
struct weir_view {
	struct weir_splice splice;
	struct weir_answer_choice answer;
	__u8 closed; /* ended by weir */
	__u8 news;   /* a segment that was cut acknowledges something the server has not been told */
	__u8 pad[2];
};

/* A segment's worth of framing, on a copy of the machine. `why` counts: WEIR_REASON_COUNT when there is nothing to count. */
struct weir_request_reader {
	__u32 next;
	__u32 version;
	__u32 start;	 /* of the request now being read; valid when it began in this segment */
	__u32 outstanding; /* requests without an answer before this segment */
	__u32 heads;	 /* that ended in this segment, not counting a shed one */
	__u64 head_bits; /* of these; bit 0 is the first */
	__u16 lost;	 /* enum weir_reason, with phase OPAQUE to come; else WEIR_REASON_COUNT */
	__u16 why_not;	 /* the first request may not be answered: enum weir_reason; else WEIR_REASON_COUNT */
	__u8 whole;	 /* the request now being read began in this segment */
	__u8 shed;	 /* the first request is refused, and will be answered */
	__u8 held;	 /* the request now being read is refused, and can not be answered now */
	__u8 must_close; /* if the first request is answered, then only with WEIR_ANSWER_CLOSE */
	struct weir_answer_choice answer; /* with shed */
	struct weir_request request;
};

struct weir_response_reader {
	__u32 next;
	__u32 responses;
	__u32 outstanding;
	__u16 lost;
	__u16 pad;
	__u64 head_bits; /* bit 0: the oldest outstanding request is a HEAD */
	struct weir_response response;
};

WEIR_INLINE void weir_conn_open(struct weir_conn *c, __u32 server, enum weir_phase phase, __u32 client_next,
				__u32 server_next, __u16 server_window)
{
	c->server = server;
	c->phase = phase;
	c->request_next = client_next;
	c->response_next = server_next;
	weir_splice_open(&c->splice, client_next, server_next, server_window);
	weir_request_start(&c->request);
	weir_response_start(&c->response);
}

/* It cannot be followed from here on; `next`, in the server's numbers, is where what could not be read begins. */
WEIR_INLINE void weir_conn_opaque(struct weir_conn *c, __u32 next, enum weir_reason why)
{
	c->phase = WEIR_PHASE_OPAQUE;
	c->opaque_why = why;
	c->hold.next = next;
	c->hold.by_records = why == WEIR_TLS;
	c->hold.version++;
	weir_record_start(&c->hold.record);
}

/* No answer is outstanding and no byte of one is still to come. */
WEIR_INLINE bool weir_conn_idle(const struct weir_conn *c)
{
	return c->requests == c->responses && c->splice.server_end == c->response_next;
}

WEIR_INLINE bool weir_conn_at_boundary(const struct weir_conn *c)
{
	return weir_request_fresh(&c->request) || weir_request_ended(&c->request);
}

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

/*
 * The server has the first part of a head, of which this segment brings more, and nothing else is under way: the request
 * can still be answered, but only together with the end of the connection.
 */
WEIR_INLINE bool weir_conn_may_only_close(const struct weir_conn *c, const struct weir_segment *g)
{
	return c->phase == WEIR_PHASE_FOLLOWED && g->seq == c->request_next && weir_request_in_head(&c->request) &&
	       weir_conn_idle(c) && !(c->splice.fins & WEIR_SPLICE_SERVER_FIN) && weir_splice_settled(&c->splice, g);
}

/* Where a client pipelines, a silence does not tell how many answers are outstanding: then there is no way back. */
WEIR_INLINE void weir_conn_hunt(struct weir_conn *c)
{
	c->phase = WEIR_PHASE_HUNTING;
	if (c->pipelines)
		weir_conn_opaque(c, weir_splice_seq_to_server(&c->splice, c->request_next), WEIR_GAP);
	c->requests = c->responses = 0;
	c->version++;
	weir_request_start(&c->request);
	weir_response_start(&c->response);
}

/* Where framing could begin again: the client speaks first after a silence in which both sides had everything. */
WEIR_INLINE bool weir_conn_hunt_begins(const struct weir_conn *c, const struct weir_segment *g)
{
	return c->requests == c->responses && (g->flags & WEIR_TCP_ACK) &&
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
	__u32 end = g->seq + g->len + !!(g->flags & WEIR_TCP_FIN);

	weir_splice_see_client(s, g);
	if ((g->flags & WEIR_TCP_ACK) && seq_after(g->ack, s->client_acked) &&
	    !seq_after(g->ack, weir_splice_answer_end(s) + 1))
		s->client_acked = g->ack;
	if (g->flags & WEIR_TCP_RST || (!g->len && !(g->flags & WEIR_TCP_FIN)))
		return WEIR_HOLD;
	if (!seq_after(g->seq, s->cut_end) && seq_after(end, s->cut_end))
		weir_splice_swallow(s, end - s->cut_end);
	return seq_before(s->client_acked, weir_splice_answer_end(s)) ? WEIR_ANSWER : WEIR_ACK;
}

/* Takes a client's segment as far as its header goes. With FRAME, `r` is ready to be fed. */
WEIR_INLINE enum weir_action weir_conn_begin_client(struct weir_conn *c, const struct weir_segment *g,
						    struct weir_request_reader *r, enum weir_reason *why)
{
	struct weir_splice *s = &c->splice;
	__u32 end = g->seq + g->len;
	enum weir_splice_verdict verdict;

	if (c->phase == WEIR_PHASE_CLOSED)
		return weir_conn_after_close(c, g);
	if (!weir_splice_acceptable(s, g)) {
		*why = WEIR_UNACCEPTABLE;
		return WEIR_HOLD;
	}

	if (s->owed && g->seq == s->cut_end && !(g->flags & WEIR_TCP_RST)) {
		weir_splice_see_client(s, g);
		if (g->len) {
			*why = WEIR_SWALLOWED;
			return weir_conn_swallow(c, g);
		}
		/* The client gave up in the middle of a body: the server sees a clean end at the boundary before it. */
		if (g->flags & WEIR_TCP_FIN)
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

	if (c->phase == WEIR_PHASE_OPAQUE || (g->flags & (WEIR_TCP_RST | WEIR_TCP_SYN)))
		goto pass;
	if (weir_splice_fin_ahead(s, g)) {
		*why = WEIR_OUT_OF_ORDER;
		return WEIR_HOLD;
	}
	if (!g->len)
		goto pass;

	if (c->phase == WEIR_PHASE_HUNTING) {
		if (c->requests && weir_conn_idle(c) && g->seq == c->request_next) {
			c->phase = WEIR_PHASE_FOLLOWED;
		} else if (weir_conn_hunt_begins(c, g)) {
			weir_conn_hunt(c);
			c->request_next = g->seq;
			c->response_next = s->server_end;
		} else if (!c->requests) {
			goto pass;
		}
	}

	if (!seq_after(end, c->request_next))
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

	r->next = c->request_next;
	r->version = c->version;
	r->start = c->request_next;
	r->outstanding = c->requests - c->responses;
	r->heads = 0;
	r->head_bits = 0;
	r->lost = WEIR_REASON_COUNT;
	r->must_close = weir_conn_may_only_close(c, g);
	r->why_not = r->must_close ? WEIR_REASON_COUNT : weir_conn_why_not(c, g);
	r->whole = 0;
	r->shed = 0;
	r->held = 0;
	r->request = c->request;
	return WEIR_FRAME;

pass:
	weir_splice_pass(s, g);
	return WEIR_PASS;
}

WEIR_INLINE void weir_request_reader_skip(struct weir_request_reader *r)
{
	__u64 more = weir_request_skippable(&r->request);
	__u32 n = more < WEIR_SKIP_MAX ? more : WEIR_SKIP_MAX;

	if (!n)
		return;
	r->next += n;
	weir_request_skip(&r->request, n);
}

/* The next byte of the client's stream, at r->next. After HEAD the caller decides, then calls _passed() or _refused(). */
WEIR_INLINE enum weir_frame_event weir_request_reader_feed(struct weir_request_reader *r, const __u64 *seed, __u8 byte)
{
	enum weir_frame_event event;

	if (weir_request_ended(&r->request))
		weir_request_start(&r->request);
	if (weir_request_fresh(&r->request)) {
		r->start = r->next;
		r->whole = 1;
	}
	event = weir_request_byte(&r->request, seed, byte);
	r->next++;
	if (event == WEIR_FRAME_LOST)
		r->lost = r->request.lost;
	else if (event == WEIR_FRAME_HEAD && r->request.method == WEIR_METHOD_CONNECT)
		r->lost = WEIR_CONNECT;
	else
		weir_request_reader_skip(r);
	return event;
}

/* Is there no room for the request whose head has just ended? It waits until others have been answered. */
WEIR_INLINE bool weir_request_reader_full(const struct weir_request_reader *r)
{
	return r->outstanding + r->heads >= WEIR_OUTSTANDING_MAX;
}

WEIR_INLINE void weir_request_reader_passed(struct weir_request_reader *r)
{
	if (r->request.method == WEIR_METHOD_HEAD)
		r->head_bits |= 1ULL << (r->heads % WEIR_OUTSTANDING_MAX);
	r->heads++;
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
	c->pipelines |= c->requests - c->responses > 1;
}

WEIR_INLINE enum weir_action weir_conn_shed(struct weir_conn *c, const struct weir_segment *g,
					    const struct weir_request_reader *r)
{
	struct weir_splice *s = &c->splice;

	c->answer = r->answer;
	weir_splice_cut(s, g);
	if (r->answer.kind == WEIR_ANSWER_CLOSE) {
		weir_splice_swallow(s, g->len + !!(g->flags & WEIR_TCP_FIN));
		weir_splice_answer(s, c->answer.length);
		c->phase = WEIR_PHASE_CLOSED;
		return WEIR_CLOSE;
	}
	return weir_conn_swallow(c, g);
}

/* What is before a held request passes; the request comes again, and is asked again. */
WEIR_INLINE enum weir_action weir_conn_cut(struct weir_conn *c, const struct weir_segment *g,
					   const struct weir_request_reader *r)
{
	struct weir_segment before = *g;

	before.len = r->start - g->seq;
	before.flags &= ~WEIR_TCP_FIN;
	c->version++;
	c->request_next = r->start;
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
						     const struct weir_request_reader *r, enum weir_reason *why)
{
	bool unsafe = r->must_close ? !weir_conn_may_only_close(c, g) : weir_conn_why_not(c, g) != WEIR_REASON_COUNT;

	if (c->version != r->version || (r->shed && unsafe)) {
		*why = WEIR_CONTENDED;
		return WEIR_HOLD;
	}
	if (r->held) {
		*why = WEIR_HELD;
		return r->whole && seq_after(r->start, g->seq) ? weir_conn_cut(c, g, r) : WEIR_HOLD;
	}
	c->version++;
	c->request = r->request;
	c->request_next = r->next;
	if (r->shed)
		return weir_conn_shed(c, g, r);

	weir_conn_count_requests(c, r);
	if (c->phase == WEIR_PHASE_HUNTING) {
		if (r->lost != WEIR_REASON_COUNT || c->pipelines)
			weir_conn_hunt(c);
	} else if (r->lost != WEIR_REASON_COUNT) {
		*why = r->lost;
		weir_conn_opaque(c, weir_splice_seq_to_server(&c->splice, r->start), r->lost);
	} else if (c->requests - c->responses > WEIR_OUTSTANDING_MAX) {
		*why = WEIR_TOO_MANY_PIPELINED;
		weir_conn_opaque(c, weir_splice_seq_to_server(&c->splice, c->request_next), *why);
	}
	weir_splice_pass(&c->splice, g);
	return WEIR_PASS;
}

/* Takes a server's segment. FRAME: its payload must be fed to `r` and committed before it goes out; it passes. */
WEIR_INLINE enum weir_action weir_conn_begin_server(struct weir_conn *c, const struct weir_segment *g,
						    struct weir_response_reader *r, enum weir_reason *why)
{
	__u32 seq = g->seq, end = g->seq + g->len;

	if (c->phase == WEIR_PHASE_CLOSED || weir_splice_judge_server(&c->splice, g) == WEIR_SPLICE_HOLD) {
		*why = WEIR_HELD;
		return WEIR_HOLD;
	}
	if (c->phase == WEIR_PHASE_OPAQUE || !g->len || !seq_after(end, c->response_next))
		return WEIR_PASS;
	if (c->phase == WEIR_PHASE_HUNTING && !c->requests)
		return WEIR_PASS;

	if (seq_after(seq, c->response_next)) {
		__u64 more = weir_response_skippable(&c->response);
		__u32 n = more < WEIR_SKIP_MAX ? more : WEIR_SKIP_MAX;

		if (n) {
			weir_response_skip(&c->response, n);
			c->response_next += n;
		} else {
			if (c->phase == WEIR_PHASE_FOLLOWED)
				*why = WEIR_GAP;
			weir_conn_hunt(c);
		}
		return WEIR_PASS;
	}

	r->next = c->response_next;
	r->responses = 0;
	r->outstanding = c->requests - c->responses;
	r->lost = WEIR_REASON_COUNT;
	{
		__u32 at = c->responses % WEIR_OUTSTANDING_MAX;

		r->head_bits = at ? c->head_bits >> at | c->head_bits << (WEIR_OUTSTANDING_MAX - at) : c->head_bits;
	}
	r->response = c->response;
	return WEIR_FRAME;
}

/* The next byte of the server's stream, at r->next. */
WEIR_INLINE enum weir_frame_event weir_response_reader_feed(struct weir_response_reader *r, __u8 byte)
{
	enum weir_frame_event event;
	__u64 more;
	bool head;

	if (weir_response_ended(&r->response))
		weir_response_start(&r->response);
	/* Nobody asked: an answer of the server's own, such as 408, ends the following. */
	if (r->responses >= r->outstanding) {
		r->lost = WEIR_BAD_RESPONSE;
		return WEIR_FRAME_LOST;
	}
	head = r->head_bits >> (r->responses % WEIR_OUTSTANDING_MAX) & 1;
	event = weir_response_byte(&r->response, head ? WEIR_METHOD_HEAD : WEIR_METHOD_GET, byte);
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

/* A socket sends one segment at a time, so nobody else has moved this side. */
WEIR_INLINE void weir_conn_commit_server(struct weir_conn *c, const struct weir_response_reader *r,
					 enum weir_reason *why)
{
	/* A hunt has begun meanwhile. */
	if (r->responses > c->requests - c->responses)
		return;
	c->response = r->response;
	c->response_next = r->next;
	c->responses += r->responses;
	if (r->lost == WEIR_REASON_COUNT)
		return;
	if (c->phase == WEIR_PHASE_HUNTING) {
		weir_conn_hunt(c);
		return;
	}
	*why = r->lost;
	weir_conn_opaque(c, weir_splice_seq_to_server(&c->splice, c->request_next), r->lost);
}

/* Taken under the lock, after begin or commit said `action` of segment g. Where nothing was ever cut, that is all of it. */
WEIR_INLINE void weir_conn_look(struct weir_conn *c, const struct weir_segment *g, enum weir_action action,
				struct weir_view *view)
{
	view->closed = c->phase == WEIR_PHASE_CLOSED;
	view->news = 0;
	view->splice.cuts = c->splice.cuts;
	if (!c->splice.cuts)
		return;
	view->news = action >= WEIR_ANSWER && !view->closed && weir_splice_has_news(&c->splice, g);
	if (view->news)
		weir_splice_tell(&c->splice, g);
	view->splice = c->splice;
	view->answer = c->answer;
}

/* The header of what weir says to the client in reply to segment g: ANSWER, ACK or CLOSE. */
WEIR_INLINE void weir_view_reply(const struct weir_view *view, const struct weir_segment *g, enum weir_action action,
				 struct weir_segment *reply)
{
	weir_splice_reply(&view->splice, g, reply);
	if (action == WEIR_ACK) {
		reply->seq = weir_splice_answer_end(&view->splice) + view->closed;
		reply->len = 0;
		reply->flags = WEIR_TCP_ACK;
	} else if (view->closed) {
		reply->flags |= WEIR_TCP_FIN;
	}
}

/* What the server may see of segment g, whose bytes were cut: CLOSE: a RST; with news: a bare acknowledgement. */
WEIR_INLINE void weir_view_forward(const struct weir_view *view, const struct weir_segment *g, enum weir_action action,
				   struct weir_segment *forward)
{
	*forward = *g;
	if (action == WEIR_CLOSE)
		*forward = (struct weir_segment){
			.seq = weir_splice_cut_place(&view->splice),
			.flags = WEIR_TCP_RST,
		};
	else
		weir_splice_strip(&view->splice, forward);
}

#endif
