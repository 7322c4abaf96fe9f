/* SPDX-License-Identifier: GPL-2.0 */
/* A policy file of any content: what is wrong has its place, and what is right is what the agent will take. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/policy.h"
#include "policy/shape.h"

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

/* What an agent that is given the file as JSON takes, every other reader takes, and says nothing of it; to both it means the same. */
static void check_json(const struct policy *as_text, const char *text, size_t size)
{
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_JSON json_t *json = policy_is_as_yaml(text, size) ?
					    json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) :
					    NULL;

	if (!json || !policy_read_json(&policy, "/nowhere/fuzz.yaml", json))
		return;
	assert(!as_text->problems.n && as_text->n == policy.n);
	for (size_t i = 0; i < policy.n; i++) {
		const struct policy_object *one = &policy.objects[i], *other = &as_text->objects[i];
		CLEANUP_JSON json_t *a = shape_to_json(one->kind->shape, one->node),
				    *b = shape_to_json(other->kind->shape, other->node);

		assert(json_equal(a, b));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct policy_file file = { .path = "fuzz.yaml", .name = "/nowhere/fuzz.yaml" };
	CLEANUP_FREE char *text = strndup((const char *)data, size);
	CLEANUP_POLICY struct policy policy = { 0 };
	struct error err = { 0 };

	if (policy_read_text(&policy, &file, (const char *)data, size, &err))
		return 0;
	policy_check(&policy);
	check_problems(&policy);
	if (!policy.problems.errors)
		check_objects(&policy);
	if (strlen(text) == size)
		check_json(&policy, text, size);
	return 0;
}
