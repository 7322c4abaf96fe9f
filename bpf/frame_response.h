/* SPDX-License-Identifier: GPL-2.0 */
/* Runs the payload of a server's packet through the framing machine. */
#ifndef WEIR_BPF_FRAME_RESPONSE_H
#define WEIR_BPF_FRAME_RESPONSE_H

#include "frame.h"
#include "head_cache.h"

static __always_inline void response_words(struct work *w)
{
	struct weir_response_reader *r = &w->response;

	r->next += pass_text(w, &r->response.framing, r->next);
#pragma clang loop unroll(disable)
	for (int i = 0; i < FRAME_WORDS; i++) {
		if (!weir_response_reader_take(r, word_ahead(w, r->next - w->packet.segment.seq)))
			break;
	}
}

static long response_step(__u32 i __attribute__((unused)), struct feed *f)
{
	struct work *w = f->work;
	struct weir_response_reader *r = &w->response;
	__u32 at = r->next - w->packet.segment.seq;
	int byte;

	if (at >= w->packet.segment.len || (!window_has(w, at) && !window_load(f->skb, w, at)))
		return 1;
	weir_response_reader_begin(r);
	response_ahead(w);
	if (r->response.framing.state != WEIR_AT_END_LF)
		response_words(w);
	at = r->next - w->packet.segment.seq;
	if (at >= w->packet.segment.len)
		return 1;
	byte = window_byte(f->skb, w, at);
	if (byte < 0)
		return 1;
	if (weir_response_reader_feed(r, byte) == WEIR_FRAME_LOST)
		return 1;
	if (weir_response_ended(&r->response))
		width_note(w);
	return is_read_whole(w, r->next);
}

/* A head's last LF is next. true: there is nothing more to read. */
static __always_inline bool response_head_ends(struct work *w)
{
	struct weir_response_reader *r = &w->response;

	weir_response_reader_end_fields(r);
	if (weir_response_ended(&r->response))
		width_note(w);
	return r->lost != WEIR_REASON_NONE || is_read_whole(w, r->next);
}

/* As request_at_once(). true: there is nothing more to read. */
static __always_inline bool response_at_once(struct __sk_buff *skb, struct work *w)
{
	struct weir_response_reader *r = &w->response;
	__u32 at;

	if (response_recall(skb, w))
		return response_head_ends(w);
	window_open(skb, w, w->response.next - w->packet.segment.seq);
#pragma clang loop unroll(disable)
	for (int i = 0; i < FRAME_WINDOWS; i++) {
		at = r->next - w->packet.segment.seq;
		if (at >= w->packet.segment.len)
			return true;
		if (!window_goes_on(skb, w, at, i, window_fill))
			return false;
		weir_response_reader_begin(r);
		response_ahead(w);
		WEIR_FRESH_ALL();
		if (r->responses < r->outstanding &&
		    ends_head(w, &r->response.framing, r->next - w->packet.segment.seq)) {
			response_keep(w);
			return response_head_ends(w);
		}
	}
	return false;
}

__noinline int frame_responses(struct __sk_buff *skb, struct work *w)
{
	struct feed feed = { .skb = skb, .work = w };

	if (!w)
		return 0;
	window_none(w);
	if (!response_at_once(skb, w))
		bpf_loop(FRAME_STEPS, response_step, &feed, 0);
	window_wipe(w);
	return 0;
}

#endif
