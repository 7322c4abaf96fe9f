/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Segments that are signed (TCP-MD5, RFC 2385; TCP-AO, RFC 5925). A signature would not bear a changed segment: a connection
 * that has them is never answered, but held.
 */
#ifndef WEIR_BPF_SIGNATURE_H
#define WEIR_BPF_SIGNATURE_H

#include "socket.h"

/* To a kernel that can tell no signature such an option is of no meaning. */
static __always_inline void signature_recognise(struct packet *p)
{
	if (p->signature && !kernel_signs(p->signature))
		p->signature = 0;
}

/*
 * Of a segment that is signed, or whose connection is said to be. False: the server has no key, or wants a signature that is
 * not there, and drops it. Not inlined, and static, for the same reasons as pace().
 */
static __noinline bool signature_fits(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	bool news = false;

	socket_ask(skb, HOOK_INGRESS);
	if (!w->packet.signature)
		return !w->socket.known || w->socket.signs != WEIR_SIGNS;
	if (w->socket.known && w->socket.signs == WEIR_SIGNS_NOT)
		return false;
	bpf_spin_lock(&c->lock);
	if (c->phase == WEIR_PHASE_FOLLOWED || c->phase == WEIR_PHASE_HUNTING) {
		weir_conn_give_up(c, w->socket.known ? w->socket.next : w->packet.segment.seq, WEIR_SIGNED);
		news = true;
	}
	bpf_spin_unlock(&c->lock);
	if (news)
		count(w->server, WEIR_SIGNED);
	return true;
}

#endif
