/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Admission of connections: what a client's segment is to the limits on them, and what is kept of a connection that they
 * admitted.
 *
 * A connection counts when its handshake is complete: by the segment that brings back the server's number, or its SYN cookie
 * (RFC 4987, 3.6). Only then is the source known to be the sender's own. A SYN proves nothing. It asks whether the limits would
 * admit it and ends here if they would not, but takes nothing, and begins no penalty. SYNs side by side may all pass so, but each
 * must complete its handshake to be admitted, one after the other. Until then the listener's queue bounds them, and cookies behind
 * that.
 *
 * What was admitted has an entry until its socket has ended. It has begun when the kernel has made the socket. If it never does,
 * the seats go back after WEIR_EMBRYO_NS.
 *
 * A cookie may come back as often as its sender likes, and each time the kernel makes a connection of it, if the one before has ended.
 * A network card hands over many segments at once: all of them pass here before the first ends a socket. So a segment with a
 * cookie is dropped while the connection before it is still there. If it comes again, it is asked.
 */
#ifndef WEIR_ADMISSION_ADMISSION_H
#define WEIR_ADMISSION_ADMISSION_H

#include "weir/base/types.h"
#include "weir/conn/seats.h"
#include "weir/tcp/segment.h"

/* The kernel sends a SYN-ACK again after 1, 2, 4, 8 and 16 s (tcp_synack_retries), and forgets the SYN 32 s later. */
#define WEIR_EMBRYO_NS (64 * WEIR_NS_PER_S)

/* What a card hands over at once is with its sockets after that. */
#define WEIR_BATCH_NS WEIR_NS_PER_S

enum weir_admitted_state {
	WEIR_ADMITTED_EMBRYO,
	WEIR_ADMITTED_OPEN,
	WEIR_ADMITTED_GONE,   /* its seats are being given back: about to be deleted */
	WEIR_ADMITTED_ENDING, /* an embryo, whose client has sent a RST right behind */
};

struct weir_admitted {
	__u64 word;   /* its state, and when it was made, which tells it from others of its flow: changed in one step */
	__u32 isn;    /* of the server: the cookie, where it sent one */
	__u32 server; /* slot */
#ifdef __bpf__
	struct bpf_timer timer;
#else
	__u64 timer[2];
#endif
	struct weir_seats seats[WEIR_SEAT_SLOTS]; /* of limits on connections that are open */
};
WEIR_ASSERT_SIZE(struct weir_admitted, 32 + WEIR_SEAT_SLOTS * 24);

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

/* Has the kernel not made its socket yet? */
WEIR_INLINE bool weir_admitted_waits(__u64 word)
{
	return weir_admitted_state(word) == WEIR_ADMITTED_EMBRYO || weir_admitted_state(word) == WEIR_ADMITTED_ENDING;
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
	WEIR_SOCKET_BEGINS,  /* it has answered a SYN, and waits for the handshake's end */
	WEIR_SOCKET_THERE,   /* a connection */
};

#define WEIR_TCP_OPENS (WEIR_TCP_SYN | WEIR_TCP_ACK | WEIR_TCP_RST | WEIR_TCP_FIN)

/* Is the segment a SYN that the kernel opens a connection for? Of others it makes nothing. */
WEIR_INLINE bool weir_segment_opens(const struct weir_segment *g)
{
	return (g->flags & WEIR_TCP_OPENS) == WEIR_TCP_SYN;
}

/* May it complete a handshake? With a SYN, too: the kernel overlooks one that repeats the first. */
WEIR_INLINE bool weir_segment_completes(const struct weir_segment *g)
{
	return (g->flags & (WEIR_TCP_ACK | WEIR_TCP_RST)) == WEIR_TCP_ACK;
}

/* Would the kernel begin a connection by a SYN? */
WEIR_INLINE bool weir_socket_begins_another(enum weir_admission_socket socket)
{
	return socket == WEIR_SOCKET_LISTENS || socket == WEIR_SOCKET_COOKIES || socket == WEIR_SOCKET_ENDED;
}

/* The server's number that the segment says it has got. */
WEIR_INLINE __u32 weir_segment_answers(const struct weir_segment *g)
{
	return g->ack - 1;
}

/* Is the entry of the handshake that the segment completes? */
WEIR_INLINE bool weir_admitted_by(const struct weir_admitted *there, const struct weir_segment *g)
{
	return there->isn == weir_segment_answers(g) && weir_admitted_state(there->word) != WEIR_ADMITTED_GONE;
}

/* Has another connection of the same ends been admitted, and ended, so lately that its socket may still be about to begin? */
WEIR_INLINE bool weir_admitted_in_front(const struct weir_admitted *there, __u64 now_ns)
{
	return weir_admitted_state(there->word) == WEIR_ADMITTED_ENDING &&
	       weir_admitted_age_ns(there->word, now_ns) < WEIR_BATCH_NS;
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
