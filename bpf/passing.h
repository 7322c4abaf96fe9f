/* SPDX-License-Identifier: GPL-2.0 */
/* Packets that bring nothing to read (include/weir/conn/passing.h): they are done before anything is loaded for others. */
#ifndef WEIR_BPF_PASSING_H
#define WEIR_BPF_PASSING_H

#include "weir/conn/passing.h"

#include "badge.h"
#include "checksum_skb.h"
#include "track.h"

#define PURE_ACK_FLAGS (WEIR_TCP_SYN | WEIR_TCP_FIN | WEIR_TCP_RST | WEIR_TCP_URG | WEIR_TCP_ACK)

/*
 * When it is now, for the connection's silence, which is counted in seconds. Only where bytes pass while a read is to be confirmed
 * (weir_unconfirmed_pass()) it has to be exact.
 */
static __always_inline __u64 client_passing_ns(const struct weir_conn *c, const struct weir_segment *g)
{
	return g->len && WEIR_FRESH(c->unconfirmed.n) ? bpf_ktime_get_ns() : bpf_ktime_get_coarse_ns();
}

/*
 * Under the lock, if it might pass. Not inlined, as hardly any packet comes here: what does not need the lock has the caller's registers
 * for itself.
 */
static __noinline bool client_passes_locked(struct work *w, struct weir_conn *c)
{
	const struct weir_segment *g = &w->packet.segment;
	__u64 now_ns;
	bool passes;

	now_ns = client_passing_ns(c, g);
	bpf_spin_lock(&c->lock);
	c->last_ns = now_ns;
	passes = conn_is_found(w, c) && weir_conn_client_passes(c, g);
	bpf_spin_unlock(&c->lock);
	return passes;
}

static __noinline bool server_passes_locked(struct work *w, struct weir_conn *c)
{
	const struct weir_segment *g = &w->packet.segment;
	__u64 now_ns;
	bool passes;

	now_ns = bpf_ktime_get_coarse_ns();
	bpf_spin_lock(&c->lock);
	c->last_ns = now_ns;
	passes = conn_is_found(w, c) && weir_conn_server_passes(c, g);
	bpf_spin_unlock(&c->lock);
	return passes;
}

/* From a client. What cannot be read may have to be paced. */
static __always_inline bool client_passes(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	const struct weir_segment *g = &w->packet.segment;

	if (w->packet.signature || c->opaque_why == WEIR_SIGNED ||
	    (g->len && c->phase == WEIR_PHASE_OPAQUE && (w->server_flags & WEIR_SERVER_PACED)))
		return false;
	if (!weir_conn_client_goes_by(c, w->conn_id, g) &&
	    !(weir_conn_client_may_pass(c, g) && client_passes_locked(w, c)))
		return false;
	badge_put_on(skb, g, c);
	return true;
}

/* From the server. */
static __always_inline bool server_passes(struct work *w, struct weir_conn *c)
{
	const struct weir_segment *g = &w->packet.segment;

	return weir_conn_server_goes_by(c, w->conn_id, g) ||
	       (weir_conn_server_may_pass(c, g) && server_passes_locked(w, c));
}

/*
 * The TCP header of a pure acknowledgement that has only what nearly every one has: read where it stands. NULL: the segment is another one, or
 * is to be parsed for another reason. *ts: its timestamps; NULL: it has none.
 */
static __always_inline const struct tcp_header *pure_ack(struct __sk_buff *skb, __u32 at, __u32 end, const __be32 **ts)
{
	const void *data = (const void *)(long)skb->data, *data_end = (const void *)(long)skb->data_end;
	const struct tcp_header *tcp = data + at;
	const __be32 *options = (const void *)(tcp + 1);
	__u32 length = end - at;

	if (length > TCP_BYTES + TCP_TS_BYTES || at > HEADERS_MAX || (const void *)options > data_end)
		return NULL;
	if ((tcp->flags & PURE_ACK_FLAGS) != WEIR_TCP_ACK || (tcp->offset >> 4) * 4 != length)
		return NULL;
	*ts = NULL;
	if (length == TCP_BYTES)
		return tcp;
	if (length != TCP_BYTES + TCP_TS_BYTES || (const void *)(options + 3) > data_end ||
	    options[0] != bpf_htonl(TCP_TS_WORD))
		return NULL;
	*ts = options;
	return tcp;
}

/*
 * Does a client's packet go by before it is parsed, as a pure acknowledgement? The conditions are those that a segment goes by on after that
 * (ingress_segment()), and a checksum that can be judged without the packet.
 */
static __always_inline bool client_ack_goes_by(struct __sk_buff *skb, const struct work *w, struct weir_conn *c,
					       __u32 end)
{
	const __u32 at = w->packet.l4;
	const struct tcp_header *tcp;
	struct weir_segment g;
	const __be32 *ts;

	tcp = pure_ack(skb, at, end, &ts);
	if (!tcp || weir_conn_may_be_over(c) || c->opaque_why == WEIR_SIGNED)
		return false;
	if (!(weir_sum_is(pseudo_sum(&w->packet, end - at), tcp->check) || checksum_was_checked(skb)))
		return false;
	WEIR_FRESH_ALL(); /* nothing of the segment is read before: that would need more stack than there is */
	g.flags = WEIR_TCP_ACK;
	g.seq = bpf_ntohl(tcp->seq);
	g.ack = bpf_ntohl(tcp->ack);
	g.len = 0;
	g.has_ts = !!ts;
	g.tsval = ts ? bpf_ntohl(ts[1]) : 0;
	return weir_conn_client_goes_by(c, w->conn_id, &g);
}

/* To the server's socket: it brings nothing. */
static __always_inline bool brings_nothing(const struct weir_segment *g)
{
	return !g->len && !(g->flags & (WEIR_TCP_SYN | WEIR_TCP_FIN | WEIR_TCP_RST));
}

/* To a connection's socket: all of it was read. What comes to a listener may be of another connection. */
static __always_inline bool was_read(struct __sk_buff *skb, const struct weir_segment *g, const struct weir_conn *c)
{
	struct bpf_sock *sk = skb->sk;

	return badge_is_on(skb, c) && sk && sk->state != STATE_LISTEN && weir_hold_passes(c, g);
}

#endif
