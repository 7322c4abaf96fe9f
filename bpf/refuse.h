/* SPDX-License-Identifier: GPL-2.0 */
/* Refusing a request: how it is answered, and its packet that becomes the answer. */
#ifndef WEIR_BPF_REFUSE_H
#define WEIR_BPF_REFUSE_H

#include "reply.h"

/* A request is refused and may be answered: how, and whether its connection can go on. */
__noinline int choose_answer(struct __sk_buff *skb, struct work *w)
{
	bool loopback = skb->ifindex == LOOPBACK_IFINDEX;
	struct weir_request_reader *r;
	bool closing, behind;
	__u32 rest;

	if (!w)
		return 0;
	r = &w->request;
	rest = r->next - (w->packet.segment.seq + w->packet.segment.len);
	closing = r->answer.rejected || (loopback && (w->server_flags & WEIR_SERVER_CLOSING_LOOPBACK));
	r->answer.retry_s = w->decision.retry_s;
	r->answer.limit = w->decision.slowest;
	r->answer.head = r->request.method == WEIR_METHOD_HEAD;
	r->answer.kind = WEIR_ANSWER_KEEP;
	behind = (__s32)rest < 0;
	if (behind)
		rest = 0;
	/*
	 * A body that is not sent yet, or of unknown or great length, is not worth swallowing; and what is pipelined
	 * behind a refused request would be sent again at ever longer intervals.
	 */
	if (closing || r->must_close || behind || (r->request.flags & WEIR_REQUEST_LAST) ||
	    !weir_request_ended(&r->request) || rest > w->settings.swallow_max)
		r->answer.kind = WEIR_ANSWER_CLOSE;
	r->answer.length = r->begun ? 0 : answer_length(w, &r->answer);
	return 0;
}

/*
 * Sends the view's answer to the client. The packet itself goes on to the server without the request, or becomes the answer and
 * turns round.
 */
__noinline int reply(struct __sk_buff *skb, struct work *w, __u32 action)
{
	__u32 ifindex = skb->ifindex;
	bool forward;
	__u32 text;

	if (!w)
		return TC_ACT_SHOT;
	forward = w->view.news || action == WEIR_CLOSE;
	weir_view_reply(&w->view, &w->packet.segment, action, &w->reply.segment);
	text = w->reply.segment.len ? answer_text(w, &w->view.answer) : 0;
	if (text != w->reply.segment.len || bpf_skb_load_bytes(skb, 0, w->packet.ethernet, ETHERNET_BYTES) ||
	    packet_write(skb, w, true, text))
		goto drop;
	if (forward) {
		if (bpf_clone_redirect(skb, ifindex, 0))
			goto drop;
		weir_view_forward(&w->view, &w->packet.segment, action, &w->reply.segment);
		if (packet_write(skb, w, false, 0))
			goto drop;
		return TC_ACT_UNSPEC;
	}
	/* On loopback both ends are here: the packet with its ends swapped goes up to the client. */
	return ifindex == LOOPBACK_IFINDEX ? TC_ACT_UNSPEC : bpf_redirect(ifindex, 0);

drop:
	/* The client asks again, and what was to be said is still known. */
	count(w->server, WEIR_PACKET_SURGERY);
	return TC_ACT_SHOT;
}

#endif
