/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/nearest.h"
#include "state/state.h"

void server_free(struct server *server)
{
	if (!server)
		return;
	for (size_t i = 0; i < server->n_limits; i++)
		limit_clear(&server->limits[i]);
	free(server->limits);
	rule_list_clear(server->exempt, server->n_exempt);
	priorities_clear(&server->priorities);
	identity_settings_clear(&server->identity);
	free(server->interfaces);
	free(server->proxies);
	free(server->balancers);
	free(server->listens);
	free(server->cgroup);
	free(server->netns);
	json_decref(server->policy);
	json_decref(server->policy_text.of);
	free(server->policy_text.text);
	free(server);
}

struct limit *server_limit(const struct server *server, const char *name)
{
	for (size_t i = 0; i < server->n_limits; i++)
		if (strcmp(server->limits[i].name, name) == 0)
			return &server->limits[i];
	return NULL;
}

int server_limit_add(struct server *server, const struct limit *limit)
{
	struct limit *grown = array_grow(server->limits, server->n_limits, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[server->n_limits++] = *limit;
	server->limits = grown;
	return 0;
}

void server_limit_remove(struct server *server, struct limit *limit)
{
	limit_clear(limit);
	array_cut(server->limits, server->n_limits, sizeof(*limit), limit - server->limits);
	server->n_limits--;
}

int state_find(const struct state *state, const char *name)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (state->servers[slot] && strcmp(state->servers[slot]->name, name) == 0)
			return slot;
	return -ENOENT;
}

/* Appends NAME, NAME and how many have no room. Those that are draining only if asked for. */
static void list_names(const struct state *state, bool draining, char *text, size_t size)
{
	size_t used = 0, more = 0;

	text[0] = '\0';
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];

		if (!server || (server->draining && !draining))
			continue;
		if (more || used + strlen(server->name) + sizeof(", ") + sizeof(" and 64 more") > size)
			more++;
		else
			used += sprintf(text + used, "%s%s", used ? ", " : "", server->name);
	}
	if (more)
		sprintf(text + used, " and %zu more", more);
}

int state_unknown(const struct state *state, const char *name, struct error *err)
{
	struct nearest meant = nearest_to(name);
	char names[160];

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (state->servers[slot])
			nearest_try(&meant, state->servers[slot]->name);
	if (meant.found)
		return error_set(err, -ENOENT, "there is no server \"%s\": is \"%s\" meant?", name, meant.found);
	list_names(state, true, names, sizeof(names));
	if (!*names)
		return error_set(err, -ENOENT, "there is no server \"%s\": none is attached", name);
	return error_set(err, -ENOENT, "there is no server \"%s\", only %s", name, names);
}

int state_draining(const struct server *server, struct error *err)
{
	return error_set(
		err, -EBUSY,
		"server \"%s\" is detached and draining, so none of its requests are limited any more. It can be attached again when its "
		"translated connections have ended (\"weir detach %s --force\" resets them)",
		server->name, server->name);
}

int state_find_only(const struct state *state, struct error *err)
{
	int only = -ENOENT, draining = -ENOENT, n = 0;
	char names[256];

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];

		if (server && server->draining) {
			draining = slot;
		} else if (server) {
			only = slot;
			n++;
		}
	}
	if (n > 1) {
		list_names(state, false, names, sizeof(names));
		return error_set(err, -EINVAL, "%d servers are attached, name one of them with --server: %s", n, names);
	}
	if (n == 0 && draining < 0)
		return error_set(err, -ENOENT, "no server is attached");
	return n ? only : draining;
}

static bool same_listen(const struct datapath_listen *a, const struct datapath_listen *b)
{
	return a->port == b->port && a->any == b->any &&
	       (a->any || memcmp(a->address, b->address, sizeof(a->address)) == 0);
}

static const struct datapath_listen *shared_listen(const struct server *a, const struct server *b)
{
	for (size_t i = 0; i < a->n_listens; i++)
		for (size_t j = 0; j < b->n_listens; j++)
			if ((a != b || i != j) && same_listen(&a->listens[i], &b->listens[j]))
				return &a->listens[i];
	return NULL;
}

int state_check(const struct state *state, const struct server *server, struct error *err)
{
	const struct datapath_listen *shared = shared_listen(server, server);
	char text[PARSE_LISTEN_TEXT];

	if (shared) {
		format_listen(shared, text);
		return error_set(err, -EEXIST, "%s is given twice for server \"%s\"", text, server->name);
	}
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *other = state->servers[slot];

		if (!other || other == server)
			continue;
		if (strcmp(other->name, server->name) == 0 && other->draining)
			return state_draining(other, err);
		if (strcmp(other->name, server->name) == 0)
			return error_set(
				err, -EEXIST,
				"server \"%s\" is attached already: to change its options, apply a Throttle (weir export, weir apply)",
				server->name);
		shared = other->netns_cookie == server->netns_cookie ? shared_listen(server, other) : NULL;
		if (shared) {
			format_listen(shared, text);
			return error_set(err, -EEXIST,
					 "server \"%s\" cannot have %s: server \"%s\" of this namespace has it",
					 server->name, text, other->name);
		}
	}
	return 0;
}

void state_clear(struct state *state)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		server_free(state->servers[slot]);
	*state = (struct state){ 0 };
}
