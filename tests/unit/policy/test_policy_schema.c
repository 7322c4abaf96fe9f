/* SPDX-License-Identifier: GPL-2.0 */
/* The JSON Schema of policy files says what the parser does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy_scene.h"

/* Puts a value where the path says, in objects and one-item lists; returns the problems that the parser has with it. */
static bool has_problem(const char *kind, const char *version, const char *path, json_t *value)
{
	CLEANUP_JSON json_t *document = json_pack("{s:s, s:s}", "kind", kind, "apiVersion", version);
	CLEANUP_FREE char *copy = strdup(path), *text = NULL, *expected = NULL;
	CLEANUP_POLICY struct policy policy = { 0 };
	json_t *at = document;
	char *rest = copy, *key;

	while ((key = strsep(&rest, "."))) {
		char *list = strstr(key, "[0]");
		json_t *next = rest ? json_object() : json_incref(value);

		if (list)
			*list = '\0';
		json_object_set_new(at, key, list ? json_pack("[o]", next) : next);
		at = next;
	}
	text = json_dumps(document, 0);
	assert_true(asprintf(&expected, "$.%s", path) > 0);
	policy_read_as_file(&policy, text);
	for (size_t i = 0; i < policy.problems.n; i++)
		if (strcmp(policy.problems.items[i].path, expected) == 0)
			return true;
	return false;
}

struct walk {
	const char *kind, *version;
	unsigned int fields;
};

static void expect(const struct walk *walk, const char *path, json_t *value, bool problem)
{
	if (has_problem(walk->kind, walk->version, path, value) != problem)
		fail_msg("%s %s: the parser %s a value that the schema %s", walk->kind, path,
			 problem ? "accepts" : "refuses", problem ? "refuses" : "accepts");
	json_decref(value);
}

static void walk_object(struct walk *walk, json_t *schema, const char *path);

static void walk_value(struct walk *walk, json_t *schema, const char *path)
{
	json_t *type = json_object_get(schema, "type"), *words = json_object_get(schema, "enum"), *word;
	json_t *min = json_object_get(schema, "minimum"), *max = json_object_get(schema, "maximum");
	const char *name = json_string_value(type) ?: "";
	CLEANUP_FREE char *item = NULL;
	size_t i;

	walk->fields++;
	if (!type && !words) { /* ignored */
		expect(walk, path, json_pack("[{s:i}]", "any", 3), false);
		return;
	}
	if (strcmp(name, "object") != 0)
		expect(walk, path, json_pack("{s:[i]}", "nosuch", 1), true);
	if (strcmp(name, "array") == 0) {
		assert_true(asprintf(&item, "%s[0]", path) > 0);
		walk_value(walk, json_object_get(schema, "items"), item);
	} else if (strcmp(name, "object") == 0) {
		expect(walk, path, json_integer(3), true);
		walk_object(walk, schema, path);
	} else if (strcmp(name, "integer") == 0) {
		expect(walk, path, json_integer(json_integer_value(min)), false);
		expect(walk, path, json_integer(json_integer_value(min) - 1), true);
		expect(walk, path, json_integer(json_integer_value(max)), false);
		expect(walk, path, json_integer(json_integer_value(max) + 1), true);
	} else if (json_is_array(type)) { /* a rate */
		expect(walk, path, json_string("0.25"), false);
		expect(walk, path, json_string("-1"), true);
		expect(walk, path, json_integer(json_integer_value(max) + 1), true);
	}
	json_array_foreach (words, i, word)
		expect(walk, path, json_incref(word), false);
	if (words)
		expect(walk, path, json_string("nosuch"), true);
}

static void walk_object(struct walk *walk, json_t *schema, const char *path)
{
	const char *key;
	json_t *value;

	json_object_foreach (json_object_get(schema, "properties"), key, value) {
		CLEANUP_FREE char *below = NULL;

		if (!*path && (strcmp(key, "kind") == 0 || strcmp(key, "apiVersion") == 0))
			continue;
		assert_true(asprintf(&below, "%s%s%s", path, *path ? "." : "", key) > 0);
		walk_value(walk, value, below);
	}
	if (*path) {
		CLEANUP_FREE char *unknown = NULL;

		assert_true(asprintf(&unknown, "%s.nosuch", path) > 0);
		expect(walk, unknown, json_integer(1), true);
	}
	if (*path && json_object_get(schema, "required"))
		expect(walk, path, json_object(), true);
}

/* Any kind that ends with it, and what stands beside its items is ignored. */
static void walk_list(json_t *schema)
{
	json_t *properties = json_object_get(schema, "properties"), *kind = json_object_get(properties, "kind");
	json_t *items = json_object_get(properties, "items");

	assert_string_equal(json_string_value(json_object_get(kind, "pattern")), "List$");
	assert_string_equal(json_string_value(json_object_get(json_object_get(items, "items"), "$ref")), "#");
	assert_null(json_object_get(schema, "additionalProperties"));
	PROBLEMS("{kind: FlowSchemaList, apiVersion: v1, metadata: {resourceVersion: ''}, items: []}");
	PROBLEMS("{kind: List, items: 3}", "1:21 $.items: must be a list");
	PROBLEMS("{kind: Listing, items: []}", "1:1 $: apiVersion is missing");
	PROBLEMS("{kind: List, items: [{kind: Nonsense, apiVersion: v1}]}",
		 "1:29 $.items[0].kind: \"Nonsense\" is not a kind");
}

static void schema_is_the_parser(void **state)
{
	CLEANUP_JSON json_t *schema = policy_schema();
	json_t *kind;
	size_t i;

	(void)state;
	json_array_foreach (json_object_get(schema, "oneOf"), i, kind) {
		json_t *properties = json_object_get(kind, "properties");

		if (strcmp(json_string_value(json_object_get(kind, "title")), "List") == 0) {
			walk_list(kind);
			continue;
		}

		struct walk walk = {
			.kind = json_string_value(json_object_get(json_object_get(properties, "kind"), "const")),
			.version = json_string_value(
				json_array_get(json_object_get(json_object_get(properties, "apiVersion"), "enum"), 0)),
		};

		assert_true(json_is_false(json_object_get(kind, "additionalProperties")));
		walk_object(&walk, kind, "");
		assert_true(walk.fields >= 3);
	}
	assert_int_equal(i, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(schema_is_the_parser) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
