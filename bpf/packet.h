/* SPDX-License-Identifier: GPL-2.0 */
/* From an skb to plain numbers, and plain numbers back into an skb. */
#ifndef WEIR_BPF_PACKET_H
#define WEIR_BPF_PACKET_H

#include "weir/abi/abi.h"
#include "weir/tcp/segment.h"

#include <bpf/bpf_endian.h>

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERNET_BYTES 14
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
	struct weir_flow flow; /* filled for the direction of the hook */
	__u32 l4;	       /* offsets from the start of the frame */
	__u32 payload;
	__u32 sack_at;		     /* of the first SACK block; 0: none */
	__u32 mptcp_at, mptcp_bytes; /* of an MPTCP option; 0: none */
	__u32 tfo_at, tfo_bytes;     /* of a TCP Fast Open option; 0: none */
	__u8 ipv6;
	__u8 plain_ip; /* no IP options or extension headers: the TCP header stands where a reply's will */
	__u8 tos;
	__u8 fragment; /* the first part of a packet that comes in parts; of the others nobody can tell whose they are */
	__u16 source_port, dest_port; /* network order */
	__u16 check;		      /* as on the wire */
	__u16 ip_id;
	__u8 ethernet[ETHERNET_BYTES];
	__u8 signature; /* the kind of option that signs the segment; 0: none */
	__u8 pad2;
	__u8 source[16], dest[16]; /* network order, IPv4 mapped */
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
	__u32 *words = (__u32 *)out;

	words[0] = 0;
	words[1] = 0;
	words[2] = bpf_htonl(0xffff);
	words[3] = address;
}

#define HEADERS_MAX 256 /* bytes of a frame in which headers are read where they stand */

/*
 * A header of `size` bytes (a constant) at offset `at`: where it stands, if that is in memory of one piece, which no call is
 * needed for; else a copy in p->header, which the next one may overwrite. NULL: the packet is shorter.
 */
static __always_inline const void *header_at(struct __sk_buff *skb, struct packet *p, __u32 at, __u32 size)
{
	const void *data = (const void *)(long)skb->data, *end = (const void *)(long)skb->data_end;

	if (at <= HEADERS_MAX && data + at + size <= end)
		return data + at;
	return bpf_skb_load_bytes(skb, at, p->header, size) ? NULL : p->header;
}

#define VLAN_ID 0xfff

/* A VLAN's packets pass its own device, too; a tag without a VLAN is only a priority. */
static __always_inline bool has_own_device(struct __sk_buff *skb)
{
	return skb->vlan_present && (skb->vlan_tci & VLAN_ID);
}

/*
 * Where the IP packet ends of which `length` bytes follow `from` (Ethernet may pad behind it); BIG TCP says 0. False: it is
 * cut off, and the kernel drops it.
 */
static __always_inline bool ip_end(struct __sk_buff *skb, __u32 length, __u32 from, __u32 *end)
{
	*end = length ? from + length : skb->len;
	return length ? *end <= skb->len : skb->gso_size;
}

#define IPV6_HOP_BY_HOP 0
#define IPV6_ROUTING 43
#define IPV6_FRAGMENT 44
#define IPV6_FRAGMENT_OFFSET 0xfff8
#define IPV6_DESTINATION 60
#define IPV6_EXTENSIONS 4 /* more in one packet are not followed */

/* The offset of the TCP header behind IPv6 extension headers, which begin at p->l4 with `next`; 0: none there. */
__noinline int ipv6_tcp_at(struct __sk_buff *skb, struct packet *p, __u32 next)
{
	__u32 at;

	if (!p)
		return 0;
	at = p->l4;
	for (int i = 0; i < IPV6_EXTENSIONS; i++) {
		__be16 extension[2]; /* next header, length in words of 8 bytes less one; then a fragment's offset */
		__u8 *header = (__u8 *)extension;

		if (next != IPV6_HOP_BY_HOP && next != IPV6_ROUTING && next != IPV6_DESTINATION &&
		    next != IPV6_FRAGMENT)
			return 0;
		if (bpf_skb_load_bytes(skb, at, extension, sizeof(extension)))
			return 0;
		if (next == IPV6_FRAGMENT && (extension[1] & bpf_htons(IPV6_FRAGMENT_OFFSET)))
			return 0;
		p->fragment |= next == IPV6_FRAGMENT;
		at += next == IPV6_FRAGMENT ? 8 : (header[1] + 1) * 8;
		next = header[0];
		if (next == TCP_PROTOCOL)
			return at;
	}
	return 0;
}

/*
 * Reads the IP header at l3. It and the ports are all that a packet of nobody's server costs. False: not a TCP packet
 * that can be read.
 */
static __always_inline bool packet_parse_ipv4(struct __sk_buff *skb, struct packet *p, __u32 l3, __u32 *end)
{
	const struct ipv4_header *ip = header_at(skb, p, l3, sizeof(*ip));
	__u32 words;

	if (!ip)
		return false;
	words = ip->version_ihl & 15;
	if (ip->protocol != TCP_PROTOCOL || (ip->version_ihl >> 4) != 4 || words < 5 ||
	    (ip->fragment & bpf_htons(IPV4_FRAGMENT_OFFSET)))
		return false;
	p->fragment = !!(ip->fragment & bpf_htons(IPV4_MORE_FRAGMENTS));
	map_ipv4(p->source, ip->source);
	map_ipv4(p->dest, ip->dest);
	p->ipv6 = 0;
	p->plain_ip = words == 5;
	p->tos = ip->tos;
	p->ip_id = ip->id;
	p->l4 = l3 + words * 4;
	return ip_end(skb, bpf_ntohs(ip->length), l3, end);
}

static __always_inline bool packet_parse_ipv6(struct __sk_buff *skb, struct packet *p, __u32 l3, __u32 *end)
{
	const struct ipv6_header *ip = header_at(skb, p, l3, sizeof(*ip));
	__u32 payload_length;
	__u8 next;

	if (!ip || (bpf_ntohl(ip->version_class_label) >> 28) != 6)
		return false;
	__builtin_memcpy(p->source, ip->source, 16);
	__builtin_memcpy(p->dest, ip->dest, 16);
	p->ipv6 = 1;
	p->tos = bpf_ntohl(ip->version_class_label) >> 20 & 0xff;
	p->ip_id = 0;
	p->fragment = 0;
	p->l4 = l3 + IPV6_BYTES;
	payload_length = bpf_ntohs(ip->payload_length);
	next = ip->next_header;
	p->plain_ip = next == TCP_PROTOCOL;
	if (next != TCP_PROTOCOL)
		p->l4 = ipv6_tcp_at(skb, p, next);
	return p->l4 && ip_end(skb, payload_length, l3 + IPV6_BYTES, end);
}

/*
 * Reads the IP header at l3. It and the ports are all that a packet of nobody's server costs. False: not a TCP packet
 * that can be read.
 */
static __always_inline bool packet_parse_ip(struct __sk_buff *skb, struct packet *p, __u32 l3, __u32 *end)
{
	if (skb->protocol == bpf_htons(ETHERTYPE_IPV4))
		return packet_parse_ipv4(skb, p, l3, end);
	return skb->protocol == bpf_htons(ETHERTYPE_IPV6) && packet_parse_ipv6(skb, p, l3, end);
}

static __always_inline bool packet_parse_ports(struct __sk_buff *skb, struct packet *p)
{
	const __be16 *ports = header_at(skb, p, p->l4, 2 * sizeof(*ports));

	if (!ports)
		return false;
	p->source_port = ports[0];
	p->dest_port = ports[1];
	return true;
}

#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_SACK 5
#define TCP_OPTION_TS 8
#define TCP_OPTION_MD5 19
#define TCP_OPTION_MD5_BYTES 18
#define TCP_OPTION_AO 29
#define TCP_OPTION_MPTCP 30
#define TCP_OPTION_TFO 34
#define TCP_TS_WORD 0x0101080a /* NOP NOP kind length: how the timestamp option stands in nearly every segment */

static __always_inline __u32 option_word(const struct packet *p, __u32 at)
{
	at &= 63;
	if (at > sizeof(p->options) - 4)
		return 0;
	return (__u32)p->options[at] << 24 | (__u32)p->options[at + 1] << 16 | (__u32)p->options[at + 2] << 8 |
	       p->options[at + 3];
}

static __always_inline void packet_read_sack(struct packet *p, __u32 at, __u32 length)
{
	struct weir_segment *g = &p->segment;
	__u32 blocks = (length - 2) / 8;

	if (blocks > WEIR_SACK_BLOCKS)
		blocks = WEIR_SACK_BLOCKS;
	for (__u32 i = 0; i < WEIR_SACK_BLOCKS; i++) {
		if (i >= blocks)
			break;
		g->sack[i].start = option_word(p, at + 2 + 8 * i);
		g->sack[i].end = option_word(p, at + 6 + 8 * i);
	}
	g->sacks = blocks;
	p->sack_at = p->l4 + TCP_BYTES + at + 2;
}

struct option_walk {
	struct packet *packet;
};

/* The option at p->option_at. Positions live in the packet, not in registers, or the verifier follows each of them. */
static long option_step(__u32 i __attribute__((unused)), struct option_walk *walk)
{
	struct packet *p = walk->packet;
	struct weir_segment *g = &p->segment;
	__u32 at = p->option_at, kind, size;

	if (at + 1 >= p->options_length)
		return 1;
	kind = p->options[at & 63];
	if (kind == TCP_OPTION_END)
		return 1;
	if (kind == TCP_OPTION_NOP) {
		p->option_at = at + 1;
		return 0;
	}
	size = p->options[(at + 1) & 63];
	if (size < 2 || at + size > p->options_length)
		return 1;
	if (kind == TCP_OPTION_TS && size == 10) {
		g->has_ts = 1;
		g->tsval = option_word(p, at + 2);
		g->tsecr = option_word(p, at + 6);
	} else if (kind == TCP_OPTION_SACK && size >= 10) {
		packet_read_sack(p, at, size);
	} else if (kind == TCP_OPTION_MPTCP) {
		p->mptcp_at = p->l4 + TCP_BYTES + at;
		p->mptcp_bytes = size;
	} else if (kind == TCP_OPTION_TFO) {
		p->tfo_at = p->l4 + TCP_BYTES + at;
		p->tfo_bytes = size;
	} else if (kind == TCP_OPTION_AO || (kind == TCP_OPTION_MD5 && size == TCP_OPTION_MD5_BYTES)) {
		p->signature = kind;
	}
	p->option_at = at + size;
	return 0;
}

/* Reads TCP options, of which there are `length` bytes, not 0. */
__noinline int packet_read_options(struct __sk_buff *skb, struct packet *p, __u32 length)
{
	struct option_walk walk = { .packet = p };

	if (!p)
		return 0;
	length = size_up_to(TCP_OPTION_BYTES, length);
	if (bpf_skb_load_bytes(skb, p->l4 + TCP_BYTES, p->options, length))
		return 0;
	p->option_at = 0;
	p->options_length = length;
	bpf_loop(TCP_OPTION_BYTES, option_step, &walk, 0);
	return 0;
}

/* What nearly every segment has, and nothing else. */
static __always_inline bool packet_read_timestamp(struct __sk_buff *skb, struct packet *p)
{
	const __be32 *words = header_at(skb, p, p->l4 + TCP_BYTES, TCP_TS_BYTES);

	if (!words || words[0] != bpf_htonl(TCP_TS_WORD))
		return false;
	p->segment.has_ts = 1;
	p->segment.tsval = bpf_ntohl(words[1]);
	p->segment.tsecr = bpf_ntohl(words[2]);
	return true;
}

/* Reads the TCP header behind the ports. False: malformed, the kernel will drop it. */
static __always_inline bool packet_parse_tcp(struct __sk_buff *skb, struct packet *p, __u32 end)
{
	const struct tcp_header *tcp = header_at(skb, p, p->l4, sizeof(*tcp));
	struct weir_segment *g = &p->segment;
	__u32 length;

	if (!tcp)
		return false;
	length = (tcp->offset >> 4) * 4;
	p->payload = p->l4 + length;
	if (length < TCP_BYTES || p->payload > end)
		return false;
	g->seq = bpf_ntohl(tcp->seq);
	g->ack = bpf_ntohl(tcp->ack);
	g->len = end - p->payload;
	g->window = bpf_ntohs(tcp->window);
	g->flags = tcp->flags;
	g->sacks = 0;
	g->has_ts = 0;
	g->tsval = 0;
	g->tsecr = 0;
	p->check = tcp->check;
	p->sack_at = 0;
	p->mptcp_at = 0;
	p->tfo_at = 0;
	p->signature = 0;
	if (length > TCP_BYTES && (length != TCP_BYTES + TCP_TS_BYTES || !packet_read_timestamp(skb, p)))
		packet_read_options(skb, p, length - TCP_BYTES);
	return true;
}

/* Puts changed SACK blocks back. They may stand at an odd offset, where a sum's bytes are swapped. */
static __always_inline int packet_store_sacks(struct __sk_buff *skb, const struct packet *p)
{
	const struct weir_segment *g = &p->segment;

	for (__u32 i = 0; i < WEIR_SACK_BLOCKS; i++) {
		__u32 at = p->sack_at + 8 * i;
		__be32 old[2], new[2];
		__s64 diff;

		if (i >= g->sacks)
			break;
		if (bpf_skb_load_bytes(skb, at, old, sizeof(old)))
			return -1;
		new[0] = bpf_htonl(g->sack[i].start);
		new[1] = bpf_htonl(g->sack[i].end);
		diff = bpf_csum_diff(old, sizeof(old), new, sizeof(new), 0);
		if ((at - p->l4) & 1) {
			diff = (diff & 0xffff) + ((__u32)diff >> 16);
			diff = (diff & 0xffff) + (diff >> 16);
			diff = bpf_ntohs(diff);
		}
		if (bpf_l4_csum_replace(skb, p->l4 + __builtin_offsetof(struct tcp_header, check), 0, diff, 0) ||
		    bpf_skb_store_bytes(skb, at, new, sizeof(new), 0))
			return -1;
	}
	return 0;
}

/* Puts a translated segment's numbers back into the packet; the checksum moves by the difference. */
__noinline int packet_store_numbers(struct __sk_buff *skb, struct packet *p)
{
	__be32 old[2], new[2];
	__s64 diff;
	__u32 at;

	if (!p)
		return -1;
	at = p->l4 + __builtin_offsetof(struct tcp_header, seq);
	new[0] = bpf_htonl(p->segment.seq);
	new[1] = bpf_htonl(p->segment.ack);
	if (bpf_skb_load_bytes(skb, at, old, sizeof(old)))
		return -1;
	diff = bpf_csum_diff(old, sizeof(old), new, sizeof(new), 0);
	if (bpf_l4_csum_replace(skb, p->l4 + __builtin_offsetof(struct tcp_header, check), 0, diff, 0) ||
	    bpf_skb_store_bytes(skb, at, new, sizeof(new), 0))
		return -1;
	return p->segment.sacks ? packet_store_sacks(skb, p) : 0;
}

#endif
