/* SPDX-License-Identifier: GPL-2.0 */
#include "policy/objects.h"

#include <string.h>

json_t *policy_object_document(json_t *object)
{
	return json_object_get(object, "document");
}

const char *policy_object_file(json_t *object)
{
	return json_string_value(json_object_get(object, "file"));
}

const char *policy_object_followed(json_t *object)
{
	return json_string_value(json_object_get(object, "followed"));
}

bool policy_same_object(json_t *a, json_t *b)
{
	const char *name_a = "", *name_b = "";
	const struct policy_kind *kind = policy_document_kind(a, &name_a);

	return kind && kind == policy_document_kind(b, &name_b) && strcmp(name_a, name_b) == 0;
}

size_t policy_object_place(json_t *objects, json_t *document)
{
	json_t *object;
	size_t i;

	json_array_foreach (objects, i, object)
		if (policy_same_object(policy_object_document(object), document))
			return i;
	return json_array_size(objects);
}

bool policy_object_is(json_t *object, enum policy_kind_id id)
{
	const char *name;
	const struct policy_kind *kind = policy_document_kind(policy_object_document(object), &name);

	return kind && kind->id == id;
}

void policy_object_label(json_t *object, char label[static POLICY_LABEL])
{
	const char *name = "";
	const struct policy_kind *kind = policy_document_kind(policy_object_document(object), &name);

	policy_label(kind, name, label);
}

json_t *policy_throttle_of(json_t *objects)
{
	json_t *object;
	size_t i;

	json_array_foreach (objects, i, object)
		if (policy_object_is(object, POLICY_THROTTLE))
			return object;
	return NULL;
}
