/* SPDX-License-Identifier: GPL-2.0 */
/* Documents, lists of documents, and files that documents point to: down to the objects. */
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "policy/policy.h"

#define PLUGIN "EventRateLimit"
#define OBJECTS_MAX 4096 /* each is compared with all before it */

static void read_document(struct policy *policy, const struct node *node, const char *file);

/* --- objects */

/* Is the document ever shown? A Throttle is shown as what it came to, but for its levels and schemas. */
static bool is_shown(const struct policy_kind *kind, const struct node *node)
{
	const struct node *spec = node_member(node, "spec");

	return kind->id != POLICY_THROTTLE || node_member(spec, "priorityLevels") || node_member(spec, "flowSchemas");
}

/*
 * The document as its shape has it, with its members in the shape's order: so it is shown alike, however it was written. What is never shown
 * may be very long: if it was JSON, it stays as it is. whole: all of the document means something.
 */
static json_t *document_of(const struct policy *policy, const struct policy_kind *kind, const struct node *node,
			   bool whole)
{
	bool as_is = policy->json && !node->parent && whole && !is_shown(kind, node);

	return as_is ? json_incref(policy->json) : shape_to_json(kind->shape, node);
}

static void add_object(struct policy *policy, const struct policy_kind *kind, const struct node *node, bool whole,
		       const char *file)
{
	struct policy_object *grown;

	if (policy->n == OBJECTS_MAX) {
		policy->full = true;
		problem_node(&policy->problems, node, "more than %d objects", OBJECTS_MAX);
		return;
	}
	grown = array_grow(policy->objects, policy->n, sizeof(*grown));
	if (!grown) {
		problem_node(&policy->problems, node, "out of memory");
		return;
	}
	policy->objects = grown;
	grown[policy->n++] = (struct policy_object){
		.kind = kind,
		.name = node_text(node_find(node, "metadata.name")),
		.file = file,
		.node = node,
		.document = document_of(policy, kind, node, whole),
	};
}

static bool is_list(const struct node *node)
{
	const char *kind = node_text(node_member(node, "kind")), *list = strstr(kind, "List");

	return list && !list[strlen("List")] && node_member(node, "items");
}

static void read_list(struct policy *policy, const struct node *list, const char *file)
{
	const struct node *items = node_member(list, "items");

	if (items->type != NODE_LIST)
		problem_node(&policy->problems, items, "must be a list, not %s", node_type_name(items->type));
	for (size_t i = 0; i < items->n && items->type == NODE_LIST; i++)
		read_document(policy, items->items[i], file);
}

/* --- AdmissionConfiguration */

/* From the directory of the file that names it. */
static void read_pointed(struct policy *policy, const struct node *path, const char *file)
{
	CLEANUP_FREE char *copy = strdup(file), *whole = NULL;
	struct error why = { 0 };

	if (*path->text == '/')
		whole = strdup(path->text);
	else if (!copy || asprintf(&whole, "%s/%s", dirname(copy), path->text) < 0)
		whole = NULL;
	if (policy->pointed) {
		problem_node(&policy->problems, path, "an included file cannot include another one");
		return;
	}
	policy->pointed = true;
	if (!whole || policy_read(policy, whole, &why))
		problem_node(&policy->problems, path, "%s", whole ? why.text : "out of memory");
	policy->pointed = false;
}

static void read_plugin(struct policy *policy, const struct node *plugin, const char *file)
{
	const struct node *path = node_member(plugin, "path"), *inside = node_member(plugin, "configuration");

	if (strcmp(node_text(node_member(plugin, "name")), PLUGIN) != 0)
		return;
	if (path && inside)
		problem_node(&policy->problems, inside, "the plugin has both a path and a configuration");
	else if (inside)
		read_document(policy, inside, file);
	else if (path)
		read_pointed(policy, path, file);
	else
		problem_node(&policy->problems, plugin, "path or configuration is missing");
}

static void read_admission(struct policy *policy, const struct node *document, const char *file)
{
	const struct node *plugins = node_member(document, "plugins");

	for (size_t i = 0; plugins && i < plugins->n; i++)
		read_plugin(policy, plugins->items[i], file);
}

/* --- documents */

/* What late checks would find is found by policy_check(), unless something else is wrong: then all is told. */
static bool is_right(struct policy *policy, const struct shape *shape, const struct node *document, bool *whole)
{
	const struct problems before = policy->problems;

	*whole = shape_check_early(shape, document, &policy->problems);
	if (policy->problems.errors == before.errors)
		return true;
	problems_cut(&policy->problems, &before);
	shape_check(shape, document, &policy->problems);
	return false;
}

static void read_document(struct policy *policy, const struct node *node, const char *file)
{
	const struct policy_kind *kind;
	bool whole;

	if (policy->full)
		return;
	if (is_list(node)) {
		read_list(policy, node, file);
		return;
	}
	kind = policy_kind_of(node, &policy->problems);
	if (!kind)
		return;
	if (!is_right(policy, kind->shape, node, &whole))
		return;
	if (kind->id == POLICY_ADMISSION)
		read_admission(policy, node, file);
	else
		add_object(policy, kind, node, whole, file);
}

int policy_read_text(struct policy *policy, const struct policy_file *file, const char *text, size_t length,
		     struct error *err)
{
	size_t first = policy->documents.n;

	/* Most likely someone is writing it. */
	if (!length)
		problem_at(&policy->problems, file->path, 0, 0, "it is empty");
	if (documents_read(file->path, text, length, &policy->documents, &policy->problems))
		return error_set(err, -ENOMEM, "%s: out of memory", file->path);
	for (size_t i = first, end = policy->documents.n; i < end; i++)
		read_document(policy, policy->documents.items[i], file->name);
	return 0;
}

bool policy_read_json(struct policy *policy, const char *file, json_t *json)
{
	const struct node *root = node_from_text(file, json, &policy->documents.pool);

	if (!root)
		return false;
	policy->json = json;
	policy->pointed = true; /* so that it points to no other */
	read_document(policy, root, file);
	policy_check(policy);
	return policy->n && !policy->problems.n;
}
