/* SPDX-License-Identifier: GPL-2.0 */
/* Ports of a server on which nobody listens: most likely a wrong number, or the wrong network namespace. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "sys/netns.h"
#include "sys/socket_diag.h"

struct search {
	const struct server *server;
	bool *heard; /* for each of its addresses */
};

static void note(const struct socket_listener *listener, void *arg)
{
	const struct search *search = arg;

	for (size_t i = 0; i < search->server->n_listens; i++)
		search->heard[i] |= datapath_listen_hears(&search->server->listens[i], listener->address,
							  listener->port);
}

static int look(void *arg)
{
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_SOCK_DIAG);

	return nl ? socket_diag_listeners(nl, note, arg) : -1;
}

/* Has a port on which nobody listens, on another address, been named before? */
static bool is_named(const struct search *search, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (!search->heard[j] && search->server->listens[j].port == search->server->listens[i].port)
			return true;
	return false;
}

/* "": on all of them somebody does. NULL without memory. */
static char *text_of(const struct search *search)
{
	char *text = NULL;
	size_t size, n = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < search->server->n_listens; i++)
		if (!search->heard[i] && !is_named(search, i))
			fprintf(out, "%s%u", n++ ? ", " : "nobody listens on port ", search->server->listens[i].port);
	if (n)
		fprintf(out, " in the server's network namespace yet: requests are limited once a server does");
	fclose(out);
	return text;
}

static char *unheard(struct agent *agent, const struct server *server)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	struct search search = { server, calloc(server->n_listens + 1, sizeof(bool)) };
	char *text = search.heard && !netns_run(server_net(agent, server)->fd, look, &search, NULL) ? text_of(&search) :
												      NULL;

	free(search.heard);
	if (text && *text)
		return text;
	free(text);
	return NULL;
}

void server_listen(struct agent *agent, int slot)
{
	const struct server *server = agent->state.servers[slot];
	char *text = server && agent->servers[slot].in_force && !server->draining ? unheard(agent, server) : NULL;

	free(agent->servers[slot].unheard);
	agent->servers[slot].unheard = text;
}

void servers_listen(struct agent *agent)
{
	agent_work_begin(agent);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		server_listen(agent, slot);
	agent_work_end(agent);
}

bool servers_unheard(const struct agent *agent)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (agent->servers[slot].unheard)
			return true;
	return false;
}
