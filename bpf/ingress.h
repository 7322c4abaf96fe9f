/* SPDX-License-Identifier: GPL-2.0 */
/* tc ingress: packets from clients. */
#ifndef WEIR_BPF_INGRESS_H
#define WEIR_BPF_INGRESS_H

#include "checksum.h"
#include "cut.h"
#include "frame.h"
#include "full.h"
#include "pace.h"
#include "reject.h"
#include "reply.h"
#include "settings.h"
#include "signature.h"
#include "strip.h"
#include "track.h"

/* A request is refused and may be answered: how, and whether its connection can go on. */
__noinline int choose_answer(struct __sk_buff *skb, struct work *w)
{
	bool loopback = skb->ifindex == LOOPBACK_IFINDEX;
	struct weir_request_reader *r;
	bool closing, behind;
	__u32 rest;

	if (!w)
		return 0;
	r = &w->request;
	rest = r->next - (w->packet.segment.seq + w->packet.segment.len);
	closing = r->answer.rejected || (w->server_flags & WEIR_SERVER_CLOSING) ||
		  (loopback && (w->server_flags & WEIR_SERVER_CLOSING_LOOPBACK));
	r->answer.retry_s = w->retry_s;
	r->answer.head = r->request.method == WEIR_METHOD_HEAD;
	r->answer.kind = WEIR_ANSWER_KEEP;
	behind = (__s32)rest < 0;
	if (behind)
		rest = 0;
	/*
	 * A body that is not sent yet, or of unknown or great length, is not worth swallowing; and what is pipelined
	 * behind a refused request would be sent again at ever longer intervals.
	 */
	if (closing || r->must_close || behind || (r->request.flags & (WEIR_REQUEST_EXPECT | WEIR_REQUEST_CLOSE)) ||
	    !weir_request_ended(&r->request) || rest > w->swallow_max)
		r->answer.kind = WEIR_ANSWER_CLOSE;
	r->answer.length = r->begun ? 0 : answer_text(w, &r->answer);
	return 0;
}

static __always_inline void count_refusal(const struct work *w, __u32 slot)
{
	__u32 index = weir_limit_index(w->server, slot);
	const struct weir_limit *limit = bpf_map_lookup_elem(&limits, &index);

	if (limit && limit->reason < WEIR_REASON_COUNT)
		count(w->server, limit->reason);
}

__noinline int count_requests(struct work *w, __u32 action)
{
	__u32 s;

	if (!w)
		return 0;
	decision_stands(w);
	s = w->server;
	if (w->passed)
		count_many(s, WEIR_PASSED, w->passed);
	if (w->exempt)
		count_many(s, WEIR_EXEMPT, w->exempt);
	if (w->dry_run)
		count_many(s, WEIR_DRY_RUN_SHED, w->dry_run);
	for (int key = 0; key < WEIR_EVENT_KEYS; key++) {
		if (w->events[key])
			count_many(s, WEIR_EVENT_KEYED + key, w->events[key]);
	}
	for (int i = 0; i < WEIR_SOURCES; i++) {
		if (w->sources[i])
			count_many(s, WEIR_BY_REQUEST_HEADER + i, w->sources[i]);
	}
	for (int i = 0; i < WEIR_NOTES; i++) {
		if (w->notes[i])
			count_many(s, WEIR_UNTRUSTED_IDENTITY + i, w->notes[i]);
	}
	if (w->dry_run_rejected)
		count(s, WEIR_DRY_RUN_REJECTED);
	if (action == WEIR_CLOSE)
		count(s, WEIR_ANSWERED_CLOSE);
	if (!w->request.shed)
		return 0;
	if (w->request.answer.rejected) {
		count(s, WEIR_REJECTED);
		return 0;
	}
	count(s, WEIR_SHED);
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (w->penalised >> n & 1)
			count(s, WEIR_SHED_PENALTY);
		else if (w->refused >> n & 1)
			count_refusal(w, w->limits[n]);
	}
	return 0;
}

/* Says to the client what the view holds; the packet itself goes on to the server as what it may see, or turns round. */
__noinline int reply(struct __sk_buff *skb, struct work *w, __u32 action)
{
	__u32 ifindex = skb->ifindex;
	bool forward;
	__u32 text;

	if (!w)
		return TC_ACT_SHOT;
	forward = w->view.news || action == WEIR_CLOSE;
	weir_view_reply(&w->view, &w->packet.segment, action, &w->reply);
	text = w->reply.len ? answer_text(w, &w->view.answer) : 0;
	if (text != w->reply.len || bpf_skb_load_bytes(skb, 0, w->packet.ethernet, ETHERNET_BYTES) ||
	    packet_write(skb, w, true, text))
		goto drop;
	if (forward) {
		if (bpf_clone_redirect(skb, ifindex, 0))
			goto drop;
		weir_view_forward(&w->view, &w->packet.segment, action, &w->reply);
		if (packet_write(skb, w, false, 0))
			goto drop;
		return TC_ACT_UNSPEC;
	}
	/* On loopback both ends are here: the packet with its ends swapped goes up to the client. */
	return ifindex == LOOPBACK_IFINDEX ? TC_ACT_UNSPEC : bpf_redirect(ifindex, 0);

drop:
	/* The client asks again, and what was to be said is still known. */
	count(w->server, WEIR_PACKET_SURGERY);
	return TC_ACT_SHOT;
}

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

/* Becomes what a client sends that only wants to know of the window: a byte's number that the server has, without the byte. */
__noinline int probe_server(struct __sk_buff *skb, struct work *w)
{
	if (!w || packet_cut(skb, w, 0))
		return TC_ACT_SHOT;
	weir_splice_to_server(&w->view.splice, &w->packet.segment);
	w->packet.segment.seq = w->socket.next - 1;
	return packet_store_numbers(skb, &w->packet) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

static __noinline enum weir_action ingress_begin(struct work *w, struct weir_conn *c, enum weir_reason *why)
{
	const struct weir_segment *g = &w->packet.segment;
	enum weir_action action;

	bpf_spin_lock(&c->lock);
	c->last_ns = w->now_ns;
	action = weir_conn_begin_client(c, &w->socket, g, &w->request, why);
	weir_conn_look(c, g, action, &w->view);
	if (action == WEIR_FRAME && (w->traits & WEIR_SERVER_IN_FLIGHT))
		weir_conn_draft_places(c, w->places);
	bpf_spin_unlock(&c->lock);
	return action;
}

static __noinline enum weir_action ingress_commit(struct work *w, struct weir_conn *c, enum weir_reason *why)
{
	const struct weir_segment *g = &w->packet.segment;
	bool drafted = w->traits & WEIR_SERVER_IN_FLIGHT;
	enum weir_action action = WEIR_HOLD;

	bpf_spin_lock(&c->lock);
	if (drafted ? weir_conn_lost_places(c, w->places) : weir_conn_forgotten(c))
		*why = WEIR_CONTENDED;
	else
		action = weir_conn_commit_client(c, g, &w->request, why);
	if (drafted && action != WEIR_HOLD) {
		weir_conn_commit_places(c, w->places);
		weir_conn_commit_list(c, &w->list_asked);
	}
	weir_conn_look(c, g, action, &w->view);
	bpf_spin_unlock(&c->lock);
	return action;
}

static __always_inline int ingress_conn(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	const struct weir_segment *g = &w->packet.segment;
	enum weir_reason why = WEIR_REASON_COUNT;
	enum weir_action action;
	int verdict;
	__u32 cuts;

	w->socket.asked = w->socket.known = 0;
	action = ingress_begin(w, c, &why);
	if (action == WEIR_ASK) {
		socket_ask(skb, HOOK_INGRESS);
		action = ingress_begin(w, c, &why);
	}
	if (action == WEIR_FRAME) {
		cuts = w->view.splice.cuts;
		frame_requests(skb, w);
		weir_request_reader_end(&w->request, g);
		if (w->request.lost != WEIR_REASON_COUNT)
			reject(skb, w);
		if (w->request.shed)
			choose_answer(skb, w);
		action = ingress_commit(w, c, &why);
		if (action != WEIR_HOLD) {
			count_requests(w, action);
			top_count(skb, w);
			if (w->noted)
				trace_write(skb, w);
		} else {
			undo_packet(w);
		}
		if (action == WEIR_CLOSE ? cuts : !cuts && w->view.splice.cuts)
			count(w->server, action == WEIR_CLOSE ? WEIR_SPLICE_CLOSED : WEIR_SPLICE_OPENED);
	}
	if (why != WEIR_REASON_COUNT)
		count(w->server, why);
	if (w->unanswered_why != WEIR_REASON_COUNT)
		count(w->server, w->unanswered_why);
	if (action == WEIR_ANSWER)
		count(w->server, WEIR_ANSWERED);
	if (action == WEIR_CLOSE)
		conn_release(c);

	if (action == WEIR_CUT && packet_cut(skb, w, w->request.start - g->seq)) {
		/* What was cut off comes again, with what was to pass: known by its numbers, it passes then. */
		count(w->server, WEIR_PACKET_SURGERY);
		action = WEIR_HOLD;
	} else if (action == WEIR_CUT) {
		count(w->server, WEIR_CUT_SHORT);
	}
	if (action == WEIR_HOLD)
		verdict = TC_ACT_SHOT;
	else if (action == WEIR_PROBE)
		verdict = probe_server(skb, w);
	else
		verdict = action == WEIR_PASS || action == WEIR_CUT ? pass_to_server(skb, w) : reply(skb, w, action);
	if (verdict == TC_ACT_UNSPEC)
		badge_put_on(skb, g, c);
	if (verdict == TC_ACT_UNSPEC && w->view.opaque && (w->server_flags & WEIR_SERVER_PACED))
		verdict = pace(skb, w, c);
	conn_retire(w, c, false, client_resets(skb, w));
	return verdict;
}

/*
 * The rest of the packet cannot be read. It is left to the hold, which sees it whole, and with it the connection: bytes
 * that are not read here could take the place of those that were. Of a translated one no part can be passed on.
 */
__noinline int ingress_fragment(struct __sk_buff *skb, __u32 end)
{
	struct work *w = work_of(HOOK_INGRESS);
	struct weir_conn *c;
	bool news = false;

	if (!w)
		return TC_ACT_UNSPEC;
	count(w->server, WEIR_FRAGMENT);
	badge_unread(skb);
	flow_set(&w->packet, true);
	c = bpf_map_lookup_elem(&conns, &w->packet.flow);
	if (!c)
		return TC_ACT_UNSPEC;
	socket_ask(skb, HOOK_INGRESS);
	if (!packet_parse_tcp(skb, &w->packet, end) || c->splice.cuts || !w->socket.known ||
	    weir_socket_drops(&w->socket, &w->packet.segment))
		return TC_ACT_SHOT;
	bpf_spin_lock(&c->lock);
	if (c->phase == WEIR_PHASE_FOLLOWED || c->phase == WEIR_PHASE_HUNTING) {
		weir_hold_unseen(c, &w->socket);
		news = true;
	}
	bpf_spin_unlock(&c->lock);
	if (news)
		count(w->server, WEIR_UNSEEN);
	return TC_ACT_UNSPEC;
}

/*
 * A SYN changes nothing here by itself. What follows it must be plain TCP, and none of its data may reach the server, whether
 * an option asks for that or the server does without one: what comes behind the handshake is read.
 */
__noinline int ingress_syn(struct __sk_buff *skb, struct work *w)
{
	const struct packet *p;

	if (!w)
		return TC_ACT_SHOT;
	p = &w->packet;
	if (p->segment.len && (p->signature || !checksum_is_right(skb, w))) {
		count(w->server, p->signature ? WEIR_SYN_DATA : WEIR_BAD_CHECKSUM);
		return TC_ACT_SHOT;
	}
	if (p->signature)
		return TC_ACT_UNSPEC;
	if (p->unwanted && remove_options(skb, w))
		return TC_ACT_SHOT;
	if (!p->segment.len)
		return TC_ACT_UNSPEC;
	count(w->server, WEIR_SYN_DATA);
	return packet_cut(skb, w, 0) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

SEC("tc")
int weir_ingress(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_INGRESS);
	struct weir_conn *c;
	struct packet *p;
	__u32 end;
	int opened;

	/* What is not for this device's address may be for a macvlan on top; if it is not, it is like one lost behind weir. */
	if (!w || has_own_device(skb) || (skb->pkt_type != PACKET_HOST && skb->pkt_type != PACKET_OTHERHOST))
		return TC_ACT_UNSPEC;
	p = &w->packet;
	if (!packet_parse_ip(skb, p, ETHERNET_BYTES, &end)) {
		if (has_inner_tag(skb))
			badge_unread(skb);
		return TC_ACT_UNSPEC;
	}
	if (!packet_parse_ports(skb, p) || !server_listens(p->dest, p->dest_port, &w->server))
		return TC_ACT_UNSPEC;
	if (!load_settings(w, HOOK_INGRESS))
		return TC_ACT_UNSPEC;
	if (!ip_checksum_is_right(skb, w)) {
		count(w->server, WEIR_BAD_CHECKSUM);
		return TC_ACT_SHOT;
	}
	if (p->fragment)
		return ingress_fragment(skb, end);
	if (!packet_parse_tcp(skb, p, end))
		return TC_ACT_UNSPEC;

	signature_recognise(p);
	if ((p->segment.flags & WEIR_TCP_URG) && !p->signature && remove_urgent(skb, w))
		return TC_ACT_SHOT;
	flow_set(p, true);
	c = bpf_map_lookup_elem(&conns, &p->flow);
	if (p->segment.flags & WEIR_TCP_SYN)
		return !c && handshake_waits(w) ? TC_ACT_SHOT : ingress_syn(skb, w);
	if (!c) {
		if ((p->segment.flags & WEIR_TCP_RST) || (w->server_flags & WEIR_SERVER_DRAINING))
			return TC_ACT_UNSPEC;
		opened = conn_open(skb);
		/* The data comes again when there is a connection. */
		if (opened == OPENED_SOON && p->segment.len && packet_cut(skb, w, 0))
			return TC_ACT_SHOT;
		if (opened == OPENED_NO_ROOM && p->segment.len && must_wait(w))
			return TC_ACT_SHOT;
		if (opened != OPENED)
			return TC_ACT_UNSPEC;
		c = bpf_map_lookup_elem(&conns, &p->flow);
		if (!c)
			return TC_ACT_UNSPEC;
		/* Joined when it was MPTCP already. */
		if (p->mptcp) {
			weir_conn_opaque(c, c->request_next, WEIR_MPTCP);
			count(w->server, WEIR_MPTCP);
		}
	}
	w->conn_id = c->id;
	if (!checksum_is_right(skb, w)) {
		count(w->server, WEIR_BAD_CHECKSUM);
		return TC_ACT_SHOT;
	}
	/* The second is weir_splice_acceptable() for a FIN, too: there it would cost verifiers twice the steps. */
	if (((p->signature || c->opaque_why == WEIR_SIGNED) && !signature_fits(skb, w, c)) ||
	    !(p->segment.flags & (WEIR_TCP_ACK | WEIR_TCP_RST))) {
		count(w->server, WEIR_UNACCEPTABLE);
		return TC_ACT_SHOT;
	}
	return ingress_conn(skb, w, c);
}

#endif
