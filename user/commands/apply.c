/* SPDX-License-Identifier: GPL-2.0 */
/* Objects of policy files, applied and deleted. */
#include <errno.h>
#include <string.h>

#include "agent/inside.h"
#include "agent/servers.h"
#include "apply/plan.h"
#include "base/cleanup.h"
#include "commands/commands.h"

/* What is to be applied: objects, or a file that its client has not read. */
struct given {
	json_t *objects;
	const char *file;
	json_t *document;
};

#define CLIENT_READS 1 /* nothing is planned: the client is to read the file itself */

/* What is there is only read. */
static int make_plan(struct agent *agent, struct plan *plan, const struct given *given, const char *server, bool prune,
		     struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_JSON json_t *objects = NULL;

	if (given->objects)
		return plan_apply(plan, &agent->state, given->objects, server, prune, err);
	if (!policy_read_json(&policy, given->file, given->document))
		return CLIENT_READS;
	objects = policy_to_json(&policy);
	plan->checked = true;
	return plan_apply(plan, &agent->state, objects, server, prune, err);
}

static int read_arguments(json_t *arguments, struct given *given, const char **server, int *prune, int *dry_run,
			  json_t **netns_inode, struct error *err)
{
	json_error_t why;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s?o, s?s, s?o, s?b, s?b, s?o !}", "server", server, "objects",
			   &given->objects, "file", &given->file, "document", &given->document, "prune", prune,
			   "dry_run", dry_run, "netns_inode", netns_inode))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	if (!given->objects != (given->file && given->document))
		return error_set(err, -EINVAL, "bad arguments: either objects, or a file and its document");
	return 0;
}

/* As `attach` says it. What is enforced now may have changed what was chosen. */
static json_t *lanes_inside(struct agent *agent, const struct plan *plan)
{
	json_t *list = json_array();

	inside_limits_changed(agent);
	for (size_t i = 0; i < plan->n; i++) {
		const struct planned *p = &plan->servers[i];
		CLEANUP_FREE char *inside = p->chooses && !p->ends ? inside_chosen(agent, p->slot) : NULL;

		if (inside)
			json_array_append_new(list, json_pack("{s:s, s:s}", "server", p->name, "inside", inside));
	}
	return list;
}

/* What a command has changed of a server alone that could not be put in force. */
static void tell_failed(const struct agent *agent, const struct plan *plan, json_t *result)
{
	for (size_t i = 0; i < plan->n; i++)
		if (!plan->servers[i].ends)
			server_tell_failed(agent, plan->servers[i].slot, result);
}

static void warn(json_t *list, const struct planned *p, const char *text)
{
	json_array_append_new(list, json_sprintf("server \"%s\": %s", p->name, text));
}

/* What `attach` warns of, and limits for no request. What can be said before there is a server, `check` says. */
static json_t *warnings(const struct agent *agent, const struct plan *plan)
{
	json_t *list = json_array(), *text;
	size_t j;

	for (size_t i = 0; i < plan->n; i++) {
		const struct planned *p = &plan->servers[i];
		CLEANUP_JSON json_t *of_attach = p->attached ? server_warnings(agent, p->slot) : NULL;
		CLEANUP_FREE char *idle = p->ends ? NULL : inside_idle_limit(agent, p->slot);

		json_array_foreach (of_attach, j, text)
			warn(list, p, json_string_value(text));
		if (idle)
			warn(list, p, idle);
	}
	return list;
}

int agent_apply(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_PLAN struct plan plan = { 0 };
	CLEANUP_JSON json_t *levels = NULL;
	struct given given = { 0 };
	int prune = 0, dry_run = 0, ret;
	const char *server = NULL;

	ret = read_arguments(arguments, &given, &server, &prune, &dry_run, &plan.netns_inode, err);
	if (ret)
		return ret;
	plan.compares = dry_run;
	ret = make_plan(agent, &plan, &given, server, prune, err);
	if (ret == CLIENT_READS) {
		*result = json_pack("{s:b}", "client_reads", 1);
		return 0;
	}
	levels = plan_levels(&plan);
	if (!ret)
		ret = dry_run ? plan_check(agent, &plan, err) : plan_do(agent, &plan, err);
	if (ret)
		return ret;
	if (!dry_run)
		plan_log(&plan, "");
	*result = plan_to_json(&plan, dry_run);
	if (dry_run)
		return 0;
	json_object_set(*result, "levels", levels);
	json_object_set_new(*result, "inside", lanes_inside(agent, &plan));
	json_object_set_new(*result, "warnings", warnings(agent, &plan));
	tell_failed(agent, &plan, *result);
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
	tell_failed(agent, &plan, *result);
	return 0;
}
