/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects of policy files, applied and deleted. A plan says what every server is to become; it is made, and checked, as a
 * whole before anything is changed, and what cannot be carried out to its end is taken back.
 */
#include <errno.h>
#include <string.h>

#include "apply/plan.h"
#include "apply/replace.h"
#include "base/cleanup.h"
#include "base/log.h"

/* --- carrying a plan out */

static int attach_new(struct agent *agent, struct plan *plan, struct planned *p, struct error *err)
{
	CLEANUP_FREE char *unheard = NULL;
	struct server *server = p->fresh;
	int slot;

	if (p->slot >= 0)
		return 0;
	p->fresh = NULL;
	slot = server_attach(agent, server, plan->netns_inode, &unheard, err);
	if (slot < 0)
		return slot;
	p->slot = slot;
	p->attached = true;
	agent->state.servers[slot]->policy = json_pack("{s:b}", "attached", 1);
	/* Numbers and the namespace are known only now. */
	server_free(p->made);
	p->made = NULL;
	return policy_server(agent->state.servers[slot], p->objects, &p->made, err);
}

static int carry_out(struct agent *agent, struct plan *plan, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < plan->n && !ret; i++)
		ret = attach_new(agent, plan, &plan->servers[i], err);
	for (size_t i = 0; i < plan->n && !ret; i++) {
		struct planned *p = &plan->servers[i];

		p->before = agent->state.servers[p->slot];
		ret = server_replace(agent, p->slot, p->made, err);
	}
	return ret;
}

static void take_back(struct agent *agent, struct plan *plan)
{
	for (size_t i = plan->n; i-- > 0;) {
		struct planned *p = &plan->servers[i];

		if (p->before)
			server_put_back(agent, p->slot, p->before);
		if (p->attached && server_end(agent, p->slot, NULL))
			log_error("undoing an apply: server \"%s\" stays attached", p->name);
	}
}

/* What a plan has put in the place of something is the state's now. */
static void keep(struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		server_free(plan->servers[i].before);
		plan->servers[i].made = NULL;
	}
}

/* A server that a Throttle attached goes with it; of one that is not in force there is nothing to wait for. */
static int detach_ended(struct agent *agent, struct plan *plan, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < plan->n && !ret; i++) {
		struct planned *p = &plan->servers[i];
		CLEANUP_JSON json_t *arguments = NULL, *result = NULL;

		if (!p->ends)
			continue;
		arguments = json_pack("{s:s, s:b}", "name", p->name, "force", !agent->servers[p->slot].in_force);
		ret = agent_detach(agent, arguments, &result, err);
	}
	return ret;
}

int plan_do(struct agent *agent, struct plan *plan, struct error *err)
{
	int ret = carry_out(agent, plan, err);

	if (ret) {
		take_back(agent, plan);
		return ret;
	}
	keep(plan);
	return detach_ended(agent, plan, err);
}

/* --- commands */

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

/* Kubernetes' own documents have no name of a server: with those of several, what is exported could not be applied. */
int agent_export(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_JSON json_t *items = json_array();
	bool nameless = false;
	const char *name = NULL;
	json_error_t why;
	int n = 0;

	if (json_unpack_ex(arguments, &why, 0, "{s?s !}", "server", &name))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	if (name && state_find(&agent->state, name) < 0)
		return state_unknown(&agent->state, name, err);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = agent->state.servers[slot];
		CLEANUP_JSON json_t *documents = NULL;

		if (!server || server->draining || (name && strcmp(name, server->name) != 0))
			continue;
		documents = policy_export(server);
		nameless |= json_array_size(documents) > 1;
		json_array_extend(items, documents);
		n++;
	}
	if (n > 1 && nameless)
		return error_set(
			err, -EINVAL,
			"EventRateLimit, FlowSchemas and PriorityLevelConfigurations do not say which of the %d "
			"servers they are for: export one at a time, with --server",
			n);
	*result = json_pack("{s:s, s:s, s:O}", "apiVersion", "v1", "kind", "List", "items", items);
	return 0;
}
