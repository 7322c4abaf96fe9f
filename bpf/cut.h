/* SPDX-License-Identifier: GPL-2.0 */
/* Cutting a packet short at a request boundary: what is cut off was never received, and TCP brings it again. */
#ifndef WEIR_BPF_CUT_H
#define WEIR_BPF_CUT_H

#include "checksum_skb.h"
#include "work.h"

#define CHANGE_TAIL_MAX \
	16000 /* bpf_skb_change_tail() fails above some 16 KiB; IP trims what is left behind its length */
#define FLAGS_AT __builtin_offsetof(struct tcp_header, flags)

static __always_inline int cut_ip_length(struct __sk_buff *skb, bool ipv6, __be16 length)
{
	__u32 at = ETHERNET_BYTES + (ipv6 ? __builtin_offsetof(struct ipv6_header, payload_length) :
					    __builtin_offsetof(struct ipv4_header, length));
	__be16 old;

	if (bpf_skb_load_bytes(skb, at, &old, sizeof(old)))
		return -1;
	if (ipv6)
		return bpf_skb_store_bytes(skb, at, &length, sizeof(length), BPF_F_RECOMPUTE_CSUM);
	if (bpf_l3_csum_replace(skb, ETHERNET_BYTES + __builtin_offsetof(struct ipv4_header, check), old, length, 2))
		return -1;
	return bpf_skb_store_bytes(skb, at, &length, sizeof(length), 0);
}

/*
 * Leaves the first `keep` bytes of payload, which may be all of them, and no FIN. The checksum is made anew, because nobody
 * knows what was cut off.
 */
__noinline int packet_cut(struct __sk_buff *skb, struct work *w, __u32 keep)
{
	__u32 l4, header, tcp_bytes;
	bool partial;
	__u16 check;
	__u8 flags;

	if (!w || keep > w->packet.segment.len)
		return -1;
	l4 = w->packet.l4;
	header = w->packet.payload - l4;
	tcp_bytes = header + keep;
	if (checksum_is_partial(skb, l4, &partial))
		return -1;
	if (cut_ip_length(skb, w->packet.ipv6,
			  bpf_htons(tcp_bytes + l4 - ETHERNET_BYTES - (w->packet.ipv6 ? IPV6_BYTES : 0))))
		return -1;

	w->packet.segment.len = keep;
	flags = w->packet.segment.flags & ~WEIR_TCP_FIN;
	check = partial ? weir_sum_fold(pseudo_sum(&w->packet, tcp_bytes)) : 0;
	if (bpf_skb_store_bytes(skb, l4 + FLAGS_AT, &flags, 1, BPF_F_RECOMPUTE_CSUM) ||
	    bpf_skb_store_bytes(skb, l4 + CHECK_AT, &check, 2, BPF_F_RECOMPUTE_CSUM))
		return -1;
	if (!partial) {
		check = ~segment_sum(skb, w);
		if (bpf_skb_store_bytes(skb, l4 + CHECK_AT, &check, 2, BPF_F_RECOMPUTE_CSUM))
			return -1;
	}
	if (l4 + tcp_bytes <= CHANGE_TAIL_MAX && bpf_skb_change_tail(skb, l4 + tcp_bytes, 0))
		return -1;
	return 0;
}

#endif
