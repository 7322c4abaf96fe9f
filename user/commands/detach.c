/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection that was translated needs its translator until it ends: a server that has some drains, limiting nothing
 * any more, until they are gone.
 */
#include <errno.h>
#include <string.h>

#include "agent/private.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "policy/objects.h"

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
		struct error err;
		int ret;

		if (!is_draining(agent, slot))
			continue;
		ret = server_count_translated(agent, slot, &translated, &err);
		if (!ret && translated == 0) {
			log_info("server \"%s\" is drained", agent->state.servers[slot]->name);
			ret = server_end(agent, slot, &err);
		}
		if (ret)
			log_error("draining: %s", err.text);
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

/* Sets how many connections were reset and how many are still translated. */
static int let_go(struct agent *agent, int slot, bool force, int *reset, __u64 *translated, struct error *err)
{
	int ret;

	ret = start_draining(agent, slot, err);
	if (ret)
		return ret;
	if (!force)
		return server_count_translated(agent, slot, translated, err);
	ret = reset_translated(agent, slot, err);
	if (ret >= 0)
		*reset = ret;
	return ret < 0 ? ret : 0;
}

/* Appends {name, reset, draining: connections still translated} to the list. */
static int detach(struct agent *agent, int slot, bool force, json_t *list, struct error *err)
{
	CLEANUP_FREE char *name = strdup(agent->state.servers[slot]->name);
	__u64 translated = 0;
	int reset = 0, ret = 0;

	if (agent->servers[slot].in_force)
		ret = let_go(agent, slot, force, &reset, &translated, err);
	else if (!force)
		ret = error_set(err, -EBUSY, "server \"%s\" is not in force (%s): detach it with --force", name,
				agent->servers[slot].problem.text);
	if (!ret && translated == 0)
		ret = server_end(agent, slot, err);
	if (ret)
		return ret;
	log_info("server \"%s\" is detached: %d connections reset, %llu draining", name, reset, translated);
	json_array_append_new(list, json_pack("{s:s, s:i, s:I}", "name", name, "reset", reset, "draining",
					      (json_int_t)translated));
	return 0;
}

/* What the agent follows would attach it again. */
static int check_followed(const struct server *server, struct error *err)
{
	json_t *throttle = policy_attached(server) ? policy_throttle_of(policy_objects(server)) : NULL;

	if (!policy_object_followed(throttle))
		return 0;
	return error_set(err, -EBUSY, "server \"%s\" is attached by %s, which the agent follows: take it out there",
			 server->name, policy_object_file(throttle));
}

static int check_all_followed(const struct agent *agent, struct error *err)
{
	int ret = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++)
		if (agent->state.servers[slot])
			ret = check_followed(agent->state.servers[slot], err);
	return ret;
}

static int detach_all(struct agent *agent, bool force, json_t *list, struct error *err)
{
	int ret = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++)
		if (agent->state.servers[slot])
			ret = detach(agent, slot, force, list, err);
	return ret;
}

int agent_detach(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_JSON json_t *list = json_array();
	int all = 0, force = 0, slot, ret;
	const char *name = NULL;
	json_error_t why;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s?b, s?b !}", "name", &name, "all", &all, "force", &force))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	if (!name == !all)
		return error_set(err, -EINVAL, "name one server, or all");
	slot = name ? state_find(&agent->state, name) : 0;
	if (slot < 0)
		return state_unknown(&agent->state, name, err);
	ret = name ? check_followed(agent->state.servers[slot], err) : check_all_followed(agent, err);
	if (!ret)
		ret = name ? detach(agent, slot, force, list, err) : detach_all(agent, force, list, err);
	if (ret)
		return ret;
	*result = json_pack("{s:O}", "servers", list);
	agent_tell_unsaved(agent, *result);
	return 0;
}
