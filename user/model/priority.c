/* SPDX-License-Identifier: GPL-2.0 */
#include "model/priority.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weir/limit/width.h"

#include "base/json_read.h"

#define NAME_MAX_BYTES 253
#define PRECEDENCE 1000 /* where a schema says none */

static const char *const distinguishers[FLOW_DISTINGUISHERS] = {
	[FLOW_BY_USER] = "ByUser",
	[FLOW_BY_NAMESPACE] = "ByNamespace",
};

static void schema_clear(struct flow_schema *schema)
{
	rule_list_clear(schema->rules, schema->n_rules);
	free(schema->level);
	free(schema->name);
	*schema = (struct flow_schema){ 0 };
}

void priorities_clear(struct priorities *priorities)
{
	for (size_t i = 0; i < priorities->n_levels; i++)
		free(priorities->levels[i].name);
	for (size_t i = 0; i < priorities->n_schemas; i++)
		schema_clear(&priorities->schemas[i]);
	free(priorities->levels);
	free(priorities->schemas);
	*priorities = (struct priorities){ 0 };
}

struct priority_level *priority_level(const struct priorities *priorities, const char *name)
{
	for (size_t i = 0; i < priorities->n_levels; i++)
		if (strcmp(priorities->levels[i].name, name) == 0)
			return &priorities->levels[i];
	return NULL;
}

__u32 priority_seats(const struct priorities *priorities, const struct priority_level *level, __u32 concurrency)
{
	__u64 sum = 0;

	for (size_t i = 0; i < priorities->n_levels; i++)
		sum += priorities->levels[i].exempt ? 0 : priorities->levels[i].shares;
	return sum ? ((__u64)concurrency * level->shares + sum - 1) / sum : 0;
}

/* A LIST that is wider than its level takes all of it. */
static json_int_t lists_at_once(__u32 seats, __u32 width)
{
	return seats && seats < width ? 1 : seats / width;
}

json_t *priority_seats_to_json(const struct priorities *priorities, __u32 concurrency, __u32 list_width)
{
	json_t *array = json_array();

	for (size_t i = 0; i < priorities->n_levels; i++) {
		const struct priority_level *level = &priorities->levels[i];
		__u32 seats = priority_seats(priorities, level, concurrency);

		if (!level->exempt)
			json_array_append_new(array,
					      json_pack("{s:s, s:I, s:I, s:I, s:I}", "level", level->name, "seats",
							(json_int_t)seats, "of", (json_int_t)concurrency, "lists",
							lists_at_once(seats, list_width ?: 1), "wide_lists",
							lists_at_once(seats, list_width ?: WEIR_SEATS_MAX)));
	}
	return array;
}

/* --- JSON */

static json_t *level_to_json(const struct priority_level *level)
{
	json_t *json = json_pack("{s:s}", "name", level->name);

	if (level->exempt) {
		json_object_set_new(json, "exempt", json_true());
		return json;
	}
	json_object_set_new(json, "shares", json_integer(level->shares));
	json_object_set_new(json, "number", json_integer(level->number));
	return json;
}

json_t *priority_levels_to_json(const struct priorities *priorities)
{
	json_t *array = json_array();

	for (size_t i = 0; i < priorities->n_levels; i++)
		json_array_append_new(array, level_to_json(&priorities->levels[i]));
	return array;
}

static json_t *schema_to_json(const struct flow_schema *schema)
{
	json_t *json = json_pack("{s:s, s:s, s:I}", "name", schema->name, "level", schema->level, "precedence",
				 (json_int_t)schema->precedence);

	if (schema->distinguisher)
		json_object_set_new(json, "distinguisher", json_string(distinguishers[schema->distinguisher]));
	json_object_set_new(json, "rules", rule_list_to_json(schema->rules, schema->n_rules));
	return json;
}

json_t *flow_schemas_to_json(const struct priorities *priorities)
{
	json_t *array = json_array();

	for (size_t i = 0; i < priorities->n_schemas; i++)
		json_array_append_new(array, schema_to_json(&priorities->schemas[i]));
	return array;
}

/* As Kubernetes names objects: a DNS subdomain, which is more than a path's segment that it must be as well. */
static int name_from_json(json_t *json, const char *what, char **out, struct error *err)
{
	const char *text = json_string_value(json);

	if (!text)
		return error_set(err, -EINVAL, "%s must be an object with a name", what);
	if (!*text || strlen(text) > NAME_MAX_BYTES ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.:") != strlen(text))
		return error_set(err, -EINVAL, "\"%.300s\" is not a name (a-z, 0-9, -, . and :, at most %d characters)",
				 text, NAME_MAX_BYTES);
	return text_from_json(json, "name", out, err);
}

static int level_members(json_t *json, struct priority_level *level, struct error *err)
{
	static const char *const members[] = { "name", "exempt", "shares", "number", NULL };
	json_t *shares = json_object_get(json, "shares");
	int ret;

	ret = members_check(json, "a priority level", members, err)				     ?:
		      flag_from_json(json_object_get(json, "exempt"), "exempt", &level->exempt, err) ?:
		      number_from_json(shares, "shares", PRIORITY_SHARES_MAX, &level->shares, err)   ?:
		      number_from_json(json_object_get(json, "number"), "number", UINT32_MAX, &level->number, err);
	if (!ret && level->exempt == (shares != NULL))
		ret = error_set(err, -EINVAL, "shares: %s",
				shares ? "an exempt level has none" : "missing: only an exempt level has none");
	return ret;
}

static int level_item(json_t *json, void *place, struct error *err)
{
	struct priority_level *level = place;
	struct error why = { 0 };
	int ret;

	ret = name_from_json(json_object_get(json, "name"), "a priority level", &level->name, err);
	if (ret)
		return ret;
	ret = level_members(json, level, &why);
	if (ret) {
		error_set(err, ret, "\"%s\": %s", level->name, why.text);
		free(level->name);
	}
	return ret;
}

static int distinguisher_read(json_t *json, enum flow_distinguisher *out, struct error *err)
{
	unsigned int found = words_find(distinguishers, FLOW_DISTINGUISHERS, json_string_value(json) ?: "");

	if (!json || json_is_null(json))
		return 0;
	if (found == FLOW_DISTINGUISHERS)
		return error_set(err, -EINVAL, "distinguisher: must be \"ByUser\" or \"ByNamespace\"");
	*out = found;
	return 0;
}

static int schema_members(json_t *json, struct flow_schema *schema, struct error *err)
{
	static const char *const members[] = { "name", "level", "precedence", "distinguisher", "rules", NULL };
	int ret;

	schema->precedence = PRECEDENCE;
	ret = members_check(json, "a flow schema", members, err)				   ?:
		      text_from_json(json_object_get(json, "level"), "level", &schema->level, err) ?:
		      number_from_json(json_object_get(json, "precedence"), "precedence", PRIORITY_PRECEDENCE_MAX, &schema->precedence, err) ?:
		      distinguisher_read(json_object_get(json, "distinguisher"), &schema->distinguisher, err) ?:
		      rule_list_from_json(json_object_get(json, "rules"), "rules", &schema->rules, &schema->n_rules,
					  err);
	if (!ret && schema->precedence == 0)
		ret = error_set(err, -EINVAL, "precedence: must be 1 to %d", PRIORITY_PRECEDENCE_MAX);
	if (!ret && !schema->level)
		ret = error_set(err, -EINVAL, "its level is missing");
	return ret;
}

static int schema_item(json_t *json, void *place, struct error *err)
{
	struct flow_schema *schema = place;
	struct error why = { 0 };
	int ret;

	ret = name_from_json(json_object_get(json, "name"), "a flow schema", &schema->name, err);
	if (ret)
		return ret;
	ret = schema_members(json, schema, &why);
	if (ret) {
		error_set(err, ret, "\"%s\": %s", schema->name, why.text);
		schema_clear(schema);
	}
	return ret;
}

/* --- the whole */

static int compare_schemas(const void *a, const void *b)
{
	const struct flow_schema *first = a, *second = b;

	return (int)first->precedence - (int)second->precedence ?: strcmp(first->name, second->name);
}

static int check_levels(const struct priorities *priorities, struct error *err)
{
	for (size_t i = 0; i < priorities->n_levels; i++)
		if (priority_level(priorities, priorities->levels[i].name) != &priorities->levels[i])
			return error_set_field(err, -EINVAL, "priority_levels", NULL, "\"%s\" is there twice",
					       priorities->levels[i].name);
	return 0;
}

static int check_schemas(const struct priorities *priorities, struct error *err)
{
	for (size_t i = 0; i < priorities->n_schemas; i++) {
		const struct flow_schema *schema = &priorities->schemas[i];

		if (!priority_level(priorities, schema->level))
			return error_set_field(err, -EINVAL, "flow_schemas", schema->name,
					       "there is no priority level \"%s\"", schema->level);
		for (size_t j = 0; j < i; j++)
			if (strcmp(priorities->schemas[j].name, schema->name) == 0)
				return error_set_field(err, -EINVAL, "flow_schemas", NULL, "\"%s\" is there twice",
						       schema->name);
	}
	return 0;
}

int priorities_from_json(json_t *levels, json_t *schemas, struct priorities *out, struct error *err)
{
	int ret;

	ret = list_from_json(levels, "priority_levels", level_item, sizeof(*out->levels), &out->levels, &out->n_levels, err) ?:
		      list_from_json(schemas, "flow_schemas", schema_item, sizeof(*out->schemas), &out->schemas,
				     &out->n_schemas, err);
	if (ret)
		return ret;
	if (out->n_schemas)
		qsort(out->schemas, out->n_schemas, sizeof(*out->schemas), compare_schemas);
	return check_levels(out, err) ?: check_schemas(out, err);
}
