/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Delaying the packets of connections that cannot be read: one that is over a limit gets its time of departure and is
 * sent to a device of the agent's (user/sys/pace.h), whose queueing discipline lets it go then. It comes back up from there
 * as from the device on which it arrived, behind the programs on it.
 */
#ifndef WEIR_BPF_PACE_H
#define WEIR_BPF_PACE_H

#include "weir/conn/pace.h"

#include "decide.h"
#include "hold.h"
#include "track.h"

#define TSTAMP_MONOTONIC 1 /* BPF_SKB_TSTAMP_DELIVERY_MONO */

/* What the kernel's socket knows of the packet's connection. False: there is none that would take data. */
static __always_inline bool socket_knows(struct __sk_buff *skb, struct work *w)
{
	struct bpf_sock *sk = socket_of(skb, &w->packet);
	struct tcp_sock *tcp;

	if (!sk)
		return false;
	w->socket.listens = sk->state == STATE_LISTEN || sk->state == STATE_NEW_SYN_RECV;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp)
		socket_read(&w->socket, tcp, w->now_ns);
	bpf_sk_release(sk);
	return tcp || w->socket.listens;
}

/* Takes what the segment weighs, as of w->decision.at_ns. */
__noinline int reserve(struct __sk_buff *skb, struct work *w)
{
	struct decision *d;

	if (!w)
		return 0;
	if (hold_is_inside(w))
		weir_hold_reader_spare_records(&w->hold);
	d = &w->decision;
	decision_start(d);
	d->weight = w->hold.weight;
	d->asked = w->hold.records;
	d->asked_anew = w->hold.again ? 0 : w->hold.records;
	d->at_ns = w->now_ns;
	d->latest_ns = w->now_ns + WEIR_PACE_MAX_NS;
	if (!d->weight)
		return 0;
	identify_client(w);
	if (identity_exempt(w) || limits_find(d, &w->request.request.path))
		return 0;
	each_limit(d, subject_find);
	ask_in_turn(d);
	remember_names(skb, w);
	if (d->refused)
		decision_give_back(d);
	return 0;
}

static __always_inline enum weir_action pace_segment(struct __sk_buff *skb, struct work *w, struct weir_conn *c,
						     __u64 *departs_ns, enum weir_reason *why)
{
	enum weir_action action;
	__u64 held_ns = 0;

	hold_frame(skb, w);
	reserve(skb, w);
	if (w->decision.refused) {
		withhold(w, c);
		return WEIR_DROP;
	}
	bpf_spin_lock(&c->lock);
	action = weir_pace_commit(c, &w->hold, w->now_ns, w->decision.at_ns, departs_ns, &held_ns, why);
	bpf_spin_unlock(&c->lock);
	if (action == WEIR_DROP) {
		undo_decision(&w->decision);
		return WEIR_DROP;
	}
	tally_decision(&w->decision);
	count_many(w->server, w->decision.overlooked ? WEIR_RECORDS_DRY_RUN_HELD : WEIR_RECORDS_PASSED,
		   w->hold.records);
	top_records(w->hook, w->hold.records, w->decision.overlooked ? w->hold.records : 0,
		    w->decision.waited ? w->decision.asked_anew : 0);
	if (held_ns)
		count_duration(w->server, WEIR_HELD_NS, WEIR_HELD_1MS, held_ns);
	if (w->decision.waited)
		count_many(w->server, WEIR_RECORDS_HELD, w->decision.asked_anew);
	return WEIR_PASS;
}

/*
 * It keeps its badge, by which the socket's hook knows it from what comes in its place meanwhile. The device tells flows apart by a hash,
 * which is the connection's here: a client chooses the label of an IPv6 packet.
 */
static __always_inline int depart(struct __sk_buff *skb, struct work *w, const struct weir_conn *c, __u64 departs_ns)
{
	if (bpf_skb_set_tstamp(skb, departs_ns, TSTAMP_MONOTONIC))
		return TC_ACT_SHOT;
	count(w->server, WEIR_PACED);
	bpf_set_hash(skb, c->badge);
	return bpf_redirect(w->settings.pace_ifindex, 0);
}

/*
 * What is charged here must get to the socket. The kernel may drop a packet on the way, for its destination's hardware address or for
 * what is in its IP options. Such packets are left to the hook at the socket, which sees only those that have come.
 */
static __always_inline bool arrives(struct __sk_buff *skb, struct work *w)
{
	return skb->pkt_type == PACKET_HOST && w->packet.plain_ip && checksum_is_sure(skb, w);
}

/*
 * A packet on its way to the server, with the server's numbers. Not inlined, so that its stack and that of reading requests
 * do not add up; not global, for `c` has to be known for a map's value.
 */
static __noinline int pace(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	enum weir_reason why = WEIR_REASON_NONE;
	enum weir_action action;
	__u64 departs_ns = 0;

	if (!weir_pace_concerns(&w->packet.segment))
		return TC_ACT_UNSPEC;
	if (!w->read)
		badge_pay(skb, c, WEIR_PAID_NOTHING);
	if (!weir_pace_is_on(w->server_flags) || !arrives(skb, w) || !socket_knows(skb, w))
		return TC_ACT_UNSPEC;
	bpf_spin_lock(&c->lock);
	action = weir_pace_begin(c, &w->socket, &w->packet.segment, w->now_ns, &w->hold, &departs_ns, &why);
	w->whose.preamble = c->preamble;
	bpf_spin_unlock(&c->lock);
	if (action == WEIR_FRAME) {
		action = pace_segment(skb, w, c, &departs_ns, &why);
		badge_pay(skb, c, weir_pace_paid(&w->hold, &w->packet.segment, w->read));
	}
	if (why != WEIR_REASON_NONE)
		count(w->server, why);
	if (action == WEIR_DROP)
		return TC_ACT_SHOT;
	return weir_pace_waits(departs_ns, w->now_ns) ? depart(skb, w, c, departs_ns) : TC_ACT_UNSPEC;
}

#endif
