/* SPDX-License-Identifier: GPL-2.0 */
/* YAML as a tree: aliases are what they refer to, and whatever is wrong with them is told; JSON comes to the same tree as its text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/bounds.h"
#include "policy/policy.h"

static void read_all(const char *text, struct documents *out, struct problems *problems)
{
	assert_int_equal(documents_read("a.yaml", text, strlen(text), out, problems), 0);
}

/* Of a text with nothing wrong: its documents as JSON. */
static void check(const char *text, const char *expected)
{
	CLEANUP_JSON json_t *wanted = json_loads(expected, 0, NULL), *got = json_array();
	CLEANUP_DOCUMENTS struct documents documents = { 0 };
	CLEANUP_PROBLEMS struct problems problems = { 0 };
	CLEANUP_FREE char *told = NULL;

	assert_non_null(wanted);
	read_all(text, &documents, &problems);
	assert_int_equal(problems.n, 0);
	for (size_t i = 0; i < documents.n; i++)
		json_array_append_new(got, node_to_json(documents.items[i]));
	told = json_dumps(got, JSON_COMPACT);
	if (!json_equal(got, wanted))
		fail_msg("%s is %s, not %s", text, told, expected);
}

static void values(void **state)
{
	(void)state;
	check("a: 1\nb: [x, 'y', 2.5, ~, true]\n", "[{\"a\":1,\"b\":[\"x\",\"y\",\"2.5\",null,true]}]");
	check("--- {}\n---\n--- []\n...\n--- x\n", "[{},[],\"x\"]");
	check("", "[]");
	check("null: 1\n'': {a: {b: {c: {}}}}\n!!str k: !!map {d: ! e}\n",
	      "[{\"null\":1,\"\":{\"a\":{\"b\":{\"c\":{}}}},\"k\":{\"d\":\"e\"}}]");
}

static void aliases(void **state)
{
	(void)state;
	check("a: &x {b: [1, &y 2]}\nc: *x\nd: [*y, *x, *y]\n",
	      "[{\"a\":{\"b\":[1,2]},\"c\":{\"b\":[1,2]},\"d\":[2,{\"b\":[1,2]},2]}]");
	check("&k a: *k\nb: {*k : 1}\n", "[{\"a\":\"a\",\"b\":{\"a\":1}}]");
	check("- &x []\n- *x\n--- &x 3\n", "[[[],[]],3]");
}

/* first: "line:column text", of which the only problem must have the beginning. */
static void check_wrong(const char *text, const char *first)
{
	CLEANUP_DOCUMENTS struct documents documents = { 0 };
	CLEANUP_PROBLEMS struct problems problems = { 0 };
	CLEANUP_FREE char *said = NULL;

	read_all(text, &documents, &problems);
	assert_int_equal(problems.n, 1);
	assert_true(asprintf(&said, "%u:%u %s", problems.items[0].line, problems.items[0].column,
			     problems.items[0].text) > 0);
	if (strncmp(said, first, strlen(first)) != 0)
		fail_msg("%s: \"%s\", not \"%s\"", text, said, first);
}

static void wrong(void **state)
{
	(void)state;
	check_wrong("a: &x 1\nb: &x 2\n", "2:4 anchor \"x\" is there twice");
	check_wrong("a: *x\n", "1:4 not YAML: there is no anchor \"x\"");
	check_wrong("--- &x 1\n--- *x\n", "2:5 not YAML: there is no anchor \"x\"");
	check_wrong("a: &x [1, *x]\n", "1:11 more than 64 levels");
	check_wrong("a: &x\n  b: {c: *x}\n", "2:10 more than 64 levels");
	check_wrong("[1, 2]: 3\n", "1:1 a key must be a text");
	check_wrong("a: &x {b: 1}\n*x : 2\n", "2:1 a key must be a text");
	check_wrong("\"a\\0b\": 1\n", "1:1 a key must not hold a NUL");
	check_wrong("a: \"b\\0c\"\n", "1:4 a text must not hold a NUL");
	check_wrong("a: {b: 1, c: 2, b: 3}\n", "1:17 \"b\" is there twice: first in line 1");
	check_wrong("a: !yes 1\n", "1:4 tags (\"!yes\")");
	check_wrong("a: [1\n", "2:1 not YAML: ");
	check_wrong("a: 1\n\xef\xbb\xbf\xc3\xa9\xc3\xa9: \x01\n", "2:6 not YAML: control characters are not allowed");
	check_wrong("a: 1\n\nb: \xff\n", "3:4 not YAML: invalid leading UTF-8 octet");
	check_wrong("a:\n\tb: 1\n",
		    "2:1 not YAML: found character that cannot start any token while scanning for the next token: "
		    "indent with spaces, not with tabs");
	check_wrong("a: @b\n",
		    "1:4 not YAML: found character that cannot start any token while scanning for the next token");
	check_wrong("listen: [*:8080]\n", "1:11 not YAML: did not find expected alphabetic or numeric character while "
					  "scanning an alias: write what begins with * in quotes");
}

/* JSON's other escape for what YAML has \U for. Outside of JSON it is what YAML takes it for. */
static void pairs_of_surrogates(void **state)
{
	static const char text[] = "{\"\\ud83d\\ude00\":[\"\\\\ud83d\\uDBFF\\uDFFFx\\n\",\"\\u00e9\"]}";
	CLEANUP_FREE char *listed = NULL;

	(void)state;
	assert_true(asprintf(&listed, "[%s]", text) > 0);
	check(text, listed);
	assert_false(policy_is_as_yaml(text, strlen(text)));
	check("a: \\ud83d\\ude00\nb: '\\ud83d\\ude00'\n",
	      "[{\"a\":\"\\\\ud83d\\\\ude00\",\"b\":\"\\\\ud83d\\\\ude00\"}]");
	check_wrong("{\"a\":\"\\ud83d\"}", "1:9 not YAML: found invalid Unicode");
	check_wrong("{\"a\":\"\\ude00\\ud83d\"}", "1:9 not YAML: found invalid Unicode");
	check_wrong("a: \"\\ud83d\\ude00\"\n", "1:7 not YAML: found invalid Unicode");
}

/* An alias within an alias goes as deep as what they refer to. */
static void depth(void **state)
{
	char text[512] = "- &a ";
	size_t at = strlen(text);

	(void)state;
	memset(text + at, '[', 40);
	memset(text + at + 40, ']', 40);
	strcpy(text + at + 80, "\n- [[[[[[[[[[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]]]]]]]]]\n");
	assert_int_equal(POLICY_DEPTH_MAX, 1 + 40 + 23);
	check_wrong("- [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "1:66 more than 64 levels");
	{
		CLEANUP_DOCUMENTS struct documents documents = { 0 };
		CLEANUP_PROBLEMS struct problems problems = { 0 };

		read_all(text, &documents, &problems);
		assert_int_equal(problems.n, 0);
	}
	strcpy(text + at + 80, "\n- [[[[[[[[[[[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]]]]]]]]]]\n");
	check_wrong(text, "2:27 more than 64 levels");
}

/* Where each node stands; what an alias refers to stands where its anchor does. */
static void places(void **state)
{
	CLEANUP_DOCUMENTS struct documents documents = { 0 };
	CLEANUP_PROBLEMS struct problems problems = { 0 };
	const struct node *a, *b;

	(void)state;
	read_all("a:\n  - &x 1\nb: {c: [2, *x]}\n", &documents, &problems);
	a = node_member(documents.items[0], "a");
	b = node_find(documents.items[0], "b.c");
	assert_int_equal(a->key_line, 1);
	assert_int_equal(a->items[0]->line, 2);
	assert_int_equal(a->items[0]->column, 5);
	assert_int_equal(b->line, 3);
	assert_int_equal(b->column, 8);
	assert_int_equal(b->items[1]->line, 2);
	assert_int_equal(b->items[1]->column, 5);
	assert_int_equal(b->items[1]->index, 1);
	assert_ptr_equal(b->items[1]->parent, b);
	assert_null(b->items[1]->key);
}

/* The only document of a text, as JSON; NULL: something is wrong with it. */
static json_t *as_yaml(const char *text)
{
	CLEANUP_DOCUMENTS struct documents documents = { 0 };
	CLEANUP_PROBLEMS struct problems problems = { 0 };

	read_all(text, &documents, &problems);
	return problems.n || documents.n != 1 ? NULL : node_to_json(documents.items[0]);
}

/* What a command and the agent would take for two things is the command's to read. */
static void json_that_is_not_as_yaml(void **state)
{
	static const char *const same[] = {
		"{}",
		"{\"a\":-1}\r\n",
		"{\n\t\"a\"  : [\t-10 , 1\n,true]}  \n",
		"{\"\":{\"a-0\":\"-0: #\\\"\\\\\\u00e9\\/\"}}",
		"{\"<<\":{}}",
		"{\"a\":null}",
	};
	static const char *const others[] = {
		"{\"a\":\"\x7f\"}", "{\"a\":\"\xc2\x85\"}", "{\"a\":\"\xef\xbf\xbf\"}",
		"{\"a\"\n:1}",	    "{\"a\"\t\n\t:1}",	    "{}\n\t",
	};
	char key[2000];

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		CLEANUP_JSON json_t *json = json_loads(same[i], 0, NULL), *yaml = as_yaml(same[i]);

		assert_true(policy_is_as_yaml(same[i], strlen(same[i])));
		assert_true(json_equal(json, yaml));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		CLEANUP_JSON json_t *json = json_loads(others[i], 0, NULL), *yaml = as_yaml(others[i]);

		assert_false(policy_is_as_yaml(others[i], strlen(others[i])));
		assert_non_null(json);
		assert_false(json_equal(json, yaml));
	}
	assert_false(policy_is_as_yaml("{\"a\":-0}", 8));
	assert_false(policy_is_as_yaml("{}\0{}", 5));
	for (int length = 990; length < 1030; length++) {
		snprintf(key, sizeof(key), "{\"%0*d\" :1}", length, 0);
		assert_int_equal(policy_is_as_yaml(key, strlen(key)), length <= 997);
		if (policy_is_as_yaml(key, strlen(key))) {
			CLEANUP_JSON json_t *yaml = as_yaml(key);

			assert_non_null(yaml);
		}
	}
}

/* What no policy means is bounded as well, however it was read: by as much. */
static void json_as_deep_as_yaml(void **state)
{
	char text[2 * (POLICY_DEPTH_MAX + 1) + 1] = "";

	(void)state;
	for (int depth = POLICY_DEPTH_MAX; depth <= POLICY_DEPTH_MAX + 1; depth++) {
		CLEANUP_PROBLEMS struct problems problems = { 0 };
		CLEANUP_JSON json_t *json = NULL, *yaml = NULL;
		CLEANUP_POOL struct pool pool = { 0 };

		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		json = json_loads(text, 0, NULL);
		yaml = as_yaml(text);
		assert_int_equal(!node_from_json("a.json", json, &pool, &problems), depth > POLICY_DEPTH_MAX);
		assert_int_equal(!yaml, depth > POLICY_DEPTH_MAX);
	}
}

/* More members than a block of the pool has room for, and a text that is larger than one. */
static void large(void **state)
{
	CLEANUP_JSON json_t *list = json_array(), *back = NULL;
	CLEANUP_DOCUMENTS struct documents documents = { 0 };
	CLEANUP_PROBLEMS struct problems problems = { 0 };
	CLEANUP_FREE char *text = NULL, *long_text = calloc(1, 200001);
	CLEANUP_POOL struct pool pool = { 0 };

	(void)state;
	assert_non_null(long_text);
	memset(long_text, 'x', 200000);
	for (int i = 0; i < 5000; i++)
		json_array_append_new(list, json_pack("{s:i, s:[s, b, n], s:{}}", "number", i, "more", "text", i % 2,
						      "nothing"));
	json_array_append_new(list, json_string(long_text));
	text = json_dumps(list, JSON_COMPACT);
	read_all(text, &documents, &problems);
	back = node_to_json(documents.items[0]);
	assert_true(json_equal(list, back));
	json_decref(back);
	back = node_to_json(node_from_json("b.json", list, &pool, &problems));
	assert_true(json_equal(list, back));
	assert_int_equal(problems.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(aliases),
		cmocka_unit_test(wrong),
		cmocka_unit_test(pairs_of_surrogates),
		cmocka_unit_test(depth),
		cmocka_unit_test(places),
		cmocka_unit_test(large),
		cmocka_unit_test(json_that_is_not_as_yaml),
		cmocka_unit_test(json_as_deep_as_yaml),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
