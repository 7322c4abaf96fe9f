/* SPDX-License-Identifier: GPL-2.0 */
/* Which lane a server has inside. `auto` chooses one, and none that would let pass what TLS is held for (docs/internals/inside.md). */
#include <errno.h>

#include "agent/inside_private.h"
#include "agent/servers.h"

/*
 * Does a limit refuse or hold somebody, or will it after a pause? A pause counts for nothing here, because it is not to bring probes. Nor do
 * limits on connections: they hold in any lane.
 */
static bool enforces(const struct server *server)
{
	if (server->dry_run)
		return false;
	for (size_t i = 0; i < server->priorities.n_levels; i++)
		if (!server->priorities.levels[i].exempt)
			return true;
	for (size_t i = 0; i < server->n_limits; i++)
		if (!server->limits[i].dry_run && !weir_limit_is_of_connections(server->limits[i].kind))
			return true;
	return false;
}

static bool has_api_server(const struct inside_server *inside)
{
	for (size_t i = 0; i < inside->n; i++)
		if (inside->served[i].binary.layout.user_itab)
			return true;
	return false;
}

static bool read_counters(const struct agent *agent, int slot, __u64 *counters)
{
	struct net *net = server_net(agent, agent->state.servers[slot]);

	return net && !datapath_counters(net->dp, slot, counters, NULL);
}

/*
 * Has anything come that packets do not tell of? A handshake alone does not count: whoever scans for servers sends one to each port. A
 * Kubernetes API server needs no such sign, because it speaks nothing but TLS.
 */
static bool is_needed(const struct agent *agent, int slot)
{
	__u64 counters[WEIR_REASON_COUNT];

	if (has_api_server(agent->servers[slot].inside))
		return true;
	return read_counters(agent, slot, counters) && counters[WEIR_TLS] + counters[WEIR_HTTP2] &&
	       counters[WEIR_RECORDS_PASSED] + counters[WEIR_RECORDS_HELD] + counters[WEIR_RECORDS_DRY_RUN_HELD];
}

/*
 * Are the server's requests known to be seen? A Go server may have net/http for something else, and read TLS by other means. So its TLS is held
 * until a request was seen.
 */
static bool is_proven(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;
	__u64 counters[WEIR_REASON_COUNT];

	if (agent->state.servers[slot]->inside != INSIDE_AUTO || has_api_server(inside))
		return true;
	return inside->lane != INSIDE_OFF && read_counters(agent, slot, counters) &&
	       counters[WEIR_INSIDE_SEEN] > inside->read_before;
}

/* Is there a process of which nothing is seen? */
static bool has_unseen(const struct inside_server *inside, struct error *why)
{
	for (size_t i = 0; i < inside->n; i++) {
		const struct inside_served *served = &inside->served[i];

		if (!inside_not_seen(served))
			continue;
		error_set(why, -ENOTSUP, "process %d (%s): %s", served->process.id, served->process.command,
			  inside_not_seen(served));
		return true;
	}
	return false;
}

/* Why requests cannot be refused in all of its processes; NULL: they can. */
static const char *why_no_answer(const struct server *server, const struct inside_server *inside)
{
	const char *why;

	if (inside->blind.text[0])
		return inside->blind.text;
	for (size_t i = 0; i < inside->n; i++)
		if (!inside_can_answer(server, &inside->served[i], &why))
			return why;
	return NULL;
}

static const char *why_slow(const struct inside_server *inside)
{
	for (size_t i = 0; i < inside->n; i++)
		if (inside_why_slow(&inside->served[i]))
			return inside_why_slow(&inside->served[i]);
	return NULL;
}

/* What `auto` takes where nobody can be refused. */
static enum inside_mode choose_without_answer(const struct server *server, const struct inside_server *inside,
					      const char *cannot, struct error *why)
{
	error_set(why, -ENOTSUP, "%s", cannot);
	if (enforces(server))
		error_set(why, -ENOTSUP,
			  "%s. So TLS is held by the client's address; --inside see would count users, and hold nobody",
			  cannot);
	else if (why_slow(inside))
		error_set(why, -ENOTSUP, "%s. To see its requests would cost each of them much: --inside see does it",
			  cannot);
	else
		return INSIDE_SEE;
	return INSIDE_OFF;
}

static enum inside_mode choose(const struct agent *agent, int slot, struct error *why)
{
	const struct inside_server *inside = agent->servers[slot].inside;
	const struct server *server = agent->state.servers[slot];
	const char *cannot;

	if (!inside->n || has_unseen(inside, why))
		return INSIDE_OFF;
	if (!is_needed(agent, slot)) {
		error_set(why, -ENODATA, "no TLS or HTTP/2 has come, and all else is read in packets");
		return INSIDE_OFF;
	}
	cannot = why_no_answer(server, inside);
	return cannot ? choose_without_answer(server, inside, cannot, why) : INSIDE_ANSWER;
}

bool inside_choose(const struct agent *agent, int slot)
{
	struct inside_server *inside = agent->servers[slot].inside;
	const struct server *server = agent->state.servers[slot];
	enum inside_mode lane = server->inside;
	struct error why = { 0 };
	bool changes, proven;

	if (lane == INSIDE_AUTO)
		lane = choose(agent, slot, &why);
	inside->unchosen = why;
	changes = inside->lane != lane;
	if (inside->lane == INSIDE_OFF)
		inside->in_force = false; /* the kernel has nobody */
	inside->lane = lane;
	proven = is_proven(agent, slot);
	changes |= inside->proven != proven;
	inside->proven = proven;
	return changes;
}

bool inside_lets_go(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;
	const struct server *server = agent->state.servers[slot];

	return inside->lane != INSIDE_OFF && inside->proven &&
	       !(server->inside == INSIDE_AUTO && inside->lane == INSIDE_SEE && enforces(server));
}
