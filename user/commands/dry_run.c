/* SPDX-License-Identifier: GPL-2.0 */
/* The dry run of a whole server, begun and ended in place: limits, buckets and counters stay. */
#include <errno.h>

#include "agent/agent.h"
#include "agent/inside.h"
#include "agent/servers.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "commands/commands.h"
#include "policy/policy.h"

static int set_dry_run(struct agent *agent, int slot, bool dry_run, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	CLEANUP_JSON json_t *policy = json_incref(server->policy);
	bool before = server->dry_run;
	int saved, ret = policy_dry_run(server, dry_run, err);

	if (ret)
		return ret;
	saved = agent_save(agent, err);
	ret = saved ?: server_apply_flags(agent, slot, err);
	if (ret) {
		server->dry_run = before;
		json_decref(server->policy);
		server->policy = json_incref(policy);
		if (!saved)
			agent_save_back(agent, err);
		return ret;
	}
	log_info("server \"%s\" %s", server->name, dry_run ? "is in a dry run" : "enforces its limits");
	return 0;
}

/* Limits that are in a dry run of their own; and of those that files set, the files. */
static json_t *limits_in_dry_run(const struct server *server, json_t *files)
{
	json_t *names = json_array();

	for (size_t i = 0; i < server->n_limits; i++) {
		const struct limit *limit = &server->limits[i];

		if (!limit->dry_run)
			continue;
		json_array_append_new(names, json_string(limit->name));
		if (limit->file)
			json_object_set_new(files, limit->name, json_string(limit->file));
	}
	return names;
}

int agent_dry_run(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_FREE char *refuses_not = NULL, *inside = NULL;
	json_t *names, *files;
	const char *name;
	json_error_t why;
	int dry_run, slot, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s:s, s:b !}", "name", &name, "dry_run", &dry_run))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	slot = server_named(agent, name, err);
	ret = slot < 0 ? slot : set_dry_run(agent, slot, dry_run, err);
	if (ret)
		return ret;
	inside = inside_chosen_anew(agent, slot);
	if (!dry_run)
		refuses_not = inside_refuses_not(agent, slot);
	files = json_object();
	names = limits_in_dry_run(agent->state.servers[slot], files);
	*result = json_pack("{s:s, s:b, s:o, s:o, s:s*, s:s*}", "server", name, "dry_run", dry_run, "limits_in_dry_run",
			    names, "files", files, "inside", inside, "refuses_not", refuses_not);
	server_tell_failed(agent, slot, *result);
	return 0;
}
