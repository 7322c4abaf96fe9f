/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server and the objects that are applied to it. The server keeps, as `policy`, the objects as they were given, and what it
 * had been told beside them (base); its limits, levels and exemptions are made of both, anew each time.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_list.h"
#include "base/json_read.h"
#include "model/max_in_flight.h"
#include "policy/objects.h"
#include "rules/server_rules.h"

/* What an object may say of a server that is attached, beside its limits. */
static const char *const changing[] = { "concurrency", "dry_run", "exempt", "list_object_bytes",
					"list_width",  "paused",  NULL };

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
	json_t *kept = json_object_get(server->policy, "base"), *base = json_object();

	for (size_t i = 0; i < CHANGING; i++)
		json_object_set(base, changing[i],
				json_object_get(kept, changing[i]) ?: json_object_get(json, changing[i]));
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
			"limit \"%s\" of server \"%s\" was set on the command line and differs from %s: delete it first "
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

/* What a server is being made of. */
struct making {
	const struct server *server; /* as it was */
	json_t *json;		     /* as it will be */
	json_t *sources;	     /* {"priority level NAME": file} */
};

/* Takes over the item, which has a name that no other of the list may have. */
static int add_named(struct making *m, const char *list, const char *what, json_t *item, const char *source,
		     struct error *err)
{
	CLEANUP_JSON json_t *owned = item;
	const char *name = json_string_value(json_object_get(item, "name")) ?: "", *other;
	char key[SLOT_NAME_SIZE + 32];

	snprintf(key, sizeof(key), "%s %s", what, name);
	other = json_string_value(json_object_get(m->sources, key));
	if (other)
		return error_set(err, -EEXIST, "%s of server \"%s\" is in %s and in %s", key, m->server->name, other,
				 source);
	json_object_set_new(m->sources, key, json_string(source));
	return json_array_append(json_object_get(m->json, list), item);
}

static int add_level(struct making *m, json_t *level, const char *source, struct error *err)
{
	return add_named(m, "priority_levels", "priority level", level, source, err);
}

static int add_schema(struct making *m, json_t *schema, const char *source, struct error *err)
{
	return add_named(m, "flow_schemas", "flow schema", schema, source, err);
}

static int add_max_in_flight(struct making *m, json_t *given, const char *source, struct error *err)
{
	static const char *const keys[] = { "mutating", "read_only" };
	int ret = 0;

	for (int read_only = 0; read_only < 2 && !ret; read_only++) {
		json_int_t places = json_integer_value(json_object_get(given, keys[read_only]));
		CLEANUP_JSON json_t *limit = places ? max_in_flight_limit(read_only, places) : NULL;

		if (limit)
			ret = add_limit(json_object_get(m->json, "limits"), limit, source, m->server, err);
	}
	return ret;
}

/* Settings in the place of those of before; but who paused the server by command goes on pausing it. */
static void set_changing(json_t *json, json_t *spec)
{
	for (size_t i = 0; i < CHANGING; i++) {
		json_t *value = json_object_get(spec, changing[i]);

		if (value && (strcmp(changing[i], "paused") != 0 || json_is_true(value)))
			json_object_set(json, changing[i], value);
	}
}

static int add_throttle(struct making *m, json_t *document, const char *source, struct error *err)
{
	CLEANUP_JSON json_t *spec = policy_own_names(json_object_get(document, "spec"));
	CLEANUP_JSON json_t *exempt = json_deep_copy(json_object_get(m->json, "exempt"));
	json_t *item;
	size_t i;
	int ret = 0;

	set_changing(m->json, spec);
	json_object_set(m->json, "exempt", exempt);
	json_array_foreach (json_object_get(spec, "exempt"), i, item)
		ret = ret ?: add_exemption(exempt, item, err);
	json_array_foreach (json_object_get(spec, "priority_levels"), i, item)
		ret = ret ?: add_level(m, json_incref(item), source, err);
	json_array_foreach (json_object_get(spec, "flow_schemas"), i, item)
		ret = ret ?: add_schema(m, json_incref(item), source, err);
	return ret										 ?:
		       add_max_in_flight(m, json_object_get(spec, "max_in_flight"), source, err) ?:
		       add_limits(json_object_get(m->json, "limits"), json_object_get(spec, "limits"), source,
				  m->server, err);
}

static int add_object(struct making *m, json_t *object, struct error *err)
{
	json_t *document = policy_object_document(object);
	const char *source = policy_object_source(object), *name;
	const struct policy_kind *kind = policy_document_kind(document, &name);
	CLEANUP_JSON json_t *limits = NULL;

	if (!kind || !source)
		return error_set(err, -EINVAL, "policy: an object must have a source and a document of a known kind");
	switch (kind->type) {
	case POLICY_THROTTLE:
		return add_throttle(m, document, source, err);
	case POLICY_EVENT_RATE_LIMIT:
		limits = policy_events_limits(document);
		return add_limits(json_object_get(m->json, "limits"), limits, source, m->server, err);
	case POLICY_FLOW_SCHEMA:
		return add_schema(m, policy_flow_schema(document), source, err);
	case POLICY_PRIORITY_LEVEL:
		return add_level(m, policy_level(document), source, err);
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
	CLEANUP_JSON json_t *json = bare(server), *sources = json_object();
	struct making m = { server, json, sources };
	CLEANUP_SERVER struct server *made = NULL;
	json_t *object;
	size_t i;
	int ret = 0;

	json_array_foreach (objects, i, object)
		ret = ret ?: add_object(&m, object, err);
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
