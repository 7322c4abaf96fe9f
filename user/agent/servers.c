/* SPDX-License-Identifier: GPL-2.0 */
/* Servers in the kernel: put in force, taken over, ended. */
#include <errno.h>
#include <string.h>

#include "agent/inside.h"
#include "agent/limit_counts.h"
#include "agent/limits.h"
#include "agent/net.h"
#include "agent/reconcile.h"
#include "agent/servers.h"
#include "agent/trace.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "base/json_list.h"
#include "base/log.h"
#include "rules/put.h"

__u32 server_flags(const struct server *server, const struct net *net)
{
	bool closing = server->loopback == LOOPBACK_CLOSE ||
		       (server->loopback == LOOPBACK_AUTO && net->loopback_tracked);
	__u32 flags = server_own_flags(server);

	flags |= closing ? WEIR_SERVER_CLOSING_LOOPBACK : 0;
	flags |= net->paced && server->hold != HOLD_DROP ? WEIR_SERVER_PACED : 0;
	flags |= server->xdp != XDP_OFF ? WEIR_SERVER_XDP : 0;
	flags |= server->xdp != XDP_OFF && server->syn_cookies == SYN_COOKIES_XDP ? WEIR_SERVER_XDP_COOKIES : 0;
	flags |= inside_decides(net->agent, server) ? WEIR_SERVER_INSIDE : 0;
	flags |= inside_holds(net->agent, server) ? WEIR_SERVER_INSIDE_HOLD : 0;
	return flags;
}

int server_apply_flags(struct agent *agent, int slot, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct net *net = server_net(agent, server);

	if (!agent->servers[slot].in_force)
		return 0;
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	return datapath_server_flags(net->dp, slot, server_flags(server, net), err);
}

void server_refresh_flags(struct agent *agent, int slot)
{
	struct error err;

	if (server_apply_flags(agent, slot, &err))
		log_error("server \"%s\": %s", agent->state.servers[slot]->name, err.text);
}

static int apply_server(struct net *net, int slot, const struct server *server, struct error *err)
{
	int ret = server_put_settings(net->dp, slot, server, server_flags(server, net), err);

	return ret ? ret : limits_apply(net, slot, server, err);
}

int server_sync(struct net *net, int slot, struct error *err)
{
	const struct state *state = &net->agent->state;
	struct datapath_servers servers = { 0 };
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	for (int i = 0; i < WEIR_MAX_SERVERS; i++)
		servers.has[i] = net_server(net, i);
	return datapath_shared_sync(net->dp, &servers, err)		  ?:
		       apply_server(net, slot, state->servers[slot], err) ?:
									    identity_sync(net, slot, err);
}

/* Its number is given again when it has ended. */
static bool is_of_process(const char *netns)
{
	return netns && !strncmp(netns, "/proc/", strlen("/proc/"));
}

/* The namespace may have been made anew since the server was attached: then it is another one, of another cookie. */
static int bring_up(struct agent *agent, int slot, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	CLEANUP_CLOSE int fd = -1;
	struct net *net;
	__u64 cookie;
	int ret = net_open(agent, server, &fd, &cookie, err);

	if (ret == -ENOENT && server->netns)
		return error_set(err, ret,
				 "its network namespace, %s, is gone: it is limited once there is one of that name",
				 server->netns);
	if (ret)
		return ret;
	if (server->netns_cookie != cookie && is_of_process(server->netns))
		return error_set(
			err, -ESTALE,
			"its network namespace, %s, is that of another process now: detach the server, and attach it by the new one",
			server->netns);
	if (server->netns_cookie != cookie)
		log_warning("server \"%s\": its network namespace has changed", server->name);
	server->netns_cookie = cookie;
	ret = state_check(&agent->state, server, err);
	if (!ret)
		ret = net_get(agent, fd, cookie, &net, err);
	return ret ? ret : server_sync(net, slot, err);
}

int server_bring_up(struct agent *agent, int slot, struct error *err)
{
	struct error why = { 0 };
	int ret = bring_up(agent, slot, &why);

	agent->servers[slot].in_force = !ret;
	agent->servers[slot].problem = why;
	if (ret)
		return error_set(err, ret, "%s", why.text);
	trace_server_begins(agent);
	if (identity_load(agent, slot, &(struct identity_count){ 0 }, &why))
		log_error("server \"%s\" keeps its earlier tokens and addresses: %s", agent->state.servers[slot]->name,
			  why.text);
	return 0;
}

static int clear(struct net *net, int slot, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_server_clear(net->dp, slot, err);
}

void server_out_of_force(struct agent *agent, int slot)
{
	agent->servers[slot].in_force = false;
	agent->servers[slot].traced = false;
	agent->servers[slot].deserted = 0;
	memset(&agent->servers[slot].rates, 0, sizeof(agent->servers[slot].rates));
	free(agent->servers[slot].held_elsewhere);
	agent->servers[slot].held_elsewhere = NULL;
	agent->servers[slot].held_in_part = false;
	server_listen(agent, slot);
}

int server_end(struct agent *agent, int slot, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	struct net *net = server_net(agent, server);
	int ret;

	trace_server_ends(agent, slot);
	inside_forget(agent, slot);
	ret = net ? clear(net, slot, err) : 0;
	if (ret)
		return ret;
	if (net)
		limits_taken_forget(net);
	agent->state.servers[slot] = NULL;
	server_out_of_force(agent, slot);
	agent->servers[slot].tried = agent->servers[slot].incomplete = false;
	memset(agent->servers[slot].drift, 0, sizeof(agent->servers[slot].drift));
	identity_forget(agent, slot);
	reconcile_forget(agent, server->name);
	metrics_top_forget(&agent->top, server->name);
	if (agent->ended)
		agent->ended(agent, server->name);
	if (net)
		ret = net_settle(net, err);
	else
		net_unpin(agent, server->netns_cookie);
	agent_save_off(agent, slot, server->name, UNSAVED_ENDED);
	server_free(server);
	return ret;
}

void server_tell_failed(const struct agent *agent, int slot, json_t *result)
{
	const char *name = agent->state.servers[slot]->name;

	if (agent->servers[slot].in_force || !agent->servers[slot].tried)
		return;
	list_append(result, "not_in_force", json_string(name));
	list_append(result, "warnings",
		    json_sprintf("server \"%s\" is not in force, and the kernel has what it had before: %s", name,
				 agent->servers[slot].problem.text));
}

int server_named(const struct agent *agent, const char *name, struct error *err)
{
	int slot = name ? state_find(&agent->state, name) : state_find_only(&agent->state, err);

	if (slot < 0)
		return name ? state_unknown(&agent->state, name, err) : slot;
	if (agent->state.servers[slot]->draining)
		return state_draining(agent->state.servers[slot], err);
	return slot;
}
