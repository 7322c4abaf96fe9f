/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>

#include "agent/agent.h"
#include "agent/servers.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "commands/commands.h"
#include "policy/policy.h"

static int set_paused(struct agent *agent, int slot, bool paused, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	CLEANUP_JSON json_t *policy = json_incref(server->policy);
	bool before = server->paused;
	int saved, ret = policy_pause(server, paused, err);

	if (ret)
		return ret;
	/* No disk is needed to pause. */
	saved = paused ? 0 : agent_save(agent, err);
	ret = saved ?: server_apply_flags(agent, slot, err);
	if (ret) {
		server->paused = before;
		json_decref(server->policy);
		server->policy = json_incref(policy);
		if (!saved && !paused)
			agent_save_back(agent, err);
		return ret;
	}
	if (paused)
		agent_save_off(agent, slot, server->name, UNSAVED_PAUSED);
	log_info("server \"%s\" %s", server->name, paused ? "is paused" : "limits again");
	return 0;
}

static int pause_all(struct agent *agent, bool paused, json_t *names, struct error *err)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = agent->state.servers[slot];
		int ret;

		if (!server || server->draining)
			continue;
		ret = set_paused(agent, slot, paused, err);
		if (ret)
			return error_after(names, ret, err);
		json_array_append_new(names, json_string(server->name));
	}
	return json_array_size(names) ? 0 : server_named(agent, NULL, err);
}

static void tell_failed(const struct agent *agent, json_t *names, json_t *result)
{
	json_t *name;
	size_t i;

	json_array_foreach (names, i, name)
		server_tell_failed(agent, state_find(&agent->state, json_string_value(name)), result);
}

static int pause_or_resume(struct agent *agent, bool paused, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_JSON json_t *names = json_array();
	const char *name = NULL;
	json_error_t why;
	int slot, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s !}", "name", &name))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	if (name) {
		slot = server_named(agent, name, err);
		ret = slot < 0 ? slot : set_paused(agent, slot, paused, err);
		json_array_append_new(names, json_string(name));
	} else {
		ret = pause_all(agent, paused, names, err);
	}
	if (ret)
		return ret;
	*result = json_pack("{s:O, s:b}", "servers", names, "paused", paused);
	tell_failed(agent, names, *result);
	agent_tell_unsaved(agent, *result);
	return 0;
}

int agent_pause(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	return pause_or_resume(agent, true, arguments, result, err);
}

int agent_resume(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	return pause_or_resume(agent, false, arguments, result, err);
}
