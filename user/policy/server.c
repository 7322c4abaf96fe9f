/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server and the objects that are applied to it. The server keeps, as `policy`, the objects as they were given, and what it
 * had been told beside them (base); its limits, levels and exemptions are made of both, anew each time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_list.h"
#include "model/max_in_flight.h"
#include "policy/names.h"
#include "policy/objects.h"
#include "rules/server_rules.h"

json_t *policy_objects(const struct server *server)
{
	return json_object_get(server->policy, "objects");
}

bool policy_attached(const struct server *server)
{
	return json_is_true(json_object_get(server->policy, "attached"));
}

/* What a server is being made of. */
struct making {
	const struct server *server; /* as it was */
	json_t *json;		     /* as it will be, but for limits */
	struct server *made;	     /* of which there are only the limits yet */
	json_t *files;		     /* {"priority level NAME": file} */
};

/* --- limits */

/* Those that commands have set. */
static int keep_limits(struct making *m, struct error *err)
{
	for (size_t i = 0; i < m->server->n_limits; i++) {
		CLEANUP_LIMIT struct limit limit = { 0 };

		if (m->server->limits[i].file)
			continue;
		if (limit_copy(&m->server->limits[i], &limit) || server_limit_add(m->made, &limit))
			return error_set(err, -ENOMEM, "out of memory");
		limit = (struct limit){ 0 };
	}
	return 0;
}

/* Buckets go on where they mean the same. */
static bool same_buckets(const struct limit *a, const struct limit *b)
{
	return a->key == b->key && a->kind == b->kind && a->keys == b->keys;
}

/* The caller clears *limit, on failure too. */
static int limit_read(const struct making *m, json_t *given, const char *file, struct limit *limit, struct error *err)
{
	const struct limit *before;
	int ret = limit_from_json(given, limit, err);

	if (ret)
		return ret;
	before = server_limit(m->server, limit->name);
	if (before && before->number && same_buckets(before, limit))
		limit->number = before->number;
	free(limit->file);
	limit->file = strdup(file);
	return limit->file ? limit_check_amounts(limit, err) : error_set(err, -ENOMEM, "out of memory");
}

/* One name that is said twice is one limit only if both say the same. */
static int add_limit(struct making *m, json_t *given, const char *file, struct error *err)
{
	CLEANUP_LIMIT struct limit limit = { 0 };
	struct limit *there;
	int ret = limit_read(m, given, file, &limit, err);

	if (ret)
		return ret;
	there = server_limit(m->made, limit.name);
	if (there && there->file)
		return error_set(err, -EEXIST, "limit \"%s\" of server \"%s\" is in %s and in %s", limit.name,
				 m->server->name, there->file, file);
	if (there && !limit_equal(there, &limit))
		return error_set(
			err, -EEXIST,
			"limit \"%s\" of server \"%s\" was set on the command line and differs from %s: delete it first "
			"(weir limit delete %s)",
			limit.name, m->server->name, file, limit.name);
	if (there)
		server_limit_remove(m->made, there);
	if (server_limit_add(m->made, &limit))
		return error_set(err, -ENOMEM, "out of memory");
	limit = (struct limit){ 0 };
	return 0;
}

static int add_limits(struct making *m, json_t *given, const char *file, struct error *err)
{
	json_t *limit;
	size_t i;
	int ret = 0;

	json_array_foreach (given, i, limit)
		ret = ret ?: add_limit(m, limit, file, err);
	return ret;
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

/* Takes over the item, which has a name that no other of the list may have. */
static int add_named(struct making *m, const char *list, const char *what, json_t *item, const char *file,
		     struct error *err)
{
	CLEANUP_JSON json_t *owned = item;
	const char *name = json_string_value(json_object_get(item, "name")) ?: "", *other;
	char key[SLOT_NAME_SIZE + 32];

	snprintf(key, sizeof(key), "%s %s", what, name);
	other = json_string_value(json_object_get(m->files, key));
	if (other)
		return error_set(err, -EEXIST, "%s of server \"%s\" is in %s and in %s", key, m->server->name, other,
				 file);
	json_object_set_new(m->files, key, json_string(file));
	return json_array_append(json_object_get(m->json, list), item);
}

static int add_level(struct making *m, json_t *level, const char *file, struct error *err)
{
	return add_named(m, "priority_levels", "priority level", level, file, err);
}

static int add_schema(struct making *m, json_t *schema, const char *file, struct error *err)
{
	return add_named(m, "flow_schemas", "flow schema", schema, file, err);
}

static int add_max_in_flight(struct making *m, json_t *given, const char *file, struct error *err)
{
	static const char *const keys[] = { "mutating", "read_only" };
	int ret = 0;

	for (int read_only = 0; read_only < 2 && !ret; read_only++) {
		json_int_t seats = json_integer_value(json_object_get(given, keys[read_only]));
		CLEANUP_JSON json_t *limit = seats ? max_in_flight_limit(read_only, seats) : NULL;

		if (limit)
			ret = add_limit(m, limit, file, err);
	}
	return ret;
}

static int add_throttle(struct making *m, json_t *document, const char *file, struct error *err)
{
	CLEANUP_JSON json_t *spec = policy_own_names(json_object_get(document, "spec"));
	CLEANUP_JSON json_t *exempt = json_deep_copy(json_object_get(m->json, "exempt"));
	json_t *item;
	size_t i;
	int ret = 0;

	policy_settings_set(m->json, spec);
	json_object_set(m->json, "exempt", exempt);
	json_array_foreach (json_object_get(spec, "exempt"), i, item)
		ret = ret ?: add_exemption(exempt, item, err);
	json_array_foreach (json_object_get(spec, "priority_levels"), i, item)
		ret = ret ?: add_level(m, json_copy(item), file, err); /* it gets a number */
	json_array_foreach (json_object_get(spec, "flow_schemas"), i, item)
		ret = ret ?: add_schema(m, json_incref(item), file, err);
	return ret									       ?:
		       add_max_in_flight(m, json_object_get(spec, "max_in_flight"), file, err) ?:
		       add_limits(m, json_object_get(spec, "limits"), file, err);
}

static int add_object(struct making *m, json_t *object, struct error *err)
{
	json_t *document = policy_object_document(object);
	const char *file = policy_object_file(object), *name;
	const struct policy_kind *kind = policy_document_kind(document, &name);
	CLEANUP_JSON json_t *limits = NULL;

	if (!kind || !file)
		return error_set(err, -EINVAL, "policy: an object must have a file and a document of a known kind");
	switch (kind->id) {
	case POLICY_THROTTLE:
		return add_throttle(m, document, file, err);
	case POLICY_EVENT_RATE_LIMIT:
		limits = policy_events_limits(document);
		return add_limits(m, limits, file, err);
	case POLICY_FLOW_SCHEMA:
		return add_schema(m, policy_flow_schema(document), file, err);
	case POLICY_PRIORITY_LEVEL:
		return add_level(m, policy_level(document), file, err);
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

static int add_objects(struct making *m, json_t *objects, struct error *err)
{
	json_t *object;
	size_t i;
	int ret = keep_limits(m, err);

	json_array_foreach (objects, i, object)
		ret = ret ?: add_object(m, object, err);
	if (!ret)
		add_levels(m->server, m->json);
	return ret;
}

static int check_made(struct server *server, struct error *err)
{
	CLEANUP_RULES struct rules *rules = NULL;
	int ret = server_check_limits(server, err);

	if (!ret)
		ret = server_give_numbers(server, err) ?: server_name_groups(server, err);
	return ret < 0 ? ret : server_rules(server, NULL, &rules, err);
}

static void move_limits(struct server *from, struct server *to)
{
	to->limits = from->limits;
	to->n_limits = from->n_limits;
	from->limits = NULL;
	from->n_limits = 0;
}

int policy_server(const struct server *server, json_t *objects, struct server **out, struct error *err)
{
	CLEANUP_JSON json_t *base = policy_base(server), *json = policy_bare(server, base, objects);
	CLEANUP_JSON json_t *files = json_object();
	CLEANUP_SERVER struct server *limits = calloc(1, sizeof(*limits)), *made = NULL;
	struct making m = { server, json, limits, files };
	int ret;

	if (!limits)
		return error_set(err, -ENOMEM, "out of memory");
	ret = add_objects(&m, objects, err) ?: server_from_json(json, &made, err);
	if (ret)
		return ret;
	move_limits(limits, made);
	ret = check_made(made, err);
	if (ret)
		return ret;
	if (json_array_size(objects))
		made->policy = json_pack("{s:O, s:O, s:O*}", "objects", objects, "base", base, "attached",
					 json_object_get(server->policy, "attached"));
	/* Until it is detached, as it is without its Throttle: whoever comes next, if that was not done, knows what it is. */
	else if (policy_attached(server))
		made->policy = json_pack("{s:b}", "attached", 1);
	*out = made;
	made = NULL;
	return 0;
}
