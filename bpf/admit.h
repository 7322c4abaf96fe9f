/* SPDX-License-Identifier: GPL-2.0 */
/* New connections at tc: those that limits on connections admit are kept, the others end here. */
#ifndef WEIR_BPF_ADMIT_H
#define WEIR_BPF_ADMIT_H

#include "admission.h"
#include "admitted.h"
#include "checksum_skb.h"
#include "reply.h"

/* The headers of a segment as they matter to a cookie. */
struct cookie_headers {
	union {
		struct ipv4_header ipv4;
		struct ipv6_header ipv6;
	};
	struct tcp_header tcp;
};

/* Does the segment bring back a cookie of this listener's? */
static __always_inline bool brings_cookie(struct bpf_sock *sk, const struct packet *p)
{
	struct cookie_headers h = {};

	h.tcp.source = p->source_port;
	h.tcp.dest = p->dest_port;
	h.tcp.seq = bpf_htonl(p->segment.seq);
	h.tcp.ack = bpf_htonl(p->segment.ack);
	h.tcp.offset = TCP_BYTES / 4 << 4;
	h.tcp.flags = p->segment.flags;
	if (p->ipv6) {
		h.ipv6.version_class_label = bpf_htonl(6U << 28);
		__builtin_memcpy(h.ipv6.source, p->source, 16);
		__builtin_memcpy(h.ipv6.dest, p->dest, 16);
		return !bpf_tcp_check_syncookie(sk, &h.ipv6, sizeof(h.ipv6), (struct tcphdr *)&h.tcp, sizeof(h.tcp));
	}
	h.ipv4.version_ihl = 0x45;
	__builtin_memcpy(&h.ipv4.source, p->source + 12, 4);
	__builtin_memcpy(&h.ipv4.dest, p->dest + 12, 4);
	return !bpf_tcp_check_syncookie(sk, &h.ipv4, sizeof(h.ipv4), (struct tcphdr *)&h.tcp, sizeof(h.tcp));
}

/* Does the segment begin a connection by a cookie? */
__noinline int admission_by_cookie(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_INGRESS);
	struct bpf_sock *sk;
	int begins;

	if (!w)
		return 0;
	sk = socket_of(skb, &w->packet);
	if (!sk)
		return 0;
	begins = sk->state == STATE_LISTEN && brings_cookie(sk, &w->packet);
	bpf_sk_release(sk);
	return begins;
}

/* The packet turns round, as a RST. */
static __always_inline int admission_reset(struct __sk_buff *skb, struct work *w)
{
	__u32 ifindex = skb->ifindex;

	weir_admission_refuse(&w->packet.segment, &w->reply);
	if (bpf_skb_load_bytes(skb, 0, w->packet.ethernet, ETHERNET_BYTES) || packet_write(skb, w, true, 0))
		return TC_ACT_SHOT;
	return ifindex == LOOPBACK_IFINDEX ? TC_ACT_UNSPEC : bpf_redirect(ifindex, 0);
}

/* The limits on connections are asked for the packet's. The verdict; TC_ACT_UNSPEC: it is admitted. */
static __always_inline int admission_ask(struct __sk_buff *skb, struct work *w)
{
	int became;

	if (!checksum_is_right(skb, w)) {
		count(w->server, WEIR_BAD_CHECKSUM);
		return TC_ACT_SHOT;
	}
	became = admission_decide(w->hook);
	w->decision.connects = 0;
	tally_decision(&w->decision);
	count(w->server, became);
	if (became == WEIR_ADMISSION_DROPPED)
		return TC_ACT_SHOT;
	if (became == WEIR_ADMISSION_RESET)
		return admission_reset(skb, w);
	if (became != WEIR_ADMISSION_EXEMPT)
		admitted_keep(w->hook);
	return TC_ACT_UNSPEC;
}

/* A SYN. The verdict; TC_ACT_UNSPEC: it goes on. */
static __always_inline int admission_syn(struct __sk_buff *skb, struct work *w)
{
	const struct weir_segment *g = &w->packet.segment;
	struct weir_admitted *there;
	enum weir_admission asks;
	int socket;

	if (!admission_matters(w) || !weir_segment_opens(g))
		return TC_ACT_UNSPEC;
	socket = admission_ask_socket(skb, HOOK_INGRESS);
	there = bpf_map_lookup_elem(&admitted, &w->packet.flow);
	asks = weir_admission_of_syn(g, socket, there);
	if (asks == WEIR_ASKS_AGAIN)
		count(w->server, WEIR_ADMISSION_REPEATED);
	if (asks == WEIR_ASKS_AGAIN || asks == WEIR_ASKS_NOTHING)
		return TC_ACT_UNSPEC;
	if (there)
		admitted_end(&w->packet.flow, there->word);
	if (asks == WEIR_ASKS_NOW)
		return admission_ask(skb, w);
	count(w->server, WEIR_ADMISSION_LATER);
	return TC_ACT_UNSPEC;
}

/* A segment of a connection that is in no table. The verdict; TC_ACT_UNSPEC: it goes on. */
static __always_inline int admission_segment(struct __sk_buff *skb, struct work *w)
{
	const struct weir_segment *g = &w->packet.segment;
	struct weir_admitted *there;

	if (!admission_matters(w))
		return TC_ACT_UNSPEC;
	there = bpf_map_lookup_elem(&admitted, &w->packet.flow);
	if (there && weir_admission_ended_by(g, there))
		admitted_end(&w->packet.flow, there->word);
	if (!weir_segment_completes(g) || (there && there->isn == weir_segment_isn(g)) || !admission_by_cookie(skb))
		return TC_ACT_UNSPEC;
	if (there)
		admitted_end(&w->packet.flow, there->word);
	return admission_ask(skb, w);
}

#endif
