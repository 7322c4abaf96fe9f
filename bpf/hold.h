/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cgroup_skb ingress: the packets that a server's sockets are about to get, whatever the interface. Those of connections
 * that tc could not read are withheld while they are over a limit. tc has seen and translated them before.
 */
#ifndef WEIR_BPF_HOLD_H
#define WEIR_BPF_HOLD_H

#include "frame.h"
#include "settings.h"
#include "track.h"

#define SOCKET_GETS_NOTHING 0
#define SOCKET_GETS_IT 1

static long hold_step(__u32 i __attribute__((unused)), struct feed *f)
{
	struct work *w = f->work;
	struct weir_hold_reader *r = &w->hold;
	__u32 at = r->next - w->packet.segment.seq;
	int byte;

	if (at >= w->packet.segment.len)
		return 1;
	byte = payload_byte(f->skb, w, at);
	return byte < 0 || weir_hold_reader_feed(r, byte) == WEIR_FRAME_LOST;
}

__noinline int hold_frame(struct __sk_buff *skb, struct work *w)
{
	struct feed feed = { .skb = skb, .work = w };

	if (!w)
		return 0;
	w->window_length = 0;
	if (w->hold.by_records)
		bpf_loop(FRAME_STEPS, hold_step, &feed, 0);
	weir_hold_reader_end(&w->hold, &w->packet.segment);
	return 0;
}

/* Does a limit refuse what the segment weighs? */
static __always_inline bool hold_refused(struct __sk_buff *skb, struct work *w)
{
	if (!w->hold.weight || (w->server_flags & WEIR_SERVER_PAUSED))
		return false;
	w->weight = w->hold.weight;
	w->asked = w->hold.records;
	w->asked_anew = w->hold.again ? 0 : w->hold.records;
	identify_peer(w);
	if (identity_exempt(w))
		return false;
	decide(skb, w);
	return w->refused;
}

static __always_inline int withhold(struct work *w, struct weir_conn *c)
{
	bpf_spin_lock(&c->lock);
	weir_hold_refuse(c, &w->hold, w->now_ns);
	bpf_spin_unlock(&c->lock);
	count(w->server, WEIR_HELD_RECORD);
	count_many(w->server, WEIR_RECORDS_HELD, w->asked_anew);
	return SOCKET_GETS_NOTHING;
}

static __always_inline int hold_segment(struct __sk_buff *skb, struct work *w, struct weir_conn *c,
					enum weir_reason *why)
{
	enum weir_action action;
	__u64 held_ns = 0;
	bool refused;

	hold_frame(skb, w);
	refused = hold_refused(skb, w);
	if (refused && !(w->server_flags & WEIR_SERVER_DRY_RUN))
		return withhold(w, c);

	bpf_spin_lock(&c->lock);
	action = weir_hold_commit(c, &w->hold, w->now_ns, &held_ns, why);
	bpf_spin_unlock(&c->lock);
	if (action == WEIR_HOLD) {
		undo_decision(w);
		return SOCKET_GETS_NOTHING;
	}
	count_many(w->server, refused ? WEIR_RECORDS_DRY_RUN_HELD : WEIR_RECORDS_PASSED, w->hold.records);
	count_many(w->server, WEIR_HELD_NS, held_ns);
	return SOCKET_GETS_IT;
}

static __always_inline int hold_conn(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	enum weir_reason why = WEIR_REASON_COUNT;
	int verdict = SOCKET_GETS_IT;
	enum weir_action action;

	bpf_spin_lock(&c->lock);
	action = weir_hold_begin(c, &w->socket, &w->packet.segment, &w->hold, &why);
	bpf_spin_unlock(&c->lock);
	if (action == WEIR_FRAME)
		verdict = hold_segment(skb, w, c, &why);
	else if (action == WEIR_HOLD)
		verdict = SOCKET_GETS_NOTHING;
	if (why != WEIR_REASON_COUNT)
		count(w->server, why);
	return verdict;
}

/*
 * A cgroup's sockets may be of several network namespaces. Of two servers with one port in two of them, each is the
 * business of its own maps.
 */
static __always_inline bool socket_is_here(struct __sk_buff *skb, struct work *w)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tcp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;

	if (!tcp || tcp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net->net_cookie != w->netns_cookie)
		return false;
	w->socket.listens = sk->state == STATE_LISTEN;
	socket_read(&w->socket, tcp, w->now_ns);
	return true;
}

SEC("cgroup_skb/ingress")
int weir_hold(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_HOLD);
	struct weir_conn *c;
	struct packet *p;
	__u32 end;

	if (!w)
		return SOCKET_GETS_IT;
	p = &w->packet;
	if (!packet_parse_ip(skb, p, 0, &end) || !packet_parse_ports(skb, p) ||
	    !server_listens(p->dest, p->dest_port, &w->server))
		return SOCKET_GETS_IT;
	if (!load_settings(w, HOOK_HOLD) || !socket_is_here(skb, w) || !packet_parse_tcp(skb, p, end))
		return SOCKET_GETS_IT;
	flow_set(p, true);
	c = bpf_map_lookup_elem(&conns, &p->flow);
	return c ? hold_conn(skb, w, c) : SOCKET_GETS_IT;
}

#endif
