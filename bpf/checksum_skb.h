/* SPDX-License-Identifier: GPL-2.0 */
/* Checksums of which an skb says more than the packet's bytes do. */
#ifndef WEIR_BPF_CHECKSUM_SKB_H
#define WEIR_BPF_CHECKSUM_SKB_H

#include "checksum.h"

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

/* By the device. */
static __always_inline bool checksum_was_checked(struct __sk_buff *skb)
{
	return bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) >= 0;
}

__noinline int checksum_holds(struct __sk_buff *skb, struct work *w)
{
	bool partial;

	if (!w)
		return 0;
	if (checksum_was_checked(skb) || segment_sum(skb, w) == 0xffff)
		return 1;
	/* Another host's half-made sum is trusted by the kernel, whatever it says; asking spoils the field if it is not. */
	return !checksum_is_partial(skb, w->packet.l4, &partial) && partial;
}

/*
 * Is the TCP checksum right? Else the server will drop the packet, and it must not be charged or answered. A device that
 * has checked it says so; a packet of this host has only the pseudo header's sum in the field. One that comes from
 * elsewhere with just that in its field is taken for such a packet: it is read, as one is that is lost behind weir, and
 * what comes in its place is compared with it (conn/doubt.h). What is not read again needs more (checksum_is_sure).
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
	if (!checksum_is_begun(&w->packet) || checksum_was_checked(skb))
		return 1;
	if (checksum_is_partial(skb, w->packet.l4, &partial))
		return 0;
	if (partial)
		return 1;
	return !bpf_skb_store_bytes(skb, w->packet.l4 + CHECK_AT, &w->packet.check, 2, 0) &&
	       segment_sum(skb, w) == 0xffff;
}

#endif
