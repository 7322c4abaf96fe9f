/* SPDX-License-Identifier: GPL-2.0 */
/* The tables of the documents as a JSON Schema (2020-12). */
#include "base/rate.h"
#include "policy/kinds.h"
#include "policy/shape.h"

static json_t *shape_schema(const struct shape *shape);

static json_t *text_schema(const struct field *field)
{
	json_t *schema = json_pack("{s:s}", "type", "string"), *words;

	if (!field->words)
		return schema;
	words = json_array();
	for (const char *const *word = field->words; *word; word++)
		json_array_append_new(words, json_string(*word));
	json_object_set_new(schema, "enum", words);
	return schema;
}

static json_t *value_schema(const struct field *field)
{
	switch (field->type) {
	case FIELD_TEXT:
		return text_schema(field);
	case FIELD_NUMBER:
		return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)field->min, "maximum",
				 (json_int_t)field->max);
	case FIELD_RATE:
		return json_pack("{s:[s, s], s:i, s:I, s:s}", "type", "number", "string", "minimum", 0, "maximum",
				 (json_int_t)WEIR_QPS_MAX, "pattern", "^[0-9]+(\\.[0-9]{1,9})?[kM]?(/[smh])?$");
	case FIELD_FLAG:
		return json_pack("{s:s}", "type", "boolean");
	case FIELD_OBJECT:
		return shape_schema(field->shape);
	case FIELD_IGNORED:
		break;
	}
	return json_object();
}

static json_t *field_schema(const struct field *field)
{
	json_t *schema = value_schema(field);

	if (field->list)
		schema = json_pack("{s:s, s:o}", "type", "array", "items", schema);
	if (field->list && field->required)
		json_object_set_new(schema, "minItems", json_integer(1));
	if (field->list && field->most)
		json_object_set_new(schema, "maxItems", json_integer(field->most));
	if (field->help)
		json_object_set_new(schema, "description", json_string(field->help));
	return schema;
}

/* A new reference. */
static json_t *shape_schema(const struct shape *shape)
{
	json_t *properties = json_object(), *required = json_array();
	json_t *schema = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
				   "additionalProperties", 0);

	for (const struct field *field = shape->fields; field->name; field++) {
		json_object_set_new(properties, field->name, field_schema(field));
		if (field->required)
			json_array_append_new(required, json_string(field->name));
	}
	if (json_array_size(required))
		json_object_set(schema, "required", required);
	json_decref(required);
	return schema;
}

/* A document of this kind: its first two fields have one value each. */
static json_t *kind_schema(const struct policy_kind *kind)
{
	json_t *schema = shape_schema(kind->shape), *properties = json_object_get(schema, "properties");
	json_t *versions = json_array();

	for (const char *const *version = kind->versions; *version; version++)
		json_array_append_new(versions, json_string(*version));
	json_object_set_new(properties, "apiVersion", json_pack("{s:o}", "enum", versions));
	json_object_set_new(properties, "kind", json_pack("{s:s}", "const", kind->kind));
	json_object_set_new(schema, "title", json_string(kind->kind));
	return schema;
}

/* As `kubectl get -o yaml` prints several objects; what else stands beside its items is ignored. */
static json_t *list_schema(void)
{
	return json_pack("{s:s, s:s, s:{s:{s:s, s:s}, s:{s:s, s:{s:s}}}, s:[s, s]}", "title", "List", "type", "object",
			 "properties", "kind", "type", "string", "pattern", "List$", "items", "type", "array", "items",
			 "$ref", "#", "required", "kind", "items");
}

json_t *policy_schema(void)
{
	json_t *kinds = json_array();

	for (const struct policy_kind *kind = policy_kinds; kind->kind; kind++)
		json_array_append_new(kinds, kind_schema(kind));
	json_array_append_new(kinds, list_schema());
	return json_pack("{s:s, s:s, s:o}", "$schema", "https://json-schema.org/draft/2020-12/schema", "title",
			 "Policy documents of weir", "oneOf", kinds);
}
