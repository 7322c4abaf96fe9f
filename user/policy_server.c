/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server and the objects that are applied to it. The server keeps, as `policy`, the objects as they were given, and what it
 * had been told beside them (base); its limits, levels and exemptions are made of both, anew each time.
 */
#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "json_list.h"
#include "json_read.h"
#include "policy.h"
#include "server_rules.h"

/* What an object may say of a server that is attached, beside its limits. */
#define CHANGING_KEYS "concurrency", "dry_run", "exempt"
static const char *const changing[] = { CHANGING_KEYS, NULL };

#define CHANGING (sizeof(changing) / sizeof(*changing) - 1)

json_t *policy_objects(const struct server *server)
{
	return json_object_get(server->policy, "objects");
}

bool policy_attached(const struct server *server)
{
	return json_is_true(json_object_get(server->policy, "attached"));
}

/* --- what was there before the objects */

/* json: the server's. What its objects have changed is as it was before them; new reference. */
static json_t *base_of(const struct server *server, json_t *json)
{
	json_t *kept = json_object_get(server->policy, "base"), *base;

	if (kept)
		return json_incref(kept);
	base = json_object();
	for (size_t i = 0; i < CHANGING; i++)
		json_object_set(base, changing[i], json_object_get(json, changing[i]));
	return base;
}

int policy_check_base(const struct server *server, struct error *err)
{
	json_t *base = json_object_get(server->policy, "base");

	return base ? members_check(base, "the base", changing, err) : 0;
}

/* --- limits */

static void limit_cut(json_t *limits, json_t *limit)
{
	for (size_t i = 0; i < json_array_size(limits); i++)
		if (json_array_get(limits, i) == limit)
			json_array_remove(limits, i);
}

/* Buckets go on where they mean the same. */
static bool same_buckets(const struct limit *a, const struct limit *b)
{
	return a->key == b->key && a->kind == b->kind && a->keys == b->keys;
}

/* As it is written to state.json, all that is left out filled in. A new reference, or NULL. */
static json_t *limit_whole(json_t *given, const struct server *server, struct error *err)
{
	CLEANUP_LIMIT struct limit limit = { 0 };
	const struct limit *before;
	json_t *whole;

	if (limit_from_json(given, &limit, err))
		return NULL;
	before = server_limit(server, limit.name);
	if (before && before->number && same_buckets(before, &limit))
		limit.number = before->number;
	whole = limit_to_json(&limit);
	if (!limit.number)
		json_object_del(whole, "number");
	return whole;
}

/* One name from two places is one limit only if both say the same. */
static int add_limit(json_t *limits, json_t *given, const char *source, const struct server *server, struct error *err)
{
	CLEANUP_JSON json_t *limit = limit_whole(given, server, err);
	const char *name, *other;
	json_t *there;

	if (!limit)
		return -EINVAL;
	name = json_string_value(json_object_get(limit, "name"));
	there = list_named(limits, name);
	other = json_string_value(json_object_get(there, "source"));
	if (there && other)
		return error_set(err, -EEXIST, "limit \"%s\" of server \"%s\" is in %s and in %s", name, server->name,
				 other, source);
	if (there && !json_equal(there, limit))
		return error_set(
			err, -EEXIST,
			"limit \"%s\" of server \"%s\" was set by command line, other than in %s: delete it first "
			"(weir limit delete %s)",
			name, server->name, source, name);
	if (there)
		limit_cut(limits, there);
	json_object_set_new(limit, "source", json_string(source));
	return json_array_append(limits, limit);
}

static int add_limits(json_t *limits, json_t *given, const char *source, const struct server *server, struct error *err)
{
	json_t *limit;
	size_t i;
	int ret = 0;

	json_array_foreach (given, i, limit)
		ret = ret ?: add_limit(limits, limit, source, server, err);
	return ret;
}

/* Those that commands have set. */
static json_t *limits_by_command(json_t *limits)
{
	json_t *array = json_array(), *limit;
	size_t i;

	json_array_foreach (limits, i, limit)
		if (!json_object_get(limit, "source"))
			json_array_append(array, limit);
	return array;
}

/* --- objects */

static bool has_rule(json_t *rules, json_t *wanted)
{
	json_t *rule;
	size_t i;

	json_array_foreach (rules, i, rule)
		if (json_equal(rule, wanted))
			return true;
	return false;
}

/* In the form in which state.json has it, so that the same is seen to be the same. */
static int add_exemption(json_t *exempt, json_t *given, struct error *err)
{
	CLEANUP_RULE struct rule rule = { 0 };
	CLEANUP_JSON json_t *whole = NULL;
	int ret = rule_from_json(given, &rule, err);

	if (ret)
		return ret;
	whole = rule_to_json(&rule);
	if (!has_rule(exempt, whole))
		json_array_append(exempt, whole);
	return 0;
}

static int add_throttle(json_t *json, json_t *document, const char *source, const struct server *server,
			struct error *err)
{
	CLEANUP_JSON json_t *spec = policy_own_names(json_object_get(document, "spec"));
	CLEANUP_JSON json_t *exempt = json_deep_copy(json_object_get(json, "exempt"));
	json_t *rule;
	size_t i;
	int ret = 0;

	for (i = 0; i < CHANGING; i++)
		if (json_object_get(spec, changing[i]))
			json_object_set(json, changing[i], json_object_get(spec, changing[i]));
	json_object_set(json, "exempt", exempt);
	json_array_foreach (json_object_get(spec, "exempt"), i, rule)
		ret = ret ?: add_exemption(exempt, rule, err);
	return ret ?: add_limits(json_object_get(json, "limits"), json_object_get(spec, "limits"), source, server, err);
}

static int add_object(json_t *json, json_t *object, const struct server *server, struct error *err)
{
	json_t *document = json_object_get(object, "document");
	const char *source = json_string_value(json_object_get(object, "source")), *name;
	const struct policy_kind *kind = policy_document_kind(document, &name);
	CLEANUP_JSON json_t *limits = NULL;

	if (!kind || !source)
		return error_set(err, -EINVAL, "policy: an object must have a source and a document of a known kind");
	switch (kind->type) {
	case POLICY_THROTTLE:
		return add_throttle(json, document, source, server, err);
	case POLICY_EVENT_RATE_LIMIT:
		limits = policy_events_limits(document);
		return add_limits(json_object_get(json, "limits"), limits, source, server, err);
	case POLICY_FLOW_SCHEMA:
		return json_array_append_new(json_object_get(json, "flow_schemas"), policy_flow_schema(document));
	case POLICY_PRIORITY_LEVEL:
		return json_array_append_new(json_object_get(json, "priority_levels"), policy_level(document));
	case POLICY_ADMISSION:
		break;
	}
	return 0;
}

/* Levels keep the seats that are taken. */
static void keep_numbers(const struct server *server, json_t *levels)
{
	json_t *level;
	size_t i;

	json_array_foreach (levels, i, level) {
		const struct priority_level *before = priority_level(&server->priorities,
								     json_string_value(json_object_get(level, "name")));

		if (before && before->number && !json_is_true(json_object_get(level, "exempt")))
			json_object_set_new(level, "number", json_integer(before->number));
	}
}

static void add_levels(const struct server *server, json_t *json)
{
	json_t *levels = json_object_get(json, "priority_levels"), *schemas = json_object_get(json, "flow_schemas");

	if (json_array_size(levels) || json_array_size(schemas))
		policy_add_mandatory(levels, schemas);
	keep_numbers(server, levels);
}

/* --- the whole */

/* The server's JSON without what objects have made of it. A new reference. */
static json_t *bare(const struct server *server)
{
	json_t *json = server_to_json(server);
	CLEANUP_JSON json_t *base = base_of(server, json);

	json_object_update(json, base);
	json_object_set_new(json, "limits", limits_by_command(json_object_get(json, "limits")));
	json_object_set_new(json, "priority_levels", json_array());
	json_object_set_new(json, "flow_schemas", json_array());
	json_object_del(json, "policy");
	return json;
}

static json_t *policy_of(const struct server *server, json_t *objects)
{
	CLEANUP_JSON json_t *json = server_to_json(server);

	return json_pack("{s:O, s:o, s:O*}", "objects", objects, "base", base_of(server, json), "attached",
			 json_object_get(server->policy, "attached"));
}

static int check_made(struct server *server, struct error *err)
{
	CLEANUP_RULES struct rules *rules = NULL;
	int ret = server_give_numbers(server, err) ?: server_name_groups(server, err);

	return ret < 0 ? ret : server_rules(server, NULL, &rules, err);
}

int policy_server(const struct server *server, json_t *objects, struct server **out, struct error *err)
{
	CLEANUP_JSON json_t *json = bare(server);
	CLEANUP_SERVER struct server *made = NULL;
	json_t *object;
	size_t i;
	int ret = 0;

	json_array_foreach (objects, i, object)
		ret = ret ?: add_object(json, object, server, err);
	if (ret)
		return ret;
	add_levels(server, json);
	if (json_array_size(objects))
		json_object_set_new(json, "policy", policy_of(server, objects));
	ret = server_from_json(json, &made, err) ?: check_made(made, err);
	if (ret)
		return ret;
	*out = made;
	made = NULL;
	return 0;
}

/* --- what only attach can set */

static const char *const not_settings[] = { "limits", CHANGING_KEYS };

json_t *policy_attach_settings(json_t *throttle)
{
	json_t *settings = policy_own_names(json_object_get(throttle, "spec"));

	for (size_t i = 0; i < sizeof(not_settings) / sizeof(*not_settings); i++)
		json_object_del(settings, not_settings[i]);
	return settings;
}

int policy_check_settings(const struct server *server, json_t *throttle, struct error *err)
{
	CLEANUP_JSON json_t *before = server_to_json(server), *wanted = json_deep_copy(before), *after = NULL;
	CLEANUP_JSON json_t *settings = policy_attach_settings(throttle);
	CLEANUP_SERVER struct server *made = NULL;
	const char *key;
	json_t *value;
	int ret;

	json_object_update(wanted, settings);
	ret = server_from_json(wanted, &made, err);
	if (ret)
		return ret;
	after = server_to_json(made);
	json_object_foreach (settings, key, value)
		if (!json_equal(json_object_get(before, key), json_object_get(after, key)))
			return error_set(
				err, -EBUSY,
				"server \"%s\": its %s cannot be changed while it is attached: detach it first",
				server->name, key);
	return 0;
}
