/* SPDX-License-Identifier: GPL-2.0 */
/* The headers in front of a segment that is made of the packet in hand, into w->reply.head. */
#ifndef WEIR_BPF_WRITE_H
#define WEIR_BPF_WRITE_H

#include "checksum.h"
#include "work.h"

#define REPLY_TTL 64

static __always_inline void write_ethernet(struct work *w, bool to_client)
{
	const __u8 *e = w->packet.ethernet;

	__builtin_memcpy(w->reply.head, to_client ? e + 6 : e, 6);
	__builtin_memcpy(w->reply.head + 6, to_client ? e : e + 6, 6);
	w->reply.head[12] = e[12];
	w->reply.head[13] = e[13];
}

static __always_inline void write_ipv4(struct work *w, bool to_client, __u32 tcp_bytes)
{
	const struct packet *p = &w->packet;
	struct ipv4_header ip = {
		.version_ihl = 0x45,
		.tos = p->tos & ~3,
		.length = bpf_htons(IPV4_BYTES + tcp_bytes),
		.id = p->ip_id,
		.ttl = REPLY_TTL,
		.protocol = TCP_PROTOCOL,
	};

	__builtin_memcpy(&ip.source, (to_client ? p->dest : p->source) + 12, 4);
	__builtin_memcpy(&ip.dest, (to_client ? p->source : p->dest) + 12, 4);
	ip.check = ~weir_sum_fold(sum_words(&ip, sizeof(ip) / 4));
	__builtin_memcpy(w->reply.head + ETHERNET_BYTES, &ip, sizeof(ip));
}

static __always_inline void write_ipv6(struct work *w, bool to_client, __u32 tcp_bytes)
{
	const struct packet *p = &w->packet;
	struct ipv6_header ip = {
		.version_class_label = bpf_htonl(6U << 28 | (__u32)(p->tos & ~3) << 20),
		.payload_length = bpf_htons(tcp_bytes),
		.next_header = TCP_PROTOCOL,
		.hop_limit = REPLY_TTL,
	};

	__builtin_memcpy(ip.source, to_client ? p->dest : p->source, 16);
	__builtin_memcpy(ip.dest, to_client ? p->source : p->dest, 16);
	__builtin_memcpy(w->reply.head + ETHERNET_BYTES, &ip, sizeof(ip));
}

#endif
