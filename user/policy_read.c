/* SPDX-License-Identifier: GPL-2.0 */
/* Files, directories and documents of lists: down to the objects. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "cleanup.h"
#include "policy.h"

#define PLUGIN "EventRateLimit"

static void read_document(struct policy *policy, const struct node *node, const char *source);

/* --- objects */

static void add_object(struct policy *policy, const struct policy_kind *kind, const struct node *node,
		       const char *source)
{
	struct policy_object *grown = array_grow(policy->objects, policy->n, sizeof(*grown));

	if (!grown) {
		problem_node(&policy->problems, node, "out of memory");
		return;
	}
	policy->objects = grown;
	grown[policy->n++] = (struct policy_object){
		.kind = kind,
		.name = node_text(node_find(node, "metadata.name")),
		.file = source,
		.node = node,
		.document = shape_to_json(kind->shape, node),
	};
}

static bool is_list(const struct node *node)
{
	const char *kind = node_text(node_member(node, "kind")), *list = strstr(kind, "List");

	return list && !list[strlen("List")] && node_member(node, "items");
}

static void read_list(struct policy *policy, const struct node *list, const char *source)
{
	const struct node *items = node_member(list, "items");

	if (items->type != NODE_LIST)
		problem_node(&policy->problems, items, "must be a list, not %s", node_type_name(items->type));
	for (size_t i = 0; i < items->n && items->type == NODE_LIST; i++)
		read_document(policy, items->items[i], source);
}

/* --- AdmissionConfiguration */

/* From the directory of the file that names it. */
static void read_pointed(struct policy *policy, const struct node *path, const char *source)
{
	CLEANUP_FREE char *copy = strdup(source), *whole = NULL;
	struct error why = { 0 };

	if (*path->text == '/')
		whole = strdup(path->text);
	else if (!copy || asprintf(&whole, "%s/%s", dirname(copy), path->text) < 0)
		whole = NULL;
	if (policy->pointed) {
		problem_node(&policy->problems, path, "a file that is pointed to cannot point to another one");
		return;
	}
	policy->pointed = true;
	if (!whole || policy_read(policy, whole, &why))
		problem_node(&policy->problems, path, "%s", whole ? why.text : "out of memory");
	policy->pointed = false;
}

static void read_plugin(struct policy *policy, const struct node *plugin, const char *source)
{
	const struct node *path = node_member(plugin, "path"), *inside = node_member(plugin, "configuration");

	if (strcmp(node_text(node_member(plugin, "name")), PLUGIN) != 0)
		return;
	if (path && inside)
		problem_node(&policy->problems, inside, "the plugin has a path, too: it is either this or that");
	else if (inside)
		read_document(policy, inside, source);
	else if (path)
		read_pointed(policy, path, source);
	else
		problem_node(&policy->problems, plugin, "path is missing, or configuration");
}

static void read_admission(struct policy *policy, const struct node *document, const char *source)
{
	const struct node *plugins = node_member(document, "plugins");

	for (size_t i = 0; plugins && i < plugins->n; i++)
		read_plugin(policy, plugins->items[i], source);
}

/* --- documents */

static void read_document(struct policy *policy, const struct node *node, const char *source)
{
	size_t errors = policy->problems.errors;
	const struct policy_kind *kind;

	if (is_list(node)) {
		read_list(policy, node, source);
		return;
	}
	kind = policy_kind_of(node, &policy->problems);
	if (!kind)
		return;
	shape_check(kind->shape, node, &policy->problems);
	if (policy->problems.errors > errors)
		return;
	if (kind->type == POLICY_ADMISSION)
		read_admission(policy, node, source);
	else
		add_object(policy, kind, node, source);
}

/* Takes over both names; NULL without memory. */
static const char *keep_names(struct policy *policy, char *file, char *source)
{
	char **files = file && source ? array_grow(policy->files, policy->n_files, sizeof(*files)) : NULL;
	char **sources = NULL;

	if (files) {
		policy->files = files;
		sources = array_grow(policy->sources, policy->n_files, sizeof(*sources));
	}
	if (!sources) {
		free(file);
		free(source);
		return NULL;
	}
	policy->sources = sources;
	files[policy->n_files] = file;
	sources[policy->n_files++] = source;
	return file;
}

static int read_text(struct policy *policy, const char *path, const char *text, size_t length, struct error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	size_t first = policy->documents.n;
	const char *file = keep_names(policy, strdup(is_stdin ? "stdin" : path),
				      is_stdin ? strdup("stdin") : realpath(path, NULL));
	const char *source = file ? policy->sources[policy->n_files - 1] : NULL;

	if (!file || documents_read(file, text, length, &policy->documents, &policy->problems))
		return error_set(err, -ENOMEM, "%s: out of memory", path);
	for (size_t i = first, end = policy->documents.n; i < end; i++)
		read_document(policy, policy->documents.items[i], source);
	return 0;
}

/* --- files */

static int read_stream(struct policy *policy, FILE *in, const char *path, struct error *err)
{
	CLEANUP_FREE char *text = malloc(POLICY_FILE_MAX + 1);
	size_t length = text ? fread(text, 1, POLICY_FILE_MAX + 1, in) : 0;

	if (!text)
		return error_set(err, -ENOMEM, "%s: out of memory", path);
	if (ferror(in))
		return error_set(err, -EIO, "%s: %s", path, strerror(errno));
	if (length > POLICY_FILE_MAX)
		return error_set(err, -EFBIG, "%s: larger than %u MiB", path, POLICY_FILE_MAX >> 20);
	return read_text(policy, path, text, length, err);
}

static int read_file(struct policy *policy, const char *path, struct error *err)
{
	CLEANUP_FCLOSE FILE *in = fopen(path, "re");

	return in ? read_stream(policy, in, path, err) : error_set(err, -errno, "%s: %s", path, strerror(errno));
}

/* Names with a dot in front are those of editors, and of what stands behind a mounted ConfigMap. */
static int is_policy(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return *entry->d_name != '.' && dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml") || !strcmp(dot, ".json"));
}

static int read_directory(struct policy *policy, const char *path, struct error *err)
{
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, is_policy, alphasort), ret = 0;

	if (n < 0)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (n == 0)
		ret = error_set(err, -ENOENT, "%s: there is no file *.yaml, *.yml or *.json in it", path);
	for (int i = 0; i < n; i++) {
		CLEANUP_FREE char *file = NULL;

		if (!ret && asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0)
			ret = error_set(err, -ENOMEM, "out of memory");
		ret = ret ?: read_file(policy, file, err);
		free(entries[i]);
	}
	free(entries);
	return ret;
}

int policy_read(struct policy *policy, const char *path, struct error *err)
{
	struct stat info;

	if (strcmp(path, "-") == 0)
		return read_stream(policy, stdin, path, err);
	if (stat(path, &info))
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	return S_ISDIR(info.st_mode) ? read_directory(policy, path, err) : read_file(policy, path, err);
}
