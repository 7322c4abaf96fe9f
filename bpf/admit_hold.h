/* SPDX-License-Identifier: GPL-2.0 */
/*
 * New connections at the server's socket: limits on connections are asked for those that ingress did not see as the server's. Their addresses
 * were translated behind it (DNAT, a redirect), or they came by a device without a program. Only here the packet has the ends of the
 * connection that the kernel makes of it.
 */
#ifndef WEIR_BPF_ADMIT_HOLD_H
#define WEIR_BPF_ADMIT_HOLD_H

#include "admitted.h"
#include "badge.h"
#include "hold_packet.h"
#include "named.h"
#include "settings.h"

/* May the packet begin a connection, or complete its handshake? TCP Fast Open makes a socket before that. */
static __always_inline bool socket_awaits_handshake(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	return sk && (sk->state == STATE_LISTEN || sk->state == STATE_SYN_RECV);
}

/* Have limits on connections still to be asked for it? */
static __noinline bool admission_is_due(struct __sk_buff *skb, struct work *w)
{
	if (badge_is_of_asked(skb, &w->packet) || !load_settings(w, HOOK_HOLD) || !admission_matters(w))
		return false;
	if (came_by_other_device(skb, w))
		return false;
	return socket_is_here(skb, w);
}

enum hold_handshake {
	HOLD_HANDSHAKE_NONE,
	HOLD_HANDSHAKE_ENDS,  /* which proves the sender's address */
	HOLD_HANDSHAKE_ENDED, /* by the SYN: its TCP Fast Open cookie proved that */
	HOLD_HANDSHAKE_MAYBE, /* it may answer a SYN cookie, or end one of a listener with MPTCP: only the kernel knows */
};

/* No program can read the kernel's request for a connection where the listener takes MPTCP. */
static __always_inline enum hold_handshake hold_handshake_of_request(const struct tcp_request_sock *request,
								     const struct weir_segment *g)
{
	if (!request)
		return HOLD_HANDSHAKE_MAYBE;
	return answers_request(request, g) ? HOLD_HANDSHAKE_ENDS : HOLD_HANDSHAKE_NONE;
}

static __always_inline enum hold_handshake hold_handshake_by(struct work *w, struct bpf_sock *sk)
{
	switch (sk->state) {
	case STATE_NEW_SYN_RECV:
		return hold_handshake_of_request(bpf_skc_to_tcp_request_sock(sk), &w->packet.segment);
	case STATE_SYN_RECV:
		return HOLD_HANDSHAKE_ENDED;
	case STATE_LISTEN:
		listen_queue_read(&w->queue, sk);
		return w->queue.setting ? HOLD_HANDSHAKE_MAYBE : HOLD_HANDSHAKE_NONE;
	default:
		return HOLD_HANDSHAKE_NONE;
	}
}

/* What the segment is to a handshake of the server's. */
__noinline int hold_handshake_of(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_HOLD);
	enum hold_handshake is;
	struct bpf_sock *sk;

	if (!w)
		return HOLD_HANDSHAKE_NONE;
	sk = socket_of(skb, &w->packet);
	if (!sk)
		return HOLD_HANDSHAKE_NONE;
	is = hold_handshake_by(w, sk);
	bpf_sk_release(sk);
	return is;
}

static __always_inline int hold_admission_first(struct __sk_buff *skb, struct work *w)
{
	int socket = admission_ask_socket(skb, HOOK_HOLD);

	if (socket == WEIR_SOCKET_BEGINS)
		count(w->server, WEIR_ADMISSION_REPEATED);
	if (!weir_socket_begins_another(socket))
		return SOCKET_GETS_IT;
	return admission_refuses(admission_look(w, socket)) ? SOCKET_GETS_NOTHING : SOCKET_GETS_IT;
}

/*
 * What may end a handshake. This hook has no helper that says whether it does, and who sends it may not be whom it says. So the limits
 * give what they would give, and what they refuse is refused as a SYN is. The kernel makes a socket of it before this CPU has another packet
 * for any: what it has made by then counts, and for what it has not, all goes back (admission_settle()).
 */
static __always_inline int hold_admission_maybe(struct work *w)
{
	int became = admission_look(w, WEIR_SOCKET_LISTENS);

	if (admission_refuses(became) || !load_settings(w, HOOK_HOLD))
		return SOCKET_GETS_NOTHING;
	became = admission_decide(HOOK_HOLD);
	if (admission_refuses(became)) {
		undo_decision(&w->decision);
		count(w->server, became);
		return SOCKET_GETS_NOTHING;
	}
	if (admitted_keep(HOOK_HOLD) == ADMITTED_BEFORE)
		undo_decision(&w->decision);
	else
		w->unsettled = became;
	w->decision.connects = 0;
	return SOCKET_GETS_IT;
}

/* Has the kernel made a connection of such a packet that came before? Its entry has not waited then. */
__noinline int admission_settle(void)
{
	struct work *w = work_of(HOOK_HOLD);
	struct weir_admitted *there;
	__u32 became;

	if (!w || !w->unsettled)
		return 0;
	became = w->unsettled;
	w->unsettled = 0;
	there = bpf_map_lookup_elem(&admitted, &w->packet.flow);
	if (there && there->word == w->entry.admitted.word && admitted_end(&w->packet.flow, w->entry.admitted.word))
		return undo_all_but_seats(&w->decision);
	tally_decision(&w->decision);
	count(w->server, became);
	return top_connection(HOOK_HOLD, became);
}

static __always_inline int hold_admission_last(struct __sk_buff *skb, struct work *w)
{
	int is = hold_handshake_of(skb), became;
	struct weir_admitted *there;

	if (is == HOLD_HANDSHAKE_NONE)
		return SOCKET_GETS_IT;
	if (!hold_check(skb, w)) {
		count(w->server, WEIR_BAD_CHECKSUM);
		return SOCKET_GETS_NOTHING;
	}
	there = bpf_map_lookup_elem(&admitted, &w->packet.flow);
	if (there && weir_admitted_by(there, &w->packet.segment))
		return SOCKET_GETS_IT;
	if (there)
		admitted_end(&w->packet.flow, there->word);
	if (is == HOLD_HANDSHAKE_MAYBE)
		return hold_admission_maybe(w);
	became = admission_take(w);
	if (is == HOLD_HANDSHAKE_ENDED)
		admitted_begins(&w->packet.flow);
	return admission_refuses(became) ? SOCKET_GETS_NOTHING : SOCKET_GETS_IT;
}

/*
 * A packet for a socket that awaits a handshake. What ingress could not read is dropped: nobody has tags behind a priority's in
 * earnest, nor a handshake in fragments.
 */
static __always_inline int hold_admission(struct __sk_buff *skb, struct work *w)
{
	const struct weir_segment *g = &w->packet.segment;
	bool opens = weir_segment_opens(g);

	if (!(opens || weir_segment_completes(g)) || !admission_is_due(skb, w))
		return SOCKET_GETS_IT;
	if (badge_is_unread(skb) && w->socket.listens)
		return hold_drop(w, WEIR_UNREADABLE);
	flow_set(&w->packet, true);
	return opens ? hold_admission_first(skb, w) : hold_admission_last(skb, w);
}

#endif
