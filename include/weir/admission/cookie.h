/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SYN cookies that are sent at XDP. In a flood of SYNs the kernel answers with cookies (RFC 4987, 3.6): numbers that hold all there
 * is to know of a handshake, so that nothing needs to be kept. weir answers with the same cookies before the kernel has a
 * packet, and the kernel takes the ACK that brings one back. It proves the client's address and admits nobody.
 *
 * It is done only where the kernel would do it, too, and would take the cookie:
 *
 * - the queue of the listener's handshakes is full, and there is room for connections that nobody has accepted yet;
 * - the listener is marked as one that has sent a cookie of late. Only the kernel marks it. So when the mark has become old, the
 *   next SYN goes to the kernel.
 *
 * A client that has a connection open has shown that its address is its own: its SYNs go to the kernel. The kernel's cookies remember the
 * window scale and SACK, in a timestamp that nothing but the kernel can make. Those from XDP do not.
 */
#ifndef WEIR_ADMISSION_COOKIE_H
#define WEIR_ADMISSION_COOKIE_H

#include "weir/base/subject.h"
#include "weir/base/types.h"
#include "weir/tcp/segment.h"

/* The kernel takes cookies for two minutes after a listener's mark; a client has at least half of that to answer. */
#define WEIR_COOKIE_MARK_S 60

/* The setting net.ipv4.tcp_syncookies. */
enum weir_cookie_setting {
	WEIR_COOKIES_NEVER,
	WEIR_COOKIES_IN_FLOODS,
	WEIR_COOKIES_ALWAYS,
};

/* What a listener has, as the kernel says it. */
struct weir_listen_queue {
	__u32 setting; /* enum weir_cookie_setting */
	__u32 waiting; /* handshakes that are not complete */
	__u32 ready;   /* connections that nobody has accepted */
	__u32 backlog; /* how many there may be of either */
	__u32 marked;  /* when it sent a cookie last, by the kernel's ticks */
	__u32 room;    /* of a connection's buffer, in bytes */
	__u32 signs;   /* it takes signed segments only */
};

/* Would the kernel answer a SYN with a cookie? */
WEIR_INLINE bool weir_queue_sends_cookies(const struct weir_listen_queue *q)
{
	return q->setting >= WEIR_COOKIES_ALWAYS || (q->setting == WEIR_COOKIES_IN_FLOODS && q->waiting > q->backlog);
}

/* Ticks wrap. A mark from the future is another CPU's, and new. */
WEIR_INLINE bool weir_queue_is_marked(const struct weir_listen_queue *q, __u32 now, __u32 ticks_per_s)
{
	return now - q->marked + ticks_per_s < (WEIR_COOKIE_MARK_S + 1) * ticks_per_s;
}

/* May a SYN of a client without connections be answered by a cookie at XDP? */
WEIR_INLINE bool weir_queue_lends_cookies(const struct weir_listen_queue *q, __u32 now, __u32 ticks_per_s)
{
	return weir_queue_sends_cookies(q) && q->ready <= q->backlog && !q->signs &&
	       weir_queue_is_marked(q, now, ticks_per_s);
}

/* Is the source an address that one host may have? Others the kernel drops. */
WEIR_INLINE bool weir_cookie_reaches(const __u8 source[WEIR_ADDRESS_BYTES])
{
	__u8 any = 0;

	if (weir_address_is_ipv4(source))
		return source[12] && source[12] < 224;
	for (int i = 0; i < WEIR_ADDRESS_BYTES; i++)
		any |= source[i];
	return any && source[0] != 0xff;
}

/* The window that the kernel will have: half of the buffer is for its own book-keeping. Without a scale it has no more than 16 bits. */
WEIR_INLINE __u16 weir_queue_window(const struct weir_listen_queue *q)
{
	return q->room / 2 > 0xffff ? 0xffff : q->room / 2;
}

/* The answer to a SYN, whose data counts for nothing. */
WEIR_INLINE void weir_cookie_answer(const struct weir_segment *syn, __u32 cookie, const struct weir_listen_queue *q,
				    struct weir_segment *reply)
{
	*reply = (struct weir_segment){
		.seq = cookie,
		.ack = syn->seq + 1,
		.window = weir_queue_window(q),
		.flags = WEIR_TCP_SYN | WEIR_TCP_ACK,
	};
}

#endif
