/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server as policies want it, in the place of what it was: what is the same is not touched, so that buckets and counters go
 * on.
 */
#include <errno.h>
#include <string.h>

#include "agent/inside.h"
#include "agent/limit_counts.h"
#include "agent/limits.h"
#include "agent/reconcile.h"
#include "agent/servers.h"
#include "agent/unsaved.h"
#include "apply/replace.h"
#include "base/cleanup.h"
#include "policy/policy.h"
#include "rules/identity.h"
#include "rules/put.h"

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
		       limits_change(c->net, c->slot, c->from, c->to, err);
}

/* --- what attach sets */

/* Groups and users that were exempt, and those that will be, are exempt meanwhile. */
static int put_groups(const struct change *c, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(c->agent);
	struct weir_known_groups known;

	identity_known_groups(&c->to->identity, &known);
	identity_exempt_join(&known, &c->from->identity);
	return datapath_known_groups_set(c->net->dp, c->slot, &known, err) ?:
		       server_put_groups(c->net->dp, c->slot, c->to, err);
}

static int put_settings(const struct change *c, __u32 flags, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(c->agent);

	return server_put_settings(c->net->dp, c->slot, c->to, flags, err);
}

/*
 * What packets are identified by is there before it is read, and the programs are on an interface before what comes by it
 * must have been read. So there is no moment at which the server is less limited than before and after.
 */
static int change_settings(const struct change *c, struct error *err)
{
	bool more = !c->to->n_interfaces && c->from->n_interfaces;
	int ret = put_groups(c, err) ?: identity_load(c->agent, c->slot, &(struct identity_count){ 0 }, err);

	if (!ret && more)
		ret = net_sync_links(c->net, err);
	return ret							 ?:
		       put_settings(c, server_flags(c->to, c->net), err) ?:
		       net_settle(c->net, err)				 ?:
									   server_check_pace(c->to, c->net, err);
}

static bool listens_at(const struct server *server, const struct datapath_listen *listen)
{
	for (size_t i = 0; i < server->n_listens; i++) {
		const struct datapath_listen *there = &server->listens[i];

		if (there->port == listen->port &&
		    (there->any || !memcmp(there->address, listen->address, sizeof(there->address))))
			return true;
	}
	return false;
}

/* Does one of them listen where the other does not? */
static bool listens_change(const struct server *from, const struct server *to)
{
	bool change = false;

	for (size_t i = 0; i < from->n_listens; i++)
		change |= !listens_at(to, &from->listens[i]);
	for (size_t i = 0; i < to->n_listens; i++)
		change |= !listens_at(from, &to->listens[i]);
	return change;
}

static int change_inside(const struct change *c, struct error *err)
{
	if (c->to->inside == c->from->inside && c->to->inside_share == c->from->inside_share &&
	    c->to->write_memory == c->from->write_memory && !listens_change(c->from, c->to))
		return 0;
	if (c->to->inside != INSIDE_OFF)
		return inside_attach(c->agent, c->slot, err);
	inside_forget(c->agent, c->slot);
	return 0;
}

static int change_kernel(const struct change *c, struct error *err)
{
	bool settings = !policy_same_settings(c->from, c->to);
	int ret = 0;

	if (settings)
		ret = change_settings(c, err);
	else if (!texts_equal(&c->from->identity.rule_groups, &c->to->identity.rule_groups))
		ret = groups_apply(c->agent, c->slot, err);
	ret = ret ?: change_limits(c, err) ?: server_apply_flags(c->agent, c->slot, err);
	limits_taken_forget(c->net);
	return !ret && settings ? change_inside(c, err) : ret;
}

static bool watches(const struct server *server, const char *interface)
{
	for (size_t i = 0; i < server->n_interfaces; i++)
		if (strcmp(server->interfaces[i], interface) == 0)
			return true;
	return !server->n_interfaces;
}

/* Does it lose a port, or an interface? */
static bool loses(const struct server *from, const struct server *to)
{
	bool lost = !from->n_interfaces && to->n_interfaces;

	for (size_t i = 0; i < from->n_listens; i++)
		lost |= !listens_at(to, &from->listens[i]);
	for (size_t i = 0; i < from->n_interfaces; i++)
		lost |= !watches(to, from->interfaces[i]);
	return lost;
}

/* A connection that is translated needs the programs until it ends. */
static int check_lost(const struct change *c, struct error *err)
{
	__u64 translated = 0;
	int ret = loses(c->from, c->to) ? server_count_translated(c->agent, c->slot, &translated, err) : 0;

	if (ret || !translated)
		return ret;
	return error_set(
		err, -EBUSY,
		"server \"%s\" cannot lose a port or an interface yet: %llu connection%s on which requests were "
		"refused %s to end first; try again then",
		c->to->name, translated, translated == 1 ? "" : "s", translated == 1 ? "has" : "have");
}

/* What only the machine can tell of settings that change. to: of the change. */
static int check_settings(const struct change *c, struct server *to, struct error *err)
{
	int ret;

	if (policy_same_settings(c->from, to))
		return 0;
	ret = state_check(&c->agent->state, to, err);
	if (ret || !c->net)
		return ret;
	return server_check_hooks(c->agent, c->net->fd, to, err) ?:
		       check_lost(c, err)			 ?:
								   identity_check(c->agent, to, err);
}

int server_replace(struct agent *agent, int slot, struct server *to, struct error *err)
{
	struct server *from = agent->state.servers[slot];
	struct change change = { agent, net_in_force(agent, slot), slot, from, to };
	int ret;

	agent->state.servers[slot] = to;
	ret = check_settings(&change, to, err) ?: agent_save(agent, err);
	if (ret) { /* the kernel has nothing of it */
		agent->state.servers[slot] = from;
		return ret;
	}
	return change.net ? change_kernel(&change, err) : 0;
}

void server_put_back(struct agent *agent, int slot, struct server *from)
{
	struct server *to = agent->state.servers[slot];
	struct change change = { agent, net_in_force(agent, slot), slot, to, from };

	agent->state.servers[slot] = from;
	/* If taking it back failed, the kernel's state is unknown, and all of it is compared. */
	if (change.net && change_kernel(&change, NULL))
		reconcile_all(agent);
}
