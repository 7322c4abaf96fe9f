/* SPDX-License-Identifier: GPL-2.0 */
/* Limits on connections (include/weir/admission/admission.h) on the maps, and the server's sockets. */
#ifndef WEIR_BPF_ADMISSION_H
#define WEIR_BPF_ADMISSION_H

#include "admitted.h"
#include "checksum.h"
#include "decide.h"
#include "names.h"
#include "outcome.h"
#include "reply.h"
#include "socket.h"

#define STATE_TIME_WAIT 6

/* Are there limits on the server's connections, and may they refuse? */
static __always_inline bool admission_matters(const struct work *w)
{
	return (w->decision.traits & WEIR_SERVER_CONNECTIONS) && !(w->server_flags & WEIR_SERVER_PAUSED);
}

/* Would the listener answer a SYN with a cookie? As tcp_get_syncookie_mss() in the kernel says it. */
static __always_inline bool listener_sends_cookies(struct bpf_sock *sk)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	__u32 cookies, waiting;

	if (!tcp)
		return false;
	cookies = tcp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net->ipv4.sysctl_tcp_syncookies;
	waiting = tcp->inet_conn.icsk_accept_queue.qlen.counter;
	return cookies == 2 || (cookies && waiting > tcp->inet_conn.icsk_inet.sk.sk_max_ack_backlog);
}

static __always_inline enum weir_admission_socket admission_socket(struct bpf_sock *sk)
{
	switch (sk->state) {
	case STATE_LISTEN:
		return listener_sends_cookies(sk) ? WEIR_SOCKET_COOKIES : WEIR_SOCKET_LISTENS;
	case STATE_TIME_WAIT:
		return WEIR_SOCKET_ENDED;
	default:
		return WEIR_SOCKET_THERE;
	}
}

/* The headers of a segment as they matter to a cookie. */
struct cookie_headers {
	union {
		struct ipv4_header ipv4;
		struct ipv6_header ipv6;
	};
	struct tcp_header tcp;
};

/* Does the segment bring back a cookie of this listener's? */
static __always_inline bool brings_cookie(struct bpf_sock *sk, const struct packet *p)
{
	struct cookie_headers h = {};

	h.tcp.source = p->source_port;
	h.tcp.dest = p->dest_port;
	h.tcp.seq = bpf_htonl(p->segment.seq);
	h.tcp.ack = bpf_htonl(p->segment.ack);
	h.tcp.offset = TCP_BYTES / 4 << 4;
	h.tcp.flags = p->segment.flags;
	if (p->ipv6) {
		h.ipv6.version_class_label = bpf_htonl(6U << 28);
		__builtin_memcpy(h.ipv6.source, p->source, 16);
		__builtin_memcpy(h.ipv6.dest, p->dest, 16);
		return !bpf_tcp_check_syncookie(sk, &h.ipv6, sizeof(h.ipv6), (struct tcphdr *)&h.tcp, sizeof(h.tcp));
	}
	h.ipv4.version_ihl = 0x45;
	__builtin_memcpy(&h.ipv4.source, p->source + 12, 4);
	__builtin_memcpy(&h.ipv4.dest, p->dest + 12, 4);
	return !bpf_tcp_check_syncookie(sk, &h.ipv4, sizeof(h.ipv4), (struct tcphdr *)&h.tcp, sizeof(h.tcp));
}

/* What the kernel has for a SYN. */
__noinline int admission_ask_socket(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_INGRESS);
	enum weir_admission_socket said;
	struct bpf_sock *sk;

	if (!w)
		return WEIR_SOCKET_NONE;
	sk = socket_of(skb, &w->packet);
	if (!sk)
		return WEIR_SOCKET_NONE;
	said = admission_socket(sk);
	bpf_sk_release(sk);
	return said;
}

/* Does the segment begin a connection by a cookie? */
__noinline int admission_by_cookie(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_INGRESS);
	struct bpf_sock *sk;
	int begins;

	if (!w)
		return 0;
	sk = socket_of(skb, &w->packet);
	if (!sk)
		return 0;
	begins = sk->state == STATE_LISTEN && brings_cookie(sk, &w->packet);
	bpf_sk_release(sk);
	return begins;
}

/* Those who bring the connections of many are no one's source, nor anyone's user: limits without a key are for them. */
static __always_inline void admission_identify(struct work *w)
{
	w->request.preamble = (struct weir_preamble){};
	identify_client(w);
	w->decision.unreadable = 0;
	w->decision.connects = 1;
	if (bpf_map_lookup_elem(&proxies, &w->peer) || bpf_map_lookup_elem(&balancers, &w->peer)) {
		w->decision.source = 0;
		w->decision.identity.user = 0;
	}
}

/* Does each of the limits that refuse ask for a RST? */
static __always_inline bool refusal_resets(const struct decision *d)
{
	bool resets = true;

#pragma GCC unroll 16
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		__u32 index = weir_limit_index(d->server, d->limits[n]);
		const struct weir_limit *limit;

		if (!(d->refused >> n & 1))
			continue;
		limit = bpf_map_lookup_elem(&limits, &index);
		resets = resets && limit && limit->flags & WEIR_LIMIT_RESET;
	}
	return resets;
}

/* What becomes of a connection: a reason of the group ADMISSION. Its places stand in the decision. */
__noinline int admission_decide(struct __sk_buff *skb, __u32 hook)
{
	struct work *w = work_of(hook);
	struct decision *d;

	if (!w)
		return WEIR_ADMITTED;
	d = &w->decision;
	d->n_limits = 0;
	__builtin_memset(d->places, 0, sizeof(d->places));
	admission_identify(w);
	if (identity_exempt(w) || match_limits(d->memory, &w->request.request.path))
		return WEIR_ADMISSION_EXEMPT;
	decide(d);
	remember_names(skb, w);
	if (!d->refused)
		return d->overlooked ? WEIR_ADMISSION_DRY_RUN : WEIR_ADMITTED;
	if (w->server_flags & WEIR_SERVER_DRY_RUN)
		return WEIR_ADMISSION_DRY_RUN;
	return refusal_resets(d) ? WEIR_ADMISSION_RESET : WEIR_ADMISSION_DROPPED;
}

/* The packet turns round, as a RST. */
static __always_inline int admission_reset(struct __sk_buff *skb, struct work *w)
{
	__u32 ifindex = skb->ifindex;

	weir_admission_refuse(&w->packet.segment, &w->reply);
	if (bpf_skb_load_bytes(skb, 0, w->packet.ethernet, ETHERNET_BYTES) || packet_write(skb, w, true, 0))
		return TC_ACT_SHOT;
	return ifindex == LOOPBACK_IFINDEX ? TC_ACT_UNSPEC : bpf_redirect(ifindex, 0);
}

/* The limits on connections are asked for the packet's. The verdict; TC_ACT_UNSPEC: it is admitted. */
static __always_inline int admission_ask(struct __sk_buff *skb, struct work *w)
{
	int became;

	if (!checksum_is_right(skb, w)) {
		count(w->server, WEIR_BAD_CHECKSUM);
		return TC_ACT_SHOT;
	}
	became = admission_decide(skb, w->hook);
	w->decision.connects = 0;
	count(w->server, became);
	if (became == WEIR_ADMISSION_DROPPED)
		return TC_ACT_SHOT;
	if (became == WEIR_ADMISSION_RESET)
		return admission_reset(skb, w);
	if (became != WEIR_ADMISSION_EXEMPT)
		admitted_keep(w->hook);
	return TC_ACT_UNSPEC;
}

/* A SYN. The verdict; TC_ACT_UNSPEC: it goes on. */
static __always_inline int admission_syn(struct __sk_buff *skb, struct work *w)
{
	const struct weir_segment *g = &w->packet.segment;
	struct weir_admitted *there;
	enum weir_admission asks;
	int socket;

	if (!admission_matters(w) || !weir_segment_opens(g))
		return TC_ACT_UNSPEC;
	socket = admission_ask_socket(skb);
	there = bpf_map_lookup_elem(&admitted, &w->packet.flow);
	asks = weir_admission_of_syn(g, socket, there);
	if (asks == WEIR_ASKS_AGAIN)
		count(w->server, WEIR_ADMISSION_REPEATED);
	if (asks == WEIR_ASKS_AGAIN || asks == WEIR_ASKS_NOTHING)
		return TC_ACT_UNSPEC;
	if (there)
		admitted_end(&w->packet.flow, there->word);
	if (asks == WEIR_ASKS_NOW)
		return admission_ask(skb, w);
	count(w->server, WEIR_ADMISSION_LATER);
	return TC_ACT_UNSPEC;
}

/* A segment of a connection that is in no table. The verdict; TC_ACT_UNSPEC: it goes on. */
static __always_inline int admission_segment(struct __sk_buff *skb, struct work *w)
{
	const struct weir_segment *g = &w->packet.segment;
	struct weir_admitted *there;

	if (!admission_matters(w))
		return TC_ACT_UNSPEC;
	there = bpf_map_lookup_elem(&admitted, &w->packet.flow);
	if (there && weir_admission_ended_by(g, there))
		admitted_end(&w->packet.flow, there->word);
	if (!weir_segment_completes(g) || (there && there->isn == weir_segment_isn(g)) || !admission_by_cookie(skb))
		return TC_ACT_UNSPEC;
	if (there)
		admitted_end(&w->packet.flow, there->word);
	return admission_ask(skb, w);
}

#endif
