/* SPDX-License-Identifier: GPL-2.0 */
/* A plan, carried out: what cannot be carried out to its end is taken back. */
#include <stdlib.h>

#include "agent/jobs.h"
#include "agent/servers.h"
#include "agent/unsaved.h"
#include "apply/plan.h"
#include "apply/replace.h"
#include "base/cleanup.h"
#include "base/log.h"

static int attach_new(struct agent *agent, struct plan *plan, struct planned *p, struct error *err)
{
	struct server *server = p->fresh;
	int slot;

	if (p->slot >= 0)
		return 0;
	p->fresh = NULL;
	/* For who reads what was saved of it, if this agent is killed before the rest is. */
	server->policy = json_pack("{s:b}", "attached", 1);
	slot = server_attach(agent, server, plan->netns_inode, err);
	if (slot < 0)
		return slot;
	p->slot = slot;
	p->attached = true;
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
		p->chooses = p->attached || p->before->inside != p->made->inside;
		ret = server_replace(agent, p->slot, p->made, err);
	}
	return ret;
}

/* err: why it is. */
static void take_back(struct agent *agent, struct plan *plan, struct error *err)
{
	bool saved = false;

	for (size_t i = plan->n; i-- > 0;) {
		struct planned *p = &plan->servers[i];

		/* What could not be saved is in its place still. */
		if (p->before && p->before != agent->state.servers[p->slot]) {
			server_put_back(agent, p->slot, p->before);
			saved = true;
		}
		if (p->attached && server_end(agent, p->slot, NULL))
			log_error("undoing an apply: server \"%s\" stays attached", p->name);
	}
	if (saved)
		agent_save_back(agent, err);
}

static void free_gone(void *arg)
{
	struct server **gone = arg;

	server_free(*gone);
	*gone = NULL;
}

static void forget_gone(void *arg)
{
	free_gone(arg);
	free(arg);
}

/* It may be very large: whoever waits for the command does not wait for this. Takes over the server, or NULL. */
static void free_later(struct agent *agent, struct server *server)
{
	struct server **gone = agent->jobs && server ? malloc(sizeof(*gone)) : NULL;

	if (gone) {
		*gone = server;
		if (!jobs_add_call(agent, free_gone, forget_gone, gone, true))
			return;
		free(gone);
	}
	server_free(server);
}

static void complete(struct agent *agent, const struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->servers[i].attached)
			agent->servers[plan->servers[i].slot].incomplete = false;
}

/* What a plan has put in the place of something is the state's now. */
static void keep(struct agent *agent, struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		free_later(agent, plan->servers[i].before);
		plan->servers[i].made = NULL;
	}
}

/* A server that a Throttle attached goes with that Throttle. One that is not in force has no connections to wait for. */
static int detach_ended(struct agent *agent, struct plan *plan, struct error *err)
{
	struct error why;
	int ret = 0;

	for (size_t i = 0; i < plan->n && !ret; i++) {
		struct planned *p = &plan->servers[i];
		struct server_detached detached = { 0 };

		if (p->ends)
			ret = server_detach(agent, p->slot, !agent->servers[p->slot].in_force, &detached, &why);
		p->draining = detached.draining;
		if (ret)
			error_set(err, ret, "all is done but that server \"%s\" is detached: %s", p->name, why.text);
	}
	return ret;
}

int plan_do(struct agent *agent, struct plan *plan, struct error *err)
{
	int ret = carry_out(agent, plan, err);

	if (ret)
		take_back(agent, plan, err);
	complete(agent, plan);
	if (ret)
		return ret;
	keep(agent, plan);
	return detach_ended(agent, plan, err);
}
