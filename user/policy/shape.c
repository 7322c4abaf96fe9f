/* SPDX-License-Identifier: GPL-2.0 */
#include "policy/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/output.h"
#include "base/rate.h"
#include "policy/names.h"

/* next: the field that is looked at first, as members most often stand in the order of fields; then the one behind what was found. */
static const struct field *field_named(const struct shape *shape, const char *name, const struct field **next)
{
	const struct field *found = (*next)->name && strcmp((*next)->name, name) == 0 ? *next : NULL;

	for (const struct field *field = shape->fields; field->name && !found; field++)
		if (strcmp(field->name, name) == 0)
			found = field;
	if (found)
		*next = found + 1;
	return found;
}

/* --- what was meant */

static const char *nearest_field(const struct shape *shape, const char *name)
{
	struct nearest nearest = nearest_to(name);

	for (const struct field *field = shape->fields; field->name; field++)
		nearest_try(&nearest, field->name);
	return nearest.found;
}

/* "qps, burst or cacheSize"; the caller frees it. */
static char *list_names(const struct shape *shape)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (const struct field *field = shape->fields; field->name; field++)
		fprintf(out, "%s%s", field == shape->fields ? "" : field[1].name ? ", " : " or ", field->name);
	fclose(out);
	return text;
}

static void say_unknown(const struct shape *shape, const struct node *node, struct problems *problems)
{
	const char *meant = nearest_field(shape, node->key);
	CLEANUP_FREE char *names = meant ? NULL : list_names(shape);

	if (meant)
		problem_key(problems, node, "there is no field \"%s\": is \"%s\" meant?", node->key, meant);
	else
		problem_key(problems, node, "there is no field \"%s\": it may be %s", node->key, names ?: "another");
}

/* --- values */

/* Whether it is one of the words. */
static bool check_words(const struct field *field, const struct node *node, struct problems *problems)
{
	CLEANUP_FREE char *list = NULL;
	size_t size;
	FILE *out;

	for (const char *const *word = field->words; *word; word++)
		if (strcmp(*word, node->text) == 0)
			return true;
	out = open_memstream(&list, &size);
	if (!out)
		return false;
	for (const char *const *word = field->words; *word; word++)
		fprintf(out, "%s%s", word == field->words ? "" : word[1] ? ", " : " or ", *word);
	fclose(out);
	problem_node(problems, node, "\"%s\": must be %s", node->text, list);
	return false;
}

/* Whether the text is right, however it was written. */
static bool check_text_value(const struct field *field, const struct node *node, struct problems *problems)
{
	struct error why = { 0 };

	if (field->words)
		return check_words(field, node, problems);
	if (!field->check || !field->check(field, node->text, &why))
		return true;
	problem_node(problems, node, "%s", why.text);
	return false;
}

static bool is_unquoted(const struct node *node)
{
	return node->type == NODE_NUMBER || node->type == NODE_FLAG;
}

/* What YAML takes for something else than the text that it was meant to be: quotes mend it only if that text is right. */
static void check_unquoted(const struct field *field, const struct node *node, struct problems *problems)
{
	if (check_text_value(field, node, problems))
		problem_node(problems, node, "must be a text: write it in quotes, \"%s\"", node->text);
}

static bool check_type(const struct field *field, const struct node *node, struct problems *problems)
{
	static const enum node_type types[] = {
		[FIELD_TEXT] = NODE_TEXT, [FIELD_NUMBER] = NODE_NUMBER, [FIELD_RATE] = NODE_NUMBER,
		[FIELD_FLAG] = NODE_FLAG, [FIELD_OBJECT] = NODE_OBJECT,
	};
	enum node_type wanted = types[field->type];

	if (node->type == wanted || (field->type == FIELD_RATE && node->type == NODE_TEXT))
		return true;
	if (wanted == NODE_TEXT && is_unquoted(node))
		check_unquoted(field, node, problems);
	else if ((wanted == NODE_NUMBER || wanted == NODE_FLAG) && node->type == NODE_TEXT)
		problem_node(problems, node, "must be %s, not the text \"%s\"", node_type_name(wanted), node->text);
	else
		problem_node(problems, node, "must be %s, not %s", node_type_name(wanted), node_type_name(node->type));
	return false;
}

static void check_number(const struct field *field, const struct node *node, struct problems *problems)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(node->text, &end, 10);
	if (*end || errno || value < (long long)field->min || value > (long long)field->max)
		problem_node(problems, node, "%s: must be a whole number from %u to %u", node->text, field->min,
			     field->max);
}

static void check_rate(const struct node *node, struct problems *problems)
{
	__u64 per_ns;

	if (weir_qps_parse(node->text, &per_ns))
		problem_node(problems, node, "\"%s\" is not a rate (" WEIR_QPS_FORM ")", node->text, WEIR_QPS_MAX);
}

/* What is being checked, and with the checks that are late or without. */
struct checking {
	struct problems *problems;
	bool late;
	bool some_means_nothing; /* ignored, or null: shape_to_json() leaves it out */
};

static void check_object_of(struct checking *c, const struct shape *shape, const struct node *object);

/* kubectl reads YAML 1.1, where 010 is 8; since YAML 1.2 it is 10. */
static bool has_leading_zero(const struct node *node)
{
	const char *text = node->text;

	if (node->type != NODE_NUMBER)
		return false;
	text += *text == '-' || *text == '+';
	return text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

static void check_value(struct checking *c, const struct field *field, const struct node *node)
{
	struct problems *problems = c->problems;

	if (!check_type(field, node, problems))
		return;
	if (has_leading_zero(node))
		problem_node(problems, node,
			     "%s: kubectl reads a number with a leading zero in octal: write it without", node->text);
	else if (field->type == FIELD_OBJECT)
		check_object_of(c, field->shape, node);
	else if (field->type == FIELD_NUMBER)
		check_number(field, node, problems);
	else if (field->type == FIELD_RATE)
		check_rate(node, problems);
	else
		check_text_value(field, node, problems);
}

/* Each object's text is said to be there twice where it comes again. */
static void check_distinct(const struct node *list, const char *member, struct problems *problems)
{
	CLEANUP_JSON json_t *lines = json_object(); /* in which a text is first */

	for (size_t i = 0; i < list->n; i++) {
		const struct node *node = node_member(list->items[i], member);
		const char *text = node_text(node);
		json_t *first = json_object_get(lines, text);

		if (first)
			problem_node(problems, node, "\"%s\" is there twice: first in line %d", text,
				     (int)json_integer_value(first));
		else if (*text)
			json_object_set_new(lines, text, json_integer(node->line));
	}
}

static void check_member(struct checking *c, const struct field *field, const struct node *node)
{
	struct problems *problems = c->problems;

	if (field->type == FIELD_IGNORED || node->type == NODE_NULL) {
		c->some_means_nothing = true;
		return;
	}
	if (!field->list) {
		check_value(c, field, node);
		return;
	}
	if (node->type != NODE_LIST) {
		problem_node(problems, node, "must be a list, not %s", node_type_name(node->type));
		return;
	}
	if (field->required && !node->n)
		problem_node(problems, node, "the list is empty");
	if (field->most && node->n > field->most) {
		problem_node(problems, node, "there are %zu: there can be %u at most", node->n, field->most);
		return;
	}
	for (size_t i = 0; i < node->n; i++)
		check_value(c, field, node->items[i]);
	if (field->distinct && c->late)
		check_distinct(node, field->distinct, problems);
}

/* Is anything wrong with the whole that is not with a part? */
static void check_whole(const struct shape *shape, const struct node *object, struct problems *problems)
{
	CLEANUP_JSON json_t *json = shape_to_json(shape, object), *own = policy_own_names(json);
	struct error why = { 0 };

	if (shape->check(own, &why))
		problem_error(problems, object, &why);
}

static void check_object_of(struct checking *c, const struct shape *shape, const struct node *object)
{
	const struct field *next = shape->fields;
	struct problems *problems = c->problems;
	size_t errors = problems->errors;

	for (size_t i = 0; i < object->n; i++) {
		const struct field *field = field_named(shape, object->items[i]->key, &next);

		if (field)
			check_member(c, field, object->items[i]);
		else
			say_unknown(shape, object->items[i], problems);
	}
	for (const struct field *field = shape->fields; field->name; field++)
		if (field->required && !node_member(object, field->name))
			problem_node(problems, object, "%s is missing", field->name);
	if (shape->check && (c->late || !shape->late) && problems->errors == errors)
		check_whole(shape, object, problems);
}

void shape_check(const struct shape *shape, const struct node *object, struct problems *problems)
{
	check_object_of(&(struct checking){ .problems = problems, .late = true }, shape, object);
}

bool shape_check_early(const struct shape *shape, const struct node *object, struct problems *problems)
{
	struct checking c = { .problems = problems };

	check_object_of(&c, shape, object);
	return !c.some_means_nothing;
}

/* --- as JSON */

static json_t *value_to_json(const struct field *field, const struct node *node)
{
	if (field->type == FIELD_OBJECT)
		return shape_to_json(field->shape, node);
	return field->type == FIELD_RATE ? json_string(node->text) : node_to_json(node);
}

/* There may be very many objects, most of which have few of the fields: none is looked for behind the last that is there. */
json_t *shape_to_json(const struct shape *shape, const struct node *object)
{
	json_t *json = json_object();
	size_t n = 0;

	for (const struct field *field = shape->fields; field->name && n < object->n; field++) {
		const struct node *node = node_member(object, field->name);
		json_t *list;

		n += node != NULL;
		if (!node || field->type == FIELD_IGNORED)
			continue;
		if (!field->list) {
			json_object_set_new(json, field->name, value_to_json(field, node));
			continue;
		}
		list = json_array();
		for (size_t i = 0; i < node->n; i++)
			json_array_append_new(list, value_to_json(field, node->items[i]));
		json_object_set_new(json, field->name, list);
	}
	return json;
}
