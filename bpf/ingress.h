/* SPDX-License-Identifier: GPL-2.0 */
/* tc ingress: packets from clients. */
#ifndef WEIR_BPF_INGRESS_H
#define WEIR_BPF_INGRESS_H

#include "weir/conn/client_at_once.h"

#include "admit.h"
#include "cut.h"
#include "fragment.h"
#include "frame.h"
#include "full.h"
#include "headers.h"
#include "outcome.h"
#include "outgoing.h"
#include "pace.h"
#include "passing.h"
#include "quoted.h"
#include "refuse.h"
#include "reject.h"
#include "route.h"
#include "settings.h"
#include "signature.h"
#include "strip.h"
#include "syn.h"
#include "track.h"

__noinline int pass_to_server(struct __sk_buff *skb, struct work *w)
{
	if (!w || !w->view.splice.cuts)
		return TC_ACT_UNSPEC;
	weir_splice_to_server(&w->view.splice, &w->packet.segment);
	if (packet_store_numbers(skb, &w->packet)) {
		count(w->server, WEIR_UNTRANSLATABLE);
		return TC_ACT_SHOT;
	}
	count(w->server, WEIR_TRANSLATED);
	return TC_ACT_UNSPEC;
}

/* Turns the packet into a probe of the server's window: without data, and with the number of a byte that the server has already. */
__noinline int probe_server(struct __sk_buff *skb, struct work *w)
{
	if (!w || packet_cut(skb, w, 0))
		return TC_ACT_SHOT;
	weir_splice_to_server(&w->view.splice, &w->packet.segment);
	w->packet.segment.seq = w->socket.next - 1;
	return packet_store_numbers(skb, &w->packet) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

static __always_inline bool drafts_seats(const struct work *w)
{
	return WEIR_FRESH(w->decision.traits) & WEIR_SERVER_IN_FLIGHT;
}

static __noinline enum weir_action ingress_begin(struct work *w, struct weir_conn *c)
{
	const struct weir_segment *g = &w->packet.segment;
	bool wanted = weir_conn_reads_midway(c) || drafts_seats(w);
	struct busy_found b = wanted ? busy_find(c) : busy_seen(c);

	bpf_spin_lock(&c->lock);
	c->last_ns = w->now_ns;
	w->action = WEIR_DROP;
	if (busy_moved(w, c, &b))
		w->why = WEIR_CONTENDED;
	else
		w->action = weir_conn_begin_client(c, b.there, &w->socket, g, &w->request, &w->why);
	WEIR_FRESH_ALL();
	weir_conn_look(c, g, w->action, &w->view);
	WEIR_FRESH_ALL();
	if (w->action == WEIR_FRAME && drafts_seats(w))
		weir_conn_draft_seats(b.there, w->decision.seats);
	bpf_spin_unlock(&c->lock);
	return w->action;
}

/* Does the segment leave a message or seats under way? Then the connection needs an entry in `busy`. */
static __always_inline bool ingress_leaves_busy(const struct work *w)
{
	if (weir_request_reader_stays_midway(&w->request))
		return true;
	return drafts_seats(w) && (w->tally.list.list || weir_drafts_are_used(w->decision.seats));
}

/* Where the segment was read at once, its header is judged here, under the same lock. */
static __noinline enum weir_action ingress_commit(struct work *w, struct weir_conn *c)
{
	const struct weir_segment *g = &w->packet.segment;
	struct busy_found b = ingress_leaves_busy(w) ? busy_find_or_make(c) : busy_seen(c);

	w->action = WEIR_DROP;
	if (busy_has_no_room(&b)) {
		w->why = WEIR_BUSY_MAP_FULL;
		return w->action;
	}
	bpf_spin_lock(&c->lock);
	c->last_ns = w->now_ns;
	if (busy_moved(w, c, &b) || (drafts_seats(w) && weir_conn_lost_seats(c, b.there, w->decision.seats)))
		w->why = WEIR_CONTENDED;
	else
		w->action = w->at_once ? weir_conn_begin_read(c, g, &w->request, &w->why) : WEIR_FRAME;
	WEIR_FRESH_ALL();
	if (w->action == WEIR_FRAME)
		w->action = weir_conn_commit_client(c, b.there, g, &w->request, &w->why);
	WEIR_FRESH_ALL();
	if (w->action != WEIR_DROP && drafts_seats(w)) {
		weir_conn_commit_seats(c, b.there, w->decision.seats);
		weir_conn_commit_list(c, b.there, &w->tally.list);
	}
	WEIR_FRESH_ALL();
	if (w->action != WEIR_DROP)
		busy_keep(c, &b);
	weir_conn_look(c, g, w->action, &w->view);
	bpf_spin_unlock(&c->lock);
	busy_drop(&b);
	return w->action;
}

/* Can the segment be read before its header is judged? That takes the lock once. Not where requests have seats: the draft begins with theirs. */
static __always_inline bool ingress_reads_at_once(const struct work *w, const struct weir_conn *c)
{
	return !drafts_seats(w) && weir_conn_reads_client_at_once(c, &w->packet.segment);
}

/* Judges the segment by its header, and where that is not enough asks the server's socket. */
static __always_inline enum weir_action ingress_meet(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	enum weir_action action;

	w->socket.asked = w->socket.known = 0;
	w->at_once = ingress_reads_at_once(w, c);
	if (w->at_once) {
		weir_conn_open_reader_at_once(c, &w->packet.segment, &w->request);
		w->view.splice.cuts = 0;
		return WEIR_FRAME;
	}
	action = ingress_begin(w, c);
	if (action != WEIR_ASK)
		return action;
	socket_ask(skb, HOOK_INGRESS);
	return ingress_begin(w, c);
}

/* It is as if the packet had not come. */
static __always_inline enum weir_action ingress_undo(struct work *w, enum weir_reason why)
{
	undo_packet(w);
	w->why = why;
	return WEIR_DROP;
}

/* Reads the segment's bytes and decides its requests. */
static __always_inline enum weir_action ingress_read(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	__u32 cuts = w->view.splice.cuts;
	enum weir_action action;

	frame_requests(skb, w);
	if (w->payload.unread)
		return ingress_undo(w, WEIR_PACKET_SURGERY);
	/* These bytes end the reading of the connection for good: they have to be those that the server gets. */
	if (w->request.lost != WEIR_REASON_NONE && !checksum_is_sure(skb, w))
		return ingress_undo(w, WEIR_BAD_CHECKSUM);
	if (w->request.lost != WEIR_REASON_NONE)
		reject(skb, w);
	if (w->request.shed)
		choose_answer(skb, w);
	action = ingress_commit(w, c);
	if (action != WEIR_DROP) {
		count_requests(w, action);
		top_count(skb, w);
		if (w->tally.n_traced)
			trace_write(skb, w);
	} else {
		undo_packet(w);
	}
	if (action == WEIR_CLOSE ? cuts : !cuts && w->view.splice.cuts)
		count(w->server, action == WEIR_CLOSE ? WEIR_SPLICE_CLOSED : WEIR_SPLICE_OPENED);
	if (w->tally.unanswered_why != WEIR_REASON_NONE)
		count(w->server, w->tally.unanswered_why);
	return action;
}

/*
 * TCP sends again what was cut off. If the packet cannot be cut, it is dropped whole: when it comes again, the requests that
 * were to pass are known by their sequence numbers, and pass.
 */
static __always_inline int cut_to_server(struct __sk_buff *skb, struct work *w)
{
	if (packet_cut(skb, w, w->request.start - w->packet.segment.seq)) {
		count(w->server, WEIR_PACKET_SURGERY);
		return TC_ACT_SHOT;
	}
	count(w->server, WEIR_CUT_SHORT);
	return pass_to_server(skb, w);
}

/* Makes of the packet what was decided. */
static __always_inline int ingress_act(struct __sk_buff *skb, struct work *w, enum weir_action action)
{
	switch (action) {
	case WEIR_DROP:
		return TC_ACT_SHOT;
	case WEIR_LEAVE:
		return TC_ACT_UNSPEC;
	case WEIR_PASS:
		return w->view.splice.cuts ? pass_to_server(skb, w) : TC_ACT_UNSPEC;
	case WEIR_CUT:
		return cut_to_server(skb, w);
	case WEIR_PROBE:
		return probe_server(skb, w);
	default:
		return reply(skb, w, action);
	}
}

/*
 * Is it a RST whose connection another CPU has just changed, or laid to rest? Nobody sends a RST again, so it is not dropped: where nothing
 * is to be translated it passes, as one of an unknown connection does.
 */
static __always_inline bool reset_goes_on(const struct work *w)
{
	return w->why == WEIR_CONTENDED && (w->packet.segment.flags & WEIR_TCP_RST) && !w->view.splice.cuts &&
	       !admission_matters(w);
}

/* A function of its own: the stack of weir_ingress, below which everything else has to fit, is full. */
static __noinline int ingress_drop(const struct work *w, enum weir_reason why)
{
	count(w->server, why);
	return TC_ACT_SHOT;
}

/* Does the segment bring what the hold may read? Not where that is decided inside the server (hold_is_inside()). */
static __always_inline bool hold_may_read(const struct work *w, const struct weir_conn *c)
{
	if (!w->packet.segment.len)
		return false;
	return !c || (c->phase != WEIR_PHASE_FOLLOWED &&
		      (!(w->server_flags & WEIR_SERVER_INSIDE) || weir_hold_may_be_http(c)));
}

/* What the hold reads has to be the packet's own before: there is no helper for that at the socket. false: the packet cannot go on. */
static __always_inline bool ready_for_hold(struct __sk_buff *skb, struct work *w, const struct weir_conn *c)
{
	return !hold_may_read(w, c) || payload_take_whole(skb, w);
}

/* Does the packet go on with its client's data? Others are answers by now, or probes. */
static __always_inline bool brings_data(enum weir_action action)
{
	return action == WEIR_PASS || action == WEIR_CUT || action == WEIR_LEAVE;
}

static __noinline int ingress_conn(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	enum weir_action action;
	int verdict;

	WEIR_FRESH_ALL();
	w->why = WEIR_REASON_NONE;
	w->read = c->phase == WEIR_PHASE_FOLLOWED;
	action = ingress_meet(skb, w, c);
	w->read &= action == WEIR_FRAME;
	if (action == WEIR_FRAME)
		action = ingress_read(skb, w, c);
	if (reset_goes_on(w)) {
		action = WEIR_PASS;
		w->why = WEIR_REASON_NONE;
	}
	if (w->why != WEIR_REASON_NONE)
		count(w->server, w->why);
	if (action == WEIR_ANSWER)
		count(w->server, WEIR_ANSWERED);
	if (action == WEIR_CLOSE)
		conn_release(c, w->conn_id);
	verdict = ingress_act(skb, w, action);
	/* It may have been read up to where nothing is read any more. */
	if (verdict == TC_ACT_UNSPEC && brings_data(action) && !ready_for_hold(skb, w, c))
		verdict = ingress_drop(w, WEIR_PACKET_SURGERY);
	if (verdict == TC_ACT_UNSPEC && action != WEIR_LEAVE)
		badge_put_on(skb, &w->packet.segment, c);
	if (verdict == TC_ACT_UNSPEC && action != WEIR_LEAVE && w->view.opaque && (w->server_flags & WEIR_SERVER_PACED))
		verdict = pace(skb, w, c);
	if (verdict == TC_ACT_UNSPEC && w->packet.segment.flags & WEIR_TCP_RST && !conn_is_anothers(w, c))
		c->client_reset = 1;
	conn_retire(w, c, false, client_resets(skb, w));
	return verdict;
}

/* What says that limits on connections were asked for it stays: the hold would drop the end of a handshake that bears the other mark. */
static __always_inline void badge_unless_asked(struct __sk_buff *skb, const struct packet *p)
{
	if (!badge_is_of_asked(skb, p))
		badge_unread(skb);
}

/*
 * Marks for the hold what goes on unread. false: it does not go on so, for it answers a SYN cookie and is soon to be read, or its connection
 * has found no room.
 */
static __always_inline bool badge_as_unread(struct __sk_buff *skb, const struct packet *p, int opened)
{
	if (opened == OPENED_NOT)
		badge_unless_asked(skb, p);
	/* Where destinations are translated behind this program, the packet is another connection's. A listener with MPTCP cannot be asked. */
	else if (opened == OPENED_SOON && !admission_brings_cookie(skb))
		badge_orphan(skb, p);
	else
		return false;
	return true;
}

/* The same of what may end a handshake, without data: the hold asks limits on connections, unless that was done. */
static __always_inline void badge_as_unasked(struct __sk_buff *skb, const struct work *w, int opened)
{
	if (opened == OPENED_SOON && admission_matters(w) && !badge_is_of_asked(skb, &w->packet))
		badge_orphan(skb, &w->packet);
}

/* Opens an entry for a connection that has none. NULL: it gets none, and *verdict is the packet's. */
static __always_inline struct weir_conn *ingress_open(struct __sk_buff *skb, struct work *w, int *verdict)
{
	const struct packet *p = &w->packet;
	int opened;

	*verdict = TC_ACT_UNSPEC;
	/* Where connections are limited, a RST gets an entry, too: what comes behind it has to know of it. */
	if (((p->segment.flags & WEIR_TCP_RST) && !admission_matters(w)) || (w->server_flags & WEIR_SERVER_DRAINING))
		return NULL;
	opened = conn_open(skb);
	if (opened == OPENED)
		return conn_look_up(w);
	if (!p->segment.len) {
		badge_as_unasked(skb, w, opened);
		return NULL;
	}
	if (badge_as_unread(skb, p, opened))
		return NULL;
	/* The data is sent again when the connection has an entry. */
	if (opened == OPENED_SOON ? packet_cut(skb, w, 0) : must_wait(w))
		*verdict = TC_ACT_SHOT;
	return NULL;
}

/*
 * A SYN, or a segment of no connection in the table, or of one that may be over: a SYN cookie begins another between the same ends
 * without a SYN. NULL: *verdict is the packet's.
 */
static __noinline struct weir_conn *ingress_new(struct __sk_buff *skb, struct work *w, struct weir_conn *c,
						int *verdict)
{
	bool syn = w->packet.segment.flags & WEIR_TCP_SYN;

	*verdict = TC_ACT_UNSPEC;
	w->action = WEIR_PASS;
	if (!load_settings(w, HOOK_INGRESS))
		return NULL;
	if (syn && !c && handshake_waits(w))
		*verdict = TC_ACT_SHOT;
	else
		*verdict = admission(skb, w);
	if (w->action != WEIR_PASS)
		return NULL;
	if (syn && *verdict == TC_ACT_UNSPEC)
		*verdict = ingress_syn(skb, w);
	if (syn || *verdict != TC_ACT_UNSPEC)
		return NULL;
	return c ?: ingress_open(skb, w, verdict);
}

static __always_inline int ingress_segment(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	struct packet *p = &w->packet;
	int woken, verdict;

	if (!c && !(p->segment.flags & WEIR_TCP_SYN)) {
		woken = conn_wake(HOOK_INGRESS, true);
		if (woken == WOKEN_NOT)
			return TC_ACT_UNSPEC;
		if (woken == WOKEN_NO_ROOM)
			return ingress_drop(w, WEIR_BUSY_MAP_FULL);
		if (woken == WOKEN)
			c = conn_look_up(w);
	}
	if (!c && (packet_goes_on(skb, HOOK_INGRESS) || packet_is_of_outgoing(skb, HOOK_INGRESS)))
		return TC_ACT_UNSPEC;
	if (!ready_for_hold(skb, w, c))
		return ingress_drop(w, WEIR_PACKET_SURGERY);
	signature_recognise(p);
	if ((p->segment.flags & WEIR_TCP_URG) && !p->signature && remove_urgent(skb, w))
		return TC_ACT_SHOT;
	if (!c || (p->segment.flags & WEIR_TCP_SYN) || weir_conn_may_be_over(c)) {
		c = ingress_new(skb, w, c, &verdict);
		if (!c)
			return verdict;
	}
	WEIR_FRESH_ALL();
	if (!checksum_is_right(skb, w) ||
	    (w->packet.segment.len && c->phase != WEIR_PHASE_FOLLOWED && !checksum_is_sure(skb, w)))
		return ingress_drop(w, WEIR_BAD_CHECKSUM);
	if (client_passes(skb, w, c) || !load_settings(w, HOOK_INGRESS))
		return TC_ACT_UNSPEC;
	/* The flags are those of weir_splice_acceptable(), but of a FIN, too: there that would cost verifiers twice the steps. */
	if (((p->signature || c->opaque_why == WEIR_SIGNED) && !signature_fits(skb, w, c)) ||
	    !(p->segment.flags & (WEIR_TCP_ACK | WEIR_TCP_RST)))
		return ingress_drop(w, WEIR_UNACCEPTABLE);
	return ingress_conn(skb, w, c);
}

SEC("tc")
int weir_ingress(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_INGRESS);
	__be16 kind = skb->protocol;
	struct weir_conn *c;
	struct packet *p;
	__u32 end;

	/* A packet for another MAC address may be for a macvlan on top. If it is not, it is as if it was lost behind weir. */
	if (!w || has_own_device(skb) || (skb->pkt_type != PACKET_HOST && skb->pkt_type != PACKET_OTHERHOST))
		return TC_ACT_UNSPEC;
	if (!headers_take(skb))
		return TC_ACT_SHOT;
	p = &w->packet;
	p->ifindex = skb->ifindex;
	if (!packet_parse_ip(skb, p, kind, ETHERNET_BYTES, &end)) {
		if (has_inner_tag(skb) || packet_is_under_way(p, kind))
			badge_unread(skb);
		return may_be_icmp(skb, kind) && quoted_pass(skb) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
	}
	if (!packet_parse_ports(skb, p) || !server_listens(p->dest, p->dest_port, &w->server) || !server_is_attached(w))
		return TC_ACT_UNSPEC;
	if (!ip_checksum_is_right(skb, w, ETHERNET_BYTES))
		return ingress_drop(w, WEIR_BAD_CHECKSUM);
	if (p->fragment)
		return load_settings(w, HOOK_INGRESS) ? ingress_fragment(skb, end) : TC_ACT_UNSPEC;
	flow_set(p, true);
	c = conn_look_up(w);
	if (WEIR_LIKELY(c) && client_ack_goes_by(skb, w, c, end))
		return TC_ACT_UNSPEC;
	if (!packet_parse_tcp(skb, p, end))
		return TC_ACT_UNSPEC;
	return header_is_own(skb, p) ? ingress_segment(skb, w, c) : ingress_drop(w, WEIR_UNREADABLE);
}

#endif
