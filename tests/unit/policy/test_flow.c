/* SPDX-License-Identifier: GPL-2.0 */
/* The priority levels and flow schemas that Kubernetes always has, and what of such is not honoured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/policy.h"

#define EVERYTHING(groups)                                                                           \
	"[{\"groups\":[" groups "],\"long_running\":false,\"verbs\":[\"*\"],\"api_groups\":[\"*\"]," \
	"\"resources\":[\"*\"],\"namespaces\":[\"*\"],\"cluster_scope\":true},"                      \
	"{\"groups\":[" groups "],\"long_running\":false,\"verbs\":[\"*\"],\"paths\":[\"*\"],\"non_resource\":true}]"

static const char exempt[] = "{\"name\":\"exempt\",\"level\":\"exempt\",\"precedence\":1,\"rules\":" EVERYTHING(
	"\"system:masters\"") "}";
static const char probes[] = "{\"name\":\"probes\",\"level\":\"exempt\",\"precedence\":2,\"rules\":["
			     "{\"groups\":[\"system:unauthenticated\",\"system:authenticated\"],\"verbs\":[\"get\"],"
			     "\"non_resource\":true,\"paths\":[\"/healthz\",\"/livez\",\"/readyz\"]}]}";
static const char catch_all[] = "{\"name\":\"catch-all\",\"level\":\"catch-all\",\"precedence\":10000,"
				"\"distinguisher\":\"ByUser\",\"rules\":" EVERYTHING(
					"\"system:unauthenticated\",\"system:authenticated\"") "}";

/* The list has these, in this order. */
static void expect_list(json_t *list, const char *const *wanted, size_t n)
{
	assert_int_equal(json_array_size(list), n);
	for (size_t i = 0; i < n; i++) {
		CLEANUP_FREE char *text = json_dumps(json_array_get(list, i), JSON_COMPACT);

		assert_string_equal(text, wanted[i]);
	}
}

static void test_all_are_added_where_there_is_none(void **state)
{
	CLEANUP_JSON json_t *levels = json_array(), *schemas = json_array();

	(void)state;
	policy_add_mandatory(levels, schemas);
	expect_list(levels,
		    (const char *const[]){ "{\"name\":\"exempt\",\"exempt\":true}",
					   "{\"name\":\"catch-all\",\"shares\":5}" },
		    2);
	expect_list(schemas, (const char *const[]){ exempt, probes, catch_all }, 3);
}

/* One that is there stands first, and is as it was: the others are added alone. */
static void test_what_is_there_is_not_added(void **state)
{
	static const struct {
		const char *name;
		const char *added[2];
	} cases[] = {
		{ "exempt", { probes, catch_all } },
		{ "probes", { exempt, catch_all } },
		{ "catch-all", { exempt, probes } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_JSON json_t *levels = json_array();
		CLEANUP_JSON json_t *schemas = json_pack("[{s:s}]", "name", cases[i].name);
		CLEANUP_FREE char *own = json_dumps(json_array_get(schemas, 0), JSON_COMPACT);

		policy_add_mandatory(levels, schemas);
		expect_list(schemas, (const char *const[]){ own, cases[i].added[0], cases[i].added[1] }, 3);
	}
}

static void test_levels_that_are_there_are_not_added(void **state)
{
	CLEANUP_JSON json_t *levels = json_pack("[{s:s}, {s:s}]", "name", "catch-all", "name", "exempt");
	CLEANUP_JSON json_t *schemas = json_array();

	(void)state;
	policy_add_mandatory(levels, schemas);
	expect_list(levels, (const char *const[]){ "{\"name\":\"catch-all\"}", "{\"name\":\"exempt\"}" }, 2);
}

/* Everything that is said of the text, which is read as a file. */
static void expect_warning(const char *text, const char *wanted)
{
	static const struct policy_file file = { .path = "a.yaml", .name = "a.yaml" };
	CLEANUP_POLICY struct policy policy = { 0 };
	struct error err = { 0 };

	assert_int_equal(policy_read_text(&policy, &file, text, strlen(text), &err), 0);
	policy_check(&policy);
	assert_int_equal(policy.problems.n, 1);
	assert_string_equal(policy.problems.items[0].text, wanted);
}

/* However many ways it has to ask for that. */
static void test_one_level_that_lends_is_not_counted(void **state)
{
	(void)state;
	expect_warning("apiVersion: flowcontrol.apiserver.k8s.io/v1\n"
		       "kind: PriorityLevelConfiguration\n"
		       "metadata: {name: a}\n"
		       "spec: {type: Limited, limited: {lendablePercent: 50, borrowingLimitPercent: 50}}\n",
		       "not honoured yet: levels do not lend seats");
}

static void test_lending_nothing_is_honoured(void **state)
{
	(void)state;
	expect_warning("apiVersion: flowcontrol.apiserver.k8s.io/v1\n"
		       "kind: PriorityLevelConfiguration\n"
		       "metadata: {name: a}\n"
		       "spec: {type: Limited, limited: {lendablePercent: 0, limitResponse: {type: Queue}}}\n",
		       "queues are not honoured yet: what finds no seat is rejected");
}

static void test_verbs_of_paths_are_looked_at(void **state)
{
	(void)state;
	expect_warning("apiVersion: flowcontrol.apiserver.k8s.io/v1\n"
		       "kind: FlowSchema\n"
		       "metadata: {name: a}\n"
		       "spec:\n"
		       "  priorityLevelConfiguration: {name: exempt}\n"
		       "  rules:\n"
		       "  - subjects: [{kind: Group, group: {name: x}}]\n"
		       "    nonResourceRules: [{verbs: [escalate, get], nonResourceURLs: ['*']}]\n",
		       "no request has the verb \"escalate\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_added_where_there_is_none),
		cmocka_unit_test(test_what_is_there_is_not_added),
		cmocka_unit_test(test_levels_that_are_there_are_not_added),
		cmocka_unit_test(test_one_level_that_lends_is_not_counted),
		cmocka_unit_test(test_lending_nothing_is_honoured),
		cmocka_unit_test(test_verbs_of_paths_are_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
