/* SPDX-License-Identifier: GPL-2.0 */
/* Rules as JSON: what is taken, how it is written back, and what is said of the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "../http/request_trace.h"
#include "base/cleanup.h"
#include "model/rule.h"

#define FULL                                                                                                          \
	"{\"users\":[\"alice\",\"10.0.0.1\",\"2001:db8::/64\",\"*\"],\"groups\":[\"dev\"],\"verbs\":[\"get\",\"*\"]," \
	"\"api_groups\":[\"\",\"apps\",\"*\"],\"resources\":[\"pods\",\"*\"],\"subresources\":[\"\",\"log\"],"        \
	"\"namespaces\":[\"x\",\"*\"],\"paths\":[\"/\",\"/a/*\",\"/b/\",\"*\"],\"sources\":[\"10.0.0.0/8\"],"         \
	"\"long_running\":false,\"cluster_scope\":true}"

static int read_rule(const char *text, struct rule *rule, struct error *err)
{
	CLEANUP_JSON json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

	assert_non_null(json);
	return rule_from_json(json, rule, err);
}

static void check_text(const char *text, const char *expected)
{
	CLEANUP_RULE struct rule rule = { 0 };
	CLEANUP_JSON json_t *json = NULL;
	CLEANUP_FREE char *written = NULL;
	struct error err = { 0 };

	if (read_rule(text, &rule, &err))
		fail_msg("%s: %s", text, err.text);
	json = rule_to_json(&rule);
	written = json_dumps(json, JSON_COMPACT);
	assert_string_equal(written, expected);
}

static void test_written(void **state)
{
	(void)state;
	check_text(FULL, FULL);
	check_text("{}", "{}");
	check_text("{\"users\": [], \"cluster_scope\": false}", "{}");
	check_text("{\"long_running\": true, \"non_resource\": true}", "{\"long_running\":true,\"non_resource\":true}");
	check_text("{\"resources\": [\"pods/log\"]}", "{\"resources\":[\"pods/log\"]}");
	check_text("{\"resources\": [\"a-b\"]}", "{\"resources\":[\"a-b\"]}");
	/* One text for each user and network. */
	check_text("{\"users\": [\"2001:db8::1\", \"::ffff:10.0.0.1\"]}",
		   "{\"users\":[\"2001:db8::/64\",\"10.0.0.1\"]}");
	check_text("{\"sources\": [\"10.1.2.3/8\", \"::1\"]}", "{\"sources\":[\"10.0.0.0/8\",\"::1/128\"]}");
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "[]", "a rule must be an object" },
		{ "{\"user\": [\"a\"]}", "\"user\" is not a condition of a rule" },
		{ "{\"users\": \"a\"}", "users: must be a list" },
		{ "{\"users\": [1]}", "users: must be a list of strings" },
		{ "{\"users\": [\"\"]}", "users: a subject is 1 to 1024 bytes without control characters" },
		{ "{\"users\": [\"10.0.0.0/8\"]}",
		  "users: \"10.0.0.0/8\": IPv4 users and sources are single addresses" },
		{ "{\"groups\": [\"\"]}", "groups: a name is 1 to 1024 bytes without control characters" },
		{ "{\"verbs\": [\"GET\"]}",
		  "verbs: \"GET\" is not a verb (get, list, watch, create, update, patch, delete, deletecollection or proxy "
		  "of a resource; of a path get, head, post, put, patch, delete, options, connect or other)" },
		{ "{\"verbs\": [\"\"]}", "verbs: \"\" is not a verb" },
		{ "{\"long_running\": \"yes\"}", "long_running: must be true or false" },
		{ "{\"cluster_scope\": 1}", "cluster_scope: must be true or false" },
		{ "{\"non_resource\": null}", "non_resource: must be true or false" },
		{ "{\"api_groups\": [\"Apps\"]}", "api_groups: \"Apps\" is not an API group" },
		{ "{\"resources\": [\"Pod\"]}",
		  "resources: \"Pod\" is not a resource (like \"pods\" or \"pods/log\", in lower case)" },
		{ "{\"resources\": [\"-pods\"]}", "resources: \"-pods\" is not a resource" },
		{ "{\"resources\": [\"pods-\"]}", "resources: \"pods-\" is not a resource" },
		{ "{\"resources\": [\"pods/\"]}", "resources: \"pods/\" is not a resource" },
		{ "{\"resources\": [\"*/log\"]}",
		  "resources: \"*/log\": leave out resources, and use \"log\" in subresources" },
		{ "{\"resources\": [\"pods/log\"], \"subresources\": [\"log\"]}",
		  "resources: \"pods/log\" names a subresource, but subresources does, too" },
		{ "{\"subresources\": [\"*\"]}", "subresources: \"*\" is not a subresource" },
		{ "{\"namespaces\": [\"a/b\"]}", "namespaces: \"a/b\" is not a namespace" },
		{ "{\"paths\": [\"healthz\"]}", "paths: \"healthz\" is not a path: it must begin with a slash" },
		{ "{\"paths\": [\"/a*\"]}", "paths: \"/a*\": a * may stand only at the end, behind a slash" },
		{ "{\"paths\": [\"/*/a\"]}", "paths: \"/*/a\": a * may stand only at the end, behind a slash" },
		{ "{\"paths\": [\"/a?b\"]}", "paths: \"/a?b\" is not a path: it has no query" },
		{ "{\"paths\": [\"/a//b\"]}", "paths: \"/a//b\": a segment of the path is empty" },
		{ "{\"paths\": [\"/1/2/3/4/5/6/7/8/9/10\"]}",
		  "paths: \"/1/2/3/4/5/6/7/8/9/10\": the path has more than 9 segments" },
		{ "{\"sources\": [\"10.0.0.0/33\"]}",
		  "sources: \"10.0.0.0/33\" is not a CIDR: its prefix must be 0 to 32" },
		{ "{\"non_resource\": true, \"resources\": [\"pods\"]}",
		  "non_resource: the rule names resources, too" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rule rule = { .long_running = RULE_YES }, before = rule;
		struct error err = { 0 };

		assert_int_equal(read_rule(cases[i].text, &rule, &err), -EINVAL);
		if (strncmp(err.text, cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_memory_equal(&rule, &before, sizeof(rule));
	}
}

static void test_limits_of_paths(void **state)
{
	(void)state;
	check_text("{\"paths\": [\"/1/2/3/4/5/6/7/8/9\"]}", "{\"paths\":[\"/1/2/3/4/5/6/7/8/9\"]}");
	check_text("{\"paths\": [\"/1/2/3/4/5/6/7/8/9/*\"]}", "{\"paths\":[\"/1/2/3/4/5/6/7/8/9/*\"]}");
}

static void test_equal(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"users\": [\"a\"]}",
		"{\"users\": [\"b\"]}",
		"{\"users\": [\"a\", \"b\"]}",
		"{\"groups\": [\"a\"]}",
		"{\"sources\": [\"::1\"]}",
		"{\"long_running\": true}",
		"{\"long_running\": false}",
		"{\"cluster_scope\": true}",
		"{\"non_resource\": true}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(texts); j++) {
			CLEANUP_RULE struct rule a = { 0 }, b = { 0 };

			assert_int_equal(read_rule(texts[i], &a, NULL), 0);
			assert_int_equal(read_rule(texts[j], &b, NULL), 0);
			assert_int_equal(rule_equal(&a, &b), i == j);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limits_of_paths),
		cmocka_unit_test(test_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
