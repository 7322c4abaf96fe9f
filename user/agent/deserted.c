/* SPDX-License-Identifier: GPL-2.0 */
/* Namespaces that nothing but the agent keeps: it lets go of them. */
#include <errno.h>
#include <string.h>

#include "agent/inside.h"
#include "agent/net.h"
#include "agent/reconcile.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "sys/netns.h"
#include "sys/netns_find.h"
#include "sys/socket_diag.h"

#define ROUNDS 2 /* what is seen once may be a name that is about to be given again */

static void note_listener(const struct socket_listener *listener, void *arg)
{
	(void)listener;
	*(bool *)arg = true;
}

static int find_listener(void *arg)
{
	return socket_diag_listeners(note_listener, arg);
}

/* Without a name and a process, a socket may keep a namespace, too. What cannot be found out is taken for a yes. */
static bool is_listened_in(int fd)
{
	bool there = false;

	return netns_run(fd, find_listener, &there, NULL) || there;
}

static bool is_deserted(struct net *net)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);
	CLEANUP_CLOSE int fd = netns_find(net->cookie);

	return fd < 0 && !is_listened_in(net->fd);
}

int server_check_netns(struct agent *agent, int slot, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	CLEANUP_CLOSE int fd = -1;
	bool deserted;
	__u64 cookie;
	int ret;

	if (!server->netns)
		return 0;
	ret = net_open(agent, server, &fd, &cookie, NULL);
	deserted = (ret == -ENOENT || (!ret && cookie != server->netns_cookie)) &&
		   is_deserted(server_net(agent, server));
	agent->servers[slot].deserted = deserted ? agent->servers[slot].deserted + 1 : 0;
	if (deserted)
		return error_set(
			err, -ESTALE,
			"its network namespace, %s, is gone, and no process or name leads to it: the agent lets go of it soon",
			server->netns);
	if (ret || cookie == server->netns_cookie)
		return 0;
	return error_set(
		err, -ESTALE,
		"its network namespace, %s, was recreated: detach and attach the server again to limit the new one",
		server->netns);
}

/* A server that is in force there, or NULL. */
static const struct server *server_in_force(const struct net *net, int slot)
{
	return net->agent->servers[slot].in_force ? net_server(net, slot) : NULL;
}

/* By all servers in force there, which may know it by other names; and none of them still has connections to look after. */
static bool is_given_up(const struct net *net)
{
	const struct agent *agent = net->agent;
	int n = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = server_in_force(net, slot);

		if (!server)
			continue;
		if (server->draining || agent->servers[slot].deserted < ROUNDS)
			return false;
		n++;
	}
	return n;
}

static void let_go(struct net *net)
{
	struct agent *agent = net->agent;
	struct error err;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = server_in_force(net, slot);

		if (!server)
			continue;
		inside_forget(agent, slot);
		server_out_of_force(agent, slot);
		log_warning("server \"%s\": its network namespace, %s, is gone, and was let go", server->name,
			    server->netns);
	}
	if (net_leave(net, &err))
		log_error("letting go of a network namespace: %s", err.text);
}

static struct net *next_given_up(const struct agent *agent)
{
	struct net *net;

	for (net = agent->nets; net; net = net->next)
		if (is_given_up(net))
			break;
	return net;
}

bool nets_given_up(const struct agent *agent)
{
	return next_given_up(agent);
}

void nets_let_go(struct agent *agent)
{
	struct net *net;

	agent_change_begin(agent);
	while ((net = next_given_up(agent)))
		let_go(net);
	/* There may be another one of that name. */
	reconcile_all(agent);
	agent_change_end(agent);
}
