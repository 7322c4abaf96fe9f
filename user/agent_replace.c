/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server as policies want it, in the place of what it was: what is the same is not touched, so that buckets and counters go
 * on. What is new is in force before the rules that ask for it, and what is gone goes after them.
 */
#include <errno.h>
#include <string.h>

#include "agent_limits.h"
#include "agent_replace.h"
#include "cleanup.h"

struct change {
	struct agent *agent;
	struct net *net;
	int slot;
	const struct server *from, *to;
};

/* --- overrides */

static int compare_overrides(const void *a, const void *b)
{
	return strcmp((*(const struct override *const *)a)->subject, (*(const struct override *const *)b)->subject);
}

/* By subject; the caller frees it. NULL without memory. */
static const struct override **sorted(const struct limit *limit)
{
	const struct override **array = calloc(limit->n_overrides + 1, sizeof(*array));

	for (size_t i = 0; array && i < limit->n_overrides; i++)
		array[i] = &limit->overrides[i];
	if (array)
		qsort(array, limit->n_overrides, sizeof(*array), compare_overrides);
	return array;
}

static bool same_amount(const struct datapath_amount *a, const struct datapath_amount *b)
{
	return a->set == b->set && a->per_ns == b->per_ns && a->burst == b->burst && a->places == b->places;
}

static int change_override(const struct change *c, const struct limit *limit, const struct override *from,
			   const struct override *to, struct error *err)
{
	if (!to)
		return override_unapply(c->net, c->slot, limit, from, err);
	if (from && same_amount(&from->amount, &to->amount))
		return 0;
	return override_apply(c->net, c->slot, limit, to, err);
}

/* Both lists in their order, side by side. */
static int change_overrides(const struct change *c, const struct limit *from, const struct limit *to, struct error *err)
{
	CLEANUP_FREE const struct override **old = sorted(from), **new = sorted(to);
	size_t i = 0, j = 0;
	int ret = 0;

	if (!old || !new)
		return error_set(err, -ENOMEM, "out of memory");
	while (!ret && (old[i] || new[j])) {
		int order = !old[i] ? 1 : !new[j] ? -1 : compare_overrides(&old[i], &new[j]);

		ret = change_override(c, to, order <= 0 ? old[i] : NULL, order >= 0 ? new[j] : NULL, err);
		i += order <= 0;
		j += order >= 0;
	}
	return ret;
}

/* --- limits */

static const struct limit *limit_at(const struct server *server, __u32 slot)
{
	for (size_t i = 0; i < server->n_limits; i++)
		if (limit_slot(&server->limits[i]) == slot)
			return &server->limits[i];
	return NULL;
}

/* In one place, and with buckets of the same number. */
static const struct limit *counterpart(const struct server *server, const struct limit *limit)
{
	const struct limit *other = limit_at(server, limit_slot(limit));

	return other && other->number == limit->number && other->keys == limit->keys ? other : NULL;
}

static bool is_same(const struct limit *a, const struct limit *b)
{
	return same_amount(&a->amount, &b->amount) && a->dry_run == b->dry_run && a->kind == b->kind &&
	       memcmp(&a->penalty, &b->penalty, sizeof(a->penalty)) == 0;
}

/* One of a group's key is told anew: the groups that have a count are those of its rules. */
static int change_limit(const struct change *c, const struct limit *limit, struct error *err)
{
	const struct limit *before = counterpart(c->from, limit);
	int ret = 0;

	if (!before && limit_is_builtin(limit) && limit_at(c->from, limit_slot(limit)))
		ret = datapath_limit_delete(c->net->dp, c->slot, limit_slot(limit), err);
	if (ret)
		return ret;
	if (!before)
		return limit_apply_whole(c->net, c->slot, c->to, limit, err);
	if (!is_same(before, limit) || (limit->key & WEIR_KEY_GROUP))
		ret = limit_apply(c->net, c->slot, c->to, limit, err);
	return ret ?: change_overrides(c, before, limit, err);
}

static int change_limits(const struct change *c, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < c->to->n_limits && !ret; i++)
		ret = change_limit(c, &c->to->limits[i], err);
	return ret;
}

/* --- what is gone */

static bool has_slot(const struct server *server, __u32 slot)
{
	char name[SLOT_NAME_SIZE];

	if (slot < WEIR_LIMIT_TYPES)
		return limit_at(server, slot);
	server_slot_name(server, slot, name);
	return *name;
}

static int drop_slot(const struct change *c, __u32 slot, struct error *err)
{
	return has_slot(c->to, slot) ? 0 : datapath_limit_delete(c->net->dp, c->slot, slot, err);
}

static int drop_gone(const struct change *c, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < c->from->n_limits && !ret; i++)
		ret = drop_slot(c, limit_slot(&c->from->limits[i]), err);
	for (size_t i = 0; i < c->from->priorities.n_levels && !ret; i++) {
		const struct priority_level *level = &c->from->priorities.levels[i];

		if (!level->exempt)
			ret = drop_slot(c, limit_slot_of_number(level->number), err);
	}
	return ret;
}

/* --- the whole */

static int change_kernel(const struct change *c, struct error *err)
{
	int ret = 0;

	if (!texts_equal(&c->from->identity.rule_groups, &c->to->identity.rule_groups))
		ret = groups_apply(c->agent, c->slot, err);
	return ret						 ?:
		       change_limits(c, err)			 ?:
		       levels_apply(c->net, c->slot, c->to, err) ?:
		       rules_apply(c->net, c->slot, c->to, err)	 ?:
		       drop_gone(c, err)			 ?:
								   server_apply_flags(c->agent, c->slot, err);
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
	if (change.net) {
		limits_apply(change.net, slot, from, NULL);
		change_kernel(&change, NULL);
	}
	limits_save(agent, NULL);
}
