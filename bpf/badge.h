/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the hold knows the packets of a connection that ingress has read and let by: each bears the connection's badge, a random
 * number, as its priority, which means nothing for a packet that goes up to a socket. It is the skb that bears it, whatever
 * the stack does with it in between: a clone or a segment of it has it, too; one that was put together from fragments has none,
 * for ingress has seen no whole packet; and another packet has none, not if it has the same numbers, and not if it is in the
 * place in memory where a dropped one was. A sender on this host cannot choose such a priority without CAP_NET_ADMIN, and does
 * not know the number. Beside it stands what the packet has paid (weir/conn/pace.h).
 */
#ifndef WEIR_BPF_BADGE_H
#define WEIR_BPF_BADGE_H

#include "weir/conn/pace.h"

#include "work.h"

#define BADGE_BIT (1U << 31) /* above all priorities that mean something */
#define BADGE_SOME (1U << 4) /* and no badge is that bit alone */
#define BADGE_PAID_AT 21
#define BADGE_ORPHAN (1U << 5)
#define BADGE_ASKED (1U << 6)
#define BADGE_DEST_AT 8
#define BADGE_PAID (WEIR_PAID_BEGINS << BADGE_PAID_AT)
#define BADGE_BAND 15U /* by these bits a queueing discipline may sort what waits (pace.h): all badges have none */

static __always_inline void badge_make(struct weir_conn *c)
{
	c->badge = (bpf_get_prandom_u32() & ~(BADGE_BAND | BADGE_PAID)) | BADGE_BIT | BADGE_SOME;
}

/* A segment that brings the socket neither data nor a FIN needs no badge. */
static __always_inline void badge_put_on(struct __sk_buff *skb, const struct weir_segment *g, const struct weir_conn *c)
{
	if (g->len || (g->flags & WEIR_TCP_FIN))
		skb->priority = c->badge;
}

/*
 * Of what a device with the program could not read. Where some devices are not to be limited (attach --interface), that tells
 * it from what came by these. What is put together from fragments has it from the first.
 */
static __always_inline void badge_unread(struct __sk_buff *skb)
{
	skb->priority = BADGE_BIT;
}

static __always_inline bool badge_is_unread(const struct __sk_buff *skb)
{
	return skb->priority == BADGE_BIT;
}

/* By 16 bits: an address translation changes them. */
static __always_inline __u32 badge_dest(const struct packet *p)
{
	const __u32 *words = __builtin_assume_aligned(p->dest, 8);
	__u32 sum = words[0] ^ words[1] ^ words[2] ^ words[3] ^ p->dest_port;

	return ((sum ^ sum >> 16) & 0xffff) << BADGE_DEST_AT;
}

/* Of what ingress found no socket for but a listener, to which it can be nothing. It is another's if the kernel gives it another destination. */
static __always_inline void badge_orphan(struct __sk_buff *skb, const struct packet *p)
{
	skb->priority = BADGE_BIT | BADGE_ORPHAN | badge_dest(p);
}

/* Is it an orphan, and for the destination that it had at ingress? */
static __always_inline bool badge_is_of_orphan(const struct __sk_buff *skb, const struct packet *p)
{
	return skb->priority == (BADGE_BIT | BADGE_ORPHAN | badge_dest(p));
}

/* Of what bears no other badge yet, and limits on connections were asked for: of its handshake if the kernel gives it no other destination. */
static __always_inline void badge_asked(struct __sk_buff *skb, const struct packet *p)
{
	skb->priority = BADGE_BIT | BADGE_ASKED | badge_dest(p);
}

/* Have limits on connections been asked for it? A connection's own badge is put on behind that. */
static __always_inline bool badge_is_of_asked(const struct __sk_buff *skb, const struct packet *p)
{
	return (skb->priority & (BADGE_BIT | BADGE_SOME)) == (BADGE_BIT | BADGE_SOME) ||
	       skb->priority == (BADGE_BIT | BADGE_ASKED | badge_dest(p));
}

/* Has a device's program seen it as one for a server? */
static __always_inline bool badge_is_any(const struct __sk_buff *skb)
{
	return skb->priority & BADGE_BIT;
}

static __always_inline bool badge_is_on(const struct __sk_buff *skb, const struct weir_conn *c)
{
	return c->badge && (skb->priority & ~BADGE_PAID) == c->badge;
}

/* Behind the badge. */
static __always_inline void badge_pay(struct __sk_buff *skb, const struct weir_conn *c, __u32 paid)
{
	skb->priority = c->badge | paid << BADGE_PAID_AT;
}

static __always_inline __u32 badge_paid(const struct __sk_buff *skb)
{
	return (skb->priority & BADGE_PAID) >> BADGE_PAID_AT;
}

#endif
