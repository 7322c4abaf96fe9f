/* SPDX-License-Identifier: GPL-2.0 */
/* A listener's queue (include/weir/admission/cookie.h), as the kernel's socket says it. */
#ifndef WEIR_BPF_LISTEN_QUEUE_H
#define WEIR_BPF_LISTEN_QUEUE_H

#include "socket.h"

/* As tcp_synq_overflow() in the kernel notes it: listeners of a port that share it (SO_REUSEPORT) have one mark. */
static __always_inline __u32 listener_marked(struct tcp_sock *tcp)
{
	struct sock_reuseport *group = tcp->inet_conn.icsk_inet.sk.sk_reuseport_cb;

	if (BPF_CORE_READ_BITFIELD(tcp, inet_conn.icsk_inet.sk.__sk_common.skc_reuseport) && group)
		return group->synq_overflow_ts;
	return tcp->rx_opt.ts_recent_stamp;
}

static __always_inline void listen_queue_read(struct weir_listen_queue *q, struct bpf_sock *sk)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	*q = (struct weir_listen_queue){};
	if (!tcp)
		return;
	q->setting = tcp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net->ipv4.sysctl_tcp_syncookies;
	q->waiting = tcp->inet_conn.icsk_accept_queue.qlen.counter;
	q->ready = tcp->inet_conn.icsk_inet.sk.sk_ack_backlog;
	q->backlog = tcp->inet_conn.icsk_inet.sk.sk_max_ack_backlog;
	q->marked = listener_marked(tcp);
	q->room = tcp->inet_conn.icsk_inet.sk.sk_rcvbuf;
	q->signs = socket_signs(tcp);
}

#endif
