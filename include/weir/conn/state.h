/* SPDX-License-Identifier: GPL-2.0 */
/* A connection as it stands in the map `conns`, and what passes between the steps of a segment (conn.h). */
#ifndef WEIR_CONN_STATE_H
#define WEIR_CONN_STATE_H

#include "weir/abi/abi.h"
#include "weir/abi/answer.h"
#include "weir/conn/record.h"
#include "weir/conn/seats.h"
#include "weir/http/preamble.h"
#include "weir/http/request.h"
#include "weir/http/response.h"
#include "weir/tcp/socket.h"
#include "weir/tcp/splice_cut.h"
#include "weir/tcp/splice_judge.h"
#include "weir/tcp/unconfirmed.h"

#define WEIR_SKIP_MAX (1U << 30)
#define WEIR_OUTSTANDING_MAX 64

enum weir_phase {
	WEIR_PHASE_FOLLOWED, /* both machines are in step with the streams */
	WEIR_PHASE_HUNTING, /* joined in mid-stream, or lost: a whole exchange must be seen before anything is answered */
	WEIR_PHASE_OPAQUE, /* cannot be followed: passes, still translated if it was */
	WEIR_PHASE_CLOSED, /* ended by weir: the server's socket was reset, the client has a FIN */
};

enum weir_action {
	WEIR_PASS,   /* send on, translated */
	WEIR_DROP,   /* drop */
	WEIR_FRAME,  /* feed the new bytes, then commit */
	WEIR_ASK,    /* ask the server's socket, then begin again */
	WEIR_ANSWER, /* drop; say the answer */
	WEIR_ACK,    /* drop; say a bare acknowledgement */
	WEIR_CLOSE,  /* say the answer with FIN; to the server the segment becomes a RST */
	WEIR_CUT,    /* send on, translated, only what comes before the reader's `start`, and no FIN */
	WEIR_LEAVE, /* send on as it is, unread: it may be another segment by the time it is at the socket, where the hold meets it */
	WEIR_PROBE, /* send on no byte of it, but the byte's number before the socket's next: the server says its window again */
};

/* The answer of the latest cut: what is needed to make the same bytes again. */
struct weir_answer_choice {
	__u16 retry_s; /* 0: it is a 403 */
	__u16 length;
	__u8 kind;     /* enum weir_answer_kind */
	__u8 head;     /* the request was HEAD: no body */
	__u8 rejected; /* it is a 400: enum weir_reason, why; 0: a limit refused */
	__u8 limit;    /* its slot */
};

/*
 * How far the client's side of an opaque connection was let through to the server; and of one that is hunting, what is owed
 * (hold.h).
 */
struct weir_hold {
	__u64 since_ns;	  /* since when what is at `next` is withheld; 0: it is not */
	__u64 departs_ns; /* when the last segment that was let through late goes on to the server (pace.h) */
	__u32 next;	  /* server's numbers: next byte to look at */
	__u32 version;	  /* moves with every commit */
	struct weir_record record;
	__u8 by_records; /* the stream looks like TLS, and `record` is in step with it */
	__u8 answers;	 /* hunting: the server has sent something meanwhile */
	__u16 decided;	 /* hunting: requests that were decided on their way here, and have not come by yet */
};

/* The server's socket. */
enum weir_ended {
	WEIR_ENDED_NOT,
	WEIR_ENDED_ANSWERS, /* the kernel's TIME-WAIT may answer for it */
	WEIR_ENDED,	    /* nobody does */
};

/* Of a request without an empty line, which is a connection's last one; and whether requests can be in what is not read at all (hold.h). */
enum weir_bare {
	WEIR_BARE_PAID = 1 << 0,
	WEIR_BARE_OPEN = 1 << 1, /* there may be the beginning of one: a FIN would end it */
	WEIR_BARE_NONE =
		1 << 2, /* there is none, if its server has answered in kind: what begins HTTP/2, or TLS, has come by */
	WEIR_BARE_MIDWAY =
		1 << 3, /* what is followed by records was something else before: they may be in a request's body */
	WEIR_BARE_UNTOLD = 1 << 4, /* what the client has begun like TLS, or HTTP/2, its server has not answered yet */
	WEIR_BARE_FIRST = 1 << 5,  /* the client's stream begins at request_next, or its preamble ends there */
	WEIR_BARE_HEAD = 1 << 6,   /* a line that may begin a head has come to the socket, and no empty one behind it */
	WEIR_BARE_BODY = 1 << 7,   /* a request with a body has gone on, and the body was believed to be one */
};

#define WEIR_CONN_FORGOTTEN (~0ULL)

/* How far a request has been read, or a response. From BLANK on it is midway: its machine is in struct weir_busy. */
enum weir_place {
	WEIR_PLACE_FRESH, /* nothing of it has come */
	WEIR_PLACE_ENDED,
	WEIR_PLACE_LOST,
	WEIR_PLACE_BLANK, /* empty lines before a request, which mean nothing by themselves */
	WEIR_PLACE_HEAD,
	WEIR_PLACE_BODY,
};

WEIR_INLINE bool weir_place_is_midway(__u8 place)
{
	return place >= WEIR_PLACE_BLANK;
}

/*
 * What a connection has only while something of it is under way. Most need none of it at any moment, so it stands beside the
 * connection, by the number that the connection gives it (`busy`), and goes when nothing of it is needed any more. Under the
 * connection's lock. Where the steps below take it, it may be NULL as long as weir_conn_wants_busy() says no; what wants it
 * and has it not, because another CPU has just changed that, is contended.
 */
struct weir_busy {
	struct weir_request request;		  /* with request_place midway */
	struct weir_response response;		  /* with response_place midway */
	struct weir_seats seats[WEIR_SEAT_SLOTS]; /* none of requests that are done */
	struct weir_asked_list asked;		  /* with asks; one at a time */
};
WEIR_ASSERT_SIZE(struct weir_busy, 376 + 64 + WEIR_SEAT_SLOTS * 24 + 16);

struct weir_conn {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock;
#endif
	__u32 server;
	__u64 id; /* when it was opened: tells it from others of its flow; WEIR_CONN_FORGOTTEN: it is about to be deleted */
	__u64 last_ns; /* CLOCK_MONOTONIC of the latest packet, but for what goes by (passing.h) */
	__u64 asked_ns; /* when its only outstanding request came, of whose answer nothing was sent; 0: there is no such one */
	__u64 head_bits; /* bit n % 64: outstanding request n is a HEAD */
	__u64 user;	 /* of the latest request that was passed on; 0: there was none */
	__u64 namespace; /* the same; 0: it has none */
	__u64 request_digest; /* of what the machine has read of the request (request.h): tells whether another reading is the same */
	struct weir_splice splice;
	__u32 request_next;   /* client's numbers: next byte to frame */
	__u32 response_next;  /* server's numbers */
	__u32 response_began; /* the same: of the response that is being read, or was read last */
	__u32 requests;	      /* heads passed to the server */
	__u32 responses;      /* final responses whose end is known */
	__u32 version;	      /* moves with every commit of the client's side, and every hunt */
	__u32 server_isn;     /* tells a repeated SYN-ACK from a new connection's; 0: not known */
	struct weir_answer_choice answer;
	__u8 phase;	     /* enum weir_phase */
	__u8 dying;	     /* it goes after a silence, by its timer or by the agent's sweep */
	__u8 pipelines;	     /* the client has sent a request before the answer to the one before */
	__u8 opaque_why;     /* enum weir_reason, with phase OPAQUE; MID_STREAM: TLS that was joined in mid-stream */
	__u32 seats_end;     /* behind the last request that wants seats of a limit */
	__u32 preamble_at;   /* client's numbers: its first byte, once some of it has been read */
	__u32 holder;	     /* whose share of the table it is (bpf/table.h); 0: nobody's any more */
	__u32 badge;	     /* of the packets that ingress lets by (hold.h); 0: there is none */
	__u8 ended;	     /* enum weir_ended */
	__u8 gives_way;	     /* it has ended, and stands among those that have */
	__u8 strays;	     /* segments without the badge that were dropped in a row */
	__u8 client_reset;   /* a RST of the client's has passed, and its socket may take it */
	__u8 request_place;  /* enum weir_place */
	__u8 response_place; /* the same */
	__u8 asks;	     /* for a list */
	__u8 bare;	     /* enum weir_bare */
	__u32 busy;	     /* where its struct weir_busy is; 0: it has none */
	__u32 stood;	     /* weir_conn_ends() when the sweep came by */
	struct weir_hold hold;
	struct weir_unconfirmed unconfirmed;
	struct weir_preamble preamble; /* and afterwards whom it names */
};
WEIR_ASSERT_SIZE(struct weir_conn, 408);

/* The timer of a connection that is dying, in a map of its own. */
struct weir_lingering {
#ifdef __bpf__
	struct bpf_timer timer;
#else
	__u64 timer[2];
#endif
};
WEIR_ASSERT_SIZE(struct weir_lingering, 16);

#define WEIR_LINGER_TRANSLATED_NS (60 * WEIR_NS_PER_S) /* TIME-WAIT of either side still needs its numbers translated */
#define WEIR_LINGER_ENDED_NS WEIR_NS_PER_S  /* the server has ended, and its last word, a RST, is on its way */
#define WEIR_REST_NS (10 * WEIR_NS_PER_S)   /* a connection that is silent for so long is idle */
#define WEIR_LINGER_NS (10 * WEIR_NS_PER_S) /* a RST that was to reach the socket may not have: wait for silence */

/* What must be known of a connection to act on a segment once the lock is released. */
struct weir_view {
	struct weir_splice splice;
	struct weir_answer_choice answer;
	__u8 closed; /* ended by weir */
	__u8 news;   /* a segment that was cut acknowledges something the server has not been told */
	__u8 opaque;
	__u8 pad;
};

WEIR_INLINE enum weir_place weir_request_place(const struct weir_request *r)
{
	if (weir_request_ended(r))
		return WEIR_PLACE_ENDED;
	if (weir_request_fresh(r))
		return WEIR_PLACE_FRESH;
	if (weir_request_in_body(r))
		return WEIR_PLACE_BODY;
	if (!weir_request_in_head(r))
		return WEIR_PLACE_LOST;
	return weir_request_line_begun(r) ? WEIR_PLACE_HEAD : WEIR_PLACE_BLANK;
}

WEIR_INLINE enum weir_place weir_response_place(const struct weir_response *r)
{
	if (weir_response_ended(r))
		return WEIR_PLACE_ENDED;
	if (weir_response_fresh(r))
		return WEIR_PLACE_FRESH;
	return r->framing.state == WEIR_AT_LOST ? WEIR_PLACE_LOST : WEIR_PLACE_BODY;
}

/* What comes next begins a request, and a response. */
WEIR_INLINE void weir_conn_start_request(struct weir_conn *c)
{
	c->request_place = WEIR_PLACE_FRESH;
	c->request_digest = 0;
}

WEIR_INLINE void weir_conn_start(struct weir_conn *c)
{
	weir_conn_start_request(c);
	c->response_place = WEIR_PLACE_FRESH;
}

/* The machines as they stood. `busy`: as that function says. */
WEIR_INLINE void weir_conn_request(const struct weir_conn *c, const struct weir_busy *busy, struct weir_request *r)
{
	if (busy && weir_place_is_midway(c->request_place)) {
		*r = busy->request;
		return;
	}
	weir_request_start(r);
	if (c->request_place == WEIR_PLACE_ENDED)
		r->framing.state = WEIR_AT_ENDED;
}

WEIR_INLINE void weir_conn_response(const struct weir_conn *c, const struct weir_busy *busy, struct weir_response *r)
{
	if (busy && weir_place_is_midway(c->response_place)) {
		*r = busy->response;
		return;
	}
	weir_response_start(r);
	if (c->response_place == WEIR_PLACE_ENDED)
		r->framing.state = WEIR_AT_ENDED;
}

WEIR_INLINE void weir_conn_open(struct weir_conn *c, __u32 server, enum weir_phase phase, __u32 client_next,
				__u32 server_next, __u16 server_window)
{
	c->server = server;
	c->phase = phase;
	c->request_next = client_next;
	c->response_next = server_next;
	weir_splice_open(&c->splice, client_next, server_next, server_window);
	weir_conn_start(c);
}

/* Is what is not read any more a body, as far as its request says? */
WEIR_INLINE bool weir_reason_is_body(enum weir_reason why)
{
	return why == WEIR_ANSWERED_EARLY || why == WEIR_BODY_SERVED;
}

/* It cannot be followed from here on; `next`, in the server's numbers, is where what could not be read begins. */
WEIR_INLINE void weir_conn_opaque(struct weir_conn *c, __u32 next, enum weir_reason why)
{
	/* In this order, for who looks without the lock (weir_conn_stays_behind()). */
	c->opaque_why = why;
	WEIR_FRESH_ALL();
	c->phase = WEIR_PHASE_OPAQUE;
	c->version++; /* what is being read meanwhile comes again, as what it is then */
	c->hold.next = next;
	c->hold.by_records = why == WEIR_TLS;
	if (weir_place_is_midway(c->request_place) || weir_reason_is_body(why))
		c->bare |= WEIR_BARE_OPEN;
	c->hold.version++;
	weir_record_start(&c->hold.record);
}

/* The same, where the server need not have what was read last: none of it waits to be confirmed any more. */
WEIR_INLINE void weir_conn_give_up(struct weir_conn *c, __u32 next, enum weir_reason why)
{
	weir_conn_opaque(c, next, why);
	c->unconfirmed.n = 0;
}

/*
 * The client begins its stream as TLS is begun, or HTTP/2. Servers of HTTP/1 may take that for a part of a request: the bytes of a record's
 * header for one of the method, say. So it is believed when the server has answered in kind. Behind a request that is too late.
 */
WEIR_INLINE void weir_conn_await_word(struct weir_conn *c)
{
	c->bare |= c->requests ? WEIR_BARE_MIDWAY : WEIR_BARE_UNTOLD;
}

WEIR_INLINE bool weir_conn_is_untold(const struct weir_conn *c)
{
	return c->phase == WEIR_PHASE_OPAQUE && c->bare & WEIR_BARE_UNTOLD;
}

/* The connection has been opened, and no byte of the client's was seen: a preamble comes first. */
WEIR_INLINE void weir_conn_await_preamble(struct weir_conn *c)
{
	weir_preamble_start(&c->preamble);
	c->preamble_at = c->request_next;
}

/* Does the preamble begin here? */
WEIR_INLINE bool weir_conn_preamble_begins(const struct weir_conn *c, __u32 seq)
{
	return weir_preamble_begun(&c->preamble) && seq == c->preamble_at;
}

/* What comes next begins a request, or the connection's preamble. */
WEIR_INLINE bool weir_conn_at_boundary(const struct weir_conn *c)
{
	return !weir_preamble_midway(&c->preamble) && c->request_place <= WEIR_PLACE_ENDED;
}

/* No answer is outstanding and no byte of one is still to come. */
WEIR_INLINE bool weir_conn_idle(const struct weir_conn *c)
{
	return c->requests == c->responses && c->splice.server_end == c->response_next;
}

/* Requests whose answers the server has sent to their ends: one whose end is known may still be on its way. */
WEIR_INLINE __u32 weir_conn_done(const struct weir_conn *c)
{
	bool sending = c->responses && c->response_place == WEIR_PLACE_ENDED &&
		       seq_before(c->splice.server_end, c->response_next);

	return c->responses - sending;
}

/* Nothing is committed any more. */
WEIR_INLINE bool weir_conn_forgotten(const struct weir_conn *c)
{
	return c->id == WEIR_CONN_FORGOTTEN;
}

/* Has a request that is not done taken seats of some limit? */
WEIR_INLINE bool weir_conn_has_seats(const struct weir_conn *c)
{
	return seq_after(c->seats_end, weir_conn_done(c));
}

/* Does this connection still need its numbers translated? */
WEIR_INLINE bool weir_conn_translated(const struct weir_conn *c)
{
	return c->splice.cuts && c->phase != WEIR_PHASE_CLOSED;
}

/* Nothing more is to come of the connection, but for what is repeated: its entry gives way to those that live. */
WEIR_INLINE bool weir_conn_ended(const struct weir_conn *c)
{
	return c->ended || c->phase == WEIR_PHASE_CLOSED || weir_splice_closed(&c->splice);
}

/*
 * Is a request in flight that was read? A server works on one request of a connection at a time, so there is one at most. Of a
 * connection that cannot be followed any more it is so until the connection ends.
 */
WEIR_INLINE bool weir_conn_has_request(const struct weir_conn *c)
{
	return c->user && !weir_conn_ended(c) && seq_after(c->requests, weir_conn_done(c));
}

/* May its socket end, by what has passed already, before the next segment gets there? */
WEIR_INLINE bool weir_conn_may_end(const struct weir_conn *c)
{
	return c->client_reset || c->splice.fins;
}

/* Might a segment of its flow be of another connection? A SYN cookie begins one between the same ends without a SYN. */
WEIR_INLINE bool weir_conn_may_be_over(const struct weir_conn *c)
{
	return c->dying || weir_conn_ended(c) || weir_conn_may_end(c);
}

WEIR_INLINE __u64 weir_conn_linger_ns(const struct weir_conn *c)
{
	/* weir itself answers on a connection that it has closed. */
	if (c->ended == WEIR_ENDED && c->phase != WEIR_PHASE_CLOSED && weir_splice_answer_acked(&c->splice))
		return WEIR_LINGER_ENDED_NS;
	return weir_conn_translated(c) ? WEIR_LINGER_TRANSLATED_NS : WEIR_LINGER_NS;
}

enum weir_due {
	WEIR_DUE_NOTHING,
	WEIR_DUE_SEATS, /* the seats of its requests: they are not kept for as long as numbers have to be translated */
	WEIR_DUE_ENTRY,
};

/* Which part of a dying entry has to go now, after a silence? */
WEIR_INLINE enum weir_due weir_conn_due(const struct weir_conn *c, __u64 now_ns)
{
	__u64 idle_ns = now_ns > c->last_ns ? now_ns - c->last_ns : 0;

	if (!c->dying)
		return WEIR_DUE_NOTHING;
	if (idle_ns >= weir_conn_linger_ns(c))
		return WEIR_DUE_ENTRY;
	return idle_ns >= WEIR_LINGER_NS && weir_conn_has_seats(c) ? WEIR_DUE_SEATS : WEIR_DUE_NOTHING;
}

/* Before a segment's requests are decided: the draft begins with the seats that the connection has. */
WEIR_INLINE void weir_conn_draft_seats(const struct weir_busy *busy, struct weir_seats_draft *draft)
{
	if (!busy) {
		__builtin_memset(draft, 0, WEIR_SEAT_SLOTS * sizeof(*draft));
		return;
	}
	for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
		weir_draft_begin(&draft[i], &busy->seats[i]);
}

/* Does the segment take seats, or want some for longer? Then they need a place (struct weir_busy). */
WEIR_INLINE bool weir_drafts_are_used(const struct weir_seats_draft *draft)
{
	__u32 used = 0;

	for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
		used |= weir_draft_used(&draft[i]);
	return used;
}

/* Has the connection given back seats meanwhile that these requests counted on, or is it forgotten? */
WEIR_INLINE bool weir_conn_lost_seats(const struct weir_conn *c, const struct weir_busy *busy,
				      const struct weir_seats_draft *draft)
{
	if (weir_conn_forgotten(c))
		return true;
	if (!busy)
		return weir_drafts_are_used(draft);
	for (int i = 0; i < WEIR_SEAT_SLOTS; i++) {
		WEIR_FRESH_ALL();
		if (weir_draft_lost(&draft[i], &busy->seats[i]))
			return true;
	}
	return false;
}

/* The segment is committed. */
WEIR_INLINE void weir_conn_commit_seats(struct weir_conn *c, struct weir_busy *busy,
					const struct weir_seats_draft *draft)
{
	if (!busy)
		return;
	for (int i = 0; i < WEIR_SEAT_SLOTS; i++) {
		struct weir_seats *seats = &busy->seats[i];

		WEIR_FRESH_ALL();
		weir_draft_commit(&draft[i], seats);
		if (seats->taken && seq_after(seats->end, c->seats_end))
			c->seats_end = seats->end;
	}
}

/* The segment asks for a list: one at a time is waited for. */
WEIR_INLINE void weir_conn_commit_list(struct weir_conn *c, struct weir_busy *busy, const struct weir_asked_list *asked)
{
	if (!busy || !asked->list || (c->asks && !seq_before(busy->asked.request, c->responses)))
		return;
	c->asks = 1;
	busy->asked = *asked;
}

/* Takes out the seats that no request wants any more, to be given back. Under the same lock as the step that made requests done. */
WEIR_INLINE void weir_conn_take_out_seats(const struct weir_conn *c, struct weir_busy *busy, struct weir_seats *out)
{
	__u32 done = weir_conn_done(c);

	for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
		weir_seats_take_out(&busy->seats[i], &out[i], done, false);
}

/* Is anything under way for which struct weir_busy is needed? A connection that is not read needs no machine. */
WEIR_INLINE bool weir_conn_wants_busy(const struct weir_conn *c)
{
	return weir_conn_has_seats(c) ||
	       (c->phase != WEIR_PHASE_OPAQUE &&
		(c->asks || weir_place_is_midway(c->request_place) || weir_place_is_midway(c->response_place)));
}

/* Has nothing come for so long that the connection counts as idle? */
WEIR_INLINE bool weir_conn_is_silent(const struct weir_conn *c, __u64 now_ns)
{
	return now_ns > c->last_ns && now_ns - c->last_ns >= WEIR_REST_NS;
}

/* Has it kept its struct weir_busy for so long without needing it? */
WEIR_INLINE bool weir_conn_wastes_busy(const struct weir_conn *c, __u64 now_ns)
{
	return c->busy && !weir_conn_wants_busy(c) && weir_conn_is_silent(c, now_ns);
}

/*
 * The connection cannot be followed from here on: it hunts for a place where it can be, or is opaque.
 *
 * It is opaque for good if the client pipelines: a silence does not tell how many answers are outstanding. It is opaque for good, too, if
 * requests have seats: before the connection ends, nobody knows which of them have been answered.
 *
 * What was read of an opaque connection is paid for, and has to be confirmed as ever. On a hunting one all that the server has not got is
 * charged, except for what is decided there.
 */
WEIR_INLINE void weir_conn_hunt(struct weir_conn *c)
{
	c->phase = WEIR_PHASE_HUNTING;
	if (c->pipelines || weir_conn_has_seats(c)) {
		weir_conn_opaque(c, weir_splice_seq_to_server(&c->splice, c->request_next), WEIR_GAP);
	} else {
		c->requests = c->responses = c->seats_end = 0;
		c->unconfirmed.n = 0;
	}
	c->asks = 0;
	c->version++;
	if (weir_preamble_awaited(&c->preamble))
		c->preamble = (struct weir_preamble){};
	if (weir_place_is_midway(c->request_place))
		c->bare |= WEIR_BARE_OPEN;
	weir_conn_start(c);
}

#endif
