/* SPDX-License-Identifier: GPL-2.0 */
/*
 * At the server's socket: what comes on a connection whose users are in debt, by what was decided inside the server, is withheld
 * until it is their turn (include/weir/inside/turn.h). TCP sends it again. What brings no bytes that the server does not have
 * passes: acknowledgements, a FIN, a RST.
 */
#ifndef WEIR_BPF_INSIDE_HOLD_H
#define WEIR_BPF_INSIDE_HOLD_H

#include "socket.h"
#include "turns.h"

#define HOLDS_NOT (WEIR_SERVER_PAUSED | WEIR_SERVER_DRY_RUN | WEIR_SERVER_DRAINING)

static __always_inline const struct weir_server *server_that_holds(const struct work *w)
{
	const struct weir_server *server = bpf_map_lookup_elem(&servers, &w->server);
	__u32 holds = WEIR_SERVER_ACTIVE | WEIR_SERVER_INSIDE_HOLD;

	return server && (server->flags & (holds | HOLDS_NOT)) == holds ? server : NULL;
}

/* A cgroup's sockets may be of several network namespaces: another one's server on this port is not looked into. */
static __always_inline bool is_of_this_namespace(struct tcp_sock *tcp)
{
	const struct weir_settings *set = bpf_map_lookup_elem(&settings, &(__u32){ 0 });

	return set && tcp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net->net_cookie == set->netns_cookie;
}

/* Does the segment bring bytes that the server has not got yet? */
static __always_inline bool brings_news(struct __sk_buff *skb, const struct weir_segment *g)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tcp;

	if (!g->len || (g->flags & (WEIR_TCP_SYN | WEIR_TCP_RST)) || !sk)
		return false;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || !is_of_this_namespace(tcp))
		return false;
	return sk->state == STATE_LISTEN || seq_after(g->seq + g->len, tcp->rcv_nxt);
}

/* A connection on which nothing was seen yet: the turn of its address' users becomes its own. NULL: they have none. */
static __always_inline struct weir_turns *turn_of_address(const struct work *w, const struct weir_turn_key *own,
							  __u64 now_ns)
{
	struct weir_turn_key key;
	struct weir_turns *turns;
	enum weir_turn_said said;
	__u64 first, second, at_ns;

	turn_key(&key, w->server, w->packet.source, 0);
	turns = bpf_map_lookup_elem(&hold_turns, &key);
	if (!turns)
		return NULL;
	first = WEIR_FRESH(turns->words[0]);
	second = WEIR_FRESH(turns->words[1]);
	said = weir_turns_say(first, second, now_ns);
	if (said == WEIR_TURN_SHARED)
		count(w->server, WEIR_HOLD_SHARED);
	if (said != WEIR_TURN_HELD)
		return NULL;
	at_ns = weir_turn_of_new_ns(weir_turns_first_ns(first, second, now_ns), now_ns);
	turns = turns_make(own);
	if (turns)
		turn_note(turns, WEIR_TURN_NOBODY, at_ns, now_ns);
	return turns;
}

/* The withheld packets pass from now on. If a connection sent nothing more, nothing is reported for it. */
static __always_inline void turn_comes(const struct work *w, struct weir_turns *turns, __u64 longest_ns, __u64 now_ns)
{
	__u64 since_ns = WEIR_FRESH(turns->since_ns);

	if (!since_ns || __sync_val_compare_and_swap(&turns->since_ns, since_ns, 0) != since_ns)
		return;
	if (now_ns > since_ns && now_ns - since_ns <= 2 * longest_ns)
		count_duration(w->server, WEIR_HELD_NS, WEIR_HELD_1MS, now_ns - since_ns);
}

/* Nobody waits for longer: all that the connection brings goes on, until a request of it is seen again. */
static __always_inline bool turn_is_overdue(const struct work *w, struct weir_turns *turns, __u64 longest_ns,
					    __u64 now_ns)
{
	__u64 since_ns = __sync_val_compare_and_swap(&turns->since_ns, 0, now_ns), word;

	if (!since_ns || since_ns + longest_ns > now_ns)
		return false;
	for (int i = 0; i < WEIR_TURN_USERS; i++) {
		word = WEIR_FRESH(turns->words[i]);
		if (weir_turn_ns(word) > now_ns)
			__sync_val_compare_and_swap(&turns->words[i], word, 0);
	}
	count(w->server, WEIR_HOLD_LONGEST);
	return true;
}

/* Has the segment to wait? It is none of a connection that packets' programs read. */
static __noinline bool inside_withholds(struct __sk_buff *skb, struct work *w)
{
	const struct weir_server *server = server_that_holds(w);
	__u64 now_ns, longest_ns;
	struct weir_turn_key key;
	struct weir_turns *turns;
	enum weir_turn_said said;

	if (!server || !brings_news(skb, &w->packet.segment))
		return false;
	now_ns = bpf_ktime_get_ns();
	longest_ns = weir_turn_longest_ns(server->hold_max_s);
	turn_key(&key, w->server, w->packet.source, bpf_ntohs(w->packet.source_port));
	turns = bpf_map_lookup_elem(&hold_turns, &key) ?: turn_of_address(w, &key, now_ns);
	if (!turns)
		return false;
	said = weir_turns_say(WEIR_FRESH(turns->words[0]), WEIR_FRESH(turns->words[1]), now_ns);
	if (said == WEIR_TURN_HELD && !turn_is_overdue(w, turns, longest_ns, now_ns)) {
		count(w->server, WEIR_HELD_RECORD);
		return true;
	}
	if (said == WEIR_TURN_SHARED)
		count(w->server, WEIR_HOLD_SHARED);
	turn_comes(w, turns, longest_ns, now_ns);
	return false;
}

#endif
