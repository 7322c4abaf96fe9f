/* SPDX-License-Identifier: GPL-2.0 */
/* What the metrics are made of. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inside.h"
#include "agent/limit_counts.h"
#include "agent/reconcile.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/version.h"
#include "commands/commands.h"
#include "follow/follow.h"

static int measure_server(const struct agent *agent, int slot, const struct net *net, struct metrics_server *place,
			  struct error *err)
{
	place->paced = server_flags(agent->state.servers[slot], net) & WEIR_SERVER_PACED;
	place->conns_max = datapath_conns_max(net->dp);
	return datapath_counters(net->dp, slot, place->counters, err);
}

/* The servers of a namespace share a table of connections. */
static void measure_tables(struct metrics_server *servers, const struct net *const *nets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if (nets[i] && nets[i] == nets[j])
				servers[i].conns += metrics_connections(servers[j].counters);
}

/* nets has WEIR_MAX_SERVERS places. Returns how many. */
static size_t measure_nets(const struct agent *agent, struct metrics_net *nets)
{
	size_t n = 0;

	for (const struct net *net = agent->nets; net && n < WEIR_MAX_SERVERS; net = net->next)
		nets[n++] = (struct metrics_net){ .cookie = net->cookie, .probe = &net->probe };
	return n;
}

/* Too large for the stack. */
struct measured {
	struct metrics_limit *limits[WEIR_MAX_SERVERS];
	struct metrics_server servers[WEIR_MAX_SERVERS];
	struct limits_taken taken;
	const struct net *nets[WEIR_MAX_SERVERS];
	struct metrics_net probed[WEIR_MAX_SERVERS];
};

/* Of one that is not in force only its mode and its lane are known. */
static int add_server(struct agent *agent, int slot, struct measured *measured, size_t n, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct net *net = net_in_force(agent, slot);
	struct metrics_server *place = &measured->servers[n];
	int ret;

	place->name = server->name;
	place->mode = server_mode(agent, slot);
	place->lane = inside_lane(agent, slot);
	measured->nets[n] = net;
	if (!net)
		return 0;
	ret = measure_server(agent, slot, net, place, err) ?:
		      limits_measure(agent, slot, &measured->taken, &measured->limits[n], err);
	if (ret < 0)
		return ret;
	place->limits = measured->limits[n];
	place->n_limits = ret;
	return 0;
}

static int add_servers(struct agent *agent, bool in_force, struct measured *measured, struct metrics_snapshot *snapshot,
		       struct error *err)
{
	int ret = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++) {
		if (!agent->state.servers[slot] || agent->servers[slot].in_force != in_force)
			continue;
		ret = add_server(agent, slot, measured, snapshot->n_servers, err);
		if (!ret)
			snapshot->n_servers++;
	}
	return ret;
}

int agent_metrics(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_FREE struct measured *measured = calloc(1, sizeof(*measured));
	struct metrics_snapshot snapshot = {
		.version = weir_version,
		.start_time_s = agent->started.tv_sec + agent->started.tv_nsec / 1e9,
		.control_requests = agent->control_requests,
		.process = metrics_process_read(),
		.control_errors = agent->control_errors,
	};
	int ret = 0;

	(void)arguments;
	snapshot.process.start_time_s = snapshot.start_time_s;
	if (!measured)
		return error_set(err, -ENOMEM, "out of memory");
	snapshot.nets = measured->probed;
	snapshot.n_nets = measure_nets(agent, measured->probed);
	snapshot.servers = measured->servers;
	memcpy(snapshot.control_refused, agent->access.refused, sizeof(snapshot.control_refused));
	ret = add_servers(agent, true, measured, &snapshot, err);
	snapshot.n_counted = snapshot.n_servers;
	ret = ret ?: add_servers(agent, false, measured, &snapshot, err);
	measure_tables(measured->servers, measured->nets, snapshot.n_servers);
	if (!ret) {
		json_t *families = metrics_families(&snapshot);

		metrics_top_families(&agent->top, families);
		reconcile_metrics(agent, families);
		follow_measure(agent->followed, families);
		*result = json_pack("{s:o}", "metrics", families);
	}
	for (size_t i = 0; i < snapshot.n_servers; i++)
		limits_measured_free(measured->limits[i], measured->servers[i].n_limits);
	limits_taken_clear(&measured->taken);
	return ret;
}
