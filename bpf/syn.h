/* SPDX-License-Identifier: GPL-2.0 */
/* A client's SYN. */
#ifndef WEIR_BPF_SYN_H
#define WEIR_BPF_SYN_H

#include "checksum_skb.h"
#include "cut.h"
#include "strip.h"

/*
 * A SYN changes nothing here by itself. What follows it must be plain TCP, and none of its data may reach the server, whether
 * an option asks for that or the server does without one: what comes behind the handshake is read.
 */
__noinline int ingress_syn(struct __sk_buff *skb, struct work *w)
{
	const struct packet *p;

	if (!w)
		return TC_ACT_SHOT;
	p = &w->packet;
	if (p->segment.len && (p->signature || !checksum_is_right(skb, w))) {
		count(w->server, p->signature ? WEIR_SYN_DATA : WEIR_BAD_CHECKSUM);
		return TC_ACT_SHOT;
	}
	if (p->signature)
		return TC_ACT_UNSPEC;
	if (remove_accurate_ecn(skb, w) || (p->unwanted && remove_options(skb, w)))
		return TC_ACT_SHOT;
	if (!p->segment.len)
		return TC_ACT_UNSPEC;
	count(w->server, WEIR_SYN_DATA);
	return packet_cut(skb, w, 0) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

#endif
