/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server as policies want it, in the place of what it was: what is the same is not touched, so that buckets and counters go
 * on.
 */
#include <errno.h>
#include <string.h>

#include "agent/limits.h"
#include "agent/replace.h"
#include "base/cleanup.h"

struct change {
	struct agent *agent;
	struct net *net;
	int slot;
	const struct server *from, *to;
};

static const struct limit *limit_at(const struct server *server, __u32 slot)
{
	for (size_t i = 0; i < server->n_limits; i++)
		if (limit_slot(&server->limits[i]) == slot)
			return &server->limits[i];
	return NULL;
}

/* Buckets of another limit, or of another number, are not kept. */
static int drop_others(const struct change *c, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < c->from->n_limits && !ret; i++) {
		const struct limit *from = &c->from->limits[i], *to = limit_at(c->to, limit_slot(from));

		if (to && (to->number != from->number || to->keys != from->keys))
			ret = datapath_limit_delete(c->net->dp, c->slot, limit_slot(from), err);
	}
	return ret;
}

static int change_limits(const struct change *c, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(c->agent);

	return drop_others(c, err)										 ?:
		       datapath_lists_set(c->net->dp, c->slot, c->to->list_width, c->to->list_object_bytes, err) ?:
		       limits_apply(c->net, c->slot, c->to, err);
}

static int change_kernel(const struct change *c, struct error *err)
{
	int ret = 0;

	if (!texts_equal(&c->from->identity.rule_groups, &c->to->identity.rule_groups))
		ret = groups_apply(c->agent, c->slot, err);
	return ret ?: change_limits(c, err) ?: server_apply_flags(c->agent, c->slot, err);
}

int server_replace(struct agent *agent, int slot, struct server *to, struct error *err)
{
	struct server *from = agent->state.servers[slot];
	struct change change = { agent, limits_net(agent, slot), slot, from, to };
	int ret;

	agent->state.servers[slot] = to;
	ret = limits_save(agent, err);
	if (!ret && change.net)
		ret = change_kernel(&change, err);
	return ret;
}

void server_put_back(struct agent *agent, int slot, struct server *from)
{
	struct server *to = agent->state.servers[slot];
	struct change change = { agent, limits_net(agent, slot), slot, to, from };

	agent->state.servers[slot] = from;
	if (change.net)
		change_kernel(&change, NULL);
	limits_save(agent, NULL);
}
