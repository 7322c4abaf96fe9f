/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection that rests: everything that was said on it has been acknowledged, on both sides, and nothing is under way. What
 * has to be known of it then is little: where both streams stand, how its numbers are translated, and whom it is of. It stands in a
 * map of its own, and is a whole connection again with the next packet that brings something.
 */
#ifndef WEIR_CONN_REST_H
#define WEIR_CONN_REST_H

#include "weir/conn/early.h"

enum weir_resting_flags {
	WEIR_RESTING_OPAQUE = 1 << 0,
	WEIR_RESTING_CUT = 1 << 1, /* something was cut: its numbers are translated */
	WEIR_RESTING_PIPELINES = 1 << 2,
	WEIR_RESTING_NAMED = 1 << 3, /* its preamble names an address */
	WEIR_RESTING_HAS_TS = 1 << 4,
	WEIR_RESTING_CLIENT_HAS_TS = 1 << 5,
	WEIR_RESTING_BY_RECORDS = 1 << 6,
	WEIR_RESTING_ANSWERS = 1 << 7,
};

/* The latest cut, as in struct weir_splice, and its answer, whose length is 0 where the cut's is. */
struct weir_resting_cut {
	__u32 start;
	__u32 end;
	__u32 answer_start;
	struct weir_answer_choice answer;
};

/* As in struct weir_hold. */
struct weir_resting_hold {
	__u32 next;
	struct weir_record record;
};

/* The names are those of struct weir_conn. With key and header it takes 192 bytes of the kernel's. */
struct weir_resting {
	__u64 id;
	__u64 last_ns;
	__u8 address[16];  /* with NAMED */
	__u32 client_next; /* client's numbers: where its stream stands */
	__u32 server_next; /* server's numbers */
	__u32 in_off;
	__u32 out_off;
	__u32 client_tsval;
	__u32 server_tsval;
	__u32 requests; /* all are answered */
	__u32 server_isn;
	__u32 holder;
	union {
		struct weir_resting_cut cut; /* with CUT, and never with OPAQUE */
		struct weir_resting_hold hold;
	};
	__u16 server_window;
	__u8 server_scale;
	__u8 server;
	__u8 opaque_why;
	__u8 places; /* of the request, and from bit 4 on of the response */
	__u8 flags;  /* enum weir_resting_flags */
	__u8 bare;
};
WEIR_ASSERT_SIZE(struct weir_resting, 96);

/* Both sides have acknowledged all there is of both streams, and it does not end. */
WEIR_INLINE bool weir_conn_is_settled(const struct weir_conn *c)
{
	const struct weir_splice *s = &c->splice;
	__u32 acked = weir_conn_acked(c);

	if (s->owed || s->fins || s->server_reset || c->dying || c->ended || c->gives_way || c->client_reset)
		return false;
	return s->client_acked == s->server_end + s->out_off && s->told == s->server_end && s->client_end == acked &&
	       s->passed_end == acked && (!c->unconfirmed.n || !seq_after(c->unconfirmed.end, acked));
}

/* No message is under way, and the next byte of each side begins one. */
WEIR_INLINE bool weir_conn_is_between(const struct weir_conn *c)
{
	return c->phase == WEIR_PHASE_FOLLOWED && !weir_preamble_awaited(&c->preamble) && !c->asks &&
	       c->requests == c->responses && c->request_place <= WEIR_PLACE_ENDED &&
	       c->response_place <= WEIR_PLACE_ENDED && c->request_next == weir_conn_acked(c) &&
	       c->response_next == c->splice.server_end;
}

/*
 * It is not read any more, or not before a body has ended. What was read before is answered, and nothing was cut. What its server says first
 * has been looked at, or is still to come.
 */
WEIR_INLINE bool weir_conn_is_unread(const struct weir_conn *c)
{
	if (weir_conn_body_ends(c) && c->request_next != weir_conn_acked(c))
		return false;
	if (weir_conn_is_untold(c) && c->response_next != c->splice.server_end)
		return false;
	return c->phase == WEIR_PHASE_OPAQUE && c->requests == weir_conn_done(c) && !c->splice.cuts;
}

/* Would it be the same connection if it rested now? */
WEIR_INLINE bool weir_conn_can_rest(const struct weir_conn *c)
{
	return !weir_conn_forgotten(c) && weir_conn_is_settled(c) && !weir_conn_has_seats(c) && !c->strays &&
	       !c->hold.since_ns && !c->hold.decided && (weir_conn_is_between(c) || weir_conn_is_unread(c));
}

/* The two ends together: they move whenever a byte passes. */
WEIR_INLINE __u32 weir_conn_ends(const struct weir_conn *c)
{
	return c->splice.client_end + c->splice.server_end;
}

/* Has anything come since the last sweep? For a connection that is not read, last_ns does not tell. */
WEIR_INLINE bool weir_conn_has_moved(const struct weir_conn *c)
{
	return c->phase == WEIR_PHASE_OPAQUE && c->stood != weir_conn_ends(c);
}

WEIR_INLINE bool weir_conn_may_rest(const struct weir_conn *c, __u64 now_ns)
{
	return weir_conn_is_silent(c, now_ns) && c->hold.departs_ns <= now_ns && weir_conn_can_rest(c);
}

WEIR_INLINE __u8 weir_resting_flags_of(const struct weir_conn *c)
{
	const struct weir_splice *s = &c->splice;
	__u8 flags = c->phase == WEIR_PHASE_OPAQUE ? WEIR_RESTING_OPAQUE : 0;

	flags |= s->cuts ? WEIR_RESTING_CUT : 0;
	flags |= c->pipelines ? WEIR_RESTING_PIPELINES : 0;
	flags |= c->preamble.given ? WEIR_RESTING_NAMED : 0;
	flags |= s->has_ts ? WEIR_RESTING_HAS_TS : 0;
	flags |= s->client_has_ts ? WEIR_RESTING_CLIENT_HAS_TS : 0;
	flags |= c->hold.by_records ? WEIR_RESTING_BY_RECORDS : 0;
	flags |= c->hold.answers ? WEIR_RESTING_ANSWERS : 0;
	return flags;
}

WEIR_INLINE void weir_resting_note_cut(struct weir_resting_cut *cut, const struct weir_conn *c)
{
	const struct weir_splice *s = &c->splice;

	*cut = (struct weir_resting_cut){
		.start = s->cut_start,
		.end = s->cut_end,
		.answer_start = s->answer_start,
		.answer = c->answer,
	};
	cut->answer.length = s->answer_length;
}

/* What has to be known of a connection that can rest. */
WEIR_INLINE void weir_resting_note(struct weir_resting *r, const struct weir_conn *c)
{
	const struct weir_splice *s = &c->splice;

	*r = (struct weir_resting){
		.id = c->id,
		.last_ns = c->last_ns,
		.client_next = s->client_end,
		.server_next = s->server_end,
		.in_off = s->in_off,
		.out_off = s->out_off,
		.client_tsval = s->client_tsval,
		.server_tsval = s->server_tsval,
		.requests = c->requests,
		.server_isn = c->server_isn,
		.holder = c->holder,
		.server_window = s->server_window,
		.server_scale = s->server_scale,
		.server = c->server,
		.opaque_why = c->opaque_why,
		.places = c->request_place | c->response_place << 4,
		.flags = weir_resting_flags_of(c),
		.bare = c->bare & ~WEIR_BARE_FIRST,
	};
	if (s->cuts)
		weir_resting_note_cut(&r->cut, c);
	else
		r->hold = (struct weir_resting_hold){ .next = c->hold.next, .record = c->hold.record };
	if (c->preamble.given)
		__builtin_memcpy(r->address, c->preamble.address, sizeof(r->address));
}

WEIR_INLINE void weir_resting_wake_splice(const struct weir_resting *r, struct weir_splice *s)
{
	s->in_off = r->in_off;
	s->out_off = r->out_off;
	s->client_acked = r->server_next + r->out_off;
	s->server_acked = r->client_next - r->in_off;
	s->told = r->server_next;
	s->client_tsval = r->client_tsval;
	s->server_tsval = r->server_tsval;
	s->server_scale = r->server_scale;
	s->has_ts = !!(r->flags & WEIR_RESTING_HAS_TS);
	s->client_has_ts = !!(r->flags & WEIR_RESTING_CLIENT_HAS_TS);
}

WEIR_INLINE void weir_resting_wake_cut(const struct weir_resting_cut *cut, struct weir_conn *c)
{
	struct weir_splice *s = &c->splice;

	s->cuts = 1;
	s->cut_start = cut->start;
	s->cut_end = cut->end;
	s->answer_start = cut->answer_start;
	s->answer_length = cut->answer.length;
	c->answer = cut->answer;
}

WEIR_INLINE void weir_resting_wake_hold(const struct weir_resting *r, struct weir_hold *h)
{
	h->next = r->hold.next;
	h->record = r->hold.record;
	h->by_records = !!(r->flags & WEIR_RESTING_BY_RECORDS);
	h->answers = !!(r->flags & WEIR_RESTING_ANSWERS);
}

/* The connection again, into zeros. Its versions and its badge are the caller's. */
WEIR_INLINE void weir_resting_wake(const struct weir_resting *r, struct weir_conn *c)
{
	enum weir_phase phase = r->flags & WEIR_RESTING_OPAQUE ? WEIR_PHASE_OPAQUE : WEIR_PHASE_FOLLOWED;

	weir_conn_open(c, r->server, phase, r->client_next, r->server_next, r->server_window);
	weir_resting_wake_splice(r, &c->splice);
	c->id = r->id;
	c->last_ns = r->last_ns;
	c->response_began = r->server_next;
	c->requests = c->responses = c->seats_end = r->requests;
	c->server_isn = r->server_isn;
	c->holder = r->holder;
	c->opaque_why = r->opaque_why;
	c->bare = r->bare;
	c->request_place = r->places & 15;
	c->response_place = r->places >> 4;
	c->pipelines = !!(r->flags & WEIR_RESTING_PIPELINES);
	if (r->flags & WEIR_RESTING_CUT)
		weir_resting_wake_cut(&r->cut, c);
	else
		weir_resting_wake_hold(r, &c->hold);
	c->preamble.given = !!(r->flags & WEIR_RESTING_NAMED);
	__builtin_memcpy(c->preamble.address, r->address, sizeof(r->address));
}

/*
 * Does the segment bring nothing, so that the connection may rest on? If something was cut out of the connection, any segment wakes it,
 * because its numbers have to be translated. So does an urgent one, which means something even without a byte.
 */
WEIR_INLINE bool weir_resting_ignores(const struct weir_resting *r, const struct weir_segment *g)
{
	const __u8 told = WEIR_TCP_SYN | WEIR_TCP_FIN | WEIR_TCP_RST | WEIR_TCP_URG | WEIR_TCP_ACK;

	return !g->len && !(r->flags & WEIR_RESTING_CUT) && (g->flags & told) == WEIR_TCP_ACK;
}

#endif
