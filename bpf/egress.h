/* SPDX-License-Identifier: GPL-2.0 */
/* tc egress: packets of the servers. */
#ifndef WEIR_BPF_EGRESS_H
#define WEIR_BPF_EGRESS_H

#include "body_served.h"
#include "frame_response.h"
#include "outgoing.h"
#include "passing.h"
#include "track.h"

/* Where something was cut. */
__noinline int pass_to_client(struct __sk_buff *skb, struct work *w)
{
	if (!w)
		return TC_ACT_UNSPEC;
	weir_splice_to_client(&w->view.splice, &w->packet.segment);
	if (packet_store_numbers(skb, &w->packet)) {
		count(w->server, WEIR_UNTRANSLATABLE);
		return TC_ACT_SHOT;
	}
	count(w->server, WEIR_TRANSLATED);
	return TC_ACT_UNSPEC;
}

/* What the header says. A RST needs nothing of what is under way. */
static __noinline enum weir_action egress_begin(struct work *w, struct weir_conn *c, enum weir_reason *why)
{
	const struct weir_segment *g = &w->packet.segment;
	struct busy_found b = weir_conn_wants_busy(c) ? busy_find(c) : busy_seen(c);
	enum weir_action action = WEIR_DROP;
	bool had = false, kept;

	bpf_spin_lock(&c->lock);
	c->last_ns = w->now_ns;
	kept = busy_is_kept(c, &b);
	if (!conn_is_found(w, c) || !(kept || (g->flags & WEIR_TCP_RST))) {
		*why = WEIR_CONTENDED;
	} else {
		had = kept && b.there && weir_conn_has_seats(c);
		action = weir_conn_begin_server(c, kept ? b.there : NULL, g, &w->response, why);
		if (had)
			weir_conn_take_out_seats(c, b.there, w->given);
	}
	weir_conn_look(c, g, action, &w->view);
	bpf_spin_unlock(&c->lock);
	if (had)
		seats_give(w);
	return action;
}

/* What was read of it. Of another connection, whose entry is by now where this one's was, nothing was. */
static __noinline enum weir_action egress_commit(struct work *w, struct weir_conn *c, enum weir_reason *why)
{
	bool stays = weir_place_is_midway(weir_response_place(&w->response.response)), had = false;
	struct busy_found b = stays ? busy_find_or_make(c) : weir_conn_has_seats(c) ? busy_find(c) : busy_seen(c);
	enum weir_action action = WEIR_PASS;

	bpf_spin_lock(&c->lock);
	if (c->id == w->conn_id && busy_moved(w, c, &b)) {
		*why = WEIR_CONTENDED;
		action = WEIR_DROP;
	} else if (c->id == w->conn_id) {
		had = b.there && weir_conn_has_seats(c);
		weir_conn_commit_server(c, b.there, &w->response, why);
		if (had)
			weir_conn_take_out_seats(c, b.there, w->given);
		busy_keep(c, &b);
	}
	bpf_spin_unlock(&c->lock);
	busy_drop(&b);
	if (had)
		seats_give(w);
	return action;
}

/* Both in one, for what was read at once. FRAME: the connection has changed meanwhile, and nothing was done. */
static __noinline enum weir_action egress_take(struct work *w, struct weir_conn *c, enum weir_reason *why)
{
	const struct weir_segment *g = &w->packet.segment;
	bool stays = weir_place_is_midway(weir_response_place(&w->response.response));
	struct busy_found b = stays ? busy_find_or_make(c) : busy_seen(c);
	enum weir_action action = WEIR_DROP;

	bpf_spin_lock(&c->lock);
	c->last_ns = w->now_ns;
	if (busy_moved(w, c, &b)) {
		*why = WEIR_CONTENDED;
	} else {
		action = weir_conn_take_server(c, b.there, g, &w->response, why);
		if (action != WEIR_FRAME && weir_conn_wants_busy(c))
			busy_keep(c, &b);
	}
	weir_conn_look(c, g, action, &w->view);
	bpf_spin_unlock(&c->lock);
	busy_drop(&b);
	return action;
}

/* Reads what most answers are, and takes the lock once. FRAME: it is none of them, or there was a race: nothing was done. */
static __always_inline enum weir_action egress_at_once(struct __sk_buff *skb, struct work *w, struct weir_conn *c,
						       enum weir_reason *why)
{
	const struct weir_segment *g = &w->packet.segment;

	if (!weir_conn_reads_server_at_once(c, g))
		return WEIR_FRAME;
	weir_response_reader_open(&w->response, c, NULL);
	w->response.next = g->seq; /* as it was when that was asked */
	frame_responses(skb, w);
	return egress_take(w, c, why);
}

static __always_inline void egress_count_answer(const struct work *w)
{
	if (w->response.took_ns)
		count_duration(w->server, WEIR_ANSWER_NS, WEIR_ANSWER_1MS, w->response.took_ns);
}

static __always_inline enum weir_action egress_in_steps(struct __sk_buff *skb, struct work *w, struct weir_conn *c,
							enum weir_reason *why)
{
	enum weir_action action = egress_begin(w, c, why);

	if (action != WEIR_FRAME)
		return action;
	egress_count_answer(w);
	frame_responses(skb, w);
	return egress_commit(w, c, why);
}

/*
 * Is it a RST of a connection that another CPU has just laid to rest, or forgotten? It passes, as ingress.h says of a client's. Where its
 * numbers are another's to the client it is dropped. Nobody waits for it: nothing is outstanding on what rests, and of what is
 * forgotten while numbers are translated, all has been said. What the client sends next is answered by another one.
 */
static __always_inline bool server_reset_goes_on(const struct work *w, enum weir_reason why)
{
	return why == WEIR_CONTENDED && (w->packet.segment.flags & WEIR_TCP_RST) && !w->view.splice.cuts;
}

/* Is this not what the socket has sent? Then what comes from the client is not what the socket gets, either. */
static __noinline bool egress_is_renumbered(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	bool renumbered;

	socket_ask(skb, HOOK_EGRESS);
	bpf_spin_lock(&c->lock);
	renumbered = conn_is_found(w, c) && weir_conn_is_renumbered(c, &w->socket, &w->packet.segment);
	bpf_spin_unlock(&c->lock);
	return renumbered;
}

static __always_inline int egress_conn(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	const struct weir_segment *g = &w->packet.segment;
	enum weir_reason why = WEIR_REASON_NONE;
	enum weir_action action;
	bool reset;

	if (WEIR_UNLIKELY(weir_conn_server_jumps(c, g)) && egress_is_renumbered(skb, w, c))
		count(w->server, WEIR_UNSEEN);
	action = egress_at_once(skb, w, c, &why);
	if (action == WEIR_FRAME)
		action = egress_in_steps(skb, w, c, &why);
	else if (action == WEIR_PASS)
		egress_count_answer(w);
	if (server_reset_goes_on(w, why)) {
		action = WEIR_PASS;
		why = WEIR_REASON_NONE;
	}
	/* Nothing more comes from the server. */
	reset = server_resets(skb, w);
	if ((reset || (g->flags & WEIR_TCP_FIN)) && !conn_is_anothers(w, c)) {
		width_note_cut(c);
		conn_release(c, w->conn_id);
	}
	if (WEIR_UNLIKELY(why == WEIR_BODY_SERVED))
		why = note_served_body(skb, w);
	if (why != WEIR_REASON_NONE)
		count(w->server, why);
	conn_retire(w, c, true, reset);
	if (action == WEIR_DROP)
		return TC_ACT_SHOT;
	return w->view.splice.cuts ? pass_to_client(skb, w) : TC_ACT_UNSPEC;
}

/* It comes again. Until then nothing is known of its connection, which rests. */
static __always_inline int egress_waits(const struct work *w)
{
	count(w->server, WEIR_BUSY_MAP_FULL);
	return TC_ACT_SHOT;
}

SEC("tc")
int weir_egress(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_EGRESS);
	struct weir_conn *c;
	struct packet *p;
	__u32 end;
	int woken;

	/* What came in by an interface is forwarded, or is an answer of weir's own: no socket here has sent it. */
	if (!w || has_own_device(skb) || skb->ingress_ifindex)
		return TC_ACT_UNSPEC;
	p = &w->packet;
	if (!packet_parse_ip(skb, p, skb->protocol, ETHERNET_BYTES, &end) || p->fragment ||
	    !packet_parse_ports(skb, p) || !server_listens(p->source, p->source_port, &w->server))
		return TC_ACT_UNSPEC;
	flow_set(p, false);
	c = conn_look_up(w);
	if (!packet_parse_tcp(skb, p, end))
		return TC_ACT_UNSPEC;
	if (weir_segment_opens(&p->segment))
		outgoing_note(&p->flow, p->segment.seq);
	if (!c) {
		woken = conn_wake(HOOK_EGRESS, true);
		if (woken == WOKEN_NO_ROOM)
			return egress_waits(w);
		if (woken != WOKEN)
			return TC_ACT_UNSPEC;
		c = conn_look_up(w);
		if (!c)
			return TC_ACT_UNSPEC;
	}
	if (p->segment.flags & WEIR_TCP_SYN) {
		/* A new connection of the same two ends: what is known of the old one ends with it. */
		if (!conn_began_with(c, p->segment.seq))
			conn_forget(&p->flow, c->id);
		return TC_ACT_UNSPEC;
	}
	if (server_passes(w, c))
		return TC_ACT_UNSPEC;
	w->now_ns = bpf_ktime_get_ns();
	return egress_conn(skb, w, c);
}

#endif
