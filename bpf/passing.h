/* SPDX-License-Identifier: GPL-2.0 */
/* Packets that bring nothing to read (include/weir/conn/passing.h): they are done before anything is loaded for others. */
#ifndef WEIR_BPF_PASSING_H
#define WEIR_BPF_PASSING_H

#include "weir/conn/passing.h"

#include "badge.h"
#include "track.h"

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
