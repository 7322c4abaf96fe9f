/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Admission of connections: what a client's segment is to the limits on them, and what is kept of a connection that they
 * admitted.
 *
 * A connection is asked for once, and as soon as it is sure to cost the server something: by its SYN; or, while the listener
 * answers SYNs with cookies (RFC 4987, 3.6) and keeps nothing of them, by the segment that brings the cookie back. So a source
 * that is not the sender's own takes from nobody's limits in a flood: it never gets the cookie.
 *
 * What was admitted has an entry until its socket has ended. It has begun when the handshake is complete; a handshake that never
 * is gives its places back after WEIR_EMBRYO_NS, or with the client's RST. A SYN that repeats the one of the entry is no second
 * connection; another one between the same ends is, and ends what was before.
 */
#ifndef WEIR_ADMISSION_ADMISSION_H
#define WEIR_ADMISSION_ADMISSION_H

#include "weir/base/types.h"
#include "weir/conn/places.h"
#include "weir/tcp/segment.h"

/* The kernel sends a SYN-ACK again after 1, 2, 4, 8 and 16 s (tcp_synack_retries), and forgets the SYN 32 s later. */
#define WEIR_EMBRYO_NS (64 * WEIR_NS_PER_S)

enum weir_admitted_state {
	WEIR_ADMITTED_EMBRYO,
	WEIR_ADMITTED_OPEN,
	WEIR_ADMITTED_GONE, /* its places are being given back: about to be deleted */
};

struct weir_admitted {
	__u64 word;   /* its state, and when it was made, which tells it from others of its flow: changed in one step */
	__u32 isn;    /* of the client; of one that a cookie completed, the number before its segment's */
	__u32 server; /* slot */
#ifdef __bpf__
	struct bpf_timer timer;
#else
	__u64 timer[2];
#endif
	struct weir_place places[WEIR_PLACES_MAX]; /* of limits on connections that are open */
};
WEIR_ASSERT_SIZE(struct weir_admitted, 32 + WEIR_PLACES_MAX * 24);

WEIR_INLINE __u64 weir_admitted_word(__u64 now_ns, enum weir_admitted_state state)
{
	return now_ns << 2 | state;
}

WEIR_INLINE enum weir_admitted_state weir_admitted_state(__u64 word)
{
	return word & 3;
}

/* The word of the same entry in another state. */
WEIR_INLINE __u64 weir_admitted_become(__u64 word, enum weir_admitted_state state)
{
	return (word & ~3ULL) | state;
}

/* now_ns: of the clock that the word was made by, cut to the bits that the word has of it */
WEIR_INLINE __u64 weir_admitted_age_ns(__u64 word, __u64 now_ns)
{
	return ((now_ns << 2) - (word & ~3ULL)) >> 2;
}

/* What the kernel has for a segment's addresses and ports. */
enum weir_admission_socket {
	WEIR_SOCKET_NONE,
	WEIR_SOCKET_LISTENS,
	WEIR_SOCKET_COOKIES, /* it listens, and would answer a SYN with a cookie */
	WEIR_SOCKET_ENDED,   /* in TIME-WAIT: a SYN may begin another connection */
	WEIR_SOCKET_THERE,   /* a connection, or the beginning of one */
};

enum weir_admission {
	WEIR_ASKS_NOTHING, /* the segment asks for no connection */
	WEIR_ASKS_AGAIN,   /* it asks again for one that was admitted */
	WEIR_ASKS_LATER,   /* a cookie answers it: what brings that back is asked */
	WEIR_ASKS_NOW,
};

#define WEIR_TCP_OPENS (WEIR_TCP_SYN | WEIR_TCP_ACK | WEIR_TCP_RST | WEIR_TCP_FIN)

/* Is the segment a SYN that the kernel opens a connection for? Of others it makes nothing. */
WEIR_INLINE bool weir_segment_opens(const struct weir_segment *g)
{
	return (g->flags & WEIR_TCP_OPENS) == WEIR_TCP_SYN;
}

/* May it end a handshake? */
WEIR_INLINE bool weir_segment_completes(const struct weir_segment *g)
{
	return (g->flags & (WEIR_TCP_SYN | WEIR_TCP_ACK | WEIR_TCP_RST)) == WEIR_TCP_ACK;
}

/* there: the entry of its flow, or NULL */
WEIR_INLINE enum weir_admission weir_admission_of_syn(const struct weir_segment *g, enum weir_admission_socket socket,
						      const struct weir_admitted *there)
{
	if (socket == WEIR_SOCKET_NONE)
		return WEIR_ASKS_NOTHING;
	if (there && there->isn == g->seq && weir_admitted_state(there->word) == WEIR_ADMITTED_EMBRYO)
		return WEIR_ASKS_AGAIN;
	if (socket == WEIR_SOCKET_THERE)
		return WEIR_ASKS_NOTHING;
	return socket == WEIR_SOCKET_COOKIES ? WEIR_ASKS_LATER : WEIR_ASKS_NOW;
}

/* The number of the SYN that the segment is, or that came right before it. */
WEIR_INLINE __u32 weir_segment_isn(const struct weir_segment *g)
{
	return g->flags & WEIR_TCP_SYN ? g->seq : g->seq - 1;
}

/* Does the client's RST end the handshake of the entry? The kernel forgets it by a RST with the number behind the SYN. */
WEIR_INLINE bool weir_admission_ended_by(const struct weir_segment *g, const struct weir_admitted *there)
{
	return (g->flags & WEIR_TCP_RST) && g->seq == there->isn + 1 &&
	       weir_admitted_state(there->word) == WEIR_ADMITTED_EMBRYO;
}

/* The RST that answers the segment, as the kernel would if nobody listened (RFC 9293, 3.10.7.1). */
WEIR_INLINE void weir_admission_refuse(const struct weir_segment *g, struct weir_segment *reply)
{
	*reply = (struct weir_segment){ .flags = WEIR_TCP_RST };
	if (g->flags & WEIR_TCP_ACK) {
		reply->seq = g->ack;
		return;
	}
	reply->flags |= WEIR_TCP_ACK;
	reply->ack = g->seq + 1 + g->len;
}

#endif
