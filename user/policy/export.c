/* SPDX-License-Identifier: GPL-2.0 */
/* A server as documents: what applied to a bare one makes it what it is. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/names.h"
#include "policy/objects.h"

/* What of the server's JSON is no policy's. */
static const char *const not_exported[] = { "name",	   "netns_cookie",    "paused",	      "draining",
					    "last_number", "priority_levels", "flow_schemas", "groups" };

/* What makes no difference is left out. */
static void drop_empty(json_t *spec)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(spec, next, key, value)
	{
		bool empty = json_is_null(value) || (json_is_array(value) && !json_array_size(value)) ||
			     json_is_false(value) || (json_is_integer(value) && !json_integer_value(value));

		if (json_is_object(value))
			drop_empty(value);
		else if (empty && strcmp(key, "exempt_groups") != 0)
			json_object_del(spec, key);
	}
}

/* Limits of Configuration objects are theirs. */
static bool of_events(const struct server *server, const char *name)
{
	json_t *object, *limit;
	size_t i, j;

	json_array_foreach (policy_objects(server), i, object) {
		json_t *document = json_object_get(object, "document");
		CLEANUP_JSON json_t *limits = policy_events_limits(document);

		if (strcmp(json_string_value(json_object_get(document, "kind")) ?: "", "Configuration") != 0)
			continue;
		json_array_foreach (limits, j, limit)
			if (strcmp(json_string_value(json_object_get(limit, "name")), name) == 0)
				return true;
	}
	return false;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp((*(const struct limit *const *)a)->name, (*(const struct limit *const *)b)->name);
}

/* A rate is a text where every digit counts; a whole one is a number just as well. */
static void rate_as_number(json_t *amount)
{
	const char *qps = json_string_value(json_object_get(amount, "qps"));

	if (qps && !strchr(qps, '.'))
		json_object_set_new(amount, "qps", json_integer(strtoll(qps, NULL, 10)));
}

static json_t *exported_limit(const struct limit *limit, bool overrides)
{
	json_t *json = overrides ? limit_to_json(limit) : limit_settings_to_json(limit), *override;
	size_t i;

	json_object_del(json, "number");
	json_object_del(json, "file");
	if (!limit->keys)
		json_object_del(json, "keys");
	rate_as_number(json);
	json_array_foreach (json_object_get(json, "overrides"), i, override)
		rate_as_number(override);
	return json;
}

/* Sorted by name, so that the order of commands does not matter. */
static json_t *exported_limits(const struct server *server, bool overrides)
{
	CLEANUP_FREE const struct limit **sorted = calloc(server->n_limits + 1, sizeof(*sorted));
	json_t *limits = json_array();

	for (size_t i = 0; sorted && i < server->n_limits; i++)
		sorted[i] = &server->limits[i];
	if (sorted)
		qsort(sorted, server->n_limits, sizeof(*sorted), compare_names);
	for (size_t i = 0; sorted && i < server->n_limits; i++)
		if (!of_events(server, sorted[i]->name))
			json_array_append_new(limits, exported_limit(sorted[i], overrides));
	return limits;
}

/* As its own Throttle says it: what others say is in their documents, and what a command has paused is in none. */
static void copy_own(const struct server *server, json_t *spec)
{
	static const char *const keys[] = { "paused", "priorityLevels", "flowSchemas" };
	json_t *throttle = policy_object_document(policy_throttle_of(policy_objects(server)));

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		json_t *value = json_object_get(json_object_get(throttle, "spec"), keys[i]);

		if (value)
			json_object_set(spec, keys[i], value);
	}
}

static json_t *exported_throttle(const struct server *server, bool overrides)
{
	CLEANUP_JSON json_t *json = server_settings_to_json(server);
	json_t *spec;

	for (size_t i = 0; i < sizeof(not_exported) / sizeof(*not_exported); i++)
		json_object_del(json, not_exported[i]);
	json_object_set_new(json, "limits", exported_limits(server, overrides));
	drop_empty(json);
	spec = policy_yaml_names(json);
	copy_own(server, spec);
	return json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", "weir/v1", "kind", "Throttle", "metadata", "name",
			 server->name, "spec", spec);
}

static json_t *export(const struct server *server, bool overrides)
{
	json_t *documents = json_pack("[o]", exported_throttle(server, overrides)), *object;
	size_t i;

	json_array_foreach (policy_objects(server), i, object) {
		json_t *document = json_object_get(object, "document");

		if (strcmp(json_string_value(json_object_get(document, "kind")) ?: "", "Throttle") != 0)
			json_array_append(documents, document);
	}
	return documents;
}

json_t *policy_export(const struct server *server)
{
	return export(server, true);
}

json_t *policy_export_settings(const struct server *server)
{
	return export(server, false);
}

bool policy_same_overrides(const struct server *a, const struct server *b)
{
	size_t n_a = 0, n_b = 0;

	for (size_t i = 0; i < a->n_limits; i++) {
		const struct limit *limit = &a->limits[i], *other = server_limit(b, limit->name);

		if (limit->n_overrides && (!other || !limit_overrides_equal(limit, other)))
			return false;
		n_a += limit->n_overrides;
	}
	for (size_t i = 0; i < b->n_limits; i++)
		n_b += b->limits[i].n_overrides;
	return n_a == n_b;
}
