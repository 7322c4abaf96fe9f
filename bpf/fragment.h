/* SPDX-License-Identifier: GPL-2.0 */
/* The first piece of an IP packet that comes in pieces. */
#ifndef WEIR_BPF_FRAGMENT_H
#define WEIR_BPF_FRAGMENT_H

#include "weir/conn/hold.h"

#include "admission.h"
#include "badge.h"
#include "route.h"
#include "track.h"

/* Where connections are limited none begins in pieces: nobody's handshake has any. */
static __always_inline bool fragment_opens(struct __sk_buff *skb, const struct work *w)
{
	int socket;

	if (!admission_matters(w) || (w->server_flags & WEIR_SERVER_DRY_RUN))
		return false;
	socket = admission_ask_socket(skb, HOOK_INGRESS);
	return socket == WEIR_SOCKET_BEGINS || weir_socket_begins_another(socket);
}

/*
 * The rest of the packet cannot be read. It is left to the hold, which sees it whole, and with it the connection: bytes
 * that are not read here could take the place of those that were. Of a translated one no part can be passed on.
 */
__noinline int ingress_fragment(struct __sk_buff *skb, __u32 end)
{
	struct work *w = work_of(HOOK_INGRESS);
	struct weir_conn *c;
	bool there, news = false;

	if (!w)
		return TC_ACT_UNSPEC;
	flow_set(&w->packet, true);
	c = conn_look_up(w);
	if (!c && conn_wake(HOOK_INGRESS, false) != WOKEN_NONE)
		c = conn_look_up(w);
	if (!c && packet_goes_on(skb, HOOK_INGRESS))
		return TC_ACT_UNSPEC;
	count(w->server, WEIR_FRAGMENT);
	badge_unread(skb);
	if (!c)
		return fragment_opens(skb, w) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
	socket_ask(skb, HOOK_INGRESS);
	if (!packet_parse_tcp(skb, &w->packet, end) || c->splice.cuts || !w->socket.known ||
	    weir_socket_drops(&w->socket, &w->packet.segment, c->splice.server_end))
		return TC_ACT_SHOT;
	bpf_spin_lock(&c->lock);
	there = conn_is_found(w, c);
	if (there && (c->phase == WEIR_PHASE_FOLLOWED || c->phase == WEIR_PHASE_HUNTING)) {
		weir_hold_unseen(c, &w->socket);
		news = true;
	}
	bpf_spin_unlock(&c->lock);
	if (news)
		count(w->server, WEIR_UNSEEN);
	if (!there)
		count(w->server, WEIR_CONTENDED);
	return there ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

#endif
