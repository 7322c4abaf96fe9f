/* SPDX-License-Identifier: GPL-2.0 */
/* A packet that a server's socket is about to get: whose it is, whether it is right, and whether it may be withheld. */
#ifndef WEIR_BPF_HOLD_PACKET_H
#define WEIR_BPF_HOLD_PACKET_H

#include "checksum.h"
#include "frame.h"
#include "outcome.h"
#include "socket.h"

#define SOCKET_GETS_NOTHING 0
#define SOCKET_GETS_IT 1

/* May packets of the server's be dropped? */
static __always_inline bool withholds(const struct work *w)
{
	return !(w->server_flags & (WEIR_SERVER_PAUSED | WEIR_SERVER_DRY_RUN));
}

/* Drops the packet, if anything may be dropped, and counts it. */
static __always_inline int hold_drop(const struct work *w, enum weir_reason why)
{
	count(w->server, why);
	return withholds(w) ? SOCKET_GETS_NOTHING : SOCKET_GETS_IT;
}

/*
 * A cgroup's sockets may be of several network namespaces. Of two servers with one port in two of them, each is the
 * business of its own maps.
 */
static __always_inline bool socket_is_here(struct __sk_buff *skb, struct work *w)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tcp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;

	if (!tcp || tcp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net->net_cookie != w->settings.netns_cookie)
		return false;
	w->socket.listens = sk->state == STATE_LISTEN;
	w->socket.open = socket_is_open(sk->state);
	socket_read(&w->socket, tcp, w->now_ns);
	return true;
}

/* As checksum_step(), for this hook has no helper for that. */
static long hold_sum_step(__u32 i, struct feed *f)
{
	struct work *w = f->work;

	if (!checksum_load(f->skb, w, i))
		return 1;
	w->sum += sum_words(w->window.bytes, WEIR_WINDOW / 4);
	return 0;
}

/*
 * A segment that tc has not seen, and whose records are to be followed. Nothing has looked at its checksum yet, and what the socket drops
 * for its checksum must move nothing. If the field has the pseudo header's sum alone, the segment may be of this host, or pretend to be. If
 * the kernel has put it together of several, it has looked at their checksums.
 */
__noinline int hold_check(struct __sk_buff *skb, struct work *w)
{
	struct feed feed = { .skb = skb, .work = w };

	if (!w)
		return 0;
	w->sum = segment_pseudo_sum(&w->packet);
	bpf_loop(CHECKSUM_STEPS, hold_sum_step, &feed, 0);
	window_clear(w);
	if (weir_sum_fold(w->sum) == 0xffff)
		return 1;
	if (!checksum_is_begun(&w->packet))
		return 0;
	if (!skb->gso_size)
		weir_hold_reader_distrust(&w->hold);
	return 1;
}

#endif
