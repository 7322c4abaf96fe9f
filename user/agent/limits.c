/* SPDX-License-Identifier: GPL-2.0 */
/* A server's limits and rules, put in force. */
#include <errno.h>

#include "agent/limits.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "model/key.h"
#include "rules/identity.h"
#include "rules/server_rules.h"

struct net *limits_net(const struct agent *agent, int slot)
{
	return agent->servers[slot].in_force ? server_net(agent, agent->state.servers[slot]) : NULL;
}

int limits_save(struct agent *agent, struct error *err)
{
	return agent_save(agent, err);
}

int limits_check_rules(struct agent *agent, const struct server *server, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	CLEANUP_RULES struct rules *rules = NULL;

	return server_rules(server, NULL, &rules, err);
}

int limit_apply(struct net *net, int slot, const struct server *server, const struct limit *limit, struct error *err)
{
	struct datapath_limit kernel_side;
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	server_kernel_limit(server, limit, &kernel_side);
	return datapath_limit_set(net->dp, slot, limit_slot(limit), &kernel_side, err);
}

int override_apply(struct net *net, int slot, const struct limit *limit, const struct override *override,
		   struct error *err)
{
	__u64 subject = key_subject(net->dp, limit->key, override->subject);
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_override_set(net->dp, slot, limit_slot(limit), subject, &override->amount, err);
}

int override_unapply(struct net *net, int slot, const struct limit *limit, const struct override *override,
		     struct error *err)
{
	__u64 subject = key_subject(net->dp, limit->key, override->subject);
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_override_delete(net->dp, slot, limit_slot(limit), subject, err);
}

int limit_apply_whole(struct net *net, int slot, const struct server *server, const struct limit *limit,
		      struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);
	int ret = limit_apply(net, slot, server, limit, err);

	for (size_t i = 0; i < limit->n_overrides && !ret; i++)
		ret = override_apply(net, slot, limit, &limit->overrides[i], err);
	return ret;
}

static int level_apply(struct net *net, int slot, const struct server *server, const struct priority_level *level,
		       struct error *err)
{
	struct datapath_limit kernel_side;

	if (level->exempt)
		return 0;
	server_kernel_level(server, level, &kernel_side);
	return datapath_limit_set(net->dp, slot, limit_slot_of_number(level->number), &kernel_side, err);
}

int rules_apply(struct net *net, int slot, const struct server *server, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);
	CLEANUP_RULES struct rules *rules = NULL;
	int ret = server_rules(server, net->dp, &rules, err);

	if (ret)
		return ret;
	if (!rules)
		return datapath_rules_set(net->dp, slot, NULL, NULL, 0, NULL, 0, err);
	return datapath_rules_set(net->dp, slot, &rules->value, rules->vectors, rules->n_vectors, rules->sources,
				  rules->n_sources, err);
}

/* --- all of them */

static size_t count_overrides(const struct server *server)
{
	size_t n = 0;

	for (size_t i = 0; i < server->n_limits; i++)
		n += server->limits[i].n_overrides;
	return n;
}

static int overrides_apply(struct net *net, int slot, const struct server *server, const struct datapath_slots *slots,
			   struct error *err)
{
	CLEANUP_FREE struct datapath_override *overrides = calloc(count_overrides(server) + 1, sizeof(*overrides));
	size_t n = 0;

	if (!overrides)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < server->n_limits; i++) {
		const struct limit *limit = &server->limits[i];

		for (size_t j = 0; j < limit->n_overrides; j++)
			overrides[n++] = (struct datapath_override){
				.slot = limit_slot(limit),
				.subject = key_subject(net->dp, limit->key, limit->overrides[j].subject),
				.amount = limit->overrides[j].amount,
			};
	}
	return datapath_overrides_set(net->dp, slot, slots, overrides, n, err);
}

/* Rules come into force when the limits that they name are there; what is gone goes after them. */
int limits_apply(struct net *net, int slot, const struct server *server, struct error *err)
{
	struct datapath_slots slots = { 0 };
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);
	int ret = 0;

	if (server->draining)
		return 0;
	for (size_t i = 0; i < server->n_limits && !ret; i++) {
		datapath_slots_add(&slots, limit_slot(&server->limits[i]));
		ret = limit_apply(net, slot, server, &server->limits[i], err);
	}
	for (size_t i = 0; i < server->priorities.n_levels && !ret; i++) {
		const struct priority_level *level = &server->priorities.levels[i];

		if (!level->exempt)
			datapath_slots_add(&slots, limit_slot_of_number(level->number));
		ret = level_apply(net, slot, server, level, err);
	}
	return ret						       ?:
		       overrides_apply(net, slot, server, &slots, err) ?:
		       rules_apply(net, slot, server, err)	       ?:
									 datapath_limits_keep(net->dp, slot, &slots, err);
}

static int known_groups_apply(struct agent *agent, int slot, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	const struct server *server = agent->state.servers[slot];
	struct net *net = server_net(agent, server);
	struct weir_known_groups known;

	identity_known_groups(&server->identity, &known);
	return identity_apply(net, slot, server, err) ?: datapath_known_groups_set(net->dp, slot, &known, err);
}

/* Whom tokens and addresses stand for is told with their groups, too. */
int groups_apply(struct agent *agent, int slot, struct error *err)
{
	return known_groups_apply(agent, slot, err) ?: identity_load(agent, slot, &(struct identity_count){ 0 }, err);
}
