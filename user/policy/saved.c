/* SPDX-License-Identifier: GPL-2.0 */
/* The objects of a server as state.json has them, checked as if they were read for the first time. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_read.h"
#include "policy/objects.h"
#include "policy/shape.h"

/* A document that is right has the shape of its kind. */
static int check_document(json_t *document, struct error *err)
{
	CLEANUP_PROBLEMS struct problems problems = { 0 };
	CLEANUP_POOL struct pool pool = { 0 };
	const struct node *node = node_from_json("", document, &pool, &problems);
	const struct policy_kind *kind = node ? policy_kind_of(node, &problems) : NULL;

	if (kind)
		shape_check_early(kind->shape, node, &problems);
	for (size_t i = 0; i < problems.n; i++)
		if (!problems.items[i].warning)
			return error_set(err, -EINVAL, "%s: %s", problems.items[i].path, problems.items[i].text);
	return kind ? 0 : error_set(err, -ENOMEM, "out of memory");
}

int policy_object_check(json_t *object, struct error *err)
{
	static const char *const members[] = { "file", "followed", "document", NULL };
	const char *name;
	int ret = members_check(object, "an object", members, err);
	struct error why;

	if (ret)
		return ret;
	if (!policy_object_file(object) || !policy_document_kind(policy_object_document(object), &name))
		return error_set(err, -EINVAL, "an object has a file and a document of a known kind");
	if (json_object_get(object, "followed") && !policy_object_followed(object))
		return error_set(err, -EINVAL, "followed: must be a text");
	ret = check_document(policy_object_document(object), &why);
	return ret ? error_set(err, ret, "%s: %s", policy_object_file(object), why.text) : 0;
}

static int check_twice(json_t *objects, size_t i, struct error *err)
{
	json_t *object = json_array_get(objects, i);
	char label[POLICY_LABEL];

	if (policy_object_place(objects, policy_object_document(object)) == i)
		return 0;
	policy_object_label(object, label);
	return error_set(err, -EINVAL, "%s is there twice", label);
}

static int check_objects(json_t *objects, struct error *err)
{
	json_t *object;
	size_t i;
	int ret = 0;

	if (objects && !json_is_array(objects))
		return error_set(err, -EINVAL, "objects: must be a list");
	json_array_foreach (objects, i, object)
		ret = ret ?: policy_object_check(object, err) ?: check_twice(objects, i, err);
	return ret;
}

static int check_policy(const struct server *server, struct error *err)
{
	static const char *const members[] = { "objects", "base", "attached", NULL };
	CLEANUP_SERVER struct server *made = NULL;
	bool attached;
	int ret;

	ret = members_check(server->policy, "a policy", members, err)					      ?:
		      flag_from_json(json_object_get(server->policy, "attached"), "attached", &attached, err) ?:
		      check_objects(policy_objects(server), err)					      ?:
		      policy_check_base(server, err);
	return ret ?: policy_server(server, policy_objects(server), &made, err);
}

int policy_check_saved(const struct server *server, struct error *err)
{
	struct error why;
	int ret;

	if (!server->policy)
		return 0;
	ret = check_policy(server, &why);
	return ret ? error_set(err, ret, "server \"%s\": policy: %s", server->name, why.text) : 0;
}
