/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cgroup_skb ingress: the packets that a server's sockets are about to get, whatever the interface. Those of connections
 * that tc could not read are withheld while they are over a limit. tc has seen and translated them before.
 */
#ifndef WEIR_BPF_HOLD_H
#define WEIR_BPF_HOLD_H

#include "weir/conn/hold_ahead.h"

#include "admit_hold.h"
#include "frame.h"
#include "full.h"
#include "hold_packet.h"
#include "inside_hold.h"
#include "outgoing.h"
#include "passing.h"
#include "settings.h"
#include "tally.h"
#include "top.h"
#include "track.h"

static long hold_step(__u32 i __attribute__((unused)), struct feed *f)
{
	struct work *w = f->work;
	struct weir_hold_reader *r = &w->hold;
	__u32 at = r->next - w->packet.segment.seq;
	int byte;

	if (at >= w->packet.segment.len)
		return 1;
	byte = window_byte(f->skb, w, at);
	return byte < 0 || weir_hold_reader_feed(r, byte) == WEIR_FRAME_LOST;
}

struct feed_lines {
	struct __sk_buff *skb;
	struct work *work;
	__u32 at; /* offset in the payload of the next byte */
};

static long hold_line_step(__u32 i __attribute__((unused)), struct feed_lines *f)
{
	struct work *w = f->work;
	__u32 at = f->at, n;

	if (at >= w->packet.segment.len || window_byte(f->skb, w, at) < 0)
		return 1;
	n = weir_hold_reader_ahead(&w->hold, &w->window, at - w->window.at);
	if (!n) {
		weir_hold_reader_line(&w->hold, window_at(w, at));
		n = 1;
	}
	f->at = at + n;
	return 0;
}

static __noinline void hold_lines(struct __sk_buff *skb, struct work *w)
{
	struct feed_lines f = { .skb = skb, .work = w, .at = w->hold.news - w->packet.segment.seq };

	bpf_loop(FRAME_STEPS, hold_line_step, &f, 0);
}

__noinline int hold_frame(struct __sk_buff *skb, struct work *w)
{
	struct feed feed = { .skb = skb, .work = w };

	if (!w)
		return 0;
	w->window.length = 0;
	if (w->hold.by_records)
		bpf_loop(FRAME_STEPS, hold_step, &feed, 0);
	if (weir_hold_reader_wants_lines(&w->hold))
		hold_lines(skb, w);
	window_wipe(w);
	weir_hold_reader_end(&w->hold, &w->packet.segment);
	return 0;
}

/* Are these requests decided inside the server? Not what may be HTTP/1 without TLS: inside, that is left to its packets. */
static __always_inline bool hold_is_inside(const struct work *w)
{
	return (w->server_flags & WEIR_SERVER_INSIDE) && (w->hold.by_records || !w->hold.by_lines);
}

/* Does a limit refuse what the segment weighs? */
static __always_inline bool hold_refused(struct __sk_buff *skb, struct work *w)
{
	if (hold_is_inside(w))
		weir_hold_reader_spare_records(&w->hold);
	if (!w->hold.weight || (w->server_flags & WEIR_SERVER_PAUSED))
		return false;
	w->decision.weight = w->hold.weight;
	w->decision.asked = w->hold.records;
	w->decision.asked_anew = w->hold.again ? 0 : w->hold.records;
	identify_client(w);
	if (identity_exempt(w) || limits_find(&w->decision, &w->request.request.path))
		return false;
	decide(&w->decision);
	remember_names(skb, w);
	return w->decision.refused;
}

static __always_inline int withhold(struct work *w, struct weir_conn *c)
{
	bpf_spin_lock(&c->lock);
	weir_hold_refuse(c, &w->hold, w->now_ns);
	bpf_spin_unlock(&c->lock);
	count(w->server, WEIR_HELD_RECORD);
	tally_decision(&w->decision);
	count_many(w->server, WEIR_RECORDS_HELD, w->decision.asked_anew);
	top_records(w->hook, 0, 0, w->decision.asked_anew);
	return SOCKET_GETS_NOTHING;
}

/* Counts what passes. refused: a limit refused it, in a dry run of the server. */
static __always_inline void count_passed(const struct work *w, bool refused)
{
	bool dry_run = refused || w->decision.overlooked;

	count_many(w->server, dry_run ? WEIR_RECORDS_DRY_RUN_HELD : WEIR_RECORDS_PASSED, w->hold.records);
	top_records(w->hook, w->hold.records, dry_run ? w->hold.records : 0, 0);
}

static __always_inline int hold_segment(struct __sk_buff *skb, struct work *w, struct weir_conn *c, bool badged,
					__u32 paid, enum weir_reason *why)
{
	enum weir_action action;
	__u64 held_ns = 0;
	bool refused;

	if (!badged && w->hold.by_records && !hold_check(skb, w)) {
		*why = WEIR_BAD_CHECKSUM;
		return withholds(w) ? SOCKET_GETS_NOTHING : SOCKET_GETS_IT;
	}
	/* What is decided inside must not be charged here as well, and what only looks like that must be. */
	if (w->hold.ahead && w->hold.by_lines && (w->server_flags & WEIR_SERVER_INSIDE)) {
		*why = WEIR_OUT_OF_ORDER;
		return SOCKET_GETS_NOTHING;
	}
	hold_frame(skb, w);
	weir_pace_deduct(&w->hold, paid);
	if (w->hold.arrives && !w->hold.weight)
		return SOCKET_GETS_IT;
	refused = hold_refused(skb, w);
	if (refused && !(w->server_flags & WEIR_SERVER_DRY_RUN))
		return withhold(w, c);

	bpf_spin_lock(&c->lock);
	action = weir_hold_commit(c, &w->hold, w->now_ns, &held_ns, why);
	bpf_spin_unlock(&c->lock);
	if (action == WEIR_DROP) {
		undo_decision(&w->decision);
		return SOCKET_GETS_NOTHING;
	}
	tally_decision(&w->decision);
	count_passed(w, refused);
	if (held_ns)
		count_duration(w->server, WEIR_HELD_NS, WEIR_HELD_1MS, held_ns);
	return SOCKET_GETS_IT;
}

/* As the connection is now. A function of its own: it is called twice. */
static __noinline int hold_read(struct __sk_buff *skb, struct work *w, struct weir_conn *c, enum weir_reason *why)
{
	const struct weir_segment *g = &w->packet.segment;
	__u32 paid = badge_paid(skb);
	bool badged = badge_is_on(skb, c);
	enum weir_reason way = WEIR_REASON_NONE;
	enum weir_action action = WEIR_DROP;

	bpf_spin_lock(&c->lock);
	if (!conn_is_found(w, c))
		way = WEIR_CONTENDED;
	else if (!(w->server_flags & WEIR_SERVER_DRAINING))
		way = weir_hold_meet(c, &w->socket, g, badged, withholds(w));
	if (c->opaque_why == WEIR_UNSEEN)
		c->last_ns = w->now_ns;
	if (way != WEIR_STRAY && way != WEIR_CONTENDED) {
		action = badged && weir_pace_is_on(w->server_flags) ?
				 weir_pace_meet(c, &w->socket, g, paid, &w->hold, why) :
				 weir_hold_begin(c, &w->socket, g, weir_hold_knows(c, badged), &w->hold, why);
	} else if (way == WEIR_CONTENDED && (g->flags & WEIR_TCP_RST)) {
		action = WEIR_PASS; /* nobody sends it again */
		way = WEIR_REASON_NONE;
	}
	w->whose.preamble = c->preamble;
	bpf_spin_unlock(&c->lock);
	if (way != WEIR_REASON_NONE)
		count(w->server, way);
	if (action == WEIR_FRAME)
		return hold_segment(skb, w, c, badged, paid, why);
	return action == WEIR_DROP ? SOCKET_GETS_NOTHING : SOCKET_GETS_IT;
}

/*
 * A segment that another CPU has overtaken while it was read is read anew, as what it is by now. TCP would take a drop for a loss, and be
 * slow from then on, and what comes behind the segment would be ahead of its turn.
 */
static __always_inline int hold_conn(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	enum weir_reason why = WEIR_REASON_NONE;
	int verdict = hold_read(skb, w, c, &why);

	if (why == WEIR_CONTENDED) {
		why = WEIR_REASON_NONE;
		decision_start(&w->decision);
		verdict = hold_read(skb, w, c, &why);
	}
	if (why != WEIR_REASON_NONE)
		count(w->server, why);
	/* Nobody else sees its end. */
	if ((w->packet.segment.flags & (WEIR_TCP_FIN | WEIR_TCP_RST)) && c->opaque_why == WEIR_UNSEEN)
		conn_linger(&w->packet.flow, c, w->conn_id);
	return verdict;
}

/*
 * The segment completes a handshake of which nothing was seen, so there is no connection yet; or there is no room to know of
 * one: it is charged by itself, as if a FIN came next.
 */
static __always_inline int hold_handshake(struct __sk_buff *skb, struct work *w)
{
	__u32 seq = w->packet.segment.seq;
	bool refused;

	w->hold = (struct weir_hold_reader){
		.next = seq,
		.news = seq,
		.by_lines = 1,
		.line = 1,
		.begun = WEIR_HOLD_BEGUN,
		.named = 1,
		.cuts = 1,
		.preface = WEIR_HOLD_NO_PREFACE,
	};
	w->whose.preamble = (struct weir_preamble){};
	hold_frame(skb, w);
	refused = hold_refused(skb, w);
	tally_decision(&w->decision);
	if (!refused || (w->server_flags & WEIR_SERVER_DRY_RUN)) {
		count_passed(w, refused);
		return SOCKET_GETS_IT;
	}
	count(w->server, WEIR_HELD_RECORD);
	count_many(w->server, WEIR_RECORDS_HELD, w->decision.asked_anew);
	top_records(w->hook, 0, 0, w->decision.asked_anew);
	return SOCKET_GETS_NOTHING;
}

/* Does the kernel's listener refuse the packet? ingress has found no other socket for it, and no cookie in it: nothing is to be paid then. */
static __noinline bool listener_refuses(struct __sk_buff *skb, struct work *w)
{
	bool refuses = badge_is_of_orphan(skb, &w->packet);
	struct bpf_sock *sk = refuses ? socket_of(skb, &w->packet) : NULL;

	if (!sk)
		return refuses;
	refuses = sk->state == STATE_LISTEN;
	bpf_sk_release(sk);
	return refuses;
}

/*
 * What is known of a connection of which nothing was seen on its way. A socket that has had data before may be older than the attach: the
 * packet may have passed ingress just before the server, or the room for its connection, was there. What comes next may be read.
 */
static __always_inline enum weir_reason hold_open(struct __sk_buff *skb, struct work *w)
{
	struct weir_conn *fresh = &w->entry.conn;
	struct bpf_sock *sk = skb->sk;

	__builtin_memset(fresh, 0, sizeof(*fresh));
	if (!w->socket.untouched && sk && open_from_socket(fresh, w->server, sk, &w->packet.segment))
		return fresh->phase == WEIR_PHASE_OPAQUE ? WEIR_MPTCP : WEIR_MID_STREAM;
	weir_conn_open(fresh, w->server, WEIR_PHASE_FOLLOWED, w->socket.next, w->socket.sent, 0);
	weir_hold_unseen(fresh, &w->socket);
	fresh->hold.by_records = w->socket.untouched;
	if (w->socket.untouched)
		weir_conn_await_word(fresh);
	return WEIR_UNSEEN;
}

/* Data of a connection that is in no table: it came by a way on which no program is, or when there was no room. */
static __always_inline int hold_unseen(struct __sk_buff *skb, struct work *w)
{
	const struct packet *p = &w->packet;
	enum weir_reason why;
	struct weir_conn *c;

	if (!p->segment.len || (p->segment.flags & (WEIR_TCP_SYN | WEIR_TCP_RST)) ||
	    (w->server_flags & WEIR_SERVER_DRAINING))
		return SOCKET_GETS_IT;
	if (came_by_other_device(skb, w))
		return SOCKET_GETS_IT;
	if (w->socket.listens)
		return listener_refuses(skb, w) ? SOCKET_GETS_IT : hold_handshake(skb, w);
	if (!w->socket.open)
		return SOCKET_GETS_IT;
	if (weir_socket_drops(&w->socket, &p->segment, w->socket.sent))
		return hold_drop(w, WEIR_OUT_OF_WINDOW);
	why = hold_open(skb, w);
	if (conn_add(HOOK_HOLD) == ADDED)
		count(w->server, why);
	c = conn_look_up(w);
	if (c)
		return hold_conn(skb, w, c);
	if (must_wait(w))
		return SOCKET_GETS_NOTHING;
	return w->server_flags & WEIR_SERVER_FULL_KNOWN ? hold_handshake(skb, w) : SOCKET_GETS_IT;
}

/*
 * What comes to the listener is of a handshake, or answers a SYN cookie: is it of another connection than the one in the
 * table, whose socket is gone? A bare acknowledgement may only be lost; weir_sockops sees what comes of it.
 */
static __always_inline bool outlived(struct __sk_buff *skb, struct work *w, const struct weir_conn *c)
{
	const struct weir_segment *g = &w->packet.segment;
	struct tcp_request_sock *request = NULL;
	struct bpf_sock *sk;
	bool same = false;

	if (!w->socket.listens || !g->len || (g->flags & (WEIR_TCP_SYN | WEIR_TCP_RST)))
		return false;
	sk = socket_of(skb, &w->packet);
	if (!sk)
		return true;
	/* There is a socket by now: another CPU had the acknowledgement, and weir_sockops has looked at the entry then. */
	if (sk->state != STATE_NEW_SYN_RECV && sk->state != STATE_LISTEN)
		same = true;
	else if (sk->state == STATE_NEW_SYN_RECV)
		request = bpf_skc_to_tcp_request_sock(sk);
	if (request)
		same = conn_began_with(c, request->snt_isn);
	bpf_sk_release(sk);
	return !same;
}

/*
 * The headers cannot be read, but the kernel has found a socket by them. If it is an attached server's, what the packet brings
 * could be anything: nothing that anyone sends in earnest looks like that. Static, for its verdict has to be known.
 */
static __noinline int hold_unreadable(struct __sk_buff *skb, struct work *w)
{
	struct bpf_sock *sk = skb->sk;
	__be32 address;

	if (!sk || !bpf_skc_to_tcp_sock(sk))
		return SOCKET_GETS_IT;
	if (skb->protocol == bpf_htons(ETHERTYPE_IPV6)) {
		if (bpf_skb_load_bytes(skb, __builtin_offsetof(struct ipv6_header, dest), w->packet.dest, 16))
			return SOCKET_GETS_NOTHING;
	} else {
		if (bpf_skb_load_bytes(skb, __builtin_offsetof(struct ipv4_header, dest), &address, 4))
			return SOCKET_GETS_NOTHING;
		map_ipv4(w->packet.dest, address);
	}
	if (!server_listens(w->packet.dest, bpf_htons(sk->src_port), &w->server) || !load_settings(w, HOOK_HOLD) ||
	    !socket_is_here(skb, w))
		return SOCKET_GETS_IT;
	return hold_drop(w, WEIR_UNREADABLE);
}

/* The packet's connection, which it wakes if that rests. Returns whether there was room to wake it. */
static __always_inline bool hold_find(struct work *w, bool readable, struct weir_conn **c)
{
	int woken;

	*c = conn_look_up(w);
	if (*c || !readable || w->packet.segment.flags & WEIR_TCP_SYN)
		return true;
	woken = conn_wake(HOOK_HOLD, true);
	if (woken == WOKEN)
		*c = conn_look_up(w);
	return woken != WOKEN_NO_ROOM;
}

SEC("cgroup_skb/ingress")
int weir_hold(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_HOLD);
	struct weir_conn *c;
	struct packet *p;
	bool readable;
	__u32 end;

	if (!w)
		return SOCKET_GETS_IT;
	if (WEIR_UNLIKELY(w->unsettled))
		admission_settle();
	p = &w->packet;
	if (!packet_parse_ip(skb, p, skb->protocol, 0, &end) || !packet_parse_ports(skb, p))
		return hold_unreadable(skb, w);
	if (!server_listens(p->dest, p->dest_port, &w->server))
		return SOCKET_GETS_IT;
	readable = packet_parse_tcp(skb, p, end);
	if (readable && socket_awaits_handshake(skb) && hold_admission(skb, w) == SOCKET_GETS_NOTHING)
		return SOCKET_GETS_NOTHING;
	if (readable && brings_nothing(&p->segment))
		return SOCKET_GETS_IT;
	flow_set(p, true);
	if (!hold_find(w, readable, &c)) {
		count(w->server, WEIR_BUSY_MAP_FULL);
		return SOCKET_GETS_NOTHING;
	}
	if (readable && c && was_read(skb, &p->segment, c))
		return SOCKET_GETS_IT;
	if (readable && !c && packet_is_of_outgoing(skb, HOOK_HOLD))
		return SOCKET_GETS_IT;
	if (readable && (!c || c->phase != WEIR_PHASE_FOLLOWED) && inside_withholds(skb, w))
		return SOCKET_GETS_NOTHING;
	if (!load_settings(w, HOOK_HOLD) || !socket_is_here(skb, w))
		return SOCKET_GETS_IT;
	if (!readable)
		return hold_drop(w, WEIR_UNREADABLE);
	/* tc would have taken it off. */
	if ((p->segment.flags & WEIR_TCP_SYN) && p->segment.len)
		return hold_drop(w, WEIR_SYN_DATA);
	if (c && outlived(skb, w, c)) {
		conn_forget(&p->flow, c->id);
		c = NULL;
	}
	return c ? hold_conn(skb, w, c) : hold_unseen(skb, w);
}

#endif
