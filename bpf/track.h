/* SPDX-License-Identifier: GPL-2.0 */
/* The table of connections: when an entry begins, and when it may go. */
#ifndef WEIR_BPF_TRACK_H
#define WEIR_BPF_TRACK_H

#include "listen.h"
#include "socket.h"
#include "table.h"

/* A stream of MPTCP's comes in another order than its segments do, and by several connections. */
static __always_inline void open_mptcp(struct weir_conn *fresh)
{
	weir_conn_opaque(fresh, fresh->request_next, WEIR_MPTCP);
}

/* Limits on connections have been asked by then. */
static __always_inline bool open_from_request(struct weir_conn *fresh, __u32 server, struct bpf_sock *sk,
					      const struct weir_segment *g)
{
	struct tcp_request_sock *request = bpf_skc_to_tcp_request_sock(sk);
	struct inet_request_sock *inet;
	__u32 window;

	if (!answers_request(request, g))
		return false;
	inet = (struct inet_request_sock *)request;
	window = inet->req.__req_common.skc_rcv_wnd >> BPF_CORE_READ_BITFIELD(inet, rcv_wscale);
	fresh->server_isn = request->snt_isn;
	weir_conn_open(fresh, server, WEIR_PHASE_FOLLOWED, request->rcv_isn + 1, request->snt_isn + 1,
		       window > 0xffff ? 0xffff : window);
	fresh->splice.server_scale = BPF_CORE_READ_BITFIELD(inet, rcv_wscale);
	return true;
}

/* The server has got something since it sent last: an answer is due, unless the rest of a body is. */
static __always_inline bool answer_is_due(const struct tcp_sock *tcp)
{
	return !tcp->bytes_sent || (__s32)(tcp->inet_conn.icsk_ack.lrcvtime - tcp->lsndtime) > 0;
}

/*
 * Does the client acknowledge another stream than the socket's? Either the socket drops it, or something between here and there changes
 * the numbers (netfilter's SYNPROXY): what is seen here is not what the socket gets.
 */
static __always_inline bool answers_another(const struct tcp_sock *tcp, const struct weir_segment *g)
{
	const struct weir_socket k = { .acked = tcp->snd_una, .reach = socket_reach(tcp) };

	return weir_socket_is_out_of_reach(&k, g);
}

static __always_inline bool open_from_socket(struct weir_conn *fresh, __u32 server, struct bpf_sock *sk,
					     const struct weir_segment *g)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	bool untouched;
	__u32 window;

	/* What the socket has from beyond a gap, nobody here has seen: a cut in the gap would move it. */
	if (!tcp || tcp->out_of_order_queue.rb_node)
		return false;
	/* MPTCP's are not read in any case. */
	if (answers_another(tcp, g) && !socket_is_mptcp(tcp))
		return false;
	untouched = socket_is_untouched(tcp) && !tcp->bytes_sent;
	window = tcp->rcv_wnd >> BPF_CORE_READ_BITFIELD(tcp, rx_opt.rcv_wscale);
	weir_conn_open(fresh, server, untouched ? WEIR_PHASE_FOLLOWED : WEIR_PHASE_HUNTING, tcp->rcv_nxt, tcp->snd_nxt,
		       window > 0xffff ? 0xffff : window);
	fresh->splice.server_scale = BPF_CORE_READ_BITFIELD(tcp, rx_opt.rcv_wscale);
	fresh->requests = !untouched && answer_is_due(tcp);
	fresh->bare = fresh->requests ? WEIR_BARE_OPEN : 0;
	if (socket_is_mptcp(tcp))
		open_mptcp(fresh);
	return true;
}

enum opened {
	OPENED_NOT,	/* the kernel has no such connection, the packet does not fit it, or it could not be answered */
	OPENED,		/* it is in the table */
	OPENED_NO_ROOM, /* it is not, for the table is full, or the client's share of it */
	/* By this very packet, if it ends a handshake: of a SYN cookie, or of a listener with MPTCP. Only then can the kernel say where it stands. */
	OPENED_SOON,
};

/* A kernel without IPsec lacks the helper, too. */
struct netns_xfrm___there {
	u32 sysctl_aevent_etime;
} __attribute__((preserve_access_index));

/* Was the packet decrypted by this namespace? An answer of weir's would leave without IPsec: in the clear, and the client would drop it. */
static __always_inline bool came_by_ipsec(struct __sk_buff *skb)
{
	struct bpf_xfrm_state state;

	return bpf_core_type_exists(struct netns_xfrm___there) &&
	       !bpf_skb_get_xfrm_state(skb, 0, &state, sizeof(state), 0);
}

/* Begins to follow the connection of a client's packet. */
__noinline int conn_open(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_INGRESS);
	struct weir_conn *fresh;
	bool known = false, soon;
	struct bpf_sock *sk;
	__u32 state;
	int added;

	if (!w || came_by_ipsec(skb))
		return OPENED_NOT;
	fresh = &w->entry.conn;
	__builtin_memset(fresh, 0, sizeof(*fresh));
	sk = socket_of(skb, &w->packet);
	if (!sk)
		return OPENED_NOT;
	state = sk->state;
	if (state == STATE_NEW_SYN_RECV)
		known = open_from_request(fresh, w->server, sk, &w->packet.segment);
	else if (state == STATE_ESTABLISHED || state == STATE_SYN_RECV)
		known = open_from_socket(fresh, w->server, sk, &w->packet.segment);
	soon = state == STATE_LISTEN || (state == STATE_NEW_SYN_RECV && !bpf_skc_to_tcp_request_sock(sk));
	bpf_sk_release(sk);
	if (soon)
		return OPENED_SOON;
	if (!known)
		return OPENED_NOT;
	if (w->packet.mptcp)
		open_mptcp(fresh);
	if (fresh->phase == WEIR_PHASE_FOLLOWED && (w->server_flags & WEIR_SERVER_PREAMBLES))
		weir_conn_await_preamble(fresh);
	added = conn_add(HOOK_INGRESS);
	if (added != ADDED)
		return added == ADDED_BEFORE ? OPENED : OPENED_NO_ROOM;
	if (fresh->phase != WEIR_PHASE_FOLLOWED)
		count(w->server, fresh->phase == WEIR_PHASE_OPAQUE ? WEIR_MPTCP : WEIR_MID_STREAM);
	return OPENED;
}

/* Is it the one whose handshake has this number of the server's? One joined later, or by a SYN cookie, does not know. */
static __always_inline bool conn_began_with(const struct weir_conn *c, __u32 server_isn)
{
	return c->server_isn && c->server_isn == server_isn;
}

/* Seats are not kept for as long as numbers have to be translated. */
static __always_inline __u64 conn_first_linger_ns(const struct weir_conn *c)
{
	__u64 linger_ns = weir_conn_linger_ns(c);

	return weir_conn_has_seats(c) && linger_ns > WEIR_LINGER_NS ? WEIR_LINGER_NS : linger_ns;
}

/*
 * Lets go what is due of a dying entry, and what one that is idle does not need; true when it is the entry itself. If its memory is
 * another one's by now, that is what is looked at, and what it is rid of is due.
 */
static __always_inline bool conn_let_go(const struct weir_flow *flow, struct weir_conn *c)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u64 id = WEIR_FRESH(c->id);
	enum weir_due due = weir_conn_due(c, now_ns);

	if (due == WEIR_DUE_ENTRY)
		conn_forget(flow, id);
	else if (due == WEIR_DUE_SEATS)
		conn_release(c, id);
	else
		busy_let_go(c, now_ns);
	return due == WEIR_DUE_ENTRY;
}

/* Nothing is to be done if the entry is gone, or if it lives: then it has taken the place of the one that was dying. */
static int conn_expire(void *map __attribute__((unused)), struct weir_flow *key, struct weir_lingering *l)
{
	struct weir_flow flow = *key; /* functions that are verified by themselves do not take a map's key */
	struct weir_conn *c = bpf_map_lookup_elem(&conns, &flow);
	__u64 idle_ns, linger_ns;

	if (!c || !c->dying) {
		bpf_map_delete_elem(&lingering, &flow);
		return 0;
	}
	if (conn_let_go(&flow, c))
		return 0;
	idle_ns = bpf_ktime_get_ns() - c->last_ns;
	linger_ns = idle_ns < WEIR_LINGER_NS ? conn_first_linger_ns(c) : weir_conn_linger_ns(c);
	bpf_timer_start(&l->timer, linger_ns > idle_ns ? linger_ns - idle_ns : 0, 0);
	return 0;
}

/* When the kernel has no room for it, there is none. */
static __always_inline void conn_start_timer(const struct weir_flow *flow, __u64 after_ns)
{
	struct weir_lingering none = {}, *l;

	bpf_map_update_elem(&lingering, flow, &none, BPF_NOEXIST);
	l = bpf_map_lookup_elem(&lingering, flow);
	if (!l || bpf_timer_init(&l->timer, &lingering, 1 /* CLOCK_MONOTONIC */))
		return;
	bpf_timer_set_callback(&l->timer, conn_expire);
	bpf_timer_start(&l->timer, after_ns, 0);
}

/*
 * An entry that may be done for goes when it has been silent for long enough. The kernel may have no memory for a timer
 * at that moment (often, for seconds, on Linux 6.18): then the agent's sweep sees to it.
 */
static __noinline int conn_linger(const struct weir_flow *flow, struct weir_conn *c, __u64 id)
{
	bool gives_way = false, begins = false;
	__u64 linger_ns = 0;
	__u32 holder = 0;

	bpf_spin_lock(&c->lock);
	if (c->id == id) {
		gives_way = weir_conn_ended(c) && !c->gives_way;
		begins = !c->dying;
		c->gives_way |= gives_way;
		c->dying = 1;
		linger_ns = conn_first_linger_ns(c);
		if (gives_way) {
			holder = c->holder;
			c->holder = 0;
		}
	}
	bpf_spin_unlock(&c->lock);
	if (gives_way)
		conn_gives_way(flow, id, holder);
	if (begins)
		conn_start_timer(flow, linger_ns);
	return 0;
}

/*
 * Does a client's segment, in the server's numbers, end the connection by a RST? Of those that do not stand exactly at the
 * next byte (RFC 5961, 3.2) the socket lives on, and so must what is known of it. One that tells its end (sockops.h) need not
 * be guessed at.
 */
static __always_inline bool client_resets(struct __sk_buff *skb, struct work *w)
{
	if (!(w->packet.segment.flags & WEIR_TCP_RST))
		return false;
	socket_ask(skb, HOOK_INGRESS);
	return !w->socket.known || (!w->socket.tells && w->packet.segment.seq == w->socket.next);
}

/* The same of the server's side. A firewall may have sent the RST: then the socket lives on. */
static __always_inline bool server_resets(struct __sk_buff *skb, struct work *w)
{
	if (!(w->packet.segment.flags & WEIR_TCP_RST))
		return false;
	socket_ask(skb, HOOK_EGRESS);
	return !w->socket.known || !w->socket.tells;
}

/*
 * Lets the entry go when the connection is over: at once where nothing was translated and both sides, or the server's
 * socket, said so.
 */
static __always_inline void conn_retire(struct work *w, struct weir_conn *c, bool from_server, bool reset)
{
	bool closed = weir_splice_closed(&c->splice);

	if (conn_is_anothers(w, c))
		return;
	if (!closed && !reset && c->phase != WEIR_PHASE_CLOSED)
		return;
	if (!c->splice.cuts && (closed || from_server))
		conn_forget(&w->packet.flow, w->conn_id);
	else
		conn_linger(&w->packet.flow, c, w->conn_id);
}

#endif
