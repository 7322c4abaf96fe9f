/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A namespace's programs on cgroups. They see a connection if its listener's socket was made there, whoever serves it: so where one was made
 * elsewhere, the cgroup that was asked for would let all of its connections past their limits, and the root is used instead.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/net.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "sys/cgroup.h"
#include "sys/netns.h"
#include "sys/socket_diag.h"

struct search {
	const struct server *server;
	const char *cgroup;
	struct socket_listener outside; /* the first that was not made there; port 0: there is none */
};

static bool is_heard(const struct server *server, const struct socket_listener *listener)
{
	for (size_t i = 0; i < server->n_listens; i++)
		if (datapath_listen_hears(&server->listens[i], listener->address, listener->port))
			return true;
	return false;
}

static void note(const struct socket_listener *listener, void *arg)
{
	struct search *search = arg;

	if (!search->outside.port && is_heard(search->server, listener) &&
	    !cgroup_has(search->cgroup, listener->cgroup))
		search->outside = *listener;
}

static int look(void *arg)
{
	return socket_diag_listeners(note, arg);
}

/* Would a program on this cgroup see all of the server's connections? If not, the error says why. */
static bool sees_all(const struct net *net, const struct server *server, const char *cgroup, struct error *err)
{
	struct search search = { .server = server, .cgroup = cgroup };
	CLEANUP_FREE char *made = NULL;
	int ret = cgroup_check(cgroup, err);

	if (ret)
		return false;
	if (cgroup_is_whole(cgroup))
		return true;
	ret = netns_run(net->fd, look, &search, err);
	if (ret) {
		error_set(err, ret, "the cgroups of its listening sockets are not known: %s", strerror(-ret));
		return false;
	}
	if (!search.outside.port)
		return true;
	made = cgroup_find(cgroup, search.outside.cgroup);
	error_set(err, -EXDEV, "the socket that listens on port %u was made in cgroup %s, outside %s",
		  search.outside.port, made ?: "(gone, or out of reach)", cgroup);
	return false;
}

/* Where a server is to be held. */
struct place {
	const char *cgroup; /* NULL: nowhere */
	bool in_part;	    /* that is not all of the machine's */
	char *elsewhere;    /* owned: why not in the cgroup that was asked for */
};

/* Nowhere sees all of it: the error says why. What is seen is held. A server that was attached without cgroup2 is held as soon as there is one. */
static int choose(const struct net *net, const struct server *server, const char *root, struct place *place,
		  struct error *err)
{
	struct error why, no_root;

	place->cgroup = server->cgroup ?: root;
	if (!place->cgroup)
		return error_set(err, -ENOENT, "no cgroup2 hierarchy is mounted");
	place->in_part = !cgroup_is_whole(place->cgroup);
	if (!sees_all(net, server, place->cgroup, &why)) {
		place->cgroup = root ?: place->cgroup;
		place->in_part = !cgroup_is_whole(place->cgroup);
		if (!root || !sees_all(net, server, root, &no_root))
			return error_set(err, -EXDEV, "%s", why.text);
		if (asprintf(&place->elsewhere, "%s: weir holds what it cannot read at %s instead", why.text, root) < 0)
			place->elsewhere = NULL;
	}
	return 0;
}

/* places: by slot. runs: are they held, even if that cannot be brought into step? */
static int sync_holds(struct net *net, struct place *places, bool *runs, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);
	CLEANUP_FREE char *root = cgroup_root();
	const char *cgroups[WEIR_MAX_SERVERS];
	int nowhere = 0, ret;
	struct error why;
	size_t n = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = net_server(net, slot);

		if (!server)
			continue;
		nowhere = choose(net, server, root, &places[slot], &why) ?: nowhere;
		if (places[slot].cgroup)
			cgroups[n++] = places[slot].cgroup;
	}
	ret = datapath_hold_sync(net->dp, cgroups, n, err);
	*runs = !nowhere && (!ret || datapath_hold_runs(net->dp, cgroups, n));
	return nowhere ? error_set(err, nowhere, "%s", why.text) : ret;
}

static void keep(struct agent *agent, int slot, const struct place *place)
{
	char **known = &agent->servers[slot].held_elsewhere;

	if (place->elsewhere && (!*known || strcmp(*known, place->elsewhere) != 0))
		log_warning("server \"%s\": %s", agent->state.servers[slot]->name, place->elsewhere);
	free(*known);
	*known = place->elsewhere;
	agent->servers[slot].held_in_part = place->in_part;
}

void net_hold(struct net *net)
{
	struct place places[WEIR_MAX_SERVERS] = { 0 };
	struct error err = { 0 };
	bool runs;

	if (sync_holds(net, places, &runs, &err) &&
	    (runs != net->hold_runs || strcmp(err.text, net->hold_err.text) != 0))
		log_warning("TLS and other unreadable traffic is %s: %s", runs ? "limited as before" : "not limited",
			    err.text);
	net->hold_err = err;
	net->hold_runs = runs;
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (net_server(net, slot))
			keep(net->agent, slot, &places[slot]);
}

bool net_is_held_in_part(const struct net *net)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (net_server(net, slot) && net->agent->servers[slot].held_in_part)
			return true;
	return false;
}
