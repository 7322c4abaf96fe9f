/* SPDX-License-Identifier: GPL-2.0 */
/* The answer to a SYN by a SYN cookie of the kernel's, at XDP (include/weir/admission/cookie.h). */
#ifndef WEIR_BPF_COOKIE_H
#define WEIR_BPF_COOKIE_H

#include "admission.h"
#include "holders.h"
#include "own_address.h"
#include "write.h"

#define TCP_OPTION_MSS 2
#define TCP_MSS_BYTES 4
#define SYN_ACK_BYTES (TCP_BYTES + TCP_MSS_BYTES)
#define ETHERNET_LEAST 46 /* bytes behind the header: not every driver pads what XDP sends */

/* Of the kernel's clock, which marks listeners. 0: the kernel makes no cookies for XDP. The agent sets it. */
const volatile __u32 ticks_per_s;

/* May SYNs to the packet's server be answered here? */
static __always_inline bool cookies_matter(const struct work *w)
{
	return ticks_per_s && (w->server_flags & WEIR_SERVER_XDP_COOKIES) &&
	       !(w->server_flags & (WEIR_SERVER_PAUSED | WEIR_SERVER_DRY_RUN));
}

/* Does the source have no connection open? No, where it brings the connections of many clients: they are not counted. */
static __always_inline bool source_is_unproven(const struct work *w)
{
	const __u32 *held = holder_of(holder_find(w->hook));

	return held && !*held;
}

/* Is the packet for an address of the very device that takes it? Else another host or device may be the one to answer. */
static __always_inline bool device_has_address(const struct packet *p)
{
	const __u32 *ifindex = own_address(p);

	return ifindex && *ifindex && *ifindex == p->ifindex;
}

/* May a SYN that the limits admit be answered here? A signature, and IP options, are for the kernel. */
static __always_inline bool cookie_is_due(const struct work *w)
{
	return w->packet.answers && w->packet.plain_ip && !w->packet.signature &&
	       weir_cookie_reaches(w->packet.source) &&
	       weir_queue_lends_cookies(&w->queue, bpf_jiffies64(), ticks_per_s) && device_has_address(&w->packet) &&
	       source_is_unproven(w);
}

/* The kernel's, in the low half; negative: there is none. */
__noinline __s64 cookie_make(struct xdp_md *ctx)
{
	struct work *w = work_of(HOOK_XDP);
	union {
		struct iphdr ipv4;
		struct ipv6hdr ipv6;
	} ip = {};
	__u32 length;

	if (!w)
		return -1;
	length = size_up_to(TCP_HEADER_MAX, w->packet.payload - w->packet.l4);
	if (context_load(ctx, w->packet.l4, w->reply.head, length))
		return -1;
	if (w->packet.ipv6) {
		__builtin_memcpy(&ip.ipv6.saddr, w->packet.source, 16);
		__builtin_memcpy(&ip.ipv6.daddr, w->packet.dest, 16);
		return bpf_tcp_raw_gen_syncookie_ipv6(&ip.ipv6, (struct tcphdr *)w->reply.head, length);
	}
	__builtin_memcpy(&ip.ipv4.saddr, w->packet.source + 12, 4);
	__builtin_memcpy(&ip.ipv4.daddr, w->packet.dest + 12, 4);
	return bpf_tcp_raw_gen_syncookie_ipv4(&ip.ipv4, (struct tcphdr *)w->reply.head, length);
}

/* The largest segment that the receiving device takes, by its MTU; 0: it is not known. */
static __always_inline __u32 mss_of(struct xdp_md *ctx, const struct packet *p)
{
	__u32 headers = TCP_BYTES + (p->ipv6 ? IPV6_BYTES : IPV4_BYTES), mtu = 0;

	if (bpf_check_mtu(ctx, p->ifindex, &mtu, 0, 0) < 0 || mtu <= headers)
		return 0;
	return mtu - headers > 0xffff ? 0xffff : mtu - headers;
}

static __always_inline void write_syn_ack(struct work *w, __u32 mss)
{
	const struct packet *p = &w->packet;
	const struct weir_segment *g = &w->reply.segment;
	struct {
		struct tcp_header tcp;
		__be32 mss;
	} h = {
		.tcp = {
			.source = p->dest_port,
			.dest = p->source_port,
			.seq = bpf_htonl(g->seq),
			.ack = bpf_htonl(g->ack),
			.offset = SYN_ACK_BYTES / 4 << 4,
			.flags = g->flags,
			.window = bpf_htons(g->window),
		},
		.mss = bpf_htonl(TCP_OPTION_MSS << 24 | TCP_MSS_BYTES << 16 | mss),
	};

	h.tcp.check = ~weir_sum_fold(pseudo_sum(p, SYN_ACK_BYTES) + sum_words(&h, sizeof(h) / 4));
	if (p->ipv6) {
		write_ipv6(w, true, SYN_ACK_BYTES);
		__builtin_memcpy(w->reply.head + ETHERNET_BYTES + IPV6_BYTES, &h, sizeof(h));
	} else {
		__builtin_memset(w->reply.head, 0, ETHERNET_BYTES + ETHERNET_LEAST);
		write_ipv4(w, true, SYN_ACK_BYTES);
		__builtin_memcpy(w->reply.head + ETHERNET_BYTES + IPV4_BYTES, &h, sizeof(h));
	}
}

/* Puts w->reply.segment in the place of the packet, behind its tags. Negative: the frame is as it was, or is of no use any more. */
__noinline int cookie_write(struct xdp_md *ctx, __u32 l3, __u32 mss)
{
	struct work *w = work_of(HOOK_XDP);
	__u32 bytes;

	if (!w || context_load(ctx, 0, w->packet.ethernet, ETHERNET_BYTES))
		return -1;
	bytes = w->packet.ipv6 ? IPV6_BYTES + SYN_ACK_BYTES : ETHERNET_LEAST;
	if (bpf_xdp_adjust_tail(ctx, (int)(l3 + bytes - context_length(ctx))))
		return -1;
	write_syn_ack(w, mss);
	write_ethernet(w, true);
	bytes = size_up_to(SYN_ACK_BYTES + IPV6_BYTES, bytes);
	if (bpf_xdp_store_bytes(ctx, 0, w->reply.head, 2 * ETHERNET_ADDRESS_BYTES) ||
	    bpf_xdp_store_bytes(ctx, l3, w->reply.head + ETHERNET_BYTES, bytes))
		return -1;
	return 0;
}

/* The frame turns round. What cannot be answered goes to the kernel; if it was cut by then, it comes again. */
static __always_inline int cookie_answer(struct xdp_md *ctx, struct work *w, __u32 l3)
{
	__u32 mss = mss_of(ctx, &w->packet);
	__s64 cookie = cookie_make(ctx);

	if (!mss || cookie < 0)
		return XDP_PASS;
	weir_cookie_answer(&w->packet.segment, cookie, &w->queue, &w->reply.segment);
	if (cookie_write(ctx, l3, mss))
		return XDP_PASS;
	count(w->server, WEIR_ADMISSION_XDP_COOKIE);
	return XDP_TX;
}

#endif
