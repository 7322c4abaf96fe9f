/* SPDX-License-Identifier: GPL-2.0 */
/* Objects of policy files, applied and deleted. */
#include <errno.h>
#include <string.h>

#include "apply/plan.h"
#include "base/cleanup.h"
#include "commands/commands.h"

/* What is there is only read. */
static int make_plan(struct agent *agent, struct plan *plan, json_t *objects, const char *server, bool prune,
		     struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return plan_apply(plan, &agent->state, objects, server, prune, err);
}

int agent_apply(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_PLAN struct plan plan = { 0 };
	CLEANUP_JSON json_t *levels = NULL;
	int prune = 0, dry_run = 0, ret;
	const char *server = NULL;
	json_error_t why;
	json_t *objects;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s:o, s?b, s?b, s?o !}", "server", &server, "objects", &objects,
			   "prune", &prune, "dry_run", &dry_run, "netns_inode", &plan.netns_inode))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	plan.compares = dry_run;
	ret = make_plan(agent, &plan, objects, server, prune, err);
	levels = plan_levels(&plan);
	if (!ret && !dry_run)
		ret = plan_do(agent, &plan, err);
	if (ret)
		return ret;
	if (!dry_run)
		plan_log(&plan, "");
	*result = plan_to_json(&plan, dry_run);
	if (!dry_run)
		json_object_set(*result, "levels", levels);
	return 0;
}

int agent_diff(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	json_object_set_new(arguments, "dry_run", json_true());
	return agent_apply(agent, arguments, result, err);
}

int agent_delete(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_PLAN struct plan plan = { 0 };
	const char *server = NULL;
	json_error_t why;
	json_t *objects;
	int ignore = 0, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s:o, s?b !}", "server", &server, "objects", &objects,
			   "ignore_not_found", &ignore))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	ret = plan_delete(&plan, &agent->state, objects, server, ignore, err) ?: plan_do(agent, &plan, err);
	if (ret)
		return ret;
	plan_log(&plan, "");
	*result = plan_to_json(&plan, false);
	return 0;
}
