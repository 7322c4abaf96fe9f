/* SPDX-License-Identifier: GPL-2.0 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/output.h"
#include "policy/names.h"
#include "policy/tree.h"

void problems_clear(struct problems *problems)
{
	for (size_t i = 0; i < problems->n; i++) {
		free(problems->items[i].path);
		free(problems->items[i].text);
	}
	free(problems->items);
	*problems = (struct problems){ 0 };
}

void problems_cut(struct problems *problems, const struct problems *before)
{
	while (problems->n > before->n) {
		free(problems->items[--problems->n].path);
		free(problems->items[problems->n].text);
	}
	problems->errors = before->errors;
	problems->warnings = before->warnings;
}

static int compare(const void *a, const void *b)
{
	const struct problem *first = a, *second = b;

	if (first->file != second->file)
		return strcmp(first->file, second->file);
	if (first->line != second->line)
		return first->line < second->line ? -1 : 1;
	return (int)first->column - (int)second->column;
}

void problems_sort(struct problems *problems)
{
	if (problems->n)
		qsort(problems->items, problems->n, sizeof(*problems->items), compare);
}

char *problem_text(const struct problem *p)
{
	CLEANUP_FREE char *text = NULL;
	char place[32] = "";

	if (p->line)
		snprintf(place, sizeof(place), ":%u:%u", p->line, p->column);
	if (asprintf(&text, "%s%s: %s%s%s%s", p->file, place, p->warning ? "warning: " : "", p->path,
		     *p->path ? ": " : "", p->text) < 0) {
		text = NULL;
		return NULL;
	}
	return output_visible(text);
}

void problems_print(const struct problems *problems, FILE *out)
{
	for (size_t i = 0; i < problems->n; i++) {
		CLEANUP_FREE char *text = problem_text(&problems->items[i]);

		fprintf(out, "%s\n", text ?: "");
	}
	if (problems->errors + problems->warnings > problems->n)
		fprintf(out, "and %zu more\n", problems->errors + problems->warnings - problems->n);
}

json_t *problems_to_json(const struct problems *problems)
{
	json_t *array = json_array();

	for (size_t i = 0; i < problems->n; i++) {
		const struct problem *p = &problems->items[i];

		json_array_append_new(
			array, json_pack("{s:o, s:i, s:i, s:o, s:s, s:o}", "file", output_text_json(p->file), "line",
					 p->line, "column", p->column, "path", output_text_json(p->path), "severity",
					 p->warning ? "warning" : "error", "message", output_text_json(p->text)));
	}
	return array;
}

/* "$.spec.limits[2]" */
static void write_path(FILE *out, const struct node *node)
{
	if (!node->parent) {
		fputc('$', out);
		return;
	}
	write_path(out, node->parent);
	if (node->key)
		fprintf(out, ".%s", node->key);
	else
		fprintf(out, "[%zu]", node->index);
}

static char *path_of(const struct node *node)
{
	CLEANUP_FREE char *text = NULL;
	size_t size;
	FILE *out = node ? open_memstream(&text, &size) : NULL;

	if (!out)
		return strdup("");
	write_path(out, node);
	fclose(out);
	return output_visible(text);
}

#define TOLD_MAX 1000 /* of each: whoever made more has made the same mistake again and again */

/* Without memory, or when there are too many, a problem is counted all the same. */
static void add(struct problems *problems, struct problem problem, const struct node *node, const char *format,
		va_list args)
{
	struct problem *grown;

	if ((problem.warning ? problems->warnings++ : problems->errors++) >= TOLD_MAX)
		return;
	grown = array_grow(problems->items, problems->n, sizeof(*grown));
	if (!grown)
		return;
	problems->items = grown;
	problem.path = path_of(node);
	if (!problem.path || vasprintf(&problem.text, format, args) < 0) {
		free(problem.path);
		return;
	}
	grown[problems->n++] = problem;
}

void problem_at(struct problems *problems, const char *file, unsigned int line, unsigned int column, const char *format,
		...)
{
	va_list args;

	va_start(args, format);
	add(problems, (struct problem){ .file = file, .line = line, .column = column }, NULL, format, args);
	va_end(args);
}

void problem_node(struct problems *problems, const struct node *node, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(problems, (struct problem){ .file = node->file, .line = node->line, .column = node->column }, node, format,
	    args);
	va_end(args);
}

/* The item of the list that an error names, or the list. */
static const struct node *item_told(const struct node *list, const struct error *why)
{
	const char *told = why->text + why->field + strlen(": \"");

	for (size_t i = 0; list->type == NODE_LIST && why->item && i < list->n; i++) {
		const char *name = node_text(node_member(list->items[i], "name"));

		if (strlen(name) == why->item && !memcmp(name, told, why->item))
			return list->items[i];
	}
	return list;
}

void problem_error(struct problems *problems, const struct node *object, struct error *why)
{
	CLEANUP_FREE char *name = strndup(why->text, why->field);
	const struct node *field;
	char *text = why->text;

	if (name)
		policy_yaml_words(name);
	field = name ? node_member(object, name) : NULL;
	if (field)
		text += why->field + strlen(": ");
	policy_yaml_words(text);
	problem_node(problems, field ? item_told(field, why) : object, "%s", text);
}

void problem_key(struct problems *problems, const struct node *node, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(problems, (struct problem){ .file = node->file, .line = node->key_line, .column = node->key_column }, node,
	    format, args);
	va_end(args);
}

void warn_node(struct problems *problems, const struct node *node, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(problems,
	    (struct problem){ .file = node->file, .line = node->line, .column = node->column, .warning = true }, node,
	    format, args);
	va_end(args);
}
