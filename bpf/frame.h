/* SPDX-License-Identifier: GPL-2.0 */
/* Runs a packet's payload through the framing machines and has each request decided. */
#ifndef WEIR_BPF_FRAME_H
#define WEIR_BPF_FRAME_H

#include "weir/http/list.h"

#include "ahead.h"
#include "body_served.h"
#include "box.h"
#include "event.h"
#include "head_cache.h"
#include "names_read.h"
#include "payload.h"
#include "preamble.h"
#include "top.h"
#include "trace.h"
#include "undo_packet.h"
#include "width_learn.h"
#include "window.h"
#include "work.h"

#define FRAME_STEPS 131072 /* more than the bytes of the largest packet */
#define FRAME_WORDS 4 /* of eight bytes each, at most, that are taken before one is fed: a step costs as much as many */
#define FRAME_WINDOWS 3 /* times that lines are read at once, from a window that begins anew where one ended them */
#define FRAME_PARTS \
	(FRAME_WINDOWS + 2) /* the same of a request, whose query may be read between its path and the lines */

#define FRAME_REQUESTS (2 * (WEIR_OUTSTANDING_MAX + 1)) /* of each the head, then the body */

struct feed {
	struct __sk_buff *skb;
	struct work *work;
	const struct weir_server *server;
};

/* The request is refused: it is answered, or waits (TCP brings it again) until it can be answered or may pass. */
static __always_inline enum weir_reason refuse(struct work *w)
{
	struct weir_request_reader *r = &w->request;
	__u32 why = r->heads ? WEIR_PIPELINED : r->why_not;

	if (why == WEIR_REASON_NONE) {
		r->shed = 1;
		return WEIR_SHED;
	}
	if (why != WEIR_MID_STREAM) /* which counts connections */
		w->tally.unanswered_why = why;
	undo_decision(&w->decision);
	r->held = 1;
	return WEIR_REASON_NONE;
}

__noinline int attributes_begin(struct work *w)
{
	if (w)
		weir_attributes_begin(&w->request.request, &w->decision.attributes);
	return 0;
}

__noinline int attributes_end(struct work *w)
{
	struct weir_server *server = w ? server_of(w->server) : NULL;

	if (server)
		weir_attributes_end(&w->request.request, &server->reading, &w->decision.attributes);
	return 0;
}

/* Sets w->decision.attributes: in two steps, so that the verifier does not read the second one for each end of the first. */
static __always_inline void note_attributes(struct work *w)
{
	attributes_begin(w);
	attributes_end(w);
}

/* Which of its connection's requests it is, and which list it asks for. */
static __always_inline void request_lists(struct work *w)
{
	struct weir_request_reader *r = &w->request;

	w->decision.request = r->requests + r->heads;
	w->decision.list_of = weir_list_of(&r->request.path, &w->decision.attributes);
}

/* Decides the request whose head has just ended: its user, the limits that apply, and whether they admit it. After decision_start(). */
static __always_inline enum weir_reason request_ask(struct __sk_buff *skb, struct work *w)
{
	struct weir_request_reader *r = &w->request;
	struct decision *d = &w->decision;

	identify(w->hook);
	if (identity_exempt(w) || limits_find(d, &r->request.path))
		return WEIR_EXEMPT;
	if ((r->request.flags & WEIR_REQUEST_HEALTH) && health_find(d))
		return WEIR_EXEMPT;
	if (!(w->server_flags & WEIR_SERVER_PAUSED)) {
		if (is_event(&d->attributes))
			note_event(skb, w);
		request_lists(w);
		decide(d);
		remember_names(skb, w);
	}
	if (d->refused && !(w->server_flags & WEIR_SERVER_DRY_RUN))
		return WEIR_SHED;
	return d->refused | d->overlooked ? WEIR_DRY_RUN_SHED : WEIR_PASSED;
}

/* What becomes of it; WEIR_REASON_NONE: it waits. */
static __always_inline enum weir_reason request_decide(struct __sk_buff *skb, struct work *w)
{
	struct weir_request_reader *r = &w->request;
	enum weir_reason decision;

	if (weir_request_reader_full(r)) {
		w->tally.unanswered_why = WEIR_TOO_MANY_PIPELINED;
		r->held = 1;
		return WEIR_REASON_NONE;
	}
	decision = request_ask(skb, w);
	if (decision == WEIR_SHED)
		return refuse(w);
	request_passed(w);
	return decision;
}

static __always_inline void tally_event(struct work *w)
{
	__u32 key = w->decision.event_key - WEIR_EVENT_KEYED;

	if (key < WEIR_EVENT_KEYS)
		w->tally.events[key]++;
}

/* The decision on the latest request stands, as far as its packet is concerned. One that waits is counted when its turn has come. */
static __always_inline void decision_stands(struct work *w)
{
	if (w->tally.outcome == WEIR_REASON_NONE)
		return;
	if (boxes_matter(w->server_flags, w->decision.traits))
		box_asked(&w->decision, w->tally.outcome == WEIR_EXEMPT);
	w->tally.passed += w->tally.outcome == WEIR_PASSED;
	w->tally.exempt += w->tally.outcome == WEIR_EXEMPT;
	w->tally.dry_run += w->tally.outcome == WEIR_DRY_RUN_SHED;
	w->tally.outcome = WEIR_REASON_NONE;
	note_identity(w);
	tally_event(w);
}

/* The same of one that another follows in its packet. */
__noinline int decision_stood(struct work *w)
{
	if (w)
		decision_stands(w);
	return 0;
}

/* For who has requests in flight. */
static __always_inline void note_whose(struct work *w)
{
	w->request.user = w->decision.identity.user;
	w->request.namespace = w->decision.identity.namespace;
}

static __always_inline void request_end(struct __sk_buff *skb, struct work *w)
{
	if (w->tally.outcome != WEIR_REASON_NONE)
		decision_stood(w);
	decision_keep(w);
	decision_start(&w->decision); /* what is kept is not there twice, to be given back twice */
	w->decision.event_key = WEIR_REASON_NONE;
	note_attributes(w);
	w->tally.outcome = request_decide(skb, w);
	if ((w->tally.outcome == WEIR_PASSED || w->tally.outcome == WEIR_DRY_RUN_SHED) && w->decision.list.list &&
	    !w->tally.list.list)
		w->tally.list = w->decision.list;
	if (w->tally.outcome == WEIR_REASON_NONE)
		return;
	note_whose(w);
	top_note(w, w->tally.outcome);
	if (trace_wants(w, w->tally.outcome))
		trace_note(skb, w, w->tally.outcome);
}

/* Passes over what is text from the next byte on, which is number `next`. How many bytes that is. */
static __always_inline __u32 pass_text(struct work *w, struct weir_framing *framing, __u32 next)
{
	__u32 n;

	if (!weir_framing_in_text(framing))
		return 0;
	n = text_ahead(w, next - w->packet.segment.seq);
	weir_framing_pass_text(framing, n);
	return n;
}

static __always_inline void request_words(struct work *w)
{
	struct weir_request_reader *r = &w->request;

	r->next += pass_text(w, &r->request.framing, r->next);
#pragma clang loop unroll(disable)
	for (int i = 0; i < FRAME_WORDS; i++) {
		if (!weir_request_reader_take(r, word_ahead(w, r->next - w->packet.segment.seq)))
			break;
	}
}

/* As many words as can be had at once, and the byte behind them. */
static long request_step(__u32 i __attribute__((unused)), struct feed *f)
{
	struct work *w = f->work;
	struct weir_request_reader *r = &w->request;
	__u32 at = r->next - w->packet.segment.seq;
	int byte;

	if (at >= w->packet.segment.len || (!window_has(w, at) && !payload_load(f->skb, w, at)))
		return 1;
	weir_request_reader_begin(r);
	request_ahead(w, &f->server->reading);
	if (r->request.framing.state != WEIR_AT_END_LF)
		request_words(w);
	WEIR_FRESH_ALL();
	at = r->next - w->packet.segment.seq;
	if (at >= w->packet.segment.len)
		return 1;
	byte = payload_byte(f->skb, w, at);
	if (byte < 0)
		return 1;
	w->frame_event = weir_request_reader_feed_on(r, &f->server->reading, byte);
	if (w->frame_event == WEIR_FRAME_GROUP) {
		request_group(w->hook);
		w->frame_event = WEIR_FRAME_MORE;
	}
	return w->frame_event != WEIR_FRAME_MORE;
}

/* Reads on as far as a head goes that is as plain as most are, and ends in one of the next windows. false: it has not ended. */
static __always_inline bool request_at_once(struct feed *f)
{
	struct work *w = f->work;
	struct weir_request_reader *r = &w->request;
	__u32 at;

	if (w->head.recalled) {
		w->head.recalled = 0;
		w->frame_event = weir_request_reader_end_fields(r);
		return true;
	}
#pragma clang loop unroll(disable)
	for (int i = 0; i < FRAME_PARTS; i++) {
		at = r->next - w->packet.segment.seq;
		if (at >= w->packet.segment.len || !window_goes_on(f->skb, w, at, i, payload_fill))
			return false;
		weir_request_reader_begin(r);
		request_ahead(w, &f->server->reading);
		WEIR_FRESH_ALL();
		if (ends_head(w, &r->request.framing, r->next - w->packet.segment.seq)) {
			request_keep(w, f->server);
			w->frame_event = weir_request_reader_end_fields(r);
			return true;
		}
	}
	return false;
}

/* What comes next in the packet is another request, unless the latest goes on. */
__noinline int request_follow(struct work *w)
{
	if (w)
		weir_request_reader_follow(&w->request, digest_keys_of());
	return 0;
}

/*
 * Reads on, to a head's end or a message's. What follows from that is not done in request_step(): the two of them need
 * more stack together than there is.
 */
static long request_next(__u32 i __attribute__((unused)), struct feed *f)
{
	struct work *w = f->work;
	struct weir_request_reader *r = &w->request;

	w->frame_event = WEIR_FRAME_MORE;
	if (!request_at_once(f))
		bpf_loop(FRAME_STEPS, request_step, f, 0);
	if (w->frame_event == WEIR_FRAME_MORE || w->frame_event == WEIR_FRAME_LOST || r->lost != WEIR_REASON_NONE)
		return 1;
	if (w->frame_event == WEIR_FRAME_HEAD && r->again)
		weir_request_reader_passed(r);
	else if (w->frame_event == WEIR_FRAME_HEAD)
		request_end(f->skb, w);
	/* At the packet's end another round would find out only that, and a round costs calls and returns. */
	if (r->held || r->lost != WEIR_REASON_NONE || (r->shed && weir_request_ended(&r->request)) ||
	    is_read_whole(w, r->next))
		return 1;
	request_follow(w);
	return 0;
}

/* Nothing has become of the packet's requests yet. */
static __always_inline void tally_begin(struct tally *t)
{
	__builtin_memset(t, 0, sizeof(*t));
	t->outcome = WEIR_REASON_NONE;
	t->unanswered_why = WEIR_REASON_NONE;
}

/* Is the connection's preamble behind, or was there none to come? */
static __always_inline bool introduced(struct __sk_buff *skb, struct work *w)
{
	if (!weir_preamble_awaited(&w->request.preamble))
		return true;
	frame_preamble(skb, w);
	return !weir_preamble_awaited(&w->request.preamble) && !w->request.held && w->request.lost == WEIR_REASON_NONE;
}

/* Can the next byte, if there is one, and those behind it be read? */
static __always_inline bool requests_are_taken(struct __sk_buff *skb, struct work *w)
{
	return is_read_whole(w, w->request.next) ||
	       payload_take_window(skb, w, w->request.next - w->packet.segment.seq);
}

__noinline int frame_requests(struct __sk_buff *skb, struct work *w)
{
	struct feed feed = { .skb = skb, .work = w };
	bool read;

	if (!w)
		return 0;
	tally_begin(&w->tally);
	feed.server = server_of(w->server);
	if (!feed.server)
		return 0;
	window_none(w);
	payload_begin(skb, w);
	read = introduced(skb, w);
	w->whose.preamble = w->request.preamble;
	if (read && requests_are_taken(skb, w)) {
		w->head.recalled = request_recall(skb, w, feed.server);
		if (!w->head.recalled)
			window_open(skb, w, w->request.next - w->packet.segment.seq);
		bpf_loop(FRAME_REQUESTS, request_next, &feed, 0);
	}
	window_wipe(w);
	request_digest(w);
	weir_request_reader_end(&w->request, &w->packet.segment);
	return 0;
}

#endif
