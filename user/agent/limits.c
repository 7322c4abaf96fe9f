/* SPDX-License-Identifier: GPL-2.0 */
/* A server's limits and rules, put in force. */
#include "agent/limits.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "model/key.h"
#include "rules/identity.h"
#include "rules/put.h"
#include "rules/server_rules.h"

int limits_check_rules(struct agent *agent, const struct server *server, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	CLEANUP_RULES struct rules *rules = NULL;

	return server_rules(server, NULL, &rules, err);
}

int limit_apply(struct net *net, int slot, const struct server *server, const struct limit *limit, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return server_put_limit(net->dp, slot, server, limit, err);
}

int override_apply(struct net *net, int slot, const struct limit *limit, const struct override *override,
		   struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return server_put_override(net->dp, slot, limit, override, err);
}

int override_unapply(struct net *net, int slot, const struct limit *limit, const struct override *override,
		     struct error *err)
{
	__u64 subject = key_subject(net->dp, limit->key, override->subject);
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_overrides_delete(net->dp, slot, limit_slot(limit), &subject, 1, err);
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

int rules_apply(struct net *net, int slot, const struct server *server, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return server_put_rules(net->dp, slot, server, err);
}

int limits_apply(struct net *net, int slot, const struct server *server, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return server_put_limits(net->dp, slot, server, err);
}

int limits_change(struct net *net, int slot, const struct server *from, const struct server *to, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return server_change_limits(net->dp, slot, from, to, err);
}

static int known_groups_apply(struct agent *agent, int slot, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	const struct server *server = agent->state.servers[slot];
	struct net *net = server_net(agent, server);
	struct weir_known_groups known;

	identity_known_groups(&server->identity, &known);
	return server_put_groups(net->dp, slot, server, err) ?: datapath_known_groups_set(net->dp, slot, &known, err);
}

/* The users of tokens and addresses are written again, too: they carry the bits of their groups. */
int groups_apply(struct agent *agent, int slot, struct error *err)
{
	return known_groups_apply(agent, slot, err) ?: identity_load(agent, slot, &(struct identity_count){ 0 }, err);
}
