/* SPDX-License-Identifier: GPL-2.0 */
/* Internet checksums (RFC 1071): sums of 16-bit words in ones' complement, kept wide and folded at the end. */
#ifndef WEIR_BPF_CHECKSUM_H
#define WEIR_BPF_CHECKSUM_H

#include "window.h"

#define CHECK_AT __builtin_offsetof(struct tcp_header, check)
#define CHECKSUM_STEPS 512 /* windows in the largest packet, and more */

static __always_inline __u16 sum_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static __always_inline __u64 sum_words(const void *from, __u32 words)
{
	const __u32 *word = from;
	__u64 sum = 0;

	for (__u32 i = 0; i < words; i++)
		sum += word[i];
	return sum;
}

/* Is the TCP checksum left to the device (CHECKSUM_PARTIAL)? Then a change of the sum leaves the field as it is. */
static __always_inline int checksum_is_partial(struct __sk_buff *skb, __u32 l4, bool *partial)
{
	__u16 before, after;

	if (bpf_skb_load_bytes(skb, l4 + CHECK_AT, &before, 2) || bpf_l4_csum_replace(skb, l4 + CHECK_AT, 0, 1, 2) ||
	    bpf_skb_load_bytes(skb, l4 + CHECK_AT, &after, 2))
		return -1;
	*partial = before == after;
	return 0;
}

/* Sum of the pseudo header; a mapped IPv4 address adds the same constant twice, so only its last word is taken. */
static __always_inline __u64 pseudo_sum(const struct packet *p, __u32 tcp_bytes)
{
	__u64 sum = bpf_htonl(tcp_bytes) + (__u64)bpf_htonl(TCP_PROTOCOL);

	if (p->ipv6)
		return sum + sum_words(p->source, 4) + sum_words(p->dest, 4);
	return sum + sum_words(p->source + 12, 1) + sum_words(p->dest + 12, 1);
}

static __always_inline __u64 segment_pseudo_sum(const struct packet *p)
{
	return pseudo_sum(p, p->payload + p->segment.len - p->l4);
}

/* Is the pseudo header's sum in the field, as it is where the rest is left to the device? */
static __always_inline bool checksum_is_begun(const struct packet *p)
{
	return p->check == sum_fold(segment_pseudo_sum(p));
}

struct checksum_walk {
	struct __sk_buff *skb;
	struct work *work;
};

static long checksum_step(__u32 i, struct checksum_walk *walk)
{
	struct work *w = walk->work;
	__u32 at = i * WEIR_WINDOW, end = w->packet.payload + w->packet.segment.len - w->packet.l4, n;

	if (at >= end)
		return 1;
	n = size_up_to(WEIR_WINDOW, end - at);
	if (n < WEIR_WINDOW)
		__builtin_memset(w->window, 0, WEIR_WINDOW);
	if (bpf_skb_load_bytes(walk->skb, w->packet.l4 + at, w->window, n))
		return 1;
	w->sum += (__u32)bpf_csum_diff(NULL, 0, (__be32 *)w->window, WEIR_WINDOW, 0);
	return 0;
}

/* The folded sum of the pseudo header and the TCP segment as it stands in the packet. */
static __always_inline __u16 segment_sum(struct __sk_buff *skb, struct work *w)
{
	struct checksum_walk walk = { .skb = skb, .work = w };

	w->sum = segment_pseudo_sum(&w->packet);
	bpf_loop(CHECKSUM_STEPS, checksum_step, &walk, 0);
	window_wipe(w);
	return sum_fold(w->sum);
}

#define IPV4_BYTES_MAX 60

__noinline int ip_options_checksum_is_right(struct __sk_buff *skb, struct work *w)
{
	if (!w)
		return 0;
	__builtin_memset(w->head, 0, IPV4_BYTES_MAX);
	if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, w->head, size_up_to(IPV4_BYTES_MAX, w->packet.l4 - ETHERNET_BYTES)))
		return 0;
	return sum_fold(sum_words(w->head, IPV4_BYTES_MAX / 4)) == 0xffff;
}

/* Is the IP header's checksum right? Else the kernel will drop the packet, as it does without asking the device. */
static __always_inline bool ip_checksum_is_right(struct __sk_buff *skb, struct work *w)
{
	const void *ip;

	if (w->packet.ipv6)
		return true;
	if (!w->packet.plain_ip)
		return ip_options_checksum_is_right(skb, w);
	ip = header_at(skb, &w->packet, ETHERNET_BYTES, IPV4_BYTES);
	return ip && sum_fold(sum_words(ip, IPV4_BYTES / 4)) == 0xffff;
}

__noinline int checksum_holds(struct __sk_buff *skb, struct work *w)
{
	bool partial;

	if (!w)
		return 0;
	if (bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) >= 0 || segment_sum(skb, w) == 0xffff)
		return 1;
	/* Another host's half-made sum is trusted by the kernel, whatever it says; asking spoils the field if it is not. */
	return !checksum_is_partial(skb, w->packet.l4, &partial) && partial;
}

/*
 * Is the TCP checksum right? Else the server will drop the packet, and it must not be charged or answered. A device that
 * has checked it says so; a packet of this host has only the pseudo header's sum in the field. One that comes from
 * elsewhere with just that in its field is taken for such a packet: it is read, as one is that is lost behind weir, and
 * what comes in its place is compared with it (conn_doubt.h). What is not read again needs more (checksum_is_sure).
 */
static __always_inline bool checksum_is_right(struct __sk_buff *skb, struct work *w)
{
	return checksum_is_begun(&w->packet) || checksum_holds(skb, w);
}

/* Of a packet whose checksum is right: is it so although only the pseudo header's sum may be in the field? */
__noinline int checksum_is_sure(struct __sk_buff *skb, struct work *w)
{
	bool partial;

	if (!w)
		return 0;
	if (!checksum_is_begun(&w->packet) || bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) >= 0)
		return 1;
	if (checksum_is_partial(skb, w->packet.l4, &partial))
		return 0;
	if (partial)
		return 1;
	return !bpf_skb_store_bytes(skb, w->packet.l4 + CHECK_AT, &w->packet.check, 2, 0) &&
	       segment_sum(skb, w) == 0xffff;
}

#endif
