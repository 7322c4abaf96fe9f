/* SPDX-License-Identifier: GPL-2.0 */
/* Checksums of packets (include/weir/tcp/checksum.h). */
#ifndef WEIR_BPF_CHECKSUM_H
#define WEIR_BPF_CHECKSUM_H

#include "weir/tcp/checksum.h"

#include "window.h"

#define CHECK_AT __builtin_offsetof(struct tcp_header, check)
#define CHECKSUM_STEPS 512 /* windows in the largest packet, and more */

static __always_inline __u64 sum_words(const void *from, __u32 words)
{
	const __u32 *word = from;
	__u64 sum = 0;

	for (__u32 i = 0; i < words; i++)
		sum += word[i];
	return sum;
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
	return weir_sum_is(segment_pseudo_sum(p), p->check);
}

struct checksum_walk {
	packet_context *ctx;
	struct work *work;
};

/* Loads the TCP segment's i-th piece, and zeros behind its end; false: there is none, or it cannot be read. */
static __always_inline bool checksum_load(packet_context *ctx, struct work *w, __u32 i)
{
	__u32 at = i * WEIR_WINDOW, end = w->packet.payload + w->packet.segment.len - w->packet.l4, n;

	if (at >= end)
		return false;
	n = size_up_to(WEIR_WINDOW, end - at);
	if (n < WEIR_WINDOW)
		__builtin_memset(w->window.bytes, 0, WEIR_WINDOW);
	return !context_load(ctx, w->packet.l4 + at, w->window.bytes, n);
}

static long checksum_step(__u32 i, struct checksum_walk *walk)
{
	struct work *w = walk->work;

	if (!checksum_load(walk->ctx, w, i))
		return 1;
	w->sum += (__u32)bpf_csum_diff(NULL, 0, (__be32 *)w->window.bytes, WEIR_WINDOW, 0);
	return 0;
}

#define TCP_HEADER_MAX 60

/* The folded sum of a segment that is a header alone; it uses the window. 0, which is no right one's sum: the header cannot be read. */
static __always_inline __u16 header_sum(packet_context *ctx, struct work *w)
{
	__builtin_memset(w->window.bytes, 0, TCP_HEADER_MAX);
	if (context_load(ctx, w->packet.l4, w->window.bytes,
			 size_up_to(TCP_HEADER_MAX, w->packet.payload - w->packet.l4)))
		return 0;
	return weir_sum_fold(segment_pseudo_sum(&w->packet) + sum_words(w->window.bytes, TCP_HEADER_MAX / 4));
}

/* The folded sum of the pseudo header and the TCP segment as it stands in the packet. */
static __always_inline __u16 segment_sum(packet_context *ctx, struct work *w)
{
	struct checksum_walk walk = { .ctx = ctx, .work = w };

	if (!w->packet.segment.len)
		return header_sum(ctx, w);
	w->sum = segment_pseudo_sum(&w->packet);
	bpf_loop(CHECKSUM_STEPS, checksum_step, &walk, 0);
	window_clear(w);
	return weir_sum_fold(w->sum);
}

#define IPV4_BYTES_MAX 60

__noinline int ip_options_checksum_is_right(packet_context *ctx, struct work *w, __u32 l3)
{
	if (!w)
		return 0;
	__builtin_memset(w->window.bytes, 0, IPV4_BYTES_MAX);
	if (context_load(ctx, l3, w->window.bytes, size_up_to(IPV4_BYTES_MAX, w->packet.l4 - l3)))
		return 0;
	return weir_sum_is(sum_words(w->window.bytes, IPV4_BYTES_MAX / 4), 0xffff);
}

/* Is the IP header's checksum right? Else the kernel will drop the packet, as it does without asking the device. */
static __always_inline bool ip_checksum_is_right(packet_context *ctx, struct work *w, __u32 l3)
{
	const void *ip;

	if (w->packet.ipv6)
		return true;
	if (!w->packet.plain_ip)
		return ip_options_checksum_is_right(ctx, w, l3);
	ip = header_at(ctx, &w->packet, l3, IPV4_BYTES);
	return ip && weir_sum_is(sum_words(ip, IPV4_BYTES / 4), 0xffff);
}

#endif
