/* SPDX-License-Identifier: GPL-2.0 */
/* New connections at tc: those that limits on connections admit are kept, the others end here. */
#ifndef WEIR_BPF_ADMIT_H
#define WEIR_BPF_ADMIT_H

#include "admission.h"
#include "admitted.h"
#include "badge.h"
#include "checksum_skb.h"
#include "reply.h"

/* The headers of a segment as they matter to a cookie. */
struct cookie_headers {
	union {
		struct ipv4_header ipv4;
		struct ipv6_header ipv6;
	};
	struct tcp_header tcp;
};

/* Does the segment bring back a cookie of this listener's? */
static __noinline bool brings_cookie(struct bpf_sock *sk, const struct packet *p)
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

/* Does the segment repeat what the socket began with, and is the socket sure not to end before the segment is there? */
static __always_inline bool socket_began_with(struct bpf_sock *sk, const struct work *w)
{
	const struct weir_conn *c = bpf_map_lookup_elem(&conns, &w->packet.flow);
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	return tcp && tcp->snd_una - (__u32)tcp->bytes_acked == w->packet.segment.ack && !(c && c->client_reset) &&
	       (sk->state == STATE_ESTABLISHED || sk->state == STATE_SYN_RECV || sk->state == STATE_CLOSE_WAIT);
}

/* Would the segment begin a connection if it met the listener? */
__noinline int admission_brings_cookie(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_INGRESS);
	struct bpf_sock *sk;
	int brings;

	if (!w)
		return 0;
	sk = listener_of(skb, &w->packet);
	if (!sk)
		return 0;
	brings = sk->state == STATE_LISTEN && brings_cookie(sk, &w->packet);
	bpf_sk_release(sk);
	return brings;
}

/* What a segment is to the handshakes of its ends. */
enum handshake {
	HANDSHAKE_NONE,
	HANDSHAKE_ENDS,	    /* it completes one */
	HANDSHAKE_TOO_SOON, /* it would, if what is still there had ended */
};

__noinline int admission_handshake(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_INGRESS);
	bool ends = false, other = false;
	struct bpf_sock *sk;

	if (!w)
		return HANDSHAKE_NONE;
	sk = socket_of(skb, &w->packet);
	if (!sk)
		return HANDSHAKE_NONE;
	if (sk->state == STATE_LISTEN)
		ends = brings_cookie(sk, &w->packet);
	else if (sk->state == STATE_NEW_SYN_RECV)
		ends = answers_request(bpf_skc_to_tcp_request_sock(sk), &w->packet.segment);
	else
		other = !socket_began_with(sk, w);
	other |= sk->state == STATE_NEW_SYN_RECV && !ends;
	bpf_sk_release(sk);
	if (other && admission_brings_cookie(skb))
		return HANDSHAKE_TOO_SOON;
	return ends ? HANDSHAKE_ENDS : HANDSHAKE_NONE;
}

/* Sends the packet back as a RST. Sets w->action: it is not the client's packet any more. */
static __always_inline int admission_reset(struct __sk_buff *skb, struct work *w)
{
	__u32 ifindex = skb->ifindex;

	w->action = WEIR_CLOSE;
	weir_admission_refuse(&w->packet.segment, &w->reply.segment);
	if (bpf_skb_load_bytes(skb, 0, w->packet.ethernet, ETHERNET_BYTES) || packet_write(skb, w, true, 0))
		return TC_ACT_SHOT;
	return ifindex == LOOPBACK_IFINDEX ? TC_ACT_UNSPEC : bpf_redirect(ifindex, 0);
}

static __always_inline int admission_verdict(struct __sk_buff *skb, struct work *w, int became)
{
	switch (became) {
	case WEIR_ADMISSION_DROPPED:
		return TC_ACT_SHOT;
	case WEIR_ADMISSION_RESET:
		return admission_reset(skb, w);
	default:
		return TC_ACT_UNSPEC;
	}
}

/* A SYN. Returns the verdict; TC_ACT_UNSPEC: ingress goes on with it. */
static __always_inline int admission_first(struct __sk_buff *skb, struct work *w)
{
	int socket = admission_ask_socket(skb, HOOK_INGRESS);

	badge_asked(skb, &w->packet);
	if (socket == WEIR_SOCKET_BEGINS)
		count(w->server, WEIR_ADMISSION_REPEATED);
	if (!weir_socket_begins_another(socket))
		return TC_ACT_UNSPEC;
	if (!checksum_is_right(skb, w)) {
		count(w->server, WEIR_BAD_CHECKSUM);
		return TC_ACT_SHOT;
	}
	return admission_verdict(skb, w, admission_look(w, socket));
}

/* A segment that may complete a handshake. Returns the verdict; TC_ACT_UNSPEC: ingress goes on with it. */
static __always_inline int admission_last(struct __sk_buff *skb, struct work *w)
{
	const struct weir_segment *g = &w->packet.segment;
	struct weir_admitted *there;
	int handshake;

	if (!weir_segment_completes(g))
		return TC_ACT_UNSPEC;
	handshake = admission_handshake(skb);
	if (handshake == HANDSHAKE_NONE)
		return TC_ACT_UNSPEC;
	if (!checksum_is_right(skb, w)) {
		count(w->server, WEIR_BAD_CHECKSUM);
		return TC_ACT_SHOT;
	}
	there = bpf_map_lookup_elem(&admitted, &w->packet.flow);
	if (handshake == HANDSHAKE_TOO_SOON || (there && weir_admitted_in_front(there, w->now_ns))) {
		count(w->server, WEIR_UNACCEPTABLE);
		return TC_ACT_SHOT;
	}
	badge_asked(skb, &w->packet);
	if (there && weir_admitted_by(there, g))
		return TC_ACT_UNSPEC;
	if (there)
		admitted_end(&w->packet.flow, there->word);
	return admission_verdict(skb, w, admission_take(w));
}

/* A segment of a connection that is in no table. Returns the verdict; TC_ACT_UNSPEC: ingress goes on with it. */
static __always_inline int admission(struct __sk_buff *skb, struct work *w)
{
	if (!admission_matters(w))
		return TC_ACT_UNSPEC;
	if (w->packet.segment.flags & WEIR_TCP_RST)
		admitted_reset(&w->packet.flow);
	return weir_segment_opens(&w->packet.segment) ? admission_first(skb, w) : admission_last(skb, w);
}

#endif
