/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>

#include "agent/agent.h"
#include "agent/servers.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "commands/commands.h"
#include "policy/policy.h"

/* Into the kernel first: no disk is needed to pause. */
static int pause_now(struct agent *agent, int slot, struct error *err)
{
	int ret = server_apply_flags(agent, slot, err);

	if (!ret)
		agent_save_off(agent, slot, agent->state.servers[slot]->name, UNSAVED_PAUSED);
	return ret;
}

/* Into the file first: what an agent that ends now leaves behind limits no less than the file says. */
static int resume_now(struct agent *agent, int slot, struct error *err)
{
	return agent_save(agent, err) ?: server_apply_flags(agent, slot, err);
}

static int set_paused(struct agent *agent, int slot, bool paused, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	CLEANUP_JSON json_t *policy = json_incref(server->policy);
	bool before = server->paused;
	int ret = policy_pause(server, paused, err);

	if (ret)
		return ret;
	ret = paused ? pause_now(agent, slot, err) : resume_now(agent, slot, err);
	if (ret) {
		server->paused = before;
		json_decref(server->policy);
		server->policy = json_incref(policy);
		agent_save(agent, NULL);
		return ret;
	}
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
			return ret;
		json_array_append_new(names, json_string(server->name));
	}
	return json_array_size(names) ? 0 : error_set(err, -ENOENT, "no server is attached");
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
