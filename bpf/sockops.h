/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sock_ops: what the kernel tells of the servers' sockets. That one has ended, however it came to that: its requests have
 * no seats any more. That one begins: what is known of the same two ends is of another one. No working memory is used: this
 * may be called at any time.
 */
#ifndef WEIR_BPF_SOCKOPS_H
#define WEIR_BPF_SOCKOPS_H

#include "admitted.h"
#include "outgoing.h"
#include "route.h"
#include "track.h"
#include "turns.h"

#define STATE_CLOSE 7
#define STATE_CLOSING 11
#define GO_ON 1 /* with the next program; what the kernel asks for is not answered */

/* Of the context each field must be read from its own place: what is read is chosen from afterwards. */
static __always_inline bool sockops_flow(struct bpf_sock_ops *ops, struct weir_flow *f)
{
	__u32 *client = (__u32 *)f->client, *server = (__u32 *)f->server;
	__u32 family = ops->family, client_ipv4 = ops->remote_ip4, server_ipv4 = ops->local_ip4;

	client[0] = ops->remote_ip6[0];
	client[1] = ops->remote_ip6[1];
	client[2] = ops->remote_ip6[2];
	client[3] = ops->remote_ip6[3];
	server[0] = ops->local_ip6[0];
	server[1] = ops->local_ip6[1];
	server[2] = ops->local_ip6[2];
	server[3] = ops->local_ip6[3];
	if (family == FAMILY_INET) {
		map_ipv4(f->client, client_ipv4);
		map_ipv4(f->server, server_ipv4);
	}
	f->client_port = bpf_htons(bpf_ntohl(ops->remote_port));
	f->server_port = bpf_htons(ops->local_port);
	return family == FAMILY_INET || family == FAMILY_INET6;
}

/* A cgroup's sockets may be of several network namespaces. */
static __always_inline bool sockops_is_ours(struct bpf_sock_ops *ops, const struct weir_flow *f, __u32 *server)
{
	__u32 zero = 0;
	struct weir_settings *set = bpf_map_lookup_elem(&settings, &zero);

	return set && set->netns_cookie == bpf_get_netns_cookie(ops) &&
	       server_listens(f->server, f->server_port, server);
}

/* Unless it began with this number of the server's. */
static __always_inline void resting_outlived(struct weir_flow *f, __u32 server_isn)
{
	const struct weir_resting *r = bpf_map_lookup_elem(&resting, f);

	if (r && !(r->server_isn && r->server_isn == server_isn))
		conn_forget(f, r->id);
}

static __always_inline void socket_begins(struct bpf_sock_ops *ops, struct weir_flow *f, __u32 server)
{
	struct weir_conn *c = bpf_map_lookup_elem(&conns, f);

	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
	/* One that was set up by an answer to a SYN cookie is not in the table before it gets data. */
	if (c && !conn_began_with(c, ops->snd_nxt - 1))
		conn_forget(f, c->id);
	if (!c)
		resting_outlived(f, ops->snd_nxt - 1);
	admitted_begins(f);
	turns_forget(server, f->client, bpf_ntohs(f->client_port));
}

/* Of the states that a socket ends from, those that the kernel's TIME-WAIT comes after: it answers for the socket. */
static __always_inline bool answers_on(__u32 state)
{
	return state == STATE_FIN_WAIT1 || state == STATE_FIN_WAIT2 || state == STATE_CLOSING;
}

/* Does the entry of a socket that has ended go with it? */
static __always_inline bool conn_socket_ends(struct weir_conn *c, __u64 id, __u32 state)
{
	bool goes = true;

	bpf_spin_lock(&c->lock);
	if (c->id == id) {
		c->ended = answers_on(state) ? WEIR_ENDED_ANSWERS : WEIR_ENDED;
		goes = !c->splice.cuts || (c->ended == WEIR_ENDED && weir_splice_closed(&c->splice));
		c->splice.server_reset |= !goes;
	}
	bpf_spin_unlock(&c->lock);
	return goes;
}

/* Its numbers are still to be translated. */
static __always_inline void socket_is_outlived(const struct weir_flow *f, struct weir_conn *c, __u64 id)
{
	conn_release(c, id);
	conn_linger(f, c, id);
}

/*
 * Numbers are to be translated for as long as somebody can send some: after an abort the server's RST comes only now, and
 * the client may not have got its answer. When the client has closed first, and everything is acknowledged, nobody can.
 */
static __always_inline void socket_ends(struct weir_flow *f, __u32 server, __u32 state)
{
	struct weir_conn *c = bpf_map_lookup_elem(&conns, f);
	__u64 id = c ? WEIR_FRESH(c->id) : WEIR_CONN_FORGOTTEN;

	admitted_ends(f);
	turns_forget(server, f->client, bpf_ntohs(f->client_port));
	if (!c || id == WEIR_CONN_FORGOTTEN)
		resting_outlived(f, 0);
	else if (conn_socket_ends(c, id, state))
		conn_forget(f, id);
	else
		socket_is_outlived(f, c, id);
}

SEC("sockops")
int weir_sockops(struct bpf_sock_ops *ops)
{
	struct weir_flow flow __attribute__((aligned(8))) = {}; /* written by words */
	bool begins = ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB,
	     opened = ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB;
	__u32 server = 0;

	if (!begins && !opened && !(ops->op == BPF_SOCK_OPS_STATE_CB && ops->args[1] == STATE_CLOSE))
		return GO_ON;
	if (!sockops_flow(ops, &flow) || !sockops_is_ours(ops, &flow, &server))
		return GO_ON;
	if (opened)
		outgoing_note(&flow, ops->snd_nxt - 1);
	else if (begins)
		socket_begins(ops, &flow, server);
	else
		socket_ends(&flow, server, ops->args[0]);
	return GO_ON;
}

#endif
