/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ICMP errors. They quote the head of a packet of the server's as it was on the wire, in the client's numbers. The kernel believes one only
 * if its sequence number is one that the socket has sent. If it does not believe that a packet was too big, nothing big ever arrives.
 */
#ifndef WEIR_BPF_QUOTED_H
#define WEIR_BPF_QUOTED_H

#include "listen.h"
#include "work.h"

#define ICMP_PROTOCOL 1
#define ICMPV6_PROTOCOL 58
#define ICMP_BYTES 8 /* in front of what is quoted */
#define ICMP_UNREACHABLE 3
#define ICMP_REDIRECT 5
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETER_PROBLEM 12
#define ICMPV6_ERRORS 128 /* types below are errors */

struct icmp_header {
	__u8 type, code;
	__be16 check;
};

/* The type of the message at p->l4; negative: it is cut off. */
static __always_inline int icmp_type(packet_context *ctx, struct packet *p)
{
	const struct icmp_header *icmp = header_at(ctx, p, p->l4, sizeof(*icmp));

	return icmp ? icmp->type : -1;
}

/* Reads addresses of the TCP packet that an ICMP message quotes. Returns where the message begins; 0: it quotes none. */
static __always_inline __u32 quoted_by_icmp(packet_context *ctx, struct packet *p)
{
	__u32 at;
	int type;

	if (!ipv4_read(ctx, p, ETHERNET_BYTES, ICMP_PROTOCOL))
		return 0;
	type = icmp_type(ctx, p);
	if (type != ICMP_UNREACHABLE && type != ICMP_REDIRECT && type != ICMP_TIME_EXCEEDED &&
	    type != ICMP_PARAMETER_PROBLEM)
		return 0;
	at = p->l4;
	return ipv4_read(ctx, p, at + ICMP_BYTES, TCP_PROTOCOL) ? at : 0;
}

static __always_inline __u32 quoted_by_icmpv6(packet_context *ctx, struct packet *p)
{
	__u32 at = ETHERNET_BYTES + IPV6_BYTES;
	int type;

	if (!ipv6_read(ctx, p, ETHERNET_BYTES) || p->next != ICMPV6_PROTOCOL)
		return 0;
	type = icmp_type(ctx, p);
	if (type < 0 || type >= ICMPV6_ERRORS)
		return 0;
	return ipv6_read(ctx, p, at + ICMP_BYTES) && p->next == TCP_PROTOCOL ? at : 0;
}

/* Puts a sequence number that is quoted into the server's numbers. It is of those that its client acknowledges. */
__noinline int quoted_translate(struct __sk_buff *skb, __u32 icmp_at)
{
	struct work *w = work_of(HOOK_INGRESS);
	__be32 old, new = 0;
	struct weir_conn *c;
	__u32 seq_at;

	if (!w)
		return -1;
	flow_set(&w->packet, false);
	c = conn_look_up(w);
	seq_at = w->packet.l4 + __builtin_offsetof(struct tcp_header, seq);
	if (!c || !c->splice.cuts || bpf_skb_load_bytes(skb, seq_at, &old, sizeof(old)))
		return 0;
	bpf_spin_lock(&c->lock);
	new = conn_is_found(w, c) ? weir_splice_ack_to_server(&c->splice, bpf_ntohl(old)) : bpf_ntohl(old);
	bpf_spin_unlock(&c->lock);
	new = bpf_htonl(new);
	if (bpf_l4_csum_replace(skb, icmp_at + __builtin_offsetof(struct icmp_header, check), old, new, sizeof(new)))
		return -1;
	return bpf_skb_store_bytes(skb, seq_at, &new, sizeof(new), 0);
}

/* May it be ICMP? That is known at a glance: other packets are not to cost a call. */
static __always_inline bool may_be_icmp(struct __sk_buff *skb, __be16 kind)
{
	const void *l3 = (const void *)(long)skb->data + ETHERNET_BYTES;
	const void *end = (const void *)(long)skb->data_end;
	const struct ipv4_header *ip = l3;
	const struct ipv6_header *ipv6 = l3;

	if (kind == bpf_htons(ETHERTYPE_IPV4))
		return (const void *)(ip + 1) > end || ip->protocol == ICMP_PROTOCOL;
	return kind == bpf_htons(ETHERTYPE_IPV6) &&
	       ((const void *)(ipv6 + 1) > end || ipv6->next_header == ICMPV6_PROTOCOL);
}

/* What becomes of an ICMP error that comes in. All other packets are left alone. */
__noinline int quoted_pass(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_INGRESS);
	__u32 icmp_at;

	if (!w)
		return 0;
	if (skb->protocol == bpf_htons(ETHERTYPE_IPV4))
		icmp_at = quoted_by_icmp(skb, &w->packet);
	else
		icmp_at = skb->protocol == bpf_htons(ETHERTYPE_IPV6) ? quoted_by_icmpv6(skb, &w->packet) : 0;
	if (!icmp_at || !packet_parse_ports(skb, &w->packet) ||
	    !server_listens(w->packet.source, w->packet.source_port, &w->server))
		return 0;
	return quoted_translate(skb, icmp_at);
}

#endif
