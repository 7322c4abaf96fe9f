/* SPDX-License-Identifier: GPL-2.0 */
#include "policy/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "policy/bounds.h"

void node_free(struct node *node)
{
	if (!node)
		return;
	for (size_t i = 0; i < node->n; i++)
		node_free(node->items[i]);
	free(node->items);
	free(node->key);
	free(node->text);
	free(node);
}

struct node *node_member(const struct node *object, const char *key)
{
	for (size_t i = 0; object && object->type == NODE_OBJECT && i < object->n; i++)
		if (strcmp(object->items[i]->key, key) == 0)
			return object->items[i]->type == NODE_NULL ? NULL : object->items[i];
	return NULL;
}

struct node *node_find(const struct node *object, const char *path)
{
	CLEANUP_FREE char *copy = strdup(path);
	char *rest = copy, *key;
	struct node *found = NULL;

	while (object && (key = strsep(&rest, ".")))
		object = found = node_member(object, key);
	return found;
}

const char *node_text(const struct node *node)
{
	return node && node->text ? node->text : "";
}

const char *node_type_name(enum node_type type)
{
	static const char *const names[] = { "nothing", "true or false", "a number", "a text", "an object", "a list" };

	return names[type];
}

static json_t *scalar_to_json(const struct node *node)
{
	long long whole;
	char *end;

	if (node->type == NODE_FLAG)
		return json_boolean(strcasecmp(node->text, "true") == 0);
	if (node->type != NODE_NUMBER)
		return json_string(node->text);
	errno = 0;
	whole = strtoll(node->text, &end, 10);
	return *end || errno ? json_string(node->text) : json_integer(whole);
}

json_t *node_to_json(const struct node *node)
{
	json_t *json;

	if (node->type == NODE_NULL)
		return json_null();
	if (node->type != NODE_OBJECT && node->type != NODE_LIST)
		return scalar_to_json(node);
	json = node->type == NODE_LIST ? json_array() : json_object();
	for (size_t i = 0; i < node->n; i++) {
		json_t *item = node_to_json(node->items[i]);

		if (node->type == NODE_LIST)
			json_array_append_new(json, item);
		else
			json_object_set_new(json, node->items[i]->key, item);
	}
	return json;
}

void documents_clear(struct documents *documents)
{
	for (size_t i = 0; i < documents->n; i++)
		node_free(documents->items[i]);
	free(documents->items);
	*documents = (struct documents){ 0 };
}

/* --- from libyaml's document */

struct reading {
	const char *file;
	yaml_document_t *document;
	struct problems *problems;
	size_t nodes;
	bool too_many; /* has been said */
};

bool node_text_is_decimal(const char *text)
{
	size_t whole, fraction = 0;

	text += *text == '-' || *text == '+';
	whole = strspn(text, "0123456789");
	text += whole;
	if (*text == '.') {
		text++;
		fraction = strspn(text, "0123456789");
		text += fraction;
	}
	return !*text && whole + fraction;
}

/* What a text without quotes means, as YAML 1.2's core schema has it. */
static enum node_type plain_type(const char *text)
{
	if (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 ||
	    strcmp(text, "NULL") == 0)
		return NODE_NULL;
	if (strcmp(text, "true") == 0 || strcmp(text, "True") == 0 || strcmp(text, "TRUE") == 0 ||
	    strcmp(text, "false") == 0 || strcmp(text, "False") == 0 || strcmp(text, "FALSE") == 0)
		return NODE_FLAG;
	return node_text_is_decimal(text) ? NODE_NUMBER : NODE_TEXT;
}

static struct node *convert(struct reading *r, const yaml_node_t *from, struct node *parent, int depth);

bool node_add(struct node *parent, struct node *child)
{
	struct node **grown = child ? array_grow(parent->items, parent->n, sizeof(*grown)) : NULL;

	if (!grown) {
		node_free(child);
		return false;
	}
	parent->items = grown;
	child->index = parent->n;
	grown[parent->n++] = child;
	return true;
}

static bool convert_list(struct reading *r, const yaml_node_t *from, struct node *list, int depth)
{
	for (yaml_node_item_t *item = from->data.sequence.items.start; item < from->data.sequence.items.top; item++)
		if (!node_add(list, convert(r, yaml_document_get_node(r->document, *item), list, depth + 1)))
			return false;
	return true;
}

/* A member is never null to node_member(), so twice is looked for by the key alone. */
static const struct node *same_key(const struct node *object, const char *key)
{
	for (size_t i = 0; i < object->n; i++)
		if (strcmp(object->items[i]->key, key) == 0)
			return object->items[i];
	return NULL;
}

static bool convert_member(struct reading *r, const yaml_node_pair_t *pair, struct node *object, int depth)
{
	const yaml_node_t *key = yaml_document_get_node(r->document, pair->key);
	unsigned int line = key->start_mark.line + 1, column = key->start_mark.column + 1;
	const struct node *before;
	struct node *value;
	const char *name;

	if (key->type != YAML_SCALAR_NODE) {
		problem_at(r->problems, r->file, line, column, "a key must be a text");
		return true;
	}
	name = (const char *)key->data.scalar.value;
	if (strlen(name) != key->data.scalar.length) {
		problem_at(r->problems, r->file, line, column, "a key must not hold a NUL character");
		return true;
	}
	if (object->n == POLICY_FIELDS_MAX) {
		problem_at(r->problems, r->file, line, column, "more than %d fields in one object", POLICY_FIELDS_MAX);
		r->too_many = true;
		return false;
	}
	before = same_key(object, name);
	if (before) {
		problem_at(r->problems, r->file, line, column, "\"%s\" is there twice: first in line %u", name,
			   before->key_line);
		return true;
	}
	value = convert(r, yaml_document_get_node(r->document, pair->value), object, depth + 1);
	if (!value)
		return false;
	value->key = strdup(name);
	value->key_line = line;
	value->key_column = column;
	return value->key ? node_add(object, value) : (node_free(value), false);
}

static bool convert_scalar(struct reading *r, const yaml_node_t *from, struct node *node)
{
	const char *text = (const char *)from->data.scalar.value;

	if (strlen(text) != from->data.scalar.length)
		problem_at(r->problems, r->file, node->line, node->column, "a text must not hold a NUL character");
	node->type = from->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_type(text) : NODE_TEXT;
	node->text = node->type == NODE_NULL ? NULL : strdup(text);
	return node->type == NODE_NULL || node->text;
}

static void check_tag(struct reading *r, const yaml_node_t *from, const struct node *node)
{
	static const char *const usual[] = { YAML_STR_TAG, YAML_SEQ_TAG, YAML_MAP_TAG };

	for (size_t i = 0; i < 3; i++)
		if (strcmp((const char *)from->tag, usual[i]) == 0)
			return;
	problem_at(r->problems, r->file, node->line, node->column, "tags (\"%s\") are not supported", from->tag);
}

/* Null is returned without memory, or when there is too much: then that is said. */
static struct node *convert(struct reading *r, const yaml_node_t *from, struct node *parent, int depth)
{
	struct node *node;
	bool made = true;

	if (depth > POLICY_DEPTH_MAX || r->nodes++ > POLICY_NODES_MAX) {
		if (!r->too_many)
			problem_at(r->problems, r->file, from->start_mark.line + 1, from->start_mark.column + 1,
				   depth > POLICY_DEPTH_MAX ? "more than %d levels of nesting" :
							      "more than %d values in one document",
				   depth > POLICY_DEPTH_MAX ? POLICY_DEPTH_MAX : POLICY_NODES_MAX);
		r->too_many = true;
		return NULL;
	}
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->file = r->file;
	node->parent = parent;
	node->line = from->start_mark.line + 1;
	node->column = from->start_mark.column + 1;
	check_tag(r, from, node);
	if (from->type == YAML_SCALAR_NODE) {
		made = convert_scalar(r, from, node);
	} else if (from->type == YAML_SEQUENCE_NODE) {
		node->type = NODE_LIST;
		made = convert_list(r, from, node, depth);
	} else {
		node->type = NODE_OBJECT;
		for (yaml_node_pair_t *pair = from->data.mapping.pairs.start;
		     made && pair < from->data.mapping.pairs.top; pair++)
			made = convert_member(r, pair, node, depth);
	}
	if (made)
		return node;
	node_free(node);
	return NULL;
}

static int add_document(struct reading *r, struct documents *out)
{
	const yaml_node_t *root = yaml_document_get_root_node(r->document);
	struct node *node = convert(r, root, NULL, 0);
	struct node **grown;

	if (!node)
		return r->too_many ? 0 : -ENOMEM;
	if (node->type == NODE_NULL) { /* "---" with nothing behind it */
		node_free(node);
		return 0;
	}
	grown = array_grow(out->items, out->n, sizeof(*grown));
	if (!grown) {
		node_free(node);
		return -ENOMEM;
	}
	out->items = grown;
	grown[out->n++] = node;
	return 0;
}

static void say_syntax(const yaml_parser_t *parser, const char *file, struct problems *problems)
{
	bool reader = parser->error == YAML_READER_ERROR;

	problem_at(problems, file, reader ? 0 : parser->problem_mark.line + 1,
		   reader ? 0 : parser->problem_mark.column + 1, "not YAML: %s%s%s", parser->problem ?: "unreadable",
		   parser->context ? " " : "", parser->context ?: "");
}

int documents_read(const char *file, const char *text, size_t length, struct documents *out, struct problems *problems)
{
	yaml_document_t document;
	yaml_parser_t parser;
	int ret = policy_bounds_check(file, text, length, problems);

	if (ret)
		return ret == -E2BIG ? 0 : ret;
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	for (bool more = true; more && !ret;) {
		struct reading r = { .file = file, .document = &document, .problems = problems };

		if (!yaml_parser_load(&parser, &document)) {
			say_syntax(&parser, file, problems);
			break;
		}
		more = yaml_document_get_root_node(&document) != NULL;
		if (more)
			ret = add_document(&r, out);
		yaml_document_delete(&document);
	}
	yaml_parser_delete(&parser);
	return ret;
}
