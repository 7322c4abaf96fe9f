/* SPDX-License-Identifier: GPL-2.0 */
/* The namespaces in use. */
#include <errno.h>
#include <net/if.h>

#include "agent/net.h"
#include "agent/reconcile.h"
#include "agent/servers.h"
#include "agent/sweep.h"
#include "base/cleanup.h"
#include "base/output.h"
#include "sys/netns.h"

struct net *net_find(const struct agent *agent, __u64 cookie)
{
	struct net *net;

	for (net = agent->nets; net; net = net->next)
		if (net->cookie == cookie)
			break;
	return net;
}

struct net *server_net(const struct agent *agent, const struct server *server)
{
	return net_find(agent, server->netns_cookie);
}

struct net *net_in_force(const struct agent *agent, int slot)
{
	return agent->servers[slot].in_force ? server_net(agent, agent->state.servers[slot]) : NULL;
}

struct server *net_server(const struct net *net, int slot)
{
	struct server *server = net->agent->state.servers[slot];

	return server && server->netns_cookie == net->cookie ? server : NULL;
}

int net_first_server(const struct agent *agent, __u64 cookie)
{
	const struct state *state = &agent->state;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (state->servers[slot] && state->servers[slot]->netns_cookie == cookie)
			return slot;
	return -ENOENT;
}

struct net *net_add(struct agent *agent, int fd, __u64 cookie, struct datapath *dp)
{
	struct net *net = calloc(1, sizeof(*net));

	if (!net)
		return NULL;
	*net = (struct net){ .agent = agent, .next = agent->nets, .cookie = cookie, .fd = fd, .dp = dp };
	net->written = *datapath_written(dp);
	agent->nets = net;
	net_watch(net);
	net_probe(net);
	net_find_tracking(net);
	net_pace(net);
	return net;
}

static void net_free(struct net *net)
{
	struct net **link = &net->agent->nets;

	while (*link != net)
		link = &(*link)->next;
	*link = net->next;
	drift_keep_written(net->agent, net);
	net_unwatch(net);
	datapath_close(net->dp);
	if (net->fd >= 0)
		close(net->fd);
	free(net->taken.seats);
	open_requests_clear(&net->open.requests);
	free(net);
}

static int remove_all(struct net *net, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_remove(net->dp, err);
}

int net_leave(struct net *net, struct error *err)
{
	int ret;

	sweeper_leave(net);
	ret = remove_all(net, err);
	net_free(net);
	return ret;
}

int net_settle(struct net *net, struct error *err)
{
	int ret;

	/* First what reads, then what holds all that was not seen. */
	if (net_first_server(net->agent, net->cookie) >= 0) {
		ret = net_sync_links(net, err);
		net_hold(net);
		net_pace(net);
		return ret;
	}
	return net_leave(net, err);
}

void nets_close(struct agent *agent)
{
	while (agent->nets)
		net_free(agent->nets);
}

/* Names come from requests: they are shown only as far as they are printable. */
char *net_name(struct net *net, __u64 subject)
{
	char text[256], *unknown;

	if (datapath_name(net->dp, subject, text, sizeof(text)) == 0)
		return output_visible(text);
	return asprintf(&unknown, "#%016llx", subject) < 0 ? NULL : unknown;
}

static int check_interfaces(void *arg)
{
	const struct server *server = arg;

	for (size_t i = 0; i < server->n_interfaces; i++)
		if (!if_nametoindex(server->interfaces[i]))
			return i + 1;
	return 0;
}

int net_check_interfaces(int fd, const struct server *server, struct error *err)
{
	int ret = netns_run(fd, check_interfaces, (void *)server, err);

	if (ret > 0)
		return error_set(err, -ENODEV, "there is no interface \"%s\" in this network namespace",
				 server->interfaces[ret - 1]);
	return ret;
}
