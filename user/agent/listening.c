/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who listens on a server's ports. Nobody: most likely a wrong number, or the wrong network namespace. Also by UDP: most likely HTTP/3, which
 * passes weir by.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "sys/netns.h"
#include "sys/socket_diag.h"

/* For each of a server's addresses. */
struct search {
	const struct server *server;
	bool *unheard, *udp;
};

static bool hears(const struct server *server, size_t i, const struct socket_listener *listener)
{
	return datapath_listen_hears(&server->listens[i], listener->address, listener->port);
}

static void note_listener(const struct socket_listener *listener, void *arg)
{
	const struct search *search = arg;

	for (size_t i = 0; i < search->server->n_listens; i++)
		search->unheard[i] &= !hears(search->server, i, listener);
}

static void note_udp(const struct socket_listener *listener, void *arg)
{
	const struct search *search = arg;

	for (size_t i = 0; i < search->server->n_listens; i++)
		search->udp[i] |= hears(search->server, i, listener);
}

static int look(void *arg)
{
	int ret = socket_diag_listeners(note_listener, arg);

	/* A kernel that does not tell has none, as far as anybody knows. */
	if (!ret)
		socket_diag_udp(note_udp, arg);
	return ret;
}

/* Has this port been named before, for another address? */
static bool is_named(const struct server *server, const bool *named, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (named[j] && server->listens[j].port == server->listens[i].port)
			return true;
	return false;
}

/* The ports of the addresses that are to be named, between two texts. NULL: there are none, or there is no memory. The caller frees it. */
static char *text_of(const struct server *server, const bool *named, const char *before, const char *behind)
{
	char *text = NULL;
	size_t size, n = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < server->n_listens; i++)
		if (named[i] && !is_named(server, named, i))
			fprintf(out, "%s%u", n++ ? ", " : before, server->listens[i].port);
	fputs(behind, out);
	fclose(out);
	if (n)
		return text;
	free(text);
	return NULL;
}

static struct server_listening listening_of(struct agent *agent, const struct server *server)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	CLEANUP_FREE bool *unheard = calloc(server->n_listens + 1, sizeof(bool));
	CLEANUP_FREE bool *udp = calloc(server->n_listens + 1, sizeof(bool));
	struct search search = { server, unheard, udp };
	struct server_listening listening = { 0 };

	if (!unheard || !udp)
		return listening;
	memset(unheard, true, server->n_listens * sizeof(bool));
	if (netns_run(server_net(agent, server)->fd, look, &search, NULL))
		return listening;
	listening.nobody = text_of(server, unheard, "nobody listens on port ",
				   " in the server's network namespace yet: requests are limited once a server does");
	listening.udp = text_of(server, udp, "weir does not limit UDP, such as HTTP/3, and somebody takes it on port ",
				": turn HTTP/3 off in the server, or have a firewall drop it");
	return listening;
}

void server_listening_free(struct server_listening *listening)
{
	free(listening->nobody);
	free(listening->udp);
	*listening = (struct server_listening){ 0 };
}

void server_listen(struct agent *agent, int slot)
{
	const struct server *server = agent->state.servers[slot];
	struct server_listening listening = { 0 };

	if (server && agent->servers[slot].in_force && !server->draining)
		listening = listening_of(agent, server);
	server_listening_free(&agent->servers[slot].listening);
	agent->servers[slot].listening = listening;
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
		if (agent->servers[slot].listening.nobody)
			return true;
	return false;
}
