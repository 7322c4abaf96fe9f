/* SPDX-License-Identifier: GPL-2.0 */
/* By what the kernel knows a server's limits: their numbers, and the bits of the groups that their rules name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir/base/groups.h"

#include "state/state.h"

/* --- numbers */

void server_slot_name(const struct server *server, __u32 slot, char name[static SLOT_NAME_SIZE])
{
	snprintf(name, SLOT_NAME_SIZE, "%s", slot < WEIR_BUILTIN_LIMITS ? limit_builtin_name(slot) : "");
	for (size_t i = 0; i < server->n_limits; i++)
		if (server->limits[i].number && limit_slot(&server->limits[i]) == slot)
			snprintf(name, SLOT_NAME_SIZE, "%s", server->limits[i].name);
	for (size_t i = 0; i < server->priorities.n_levels; i++) {
		const struct priority_level *level = &server->priorities.levels[i];

		if (level->number && limit_slot_of_number(level->number) == slot)
			snprintf(name, SLOT_NAME_SIZE, "level/%s", level->name);
	}
}

void server_numbered_name(const struct server *server, __u32 slot, __u32 number, char name[static SLOT_NAME_SIZE])
{
	snprintf(name, SLOT_NAME_SIZE, "%s", slot < WEIR_BUILTIN_LIMITS && !number ? limit_builtin_name(slot) : "");
	for (size_t i = 0; i < server->n_limits; i++)
		if (number && server->limits[i].number == number)
			snprintf(name, SLOT_NAME_SIZE, "%s", server->limits[i].name);
	for (size_t i = 0; i < server->priorities.n_levels; i++)
		if (number && server->priorities.levels[i].number == number)
			snprintf(name, SLOT_NAME_SIZE, "level/%s", server->priorities.levels[i].name);
}

/* The next one whose place is free. */
static int give_number(struct server *server, __u32 *number, struct error *err)
{
	const __u32 n = WEIR_SERVER_LIMITS - WEIR_BUILTIN_LIMITS;
	char there[SLOT_NAME_SIZE];

	for (__u32 i = 1; i <= n; i++) {
		__u32 next = server->last_number + i;

		server_slot_name(server, limit_slot_of_number(next), there);
		if (!next || *there)
			continue;
		server->last_number = *number = next;
		return 0;
	}
	return error_set(err, -ENOSPC, "server \"%s\" has %u limits and priority levels: there is no room for more",
			 server->name, n);
}

int server_give_numbers(struct server *server, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < server->n_limits && !ret; i++)
		if (!limit_is_builtin(&server->limits[i]) && !server->limits[i].number)
			ret = give_number(server, &server->limits[i].number, err);
	for (size_t i = 0; i < server->priorities.n_levels && !ret; i++)
		if (!server->priorities.levels[i].exempt && !server->priorities.levels[i].number)
			ret = give_number(server, &server->priorities.levels[i].number, err);
	return ret;
}

/* --- groups */

/* Calls each(arg, group) for every group that a rule or an override names; until one returns other than 0. */
static int groups_of_rules(const struct rule *rules, size_t n, int (*each)(void *arg, const char *group), void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++)
		ret = rule_each_group(&rules[i], each, arg);
	return ret;
}

static int groups_each(const struct server *server, int (*each)(void *arg, const char *group), void *arg)
{
	int ret = groups_of_rules(server->exempt, server->n_exempt, each, arg);

	for (size_t i = 0; i < server->priorities.n_schemas && !ret; i++) {
		const struct flow_schema *schema = &server->priorities.schemas[i];

		ret = groups_of_rules(schema->rules, schema->n_rules, each, arg);
	}
	for (size_t i = 0; i < server->n_limits && !ret; i++) {
		const struct limit *limit = &server->limits[i];

		ret = groups_of_rules(limit->rules, limit->n_rules, each, arg);
		for (size_t j = 0; j < limit->n_overrides && limit->key == WEIR_KEY_GROUP && !ret; j++)
			ret = each(arg, limit->overrides[j].subject);
	}
	return ret;
}

static int is_group(void *arg, const char *group)
{
	return strcmp(arg, group) == 0;
}

/* Gives up the places of groups that nothing names any more; returns how many. */
static int forget_groups(struct server *server)
{
	struct texts *groups = &server->identity.rule_groups;
	int n = 0;

	for (size_t i = 0; i < groups->n; i++) {
		if (!*groups->items[i] || groups_each(server, is_group, groups->items[i]))
			continue;
		*groups->items[i] = '\0';
		n++;
	}
	return n;
}

static int place_group(struct texts *groups, const char *group, size_t room)
{
	char *copy = strdup(group), **grown;
	size_t place = 0;

	while (place < groups->n && *groups->items[place])
		place++;
	if (place >= room) {
		free(copy);
		return -E2BIG;
	}
	grown = place < groups->n ? groups->items : reallocarray(groups->items, place + 1, sizeof(*grown));
	if (!copy || !grown) {
		free(copy);
		return -ENOMEM;
	}
	groups->items = grown;
	if (place < groups->n)
		free(grown[place]);
	else
		groups->n++;
	grown[place] = copy;
	return 1;
}

/* What each() returns is an error or 0: what was added is counted here. */
struct naming {
	struct server *server;
	int added;
};

static int name_group(void *arg, const char *group)
{
	struct naming *naming = arg;
	struct identity_settings *identity = &naming->server->identity;
	int ret;

	if (texts_have(&identity->exempt_groups, group) || texts_have(&identity->rule_groups, group))
		return 0;
	ret = place_group(&identity->rule_groups, group, WEIR_GROUPS_MAX - 1 - identity->exempt_groups.n);
	naming->added += ret > 0;
	return ret < 0 ? ret : 0;
}

/* Exempt groups have places of their own, and there may be more of them than before. Returns how many lose theirs. */
static int give_way_to_exempt(struct server *server)
{
	const struct texts *exempt = &server->identity.exempt_groups;
	struct texts *groups = &server->identity.rule_groups;
	int n = 0;

	for (size_t i = 0; i < groups->n; i++) {
		if (!*groups->items[i] ||
		    (i < WEIR_GROUPS_MAX - 1 - exempt->n && !texts_have(exempt, groups->items[i])))
			continue;
		*groups->items[i] = '\0';
		n++;
	}
	return n;
}

/* A place that is given up is taken by another group only later, or if there is no other place. */
int server_name_groups(struct server *server, struct error *err)
{
	struct naming naming = { .server = server };
	int forgotten = give_way_to_exempt(server);
	int ret = groups_each(server, name_group, &naming);

	if (ret == -E2BIG) {
		forgotten += forget_groups(server);
		ret = groups_each(server, name_group, &naming);
	}
	forgotten += forget_groups(server);
	if (ret == -E2BIG)
		return error_set(err, ret, "rules and exemptions name more than %d groups", WEIR_GROUPS_MAX - 1);
	return ret ? error_set(err, ret, "out of memory") : naming.added || forgotten;
}
