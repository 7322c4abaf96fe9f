/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's own socket of a connection's server, and what it says (include/weir/tcp/socket.h). */
#ifndef WEIR_BPF_SOCKET_H
#define WEIR_BPF_SOCKET_H

#include "weir/admission/admission.h"

#include "work.h"

/* enum values of the kernel's TCP states */
#define STATE_ESTABLISHED 1
#define STATE_SYN_RECV 3
#define STATE_FIN_WAIT1 4
#define STATE_FIN_WAIT2 5
#define STATE_CLOSE_WAIT 8
#define STATE_LISTEN 10
#define STATE_NEW_SYN_RECV 12

/*
 * Does a socket in this state take data? One whose handshake was ended by a SYN-ACK stays in SYN_RECV until the next segment,
 * and takes what that brings.
 */
static __always_inline bool socket_is_open(__u32 state)
{
	return state == STATE_ESTABLISHED || state == STATE_SYN_RECV || state == STATE_FIN_WAIT1 ||
	       state == STATE_FIN_WAIT2;
}

#define PAWS_FORGETS_S (24 * 24 * 3600) /* a timestamp that is older than this says nothing */

/* Members that a kernel has if it can sign segments. */
struct tcp_sock___signing {
	void *md5sig_info, *ao_info;
} __attribute__((preserve_access_index));

/* Can the kernel tell a signature from an option of no meaning? */
static __always_inline bool kernel_signs(__u32 kind)
{
	if (kind == TCP_OPTION_MD5)
		return bpf_core_field_exists(struct tcp_sock___signing, md5sig_info);
	return bpf_core_field_exists(struct tcp_sock___signing, ao_info);
}

static __always_inline bool socket_signs(struct tcp_sock *tcp)
{
	struct tcp_sock___signing *s = (struct tcp_sock___signing *)tcp;

	return (kernel_signs(TCP_OPTION_MD5) && s->md5sig_info) || (kernel_signs(TCP_OPTION_AO) && s->ao_info);
}

/*
 * Has MPTCP numbers of its own for what the socket gets? A kernel may have been built without it. Before there is a socket, the packet that answers the
 * handshake says it: without the option the connection is plain, whatever the request is marked as.
 */
static __always_inline bool socket_is_mptcp(const struct tcp_sock *tcp)
{
	return bpf_core_field_exists(tcp->is_mptcp) && tcp->is_mptcp;
}

/* Of the flow's server: the caller's to release. */
static __always_inline struct bpf_sock *socket_with(packet_context *ctx, const struct packet *p,
						    const struct weir_flow *f)
{
	struct bpf_sock_tuple tuple = {};

	if (p->ipv6) {
		__builtin_memcpy(tuple.ipv6.saddr, f->client, 16);
		__builtin_memcpy(tuple.ipv6.daddr, f->server, 16);
		tuple.ipv6.sport = f->client_port;
		tuple.ipv6.dport = f->server_port;
		return bpf_skc_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	}
	__builtin_memcpy(&tuple.ipv4.saddr, f->client + 12, 4);
	__builtin_memcpy(&tuple.ipv4.daddr, f->server + 12, 4);
	tuple.ipv4.sport = f->client_port;
	tuple.ipv4.dport = f->server_port;
	return bpf_skc_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
}

static __always_inline struct bpf_sock *socket_of(packet_context *ctx, const struct packet *p)
{
	return socket_with(ctx, p, &p->flow);
}

/* Whatever connections there are between both ends: nobody has one from the address 0. From port 0 some have. */
static __always_inline struct bpf_sock *listener_of(packet_context *ctx, const struct packet *p)
{
	struct weir_flow nobodys = p->flow;

	__builtin_memset(nobodys.client, 0, sizeof(nobodys.client));
	nobodys.client_port = 0;
	return socket_with(ctx, p, &nobodys);
}

/*
 * Has it had no data yet? One that was restored from a checkpoint (TCP_REPAIR) does not say what it has had. No segment has come to it
 * since, not the end of a handshake either.
 */
static __always_inline bool socket_is_untouched(const struct tcp_sock *tcp)
{
	bool restored = tcp->inet_conn.icsk_inet.sk.__sk_common.skc_state == STATE_ESTABLISHED && !tcp->segs_in;

	return !tcp->bytes_received && !restored;
}

/* How far from what its client is known to have an acknowledgement can be: nothing that it has sent is further, its FIN included. */
static __always_inline __u32 socket_reach(const struct tcp_sock *tcp)
{
	__u32 window = tcp->max_window;

	return (tcp->bytes_sent < window ? tcp->bytes_sent : window) + 1;
}

static __always_inline void socket_read(struct weir_socket *k, struct tcp_sock *tcp, __u64 now_ns)
{
	__u32 window = tcp->max_window;

	k->next = tcp->rcv_nxt;
	k->edge = tcp->rcv_wup + tcp->rcv_wnd;
	k->sent = tcp->snd_nxt;
	k->acked = tcp->snd_una;
	k->ack_slack = tcp->bytes_acked < window ? tcp->bytes_acked : window;
	k->reach = socket_reach(tcp);
	k->ts_recent = tcp->rx_opt.ts_recent;
	if (k->ts_recent && (__u32)(now_ns / WEIR_NS_PER_S) - (__u32)tcp->rx_opt.ts_recent_stamp > PAWS_FORGETS_S)
		k->ts_recent = 0;
	k->early = !!tcp->out_of_order_queue.rb_node;
	k->busy = tcp->inet_conn.icsk_inet.sk.sk_backlog.len > 0;
	k->owned = !!tcp->inet_conn.icsk_inet.sk.sk_lock.owned;
	k->untouched = socket_is_untouched(tcp);
	k->signs = socket_signs(tcp) ? WEIR_SIGNS : WEIR_SIGNS_NOT;
	k->tells = !!(tcp->bpf_sock_ops_cb_flags & BPF_SOCK_OPS_STATE_CB_FLAG);
	k->known = 1;
}

static __always_inline void socket_read_request(struct weir_socket *k, struct tcp_request_sock *request)
{
	k->next = request->rcv_isn + 1;
	k->edge = k->next + request->req.req.__req_common.skc_rcv_wnd;
	k->sent = k->acked = request->snt_isn + 1;
	k->ack_slack = 0;
	k->reach = 0xffff; /* the largest window of a SYN */
	k->ts_recent = request->req.req.ts_recent;
	k->early = k->busy = k->owned = 0;
	k->signs = WEIR_SIGNS_UNKNOWN;
	k->tells = 0;
	k->known = 1;
}

/* Does the segment acknowledge the SYN-ACK that the kernel has sent? No other completes the handshake. */
static __always_inline bool answers_request(const struct tcp_request_sock *request, const struct weir_segment *g)
{
	return request && weir_segment_completes(g) && request->snt_isn == weir_segment_answers(g);
}

/* Reads into w->socket what the socket of a packet's connection says, if there is one that has a say. */
__noinline int socket_ask(packet_context *ctx, __u32 hook)
{
	struct work *w = work_of(hook);
	struct tcp_request_sock *request;
	struct tcp_sock *tcp;
	struct bpf_sock *sk;

	if (!w)
		return 0;
	w->socket.asked = 1;
	w->socket.known = 0;
	sk = socket_of(ctx, &w->packet);
	w->socket.gone = !sk || sk->state == STATE_LISTEN;
	if (!sk)
		return 0;
	if (sk->state == STATE_NEW_SYN_RECV) {
		request = bpf_skc_to_tcp_request_sock(sk);
		if (request)
			socket_read_request(&w->socket, request);
	} else if (sk->state != STATE_LISTEN) {
		tcp = bpf_skc_to_tcp_sock(sk);
		if (tcp)
			socket_read(&w->socket, tcp, w->now_ns);
	}
	bpf_sk_release(sk);
	return 0;
}

#endif
