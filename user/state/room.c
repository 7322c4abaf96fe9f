/* SPDX-License-Identifier: GPL-2.0 */
#include "state/room.h"

#include <errno.h>
#include <string.h>

static size_t count_listeners(const struct server *server)
{
	size_t n = 0;

	for (size_t i = 0; i < server->n_listens; i++)
		n += !server->listens[i].any;
	return n;
}

static size_t count_proxies(const struct server *server)
{
	return server->n_proxies;
}

static size_t count_balancers(const struct server *server)
{
	return server->n_balancers;
}

/* A group of service accounts has a key for its name, and one for the names of its members. */
static size_t count_names(const struct server *server)
{
	const struct identity_settings *identity = &server->identity;

	return 2 * (identity->exempt_groups.n + identity->rule_groups.n) + identity->exempt_users.n;
}

static size_t count_overrides(const struct server *server)
{
	size_t n = 0;

	for (size_t i = 0; i < server->n_limits; i++)
		n += server->limits[i].n_overrides;
	return n;
}

static const struct room {
	const char *one, *several; /* what there is one of, or any other number */
	size_t (*count)(const struct server *server);
	size_t most;
} rooms[] = {
	{ "address to listen on", "addresses to listen on", count_listeners, WEIR_MAX_LISTENERS },
	{ "trusted proxy", "trusted proxies", count_proxies, WEIR_MAX_PROXIES },
	{ "peer with a PROXY protocol preamble", "peers with a PROXY protocol preamble", count_balancers,
	  WEIR_MAX_PROXIES },
	{ "name of an exempt user", "names of groups and exempt users", count_names, WEIR_MAX_GROUP_KEYS },
	{ "limit for a single subject", "limits for single subjects", count_overrides, WEIR_MAX_OVERRIDES },
};

static int check_one(const struct room *room, const struct state *state, const struct server *server, struct error *err)
{
	size_t own = room->count(server), n = own;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *other = state->servers[slot];

		if (other && other->netns_cookie == server->netns_cookie && strcmp(other->name, server->name) != 0)
			n += room->count(other);
	}
	if (!own || n <= room->most)
		return 0;
	return error_set(
		err, -ENOSPC,
		"server \"%s\" has %zu %s: a network namespace has room for %zu, and its other servers have %zu",
		server->name, own, own == 1 ? room->one : room->several, room->most, n - own);
}

int state_check_room(const struct state *state, const struct server *server, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms) && !ret; i++)
		ret = check_one(&rooms[i], state, server, err);
	return ret;
}
