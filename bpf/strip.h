/* SPDX-License-Identifier: GPL-2.0 */
/* What is taken off a client's packets: options of its SYN and the urgent mark, by which the server would read another stream, and accurate ECN. */
#ifndef WEIR_BPF_STRIP_H
#define WEIR_BPF_STRIP_H

#include "checksum_skb.h"
#include "work.h"

/*
 * Writes no-operations over the unwanted options of a SYN, as a middlebox that does not know them might. MPTCP's own
 * sequence numbers would not bear a translated stream, and data in a SYN (TCP Fast Open) comes before there is a
 * connection to follow: without the option both fall back to plain TCP. 0: done.
 */
__noinline int remove_options(struct __sk_buff *skb, struct work *w)
{
	__u8 old[TCP_OPTION_BYTES];
	struct packet *p;
	__s64 diff;

	if (!w)
		return -1;
	p = &w->packet;
	__builtin_memcpy(old, p->options, sizeof(old));
	for (__u32 i = 0; i < TCP_OPTION_BYTES; i++) {
		__u8 keep = (p->unwanted >> i & 1) - 1;

		barrier_var(keep); /* no branch: the verifier would follow each combination of them */
		p->options[i] = (p->options[i] & keep) | (TCP_OPTION_NOP & ~keep);
	}
	diff = bpf_csum_diff((__be32 *)old, sizeof(old), (__be32 *)p->options, sizeof(old), 0);
	if (bpf_l4_csum_replace(skb, p->l4 + CHECK_AT, 0, diff, 0) ||
	    bpf_skb_store_bytes(skb, p->l4 + TCP_BYTES, p->options, size_up_to(TCP_OPTION_BYTES, p->options_length), 0))
		return -1;
	if (p->mptcp)
		count(w->server, WEIR_MPTCP_REMOVED);
	if (p->tfo)
		count(w->server, WEIR_TFO_REMOVED);
	return 0;
}

#define TCP_ACCURATE_ECN 0x100 /* a flag, AE, that stands beside the header's length */

/* Clears flags, if they are set; the checksum moves by the difference. 0: done. */
static __always_inline int clear_flags(struct __sk_buff *skb, __u32 l4, __be16 flags)
{
	__u32 at = l4 + __builtin_offsetof(struct tcp_header, offset);
	__be16 old, new;

	if (bpf_skb_load_bytes(skb, at, &old, sizeof(old)))
		return -1;
	new = old & ~flags;
	if (new == old)
		return 0;
	if (bpf_l4_csum_replace(skb, l4 + CHECK_AT, old, new, 2) || bpf_skb_store_bytes(skb, at, &new, sizeof(new), 0))
		return -1;
	return 0;
}

/*
 * A SYN that asks for accurate ECN (RFC 9768) asks for RFC 3168's instead, as both ends fall back to. With accurate ECN each segment says how
 * many marks its sender has seen so far. An answer of weir's does not know, and any other number is taken for congestion.
 */
__noinline int remove_accurate_ecn(struct __sk_buff *skb, struct work *w)
{
	return w ? clear_flags(skb, w->packet.l4, bpf_htons(TCP_ACCURATE_ECN)) : -1;
}

/* An urgent byte is taken out of the stream that the server reads, but not out of the one read here: none is urgent. */
__noinline int remove_urgent(struct __sk_buff *skb, struct work *w)
{
	__be16 urgent, none = 0;
	__u32 urgent_at;

	if (!w)
		return -1;
	urgent_at = w->packet.l4 + __builtin_offsetof(struct tcp_header, urgent);
	if (bpf_skb_load_bytes(skb, urgent_at, &urgent, sizeof(urgent)) ||
	    clear_flags(skb, w->packet.l4, bpf_htons(WEIR_TCP_URG)) ||
	    bpf_l4_csum_replace(skb, w->packet.l4 + CHECK_AT, urgent, none, 2) ||
	    bpf_skb_store_bytes(skb, urgent_at, &none, sizeof(none), 0) ||
	    bpf_skb_load_bytes(skb, w->packet.l4 + CHECK_AT, &w->packet.check, sizeof(w->packet.check)))
		return -1;
	w->packet.segment.flags &= ~WEIR_TCP_URG;
	count(w->server, WEIR_URGENT_REMOVED);
	return 0;
}

#endif
