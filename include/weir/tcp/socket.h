/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel's own socket of the server says of a connection, and whether it would take a segment. */
#ifndef WEIR_TCP_SOCKET_H
#define WEIR_TCP_SOCKET_H

#include "weir/base/seq.h"
#include "weir/tcp/segment.h"

#define WEIR_PAWS_SLACK 1 /* ticks by which the kernel lets a timestamp be older than the latest */

/* Does it take signed segments alone (RFC 2385, 5925), or unsigned ones alone? */
enum weir_signs {
	WEIR_SIGNS_NOT,
	WEIR_SIGNS,
	WEIR_SIGNS_UNKNOWN,
};

/* All numbers are the server's. */
struct weir_socket {
	__u32 next;	 /* the first byte it has not got */
	__u32 edge;	 /* behind the last byte it has room for */
	__u32 sent;	 /* behind the last byte it sent */
	__u32 acked;	 /* behind the last byte that it knows its client has */
	__u32 ack_slack; /* acknowledgements that are older by more than this are refused */
	__u32 reach;	 /* no acknowledgement of what it has sent is further from `acked` */
	__u32 ts_recent; /* the client's latest timestamp; 0: none */
	__u8 asked;	 /* the kernel was asked */
	__u8 known;	 /* and has a socket that can say all this */
	__u8 listens;	 /* a segment that completes a handshake comes to the listener, which knows nothing */
	__u8 early;	 /* it has bytes from beyond a gap */
	__u8 busy;	 /* there are segments that it has not looked at yet */
	__u8 open;	 /* it may get data */
	__u8 untouched;	 /* and has got none yet */
	__u8 signs;	 /* enum weir_signs */
	__u8 gone;	 /* there is none at all: what comes now meets the listener, or nobody */
	__u8 tells;	 /* the kernel says when it ends */
	__u8 owned;	 /* the server is at work on it, and looks at what comes now after that */
	__u8 pad;
};

/*
 * Behind the last byte that the client may have when the socket looks at what comes now. `seen`: behind the last that has gone by egress. The
 * kernel counts a segment as sent after it has gone out, and over loopback its acknowledgement may be here before that.
 */
WEIR_INLINE __u32 weir_socket_sent(const struct weir_socket *k, __u32 seen)
{
	return k->owned ? seq_max(k->sent, seen) : k->sent;
}

/*
 * Will it drop this segment (server's numbers), whatever it carries? As tcp_validate_incoming() and tcp_ack() do. `seen`: see
 * weir_socket_sent().
 */
WEIR_INLINE bool weir_socket_drops(const struct weir_socket *k, const struct weir_segment *g, __u32 seen)
{
	if (g->has_ts && k->ts_recent && (__s32)(k->ts_recent - g->tsval) > WEIR_PAWS_SLACK)
		return true;
	if (weir_segment_has(g, WEIR_TCP_ACK) &&
	    (seq_after(g->ack, weir_socket_sent(k, seen)) || seq_before(g->ack, k->acked - k->ack_slack)))
		return true;
	return seq_after(g->seq + g->len, k->edge);
}

/* Does it acknowledge what no acknowledgement can be of, now or soon? */
WEIR_INLINE bool weir_socket_is_out_of_reach(const struct weir_socket *k, const struct weir_segment *g)
{
	return weir_segment_has(g, WEIR_TCP_ACK) &&
	       (seq_after(g->ack, k->acked + k->reach) || seq_before(g->ack, k->acked - k->reach));
}

/* It has no room at all: what it drops it answers, as any probe of a closed window. */
WEIR_INLINE bool weir_socket_shut(const struct weir_socket *k)
{
	return !seq_after(k->edge, k->next);
}

#endif
