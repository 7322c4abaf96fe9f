/* SPDX-License-Identifier: GPL-2.0 */
/* A namespace's programs on the interfaces and cgroups that its servers want. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/net.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "sys/cgroup.h"

/* The interfaces that the servers of a namespace want together. names is NULL when one of them wants all. */
static int wanted_interfaces(const struct net *net, const char ***names, size_t *n, struct error *err)
{
	const struct state *state = &net->agent->state;
	CLEANUP_FREE const char **wanted = NULL;
	size_t n_wanted = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];
		const char **grown;

		if (!server || server->netns_cookie != net->cookie)
			continue;
		if (server->n_interfaces == 0) {
			*names = NULL;
			*n = 0;
			return 0;
		}
		grown = reallocarray(wanted, n_wanted + server->n_interfaces, sizeof(*grown));
		if (!grown)
			return error_set(err, -ENOMEM, "out of memory");
		wanted = grown;
		for (size_t i = 0; i < server->n_interfaces; i++)
			wanted[n_wanted++] = server->interfaces[i];
	}
	*names = wanted;
	*n = n_wanted;
	wanted = NULL;
	return 0;
}

/* A server that asks for less passes there by its own flag. */
static enum xdp_asked wanted_xdp(const struct net *net)
{
	enum xdp_asked most = XDP_OFF;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = net->agent->state.servers[slot];

		if (server && server->netns_cookie == net->cookie && !server->draining && server->xdp > most)
			most = server->xdp;
	}
	return most;
}

int net_sync_links(struct net *net, struct error *err)
{
	struct datapath_interfaces wanted = { 0 };
	CLEANUP_FREE const char **names = NULL;
	int ret;

	ret = wanted_interfaces(net, &names, &wanted.n, err);
	if (ret)
		return ret;
	wanted.names = names;
	wanted.xdp = wanted_xdp(net);
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);
	return datapath_links_sync(net->dp, &wanted, err);
}

void net_follow(struct net *net)
{
	struct error err = { 0 };

	if (net_sync_links(net, &err) && strcmp(err.text, net->links_err.text) != 0)
		log_error("interfaces: %s", err.text);
	net->links_err = err;
}

static void tell_others(FILE *out, const struct datapath_link *links, int n)
{
	bool first = true;

	for (int i = 0; i < n; i++) {
		if (!links[i].other_weir)
			continue;
		fprintf(out, "%s %s (id %u)", first ? "another weir's programs are on" : ",", links[i].name,
			links[i].other_weir);
		first = false;
	}
	if (!first)
		fprintf(out, ", too, and decide each request once more: a second agent's, or left over from one. "
			     "Run weir uninstall with its WEIR_STATE_DIR and WEIR_PIN_DIR");
}

char *net_other_weir(struct net *net)
{
	CLEANUP_FREE struct datapath_link *links = NULL;
	int n = datapath_links(net->dp, &links, NULL);
	char *text = NULL;
	size_t length = 0;
	FILE *out = n > 0 ? open_memstream(&text, &length) : NULL;

	if (!out)
		return NULL;
	tell_others(out, links, n);
	if (fclose(out) || !length) {
		free(text);
		return NULL;
	}
	return text;
}

/* A server that was attached where no cgroup2 hierarchy was mounted gets the root of one as soon as there is one. */
static int sync_holds(struct net *net, struct error *err)
{
	const struct state *state = &net->agent->state;
	const char *cgroups[WEIR_MAX_SERVERS];
	CLEANUP_FREE char *root = NULL;
	bool nowhere = false;
	size_t n = 0;
	int ret;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];
		const char *cgroup;

		if (!server || server->netns_cookie != net->cookie)
			continue;
		if (!server->cgroup && !root)
			root = cgroup_root();
		cgroup = server->cgroup ?: root;
		if (cgroup)
			cgroups[n++] = cgroup;
		else
			nowhere = true;
	}
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);
	ret = datapath_hold_sync(net->dp, cgroups, n, err);
	return ret || !nowhere ? ret : error_set(err, -ENOENT, "no cgroup2 hierarchy is mounted");
}

void net_hold(struct net *net)
{
	struct error err = { 0 };

	if (sync_holds(net, &err) && strcmp(err.text, net->hold_err.text) != 0)
		log_warning("TLS and other unreadable traffic is not limited: %s", err.text);
	net->hold_err = err;
}
