/* SPDX-License-Identifier: GPL-2.0 */
/* Objects that a server keeps: which one another takes the place of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/objects.h"

#define FLOW "flowcontrol.apiserver.k8s.io/v1"

static json_t *document(const char *version, const char *kind, const char *name)
{
	return json_pack("{s:s, s:s, s:{s:s}, s:{}}", "apiVersion", version, "kind", kind, "metadata", "name", name,
			 "spec");
}

static json_t *object(const char *version, const char *kind, const char *name)
{
	return json_pack("{s:s, s:o}", "file", "/a.yaml", "document", document(version, kind, name));
}

static json_t *objects(void)
{
	return json_pack("[o, o, o]", object(FLOW, "FlowSchema", "api"),
			 object(FLOW, "PriorityLevelConfiguration", "api"), object("weir/v1", "Throttle", "api"));
}

/* A level may have the name of its schema, and of the server. */
static void place(void **state)
{
	static const struct {
		const char *version, *kind, *name;
		size_t place;
	} cases[] = {
		{ FLOW, "FlowSchema", "api", 0 },    { FLOW, "PriorityLevelConfiguration", "api", 1 },
		{ "weir/v1", "Throttle", "api", 2 }, { FLOW, "FlowSchema", "web", 3 },
		{ "weir/v1", "Throttle", "web", 3 }, { "v1", "Pod", "api", 3 },
	};
	CLEANUP_JSON json_t *list = objects();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_JSON json_t *one = document(cases[i].version, cases[i].kind, cases[i].name);

		assert_int_equal(policy_object_place(list, one), cases[i].place);
	}
}

static void throttle(void **state)
{
	CLEANUP_JSON json_t *list = objects();
	char label[POLICY_LABEL];

	(void)state;
	assert_ptr_equal(policy_throttle_of(list), json_array_get(list, 2));
	assert_true(policy_object_is(json_array_get(list, 2), POLICY_THROTTLE));
	assert_false(policy_object_is(json_array_get(list, 1), POLICY_THROTTLE));
	assert_string_equal(policy_object_file(json_array_get(list, 0)), "/a.yaml");
	assert_null(policy_object_followed(json_array_get(list, 0)));
	policy_object_label(json_array_get(list, 1), label);
	assert_string_equal(label, "PriorityLevelConfiguration api");
	json_array_remove(list, 2);
	assert_null(policy_throttle_of(list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place),
		cmocka_unit_test(throttle),
	};

	return cmocka_run_group_tests_name("policy_objects", tests, NULL, NULL);
}
