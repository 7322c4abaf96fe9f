/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet's headers, in memory of the packet's own before they are read. Who may send raw packets can send them from pages that it can still
 * write to (the ring of a packet socket): weir would read one header, and the kernel a moment later another one.
 */
#ifndef WEIR_BPF_HEADERS_H
#define WEIR_BPF_HEADERS_H

#include "packet.h"

#define UDP_PROTOCOL 17

/* Of a packet in several pieces: does the first one have all headers, or say that it is not TCP? */
static __always_inline bool headers_are_own(const __u8 *data, const __u8 *end)
{
	const struct ipv4_header *ipv4 = (const void *)(data + ETHERNET_BYTES);
	const struct ipv6_header *ipv6 = (const void *)ipv4;
	const struct tcp_header *tcp;
	__u32 l4 = ETHERNET_BYTES + IPV6_BYTES;
	__u8 protocol;

	if ((const __u8 *)(ipv6 + 1) > end)
		return false;
	protocol = ipv6->next_header;
	if (ipv4->version_ihl >> 4 == 4) {
		protocol = ipv4->protocol;
		l4 = ETHERNET_BYTES + (ipv4->version_ihl & 15) * 4;
	}
	if (protocol != TCP_PROTOCOL)
		return protocol == UDP_PROTOCOL;
	WEIR_BARRIER(l4); /* one pointer is compared and read through */
	tcp = (const void *)(data + l4);
	return (const __u8 *)(tcp + 1) <= end && l4 + (tcp->offset >> 4) * 4 <= end - data;
}

/* Makes the headers the packet's own, as far as they are read where they stand. false: the kernel has no memory for that. */
static __always_inline bool headers_take(struct __sk_buff *skb)
{
	const __u8 *data = (const __u8 *)(long)skb->data, *end = (const __u8 *)(long)skb->data_end;

	if (WEIR_LIKELY((__u64)(end - data) == skb->len) || headers_are_own(data, end))
		return true;
	return !bpf_skb_pull_data(skb, size_up_to(HEADERS_MAX, skb->len));
}

/* Is the header of a packet that was parsed, with all that stands before it, the packet's own? IPv6 may have more headers than are taken. */
static __always_inline bool header_is_own(struct __sk_buff *skb, const struct packet *p)
{
	return p->payload <= skb->data_end - skb->data;
}

#endif
