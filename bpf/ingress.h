/* SPDX-License-Identifier: GPL-2.0 */
/* tc ingress: packets from clients. */
#ifndef WEIR_BPF_INGRESS_H
#define WEIR_BPF_INGRESS_H

#include "checksum.h"
#include "cut.h"
#include "frame.h"
#include "reply.h"
#include "track.h"

/* A request is refused and may be answered: how, and whether its connection can go on. */
__noinline int choose_answer(struct __sk_buff *skb, struct work *w)
{
	bool loopback = skb->ifindex == LOOPBACK_IFINDEX;
	struct weir_request_reader *r;
	__u32 rest;
	bool closing;

	if (!w)
		return 0;
	r = &w->request;
	rest = r->next - (w->packet.segment.seq + w->packet.segment.len);
	closing = (w->server_flags & WEIR_SERVER_CLOSING) ||
		  (loopback && (w->server_flags & WEIR_SERVER_CLOSING_LOOPBACK));
	r->answer.retry_s = w->retry_s;
	r->answer.head = r->request.method == WEIR_METHOD_HEAD;
	r->answer.kind = WEIR_ANSWER_KEEP;
	if ((__s32)rest < 0)
		rest = 0;
	/* A body that is not sent yet, or of unknown or great length, is not worth swallowing. */
	if (closing || (r->request.flags & (WEIR_REQUEST_EXPECT | WEIR_REQUEST_CLOSE)) ||
	    !weir_request_ended(&r->request) || rest > w->swallow_max)
		r->answer.kind = WEIR_ANSWER_CLOSE;
	r->answer.length = answer_text(w, &r->answer);
	return 0;
}

__noinline int count_requests(struct work *w, __u32 action)
{
	__u32 s;

	if (!w)
		return 0;
	s = w->server;
	if (w->passed)
		count_many(s, WEIR_PASSED, w->passed);
	if (w->exempt)
		count_many(s, WEIR_EXEMPT, w->exempt);
	if (w->dry_run)
		count_many(s, WEIR_DRY_RUN_SHED, w->dry_run);
	if (w->repeated_user)
		count_many(s, WEIR_REPEATED_USER, w->repeated_user);
	if (!w->request.shed)
		return 0;
	count(s, WEIR_SHED);
	for (int type = 0; type < WEIR_LIMIT_TYPES; type++) {
		if (w->refused & (1U << type))
			count(s, WEIR_SHED_TOTAL + type);
	}
	if (action == WEIR_CLOSE)
		count(s, WEIR_ANSWERED_CLOSE);
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
	if (text != w->reply.len || packet_write(skb, w, true, text))
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

static __always_inline int ingress_conn(struct __sk_buff *skb, struct work *w, struct weir_conn *c)
{
	const struct weir_segment *g = &w->packet.segment;
	enum weir_reason why = WEIR_REASON_COUNT;
	enum weir_action action;
	__u32 cuts;

	bpf_spin_lock(&c->lock);
	c->last_ns = w->now_ns;
	action = weir_conn_begin_client(c, g, &w->request, &why);
	weir_conn_look(c, g, action, &w->view);
	bpf_spin_unlock(&c->lock);

	if (action == WEIR_FRAME) {
		cuts = w->view.splice.cuts;
		/* A reply has no IP options, and no place to stand where they were. */
		if (!w->packet.plain_ip && w->request.why_not == WEIR_REASON_COUNT)
			w->request.why_not = WEIR_PACKET_SURGERY;
		frame_requests(skb, w);
		if (w->request.shed)
			choose_answer(skb, w);
		bpf_spin_lock(&c->lock);
		action = weir_conn_commit_client(c, g, &w->request, &why);
		weir_conn_look(c, g, action, &w->view);
		bpf_spin_unlock(&c->lock);
		if (action != WEIR_HOLD)
			count_requests(w, action);
		else if (why == WEIR_CONTENDED)
			undo_decision(w);
		if (action == WEIR_CLOSE ? cuts : !cuts && w->view.splice.cuts)
			count(w->server, action == WEIR_CLOSE ? WEIR_SPLICE_CLOSED : WEIR_SPLICE_OPENED);
	}
	if (why != WEIR_REASON_COUNT)
		count(w->server, why);
	if (w->unanswered_why != WEIR_REASON_COUNT)
		count(w->server, w->unanswered_why);
	if (action == WEIR_ANSWER)
		count(w->server, WEIR_ANSWERED);
	conn_retire(w, c, false);

	if (action == WEIR_CUT && packet_cut(skb, w, w->request.start - g->seq)) {
		/* What was cut off comes again, with what was to pass: known by its numbers, it passes then. */
		count(w->server, WEIR_PACKET_SURGERY);
		action = WEIR_HOLD;
	} else if (action == WEIR_CUT) {
		count(w->server, WEIR_CUT_SHORT);
	}
	if (action == WEIR_HOLD)
		return TC_ACT_SHOT;
	return action == WEIR_PASS || action == WEIR_CUT ? pass_to_server(skb, w) : reply(skb, w, action);
}

/*
 * Writes no-operations over the MPTCP option of a SYN: the connection becomes plain TCP, as behind any middlebox that
 * does not know the option. MPTCP's own sequence numbers would not bear a translated stream.
 */
__noinline int remove_mptcp(struct __sk_buff *skb, struct work *w)
{
	__u8 old[TCP_OPTION_BYTES] = {}, nops[TCP_OPTION_BYTES] = {};
	__u32 at, bytes;
	__s64 diff;

	if (!w)
		return 0;
	/* From an even offset, as sums are of 16-bit words; the byte before is kept as it is. */
	at = w->packet.mptcp_at - ((w->packet.mptcp_at - w->packet.l4) & 1);
	bytes = size_up_to(TCP_OPTION_BYTES, w->packet.mptcp_bytes + w->packet.mptcp_at - at);
	if (bpf_skb_load_bytes(skb, at, old, bytes))
		return 0;
	__builtin_memset(nops, TCP_OPTION_NOP, sizeof(nops));
	if (at != w->packet.mptcp_at)
		nops[0] = old[0];
	for (__u32 i = 1; i < TCP_OPTION_BYTES; i++) {
		if (i >= bytes)
			nops[i] = 0;
	}
	diff = bpf_csum_diff((__be32 *)old, sizeof(old), (__be32 *)nops, sizeof(nops), 0);
	if (bpf_l4_csum_replace(skb, w->packet.l4 + CHECK_AT, 0, diff, 0) ||
	    bpf_skb_store_bytes(skb, at, nops, bytes, 0))
		return 0;
	count(w->server, WEIR_MPTCP_REMOVED);
	return 0;
}

static __always_inline bool load_settings(struct work *w)
{
	__u32 zero = 0;
	struct weir_settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct weir_server *server = bpf_map_lookup_elem(&servers, &w->server);

	if (!set || !server || !(server->flags & (WEIR_SERVER_ACTIVE | WEIR_SERVER_DRAINING)))
		return false;
	w->seed[0] = set->seed[0];
	w->seed[1] = set->seed[1];
	w->server_flags = server->flags;
	if (server->flags & WEIR_SERVER_DRAINING)
		w->server_flags |= WEIR_SERVER_PAUSED;
	w->swallow_max = server->swallow_max;
	w->now_ns = bpf_ktime_get_ns();
	w->passed = 0;
	w->charged = 0;
	w->refused = 0;
	w->exempt = 0;
	w->dry_run = 0;
	w->unanswered_why = WEIR_REASON_COUNT;
	w->repeated_user = 0;
	return true;
}

SEC("tc")
int weir_ingress(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_INGRESS);
	struct weir_conn *c;
	struct packet *p;
	__u32 end;

	/* A VLAN's packets pass its own device, too. What is not for this device's address may be for a macvlan on top. */
	if (!w || skb->vlan_present || (skb->pkt_type != PACKET_HOST && skb->pkt_type != PACKET_OTHERHOST))
		return TC_ACT_UNSPEC;
	p = &w->packet;
	if (!packet_parse_ip(skb, p, &end) || !packet_parse_ports(skb, p) ||
	    !server_listens(p->dest, p->dest_port, &w->server))
		return TC_ACT_UNSPEC;
	if (!load_settings(w) || !packet_parse_tcp(skb, p, end))
		return TC_ACT_UNSPEC;

	flow_set(p, true);
	c = bpf_map_lookup_elem(&conns, &p->flow);
	if (p->segment.flags & WEIR_TCP_SYN) {
		if (p->mptcp_at)
			remove_mptcp(skb, w);
		return TC_ACT_UNSPEC;
	}
	if (!c) {
		if ((p->segment.flags & WEIR_TCP_RST) || (w->server_flags & WEIR_SERVER_DRAINING))
			return TC_ACT_UNSPEC;
		if (!conn_open(skb))
			return TC_ACT_UNSPEC;
		c = bpf_map_lookup_elem(&conns, &p->flow);
		if (!c)
			return TC_ACT_UNSPEC;
		/* Joined when it was MPTCP already. */
		if (p->mptcp_at) {
			c->phase = WEIR_PHASE_OPAQUE;
			count(w->server, WEIR_MPTCP);
		}
	}
	if (bpf_skb_load_bytes(skb, 0, p->ethernet, ETHERNET_BYTES))
		return TC_ACT_UNSPEC;
	if (!checksum_is_right(skb, w)) {
		count(w->server, WEIR_BAD_CHECKSUM);
		return TC_ACT_UNSPEC;
	}
	return ingress_conn(skb, w, c);
}

#endif
