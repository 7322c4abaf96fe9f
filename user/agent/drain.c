/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection that was translated needs its translator until it ends: a server that has some drains, limiting nothing
 * any more, until they are gone.
 */
#include <errno.h>
#include <string.h>

#include "agent/servers.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "base/log.h"

int server_count_translated(struct agent *agent, int slot, __u64 *translated, struct error *err)
{
	__u64 counters[WEIR_REASON_COUNT];
	int ret;

	ret = datapath_counters(server_net(agent, agent->state.servers[slot])->dp, slot, counters, err);
	if (!ret)
		*translated = metrics_translated(counters);
	return ret;
}

static bool is_draining(const struct agent *agent, int slot)
{
	const struct server *server = agent->state.servers[slot];

	return server && server->draining && agent->servers[slot].in_force;
}

bool servers_draining(const struct agent *agent)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (is_draining(agent, slot))
			return true;
	return false;
}

void servers_drain(struct agent *agent)
{
	agent_change_begin(agent);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		__u64 translated;
		CLEANUP_FREE char *name = NULL;
		struct error err;
		int ret;

		if (!is_draining(agent, slot))
			continue;
		name = strdup(agent->state.servers[slot]->name);
		ret = server_count_translated(agent, slot, &translated, &err);
		if (!ret && translated == 0) {
			log_info("server \"%s\" is drained", name);
			ret = server_end(agent, slot, &err);
		}
		if (ret)
			log_error("server \"%s\": draining: %s", name, err.text);
	}
	agent_change_end(agent);
}

static int start_draining(struct agent *agent, int slot, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	int ret;

	if (server->draining)
		return 0;
	server->draining = true;
	ret = server_apply_flags(agent, slot, err);
	if (ret) {
		server->draining = false;
		return ret;
	}
	agent_save_off(agent, slot, server->name, UNSAVED_DRAINING);
	return 0;
}

/* Returns how many. */
static int reset_translated(struct agent *agent, int slot, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return datapath_reset_translated(server_net(agent, agent->state.servers[slot])->dp, slot, err);
}

static int let_go(struct agent *agent, int slot, bool force, struct server_detached *out, struct error *err)
{
	int ret;

	ret = start_draining(agent, slot, err);
	if (ret)
		return ret;
	if (!force)
		return server_count_translated(agent, slot, &out->draining, err);
	ret = reset_translated(agent, slot, err);
	if (ret >= 0)
		out->reset = ret;
	return ret < 0 ? ret : 0;
}

/* Its limits may be off all the same, and that may be saved. */
static int detach_failed(const struct agent *agent, int slot, const char *name, int ret, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct error failed = *err;

	if (server && !server->draining)
		return ret;
	return error_set(err, ret, "server \"%s\" %s: %s", name,
			 server ? "is draining, and its limits are off, but" : "is detached, but", failed.text);
}

int server_detach(struct agent *agent, int slot, bool force, struct server_detached *out, struct error *err)
{
	CLEANUP_FREE char *name = strdup(agent->state.servers[slot]->name);
	struct server_detached detached = { 0 };
	int ret = 0;

	if (agent->servers[slot].in_force)
		ret = let_go(agent, slot, force, &detached, err);
	else if (!force)
		ret = error_set(err, -EBUSY, "server \"%s\" is not in force (%s): detach it with --force", name,
				agent->servers[slot].problem.text);
	if (!ret && detached.draining == 0)
		ret = server_end(agent, slot, err);
	if (ret)
		return detach_failed(agent, slot, name, ret, err);
	log_info("server \"%s\" is detached: %d connection%s reset, %llu draining", name, detached.reset,
		 detached.reset == 1 ? "" : "s", detached.draining);
	*out = detached;
	return 0;
}
