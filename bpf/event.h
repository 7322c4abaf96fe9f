/* SPDX-License-Identifier: GPL-2.0 */
/* The identity of a Kubernetes Event, read from its body if the body is in the packet in which the head ends. */
#ifndef WEIR_BPF_EVENT_H
#define WEIR_BPF_EVENT_H

#include "weir/http/event.h"

#include "payload.h"

/* Does the request write an Event? */
static __always_inline bool is_event(const struct weir_attributes *a)
{
	if (a->resource_word != WEIR_WORD_EVENTS || a->subresource)
		return false;
	if (a->group_at != WEIR_SEGMENT_NONE && a->group_word != WEIR_WORD_EVENTS_K8S_IO)
		return false;
	return a->verb == WEIR_VERB_CREATE || a->verb == WEIR_VERB_UPDATE || a->verb == WEIR_VERB_PATCH;
}

struct event_feed {
	struct __sk_buff *skb;
	struct work *work;
};

static long event_step(__u32 i, struct event_feed *f)
{
	struct work *w = f->work;
	int byte = payload_byte(f->skb, w, w->event.at + i);

	w->event.outcome = byte < 0 ? WEIR_EVENT_LOST : weir_event_byte(&w->event.fields, w->settings.seed, byte);
	return w->event.outcome != WEIR_EVENT_MORE;
}

/* Reads the body of the request whose head has just ended, as a whole or not at all. */
static __always_inline enum weir_reason event_read(struct __sk_buff *skb, struct work *w)
{
	struct event_feed feed = { .skb = skb, .work = w };
	const struct weir_request_reader *r = &w->request;
	__u32 length = r->request.content_length;
	bool core = w->decision.attributes.group_at == WEIR_SEGMENT_NONE;

	/* The reader has passed the body already. What is chunked has no length. */
	w->event.at = r->next - length - w->packet.segment.seq;
	if (!length || r->request.content_length > WEIR_EVENT_BODY_MAX || w->event.at + length > w->packet.segment.len)
		return WEIR_EVENT_CUT;
	weir_event_start(&w->event.fields, core ? WEIR_EVENT_CORE : WEIR_EVENT_EVENTS);
	bpf_loop(length, event_step, &feed, 0);
	return w->event.outcome == WEIR_EVENT_WHOLE ? WEIR_EVENT_KEYED : WEIR_EVENT_UNREADABLE;
}

/* Of a request that writes one. Sets w->decision.event_key, and leaves it for one that the limit of Events is not for. */
__noinline int note_event(struct __sk_buff *skb, struct work *w)
{
	const struct weir_attributes *a;

	if (!w)
		return 0;
	a = &w->decision.attributes;
	if ((a->flags & WEIR_ATTRIBUTE_DRY_RUN) || !(w->decision.traits & WEIR_SERVER_OBJECTS))
		return 0;
	w->decision.event_key = a->verb == WEIR_VERB_PATCH ? WEIR_EVENT_PATCH : event_read(skb, w);
	if (w->decision.event_key == WEIR_EVENT_KEYED)
		w->decision.event_subject = weir_event_subject(&w->event.fields, w->settings.seed);
	return 0;
}

#endif
