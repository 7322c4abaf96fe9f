/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client's payload, for the reading of its requests. A client of this host can send pages that it can still write to: the packet points at
 * them, and so does the socket that gets it. So what is read here is copied first, to memory that is the packet's own. The socket gets the copy.
 */
#ifndef WEIR_BPF_PAYLOAD_H
#define WEIR_BPF_PAYLOAD_H

#include "shared_pages.h"
#include "window.h"

#define PAYLOAD_COPIED 4096 /* at once: more than most heads have */

/*
 * So much is copied in any case: the kernel has memory for that, and it costs little. More only where the kernel marks the packet. The mark
 * alone is not enough: kernels have lost it where they put segments together (GRO).
 */
#define PAYLOAD_LITTLE 8192

/* A packet's payload is next. What stands in one piece with the headers, the kernel has written there. */
static __always_inline void payload_begin(struct __sk_buff *skb, struct work *w)
{
	__u32 own = skb->data_end - skb->data, headers = w->packet.payload;

	w->payload.own = own > headers ? own - headers : 0;
	w->payload.unread = 0;
}

/*
 * Makes the payload's first `end` bytes the packet's own, or sees that nobody else can write to them. If need be, it copies the first `copied`,
 * of which there are as many. false: the kernel has no memory for that.
 */
static __always_inline bool payload_take(struct __sk_buff *skb, struct work *w, __u32 end, __u32 copied)
{
	if (WEIR_LIKELY(end <= w->payload.own))
		return true;
	if (copied > PAYLOAD_LITTLE && !pages_may_be_shared(skb))
		return true;
	if (bpf_skb_pull_data(skb, w->packet.payload + copied)) {
		w->payload.unread = 1;
		return false;
	}
	w->payload.own = copied;
	return true;
}

/* The same of what a window has that begins at `at`, which is before the payload's end. */
static __always_inline bool payload_take_window(struct __sk_buff *skb, struct work *w, __u32 at)
{
	__u32 left = w->packet.segment.len - at;

	return payload_take(skb, w, at + size_up_to(WEIR_WINDOW, left), at + size_up_to(PAYLOAD_COPIED, left));
}

/* All of it, for the hold, which has no such helper. */
__noinline int payload_take_whole(struct __sk_buff *skb, struct work *w)
{
	if (!w)
		return 0;
	payload_begin(skb, w);
	return payload_take(skb, w, w->packet.segment.len, w->packet.segment.len);
}

/* As window_fill(). */
static __always_inline bool payload_fill(struct __sk_buff *skb, struct work *w, __u32 at)
{
	return payload_take_window(skb, w, at) && window_fill(skb, w, at);
}

__noinline int payload_load(struct __sk_buff *skb, struct work *w, __u32 at)
{
	return w && payload_fill(skb, w, at);
}

/* As window_byte(). */
static __always_inline int payload_byte(struct __sk_buff *skb, struct work *w, __u32 at)
{
	return window_has(w, at) || payload_load(skb, w, at) ? window_at(w, at) : -1;
}

#endif
