/* SPDX-License-Identifier: GPL-2.0 */
/* Reads what comes before a connection's first request: a PROXY protocol preamble. */
#ifndef WEIR_BPF_PREAMBLE_H
#define WEIR_BPF_PREAMBLE_H

#include "payload.h"
#include "work.h"

#define PREAMBLE_STEPS 128 /* more than the bytes of a preamble that are looked at */

struct preamble_feed {
	struct __sk_buff *skb;
	struct work *work;
};

static long preamble_step(__u32 i __attribute__((unused)), struct preamble_feed *f)
{
	struct work *w = f->work;
	struct weir_request_reader *r = &w->request;
	__u32 at = r->next - w->packet.segment.seq;
	__u32 skip = weir_preamble_skippable(&r->preamble);
	__u32 left = w->packet.segment.len - at;
	int byte;

	if (at >= w->packet.segment.len)
		return 1;
	if (skip) {
		w->frame_event = weir_request_reader_skip_preamble(r, skip < left ? skip : left);
		return w->frame_event != WEIR_FRAME_MORE;
	}
	byte = payload_byte(f->skb, w, at);
	if (byte < 0)
		return 1;
	w->frame_event = weir_request_reader_feed_preamble(r, byte);
	return w->frame_event != WEIR_FRAME_MORE;
}

/* Reads the preamble. The request behind it is read then, unless the preamble goes on in the next packet, is lost, or the rest waits. */
__noinline int frame_preamble(struct __sk_buff *skb, struct work *w)
{
	struct preamble_feed feed = { .skb = skb, .work = w };

	if (w)
		bpf_loop(PREAMBLE_STEPS, preamble_step, &feed, 0);
	return 0;
}

#endif
