/* SPDX-License-Identifier: GPL-2.0 */
/* A namespace's programs on the interfaces that its servers want. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/net.h"
#include "base/cleanup.h"
#include "base/log.h"

/* The interfaces that the servers of a namespace want together. names is NULL when one of them wants all. */
static int wanted_interfaces(const struct net *net, const char ***names, size_t *n, struct error *err)
{
	CLEANUP_FREE const char **wanted = NULL;
	size_t n_wanted = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = net_server(net, slot);
		const char **grown;

		if (!server)
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
		const struct server *server = net_server(net, slot);

		if (server && !server->draining && server->xdp > most)
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
