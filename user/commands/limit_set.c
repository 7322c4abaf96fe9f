/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Limits that are set by command. What is wrong is found out before anything is changed: a limit is read as a whole, as it
 * would be afterwards, and its rules are compiled with all the others of its server.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/limits.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/nearest.h"
#include "commands/limits.h"
#include "model/amount_json.h"
#include "model/key.h"
#include "policy/objects.h"
#include "state/room.h"

/* --- a limit that is new */

/* What a limit that the state has already needs to be in force. */
static int bring_in(struct agent *agent, int slot, const struct limit *limit, bool groups_changed, struct error *err)
{
	struct net *net = net_in_force(agent, slot);
	const struct server *server = agent->state.servers[slot];
	int ret;

	if (!net)
		return 0;
	ret = groups_changed ? groups_apply(agent, slot, err) : 0;
	return ret ?: limit_apply_whole(net, slot, server, limit, err) ?: rules_apply(net, slot, server, err);
}

/* What the state must know of a new limit before the kernel does. */
static int prepare(struct agent *agent, int slot, bool *groups_changed, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	int ret = server_give_numbers(server, err);

	if (!ret)
		ret = server_name_groups(server, err);
	if (ret < 0)
		return ret;
	*groups_changed = ret;
	return limits_check_rules(agent, server, err)		    ?:
		       state_check_room(&agent->state, server, err) ?:
								      agent_save(agent, err);
}

/* Takes over what the limit points to on success. */
static int add_limit(struct agent *agent, int slot, const struct limit *limit, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	__u32 last_number = server->last_number;
	bool groups_changed = false;
	struct limit *added;
	int ret;

	if (server_limit_add(server, limit))
		return error_set(err, -ENOMEM, "out of memory");
	added = &server->limits[server->n_limits - 1];
	ret = prepare(agent, slot, &groups_changed, err);
	if (ret) {
		server->n_limits--;
		server->last_number = last_number;
		server_name_groups(server, NULL);
		return ret;
	}
	ret = bring_in(agent, slot, added, groups_changed, err);
	if (ret) {
		struct limit gone = *added;

		server->n_limits--; /* the caller still owns what it points to */
		limit_take_out(agent, slot, &gone, NULL);
		agent_save_back(agent, err);
	}
	return ret;
}

/* --- one that is there */

static int refuse(const struct limit *limit, const char *what, struct error *err)
{
	return error_set(err, -EINVAL, "limit \"%s\": its %s cannot be changed: delete it first", limit->name, what);
}

/* The number of buckets is fixed when a limit is first set. */
static int check_keys(const struct limit *limit, const struct limit *wanted, const char *subject, struct error *err)
{
	if (subject || !wanted->key)
		return error_set(err, -EINVAL,
				 "keys: only the default of a limit has a number of buckets, and total has one");
	if (limit && limit->keys != wanted->keys)
		return error_set(err, -EINVAL, "keys: the buckets of limit \"%s\" exist already: delete it first",
				 limit->name);
	return 0;
}

static bool same_rules(const struct limit *a, const struct limit *b)
{
	if (a->n_rules != b->n_rules)
		return false;
	for (size_t i = 0; i < a->n_rules; i++)
		if (!rule_equal(&a->rules[i], &b->rules[i]))
			return false;
	return true;
}

static int check_change(const struct limit *limit, const struct limit *wanted, json_t *given, const char *subject,
			struct error *err)
{
	static const char *const kinds[] = {
		[WEIR_LIMIT_RATE] = "kind (a rate)",
		[WEIR_LIMIT_IN_FLIGHT] = "kind (requests in flight)",
		[WEIR_LIMIT_CONNECTION_RATE] = "kind (a rate of connections)",
		[WEIR_LIMIT_OPEN] = "kind (open connections)",
	};
	bool some = (wanted->amount.set && !wanted->amount.deny) ||
		    (wanted->n_overrides && !wanted->overrides[0].amount.deny);

	if (wanted->key != limit->key)
		return refuse(limit, "key", err);
	if (some && wanted->kind != limit->kind)
		return refuse(limit, kinds[limit->kind], err);
	if (!same_rules(limit, wanted))
		return refuse(limit, "rules", err);
	if (subject &&
	    (json_object_get(given, "mode") || json_object_get(given, "penalty") || json_object_get(given, "over")))
		return error_set(err, -EINVAL,
				 "limit \"%s\": mode, penalty and over belong to the limit, not to a subject",
				 limit->name);
	return 0;
}

static int change_default(struct agent *agent, int slot, struct limit *limit, const struct limit *wanted,
			  struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct net *net = net_in_force(agent, slot);
	struct limit before = *limit;
	int saved, ret;

	limit->amount = wanted->amount;
	limit->kind = wanted->amount.set && !wanted->amount.deny ? wanted->kind : limit->kind;
	limit->dry_run = wanted->dry_run;
	limit->reset = wanted->reset;
	limit->penalty = wanted->penalty;
	saved = agent_save(agent, err);
	ret = saved || !net ? saved : limit_apply(net, slot, server, limit, err);
	if (!ret)
		return 0;
	*limit = before;
	if (!saved) {
		limit_apply(net, slot, server, limit, NULL);
		agent_save_back(agent, err);
	}
	return ret;
}

/* An override of a group's limit is one more group that has a count, and that must be known. */
static int prepare_override(struct agent *agent, int slot, const struct limit *limit, const struct override *override,
			    bool *groups_changed, struct error *err)
{
	if (limit->key & WEIR_KEY_GROUP)
		return prepare(agent, slot, groups_changed, err);
	return state_check_room(&agent->state, agent->state.servers[slot], err) ?:
		       agent_save_override(agent, slot, limit, override, err);
}

static int bring_in_override(struct agent *agent, int slot, const struct limit *limit, const struct override *override,
			     bool groups_changed, struct error *err)
{
	struct net *net = net_in_force(agent, slot);
	int ret = groups_changed ? bring_in(agent, slot, limit, true, err) : 0;

	return ret || !net ? ret : override_apply(net, slot, limit, override, err);
}

static int change_override(struct agent *agent, int slot, struct limit *limit, const struct override *wanted,
			   struct error *err)
{
	struct override *override = limit_override(limit, wanted->subject);
	struct datapath_amount before = override ? override->amount : (struct datapath_amount){ 0 };
	bool groups_changed = false;
	int prepared, ret;

	if (override)
		override->amount = wanted->amount;
	else if (limit_override_add(limit, wanted->subject, &wanted->amount))
		return error_set(err, -ENOMEM, "out of memory");
	else
		override = &limit->overrides[limit->n_overrides - 1];
	prepared = prepare_override(agent, slot, limit, override, &groups_changed, err);
	ret = prepared ?: bring_in_override(agent, slot, limit, override, groups_changed, err);
	if (!ret)
		return 0;
	if (before.set)
		override->amount = before;
	else
		limit_override_remove(limit, override);
	server_name_groups(agent->state.servers[slot], NULL);
	if (!prepared)
		agent_save_back(agent, err);
	return ret;
}

/* --- the command */

static bool is_followed(const struct server *server, const char *file)
{
	json_t *object;
	size_t i;

	json_array_foreach (policy_objects(server), i, object)
		if (policy_object_followed(object) && strcmp(policy_object_file(object), file) == 0)
			return true;
	return false;
}

int limit_check_file(const struct server *server, const struct limit *limit, struct error *err)
{
	if (!limit->file)
		return 0;
	if (is_followed(server, limit->file))
		return error_set(err, -EBUSY, "limit \"%s\" is set by %s, which the agent follows: change it there",
				 limit->name, limit->file);
	return error_set(err, -EBUSY, "limit \"%s\" is set by %s: change it there, then \"weir apply -f %s\"",
			 limit->name, limit->file, limit->file);
}

/* An amount of one kind takes the place of one of another. */
static void drop_replaced(json_t *whole, json_t *given)
{
	bool rate = json_object_get(given, "qps") || json_object_get(given, "burst");
	bool seats = json_object_get(given, "in_flight") || json_object_get(given, "open");
	bool deny = json_object_get(given, "deny");

	if (seats || deny) {
		json_object_del(whole, "qps");
		json_object_del(whole, "burst");
	}
	if (rate || seats || deny) {
		json_object_del(whole, "in_flight");
		json_object_del(whole, "open");
	}
	if (rate || seats)
		json_object_del(whole, "deny");
}

/* The subject's own amount. A rate without a burst keeps the burst, and the other way round. */
static json_t *override_before(const struct limit *limit, json_t *given, const char *subject)
{
	json_t *json = json_pack("{s:s}", "subject", subject);
	char canonical[KEY_SUBJECT_TEXT];
	const struct override *before = NULL;

	if (limit && !key_subject_parse(limit->key, subject, canonical, NULL))
		before = limit_override(limit, canonical);
	if (before && (json_object_get(given, "qps") || json_object_get(given, "burst"))) {
		amount_to_json(&before->amount, limit->kind, json);
		drop_replaced(json, given);
	}
	return json;
}

/* The limit as it would be: what is given, in the place of what there is. An amount for a subject becomes an override. */
static json_t *merged(const struct limit *limit, json_t *given, const char *subject)
{
	static const char *const amounts[] = { "qps", "burst", "in_flight", "open", "deny" };
	json_t *whole = limit ? limit_settings_to_json(limit) : json_object();
	json_t *override = subject ? override_before(limit, given, subject) : NULL;

	if (!subject)
		drop_replaced(whole, given);
	json_object_update(whole, given);
	for (size_t i = 0; subject && i < sizeof(amounts) / sizeof(*amounts); i++) {
		json_t *amount = json_object_get(given, amounts[i]);

		if (!amount)
			continue;
		json_object_set(override, amounts[i], amount);
		json_object_del(whole, amounts[i]);
	}
	if (subject && limit)
		amount_to_json(&limit->amount, limit->kind, whole);
	if (subject)
		json_object_set_new(whole, "overrides", json_pack("[o]", override));
	return whole;
}

/* A new limit that has no key: a name that was misspelled, perhaps, or a user's. */
static int check_name(const struct server *server, const char *name, struct error *err)
{
	struct nearest meant = nearest_to(name);

	for (__u32 builtin = 0; builtin < WEIR_BUILTIN_LIMITS; builtin++)
		nearest_try(&meant, limit_builtin_name(builtin));
	for (size_t i = 0; i < server->n_limits; i++)
		nearest_try(&meant, server->limits[i].name);
	if (limit_builtin(name) >= 0)
		return 0;
	if (meant.found)
		return error_set(err, -ENOENT, "there is no limit \"%s\": is \"%s\" meant? A new one needs --key", name,
				 meant.found);
	return error_set(err, -ENOENT,
			 "there is no limit \"%s\", and a new one needs --key; for one user: weir limit set user %s",
			 name, name);
}

int limit_set(struct agent *agent, int slot, json_t *given, const char *subject, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	const char *name = json_string_value(json_object_get(given, "name"));
	struct limit *limit = name ? server_limit(server, name) : NULL;
	CLEANUP_JSON json_t *whole = merged(limit, given, subject);
	CLEANUP_LIMIT struct limit wanted = { 0 };
	int ret;

	if (json_object_get(given, "overrides") || json_object_get(given, "number"))
		return error_set(err, -EINVAL, "an override is set for one subject at a time");
	ret = limit || !name || json_object_get(given, "key") ? 0 : check_name(server, name, err);
	ret = ret ?: limit_from_json(whole, &wanted, err);
	if (!ret && json_object_get(given, "keys"))
		ret = check_keys(limit, &wanted, subject, err);
	if (ret)
		return ret;
	if (limit) {
		ret = limit_check_file(server, limit, err) ?: check_change(limit, &wanted, given, subject, err);
		if (ret)
			return ret;
		return subject ? change_override(agent, slot, limit, &wanted.overrides[0], err) :
				 change_default(agent, slot, limit, &wanted, err);
	}
	ret = limit_check_amounts(&wanted, err) ?: add_limit(agent, slot, &wanted, err);
	if (!ret)
		wanted = (struct limit){ 0 }; /* the server's now */
	return ret;
}
