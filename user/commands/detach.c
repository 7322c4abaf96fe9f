/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/servers.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "commands/commands.h"
#include "policy/objects.h"

/* Appends {name, reset, draining: connections still translated} to the list. */
static int detach(struct agent *agent, int slot, bool force, json_t *list, struct error *err)
{
	CLEANUP_FREE char *name = strdup(agent->state.servers[slot]->name);
	struct server_detached detached = { 0 };
	int ret = server_detach(agent, slot, force, &detached, err);

	if (!ret)
		json_array_append_new(list, json_pack("{s:s, s:i, s:I}", "name", name, "reset", detached.reset,
						      "draining", (json_int_t)detached.draining));
	return ret;
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

int error_after(json_t *done, int ret, struct error *err)
{
	size_t n = json_array_size(done);
	struct error failed = *err;

	return n ? error_set(err, ret, "%s (servers for which it is done: %zu)", failed.text, n) : ret;
}

static int detach_all(struct agent *agent, bool force, json_t *list, struct error *err)
{
	int ret = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++)
		if (agent->state.servers[slot])
			ret = detach(agent, slot, force, list, err);
	return ret ? error_after(list, ret, err) : 0;
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
