/* SPDX-License-Identifier: GPL-2.0 */
/* A policy file of any content: what is wrong has its place, and what is right is what the agent will take. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "policy/policy.h"

static void check_problems(const struct policy *policy)
{
	size_t errors = 0;

	for (size_t i = 0; i < policy->problems.n; i++) {
		const struct problem *problem = &policy->problems.items[i];

		assert(!problem->line == !problem->column && problem->text && *problem->text);
		errors += !problem->warning;
	}
	assert(errors == policy->problems.errors);
}

/* As the agent reads them: documents that the parser has taken. */
static void check_objects(const struct policy *policy)
{
	CLEANUP_JSON json_t *objects = policy_to_json(policy);
	json_t *object;
	size_t i;

	assert(json_array_size(objects) == policy->n);
	json_array_foreach (objects, i, object) {
		const char *name;

		assert(policy_document_kind(json_object_get(object, "document"), &name) == policy->objects[i].kind);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct policy_file file = { .path = "fuzz.yaml", .name = "/nowhere/fuzz.yaml" };
	CLEANUP_POLICY struct policy policy = { 0 };
	struct error err = { 0 };

	if (policy_read_text(&policy, &file, (const char *)data, size, &err))
		return 0;
	policy_check(&policy);
	check_problems(&policy);
	if (!policy.problems.errors)
		check_objects(&policy);
	return 0;
}
