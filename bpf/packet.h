/* SPDX-License-Identifier: GPL-2.0 */
/* From a packet's headers to plain numbers. */
#ifndef WEIR_BPF_PACKET_H
#define WEIR_BPF_PACKET_H

#include "weir/abi/abi.h"
#include "weir/tcp/segment.h"

#include <bpf/bpf_endian.h>

#include "context.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_SERVICE_VLAN 0x88a8
#define ETHERNET_BYTES 14
#define ETHERNET_ADDRESS_BYTES 6
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define TCP_BYTES 20
#define TCP_TS_BYTES 12 /* NOP NOP timestamp */
#define TCP_PROTOCOL 6
#define IPV4_MORE_FRAGMENTS 0x2000
#define IPV4_FRAGMENT_OFFSET 0x1fff
#define TCP_OPTION_BYTES 40
#define LOOPBACK_IFINDEX 1 /* of every network namespace */

struct packet {
	struct weir_segment segment;
	struct weir_flow flow __attribute__((aligned(8))); /* filled for the direction of the hook */
	__u32 l4;					   /* offsets from the start of the frame */
	__u32 payload;
	__u32 sack_at; /* of the first SACK block; 0: none */
	__u32 ifindex; /* of the device that takes it in */
	__u8 ipv6;
	__u8 plain_ip; /* no IP options or extension headers: the TCP header stands where a reply's will */
	__u8 tos;
	__u8 fragment; /* the first part of a packet that comes in parts; of the others nobody can tell whose they are */
	__u16 source_port, dest_port; /* network order */
	__u16 check;		      /* as on the wire */
	__u16 ip_id;
	__u8 ethernet[ETHERNET_BYTES];
	__u8 signature;	 /* the kind of option that signs the segment; 0: none */
	__u8 next;	 /* IPv6: what the header at l4 is */
	__u8 mptcp, tfo; /* there are options of these */
	__u8 answers;	 /* what XDP sends back to where it came from gets out */
	__u8 pad;
	__u64 unwanted; /* bit n: byte n of the options belongs to one that is taken off a SYN */
	__u8 source[16] __attribute__((aligned(8))),
		dest[16] __attribute__((aligned(8))); /* network order, IPv4 mapped */
	__u32 option_at, options_length;
	__u8 options[TCP_OPTION_BYTES + 24] __attribute__((aligned(8)));
	__u8 header[IPV6_BYTES] __attribute__((aligned(8))); /* one that cannot be read where it stands */
};

struct ipv4_header {
	__u8 version_ihl, tos;
	__be16 length, id, fragment;
	__u8 ttl, protocol;
	__be16 check;
	__be32 source, dest;
};

struct ipv6_header {
	__be32 version_class_label;
	__be16 payload_length;
	__u8 next_header, hop_limit;
	__u8 source[16], dest[16];
};

struct tcp_header {
	__be16 source, dest;
	__be32 seq, ack;
	__u8 offset, flags; /* offset: header length in words << 4 */
	__be16 window;
	__u16 check;
	__be16 urgent;
};

/* n, which is not 0, cut to max; with 1 as the least in the eyes of older verifiers, too, which learn nothing of `!n`. */
static __always_inline __u32 size_up_to(__u32 max, __u32 n)
{
	__u32 last = n - 1;

	if (last > max - 1)
		last = max - 1;
	barrier_var(last);
	return last + 1;
}

static __always_inline void map_ipv4(__u8 *out, __be32 address)
{
	const __u32 words[2] = { bpf_htonl(0xffff), address };
	__u64 *to = (__u64 *)out, last;

	/* Whole words, as they are read again: a CPU waits for parts of one. */
	__builtin_memcpy(&last, words, sizeof(last));
	to[0] = 0;
	to[1] = last;
}

#define HEADERS_MAX 256 /* bytes of a frame in which headers are read where they stand */

/*
 * A header of `size` bytes (a constant) at offset `at`: where it stands, if that is in memory of one piece, which no call is
 * needed for; else a copy in p->header, which the next one may overwrite. NULL: the packet is shorter.
 */
static __always_inline const void *header_at(packet_context *ctx, struct packet *p, __u32 at, __u32 size)
{
	const void *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;

	if (at <= HEADERS_MAX && data + at + size <= end)
		return data + at;
	return context_load(ctx, at, p->header, size) ? NULL : p->header;
}

#define VLAN_ID 0xfff

/* A VLAN's packets pass its own device, too; a tag without a VLAN is only a priority. */
static __always_inline bool has_own_device(struct __sk_buff *skb)
{
	return skb->vlan_present && (skb->vlan_tci & VLAN_ID);
}

/* The kernel takes one tag off before tc; what is behind a second one is not read. */
static __always_inline bool has_inner_tag(const struct __sk_buff *skb)
{
	return skb->protocol == bpf_htons(ETHERTYPE_VLAN) || skb->protocol == bpf_htons(ETHERTYPE_SERVICE_VLAN);
}

/*
 * Where the IP packet ends of which `length` bytes follow `from` (Ethernet may pad behind it); BIG TCP says 0. False: it is
 * cut off, and the kernel drops it.
 */
static __always_inline bool ip_end(packet_context *ctx, __u32 length, __u32 from, __u32 *end)
{
	*end = length ? from + length : context_length(ctx);
	return length ? *end <= context_length(ctx) : context_is_gso(ctx);
}

#define IPV6_HOP_BY_HOP 0
#define IPV6_ROUTING 43
#define IPV6_FRAGMENT 44
#define IPV6_FRAGMENT_OFFSET 0xfff8
#define IPV6_DESTINATION 60
#define IPV6_NOTHING 59
#define IPV6_EXTENSIONS 32 /* more in one packet are not followed here; the hold drops what has them */

struct extension_walk {
	packet_context *ctx;
	struct packet *packet;
};

/* The header at p->l4. Where it stands is kept in the packet, not in a register, or the verifier follows each of them. */
static long extension_step(__u32 i __attribute__((unused)), struct extension_walk *walk)
{
	struct packet *p = walk->packet;
	__be16 extension
		[2]; /* next header, length in words of 8 bytes less one; then a fragment's offset, or what a route has left */
	__u8 *header = (__u8 *)extension, kind = p->next;

	if (kind == TCP_PROTOCOL)
		return 1;
	p->next = IPV6_NOTHING;
	if (kind != IPV6_HOP_BY_HOP && kind != IPV6_ROUTING && kind != IPV6_DESTINATION && kind != IPV6_FRAGMENT)
		return 1;
	if (context_load(walk->ctx, p->l4, extension, sizeof(extension)))
		return 1;
	if (kind == IPV6_FRAGMENT && (extension[1] & bpf_htons(IPV6_FRAGMENT_OFFSET)))
		return 1;
	if (kind == IPV6_ROUTING && header[3]) {
		p->next = IPV6_ROUTING;
		return 1;
	}
	p->fragment |= kind == IPV6_FRAGMENT;
	p->l4 += kind == IPV6_FRAGMENT ? 8 : (header[1] + 1) * 8;
	p->next = header[0];
	return 0;
}

/*
 * Moves p->l4 behind the IPv6 extension headers that begin there with p->next. False: no TCP header is found, or it is another connection's
 * than the addresses say: a route has segments left (SRv6), so the kernel puts another destination in, and sends the packet on.
 */
__noinline int ipv6_skip_extensions(packet_context *ctx, struct packet *p)
{
	struct extension_walk walk = { .ctx = ctx, .packet = p };

	if (!p)
		return 0;
	bpf_loop(IPV6_EXTENSIONS, extension_step, &walk, 0);
	return p->next == TCP_PROTOCOL;
}

/* Reads an IPv4 header, behind which is the begin of a packet of `protocol`. NULL: there is none. */
static __always_inline const struct ipv4_header *ipv4_read(packet_context *ctx, struct packet *p, __u32 l3,
							   __u8 protocol)
{
	const struct ipv4_header *ip = header_at(ctx, p, l3, sizeof(*ip));
	__u32 words;

	if (!ip)
		return NULL;
	words = ip->version_ihl & 15;
	if (ip->protocol != protocol || (ip->version_ihl >> 4) != 4 || words < 5 ||
	    (ip->fragment & bpf_htons(IPV4_FRAGMENT_OFFSET)))
		return NULL;
	p->fragment = !!(ip->fragment & bpf_htons(IPV4_MORE_FRAGMENTS));
	map_ipv4(p->source, ip->source);
	map_ipv4(p->dest, ip->dest);
	p->ipv6 = 0;
	p->plain_ip = words == 5;
	p->tos = ip->tos;
	p->ip_id = ip->id;
	p->l4 = l3 + words * 4;
	return ip;
}

static __always_inline bool packet_parse_ipv4(packet_context *ctx, struct packet *p, __u32 l3, __u32 *end)
{
	const struct ipv4_header *ip = ipv4_read(ctx, p, l3, TCP_PROTOCOL);

	return ip && ip_end(ctx, bpf_ntohs(ip->length), l3, end);
}

/* The kernel drops IPv6 packets from there. Here they would pass for the IPv4 address. */
static __always_inline bool source_is_mapped(const struct packet *p)
{
	const __u64 *first = (const __u64 *)p->source;
	const __u32 *words = (const __u32 *)p->source;

	return !*first && words[2] == bpf_htonl(0xffff);
}

/* Reads an IPv6 header; p->next says what stands behind it. NULL: there is none. */
static __always_inline const struct ipv6_header *ipv6_read(packet_context *ctx, struct packet *p, __u32 l3)
{
	const struct ipv6_header *ip = header_at(ctx, p, l3, sizeof(*ip));

	if (!ip || (bpf_ntohl(ip->version_class_label) >> 28) != 6)
		return NULL;
	__builtin_memcpy(p->source, ip->source, 16);
	__builtin_memcpy(p->dest, ip->dest, 16);
	if (source_is_mapped(p))
		return NULL;
	p->ipv6 = 1;
	p->tos = bpf_ntohl(ip->version_class_label) >> 20 & 0xff;
	p->ip_id = 0;
	p->fragment = 0;
	p->l4 = l3 + IPV6_BYTES;
	p->next = ip->next_header;
	p->plain_ip = p->next == TCP_PROTOCOL;
	return ip;
}

/* Of a packet that was not parsed: is that because its route has segments left? */
static __always_inline bool packet_is_under_way(const struct packet *p, __be16 kind)
{
	return kind == bpf_htons(ETHERTYPE_IPV6) && p->next == IPV6_ROUTING;
}

static __always_inline bool packet_parse_ipv6(packet_context *ctx, struct packet *p, __u32 l3, __u32 *end)
{
	const struct ipv6_header *ip = ipv6_read(ctx, p, l3);
	__u32 payload_length;

	if (!ip)
		return false;
	payload_length = bpf_ntohs(ip->payload_length);
	if (!p->plain_ip && !ipv6_skip_extensions(ctx, p))
		return false;
	return ip_end(ctx, payload_length, l3 + IPV6_BYTES, end);
}

/*
 * Reads the IP header at l3, of this EtherType. It and the ports are all that a packet of nobody's server costs. False: not a TCP packet
 * that can be read.
 */
static __always_inline bool packet_parse_ip(packet_context *ctx, struct packet *p, __be16 kind, __u32 l3, __u32 *end)
{
	if (kind == bpf_htons(ETHERTYPE_IPV4))
		return packet_parse_ipv4(ctx, p, l3, end);
	return kind == bpf_htons(ETHERTYPE_IPV6) && packet_parse_ipv6(ctx, p, l3, end);
}

static __always_inline bool packet_parse_ports(packet_context *ctx, struct packet *p)
{
	const __be16 *ports = header_at(ctx, p, p->l4, 2 * sizeof(*ports));

	if (!ports)
		return false;
	p->source_port = ports[0];
	p->dest_port = ports[1];
	return true;
}

#endif
