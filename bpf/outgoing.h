/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections that this host opens itself, from the very port where a server listens. What the other side sends on them is nobody's
 * request: the server has no part in them.
 */
#ifndef WEIR_BPF_OUTGOING_H
#define WEIR_BPF_OUTGOING_H

#include "socket.h"

/* This host has sent a SYN of this number: seen on its way, or told by its socket, for devices on which no program is. */
static __always_inline void outgoing_note(const struct weir_flow *f, __u32 isn)
{
	bpf_map_update_elem(&outgoing, f, &isn, BPF_ANY);
}

/*
 * Of a socket that has sent its SYN, what is acknowledged begins with the SYN's number; of one that a listener has made, with the one
 * behind it. One that was restored from a checkpoint has sent none: nor is there an entry that has its number.
 */
static __always_inline bool socket_sent_syn(struct bpf_sock *sk, __u32 isn)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	return tcp && tcp->snd_una - (__u32)tcp->bytes_acked == isn;
}

/* Is the packet, of no connection in the table, for a socket that this host has connected itself? */
__noinline int packet_is_of_outgoing(packet_context *ctx, __u32 hook)
{
	struct work *w = work_of(hook);
	const __u32 *isn;
	struct bpf_sock *sk;
	bool is;

	if (!w)
		return 0;
	isn = bpf_map_lookup_elem(&outgoing, &w->packet.flow);
	if (!isn)
		return 0;
	sk = socket_of(ctx, &w->packet);
	if (!sk)
		return 0;
	is = socket_sent_syn(sk, *isn);
	bpf_sk_release(sk);
	return is;
}

#endif
