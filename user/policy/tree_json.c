/* SPDX-License-Identifier: GPL-2.0 */
/* JSON that somebody else has parsed, as the tree that its text would have come to. */
#include <string.h>

#include "base/json_text.h"
#include "policy/bounds.h"
#include "policy/tree.h"

struct converting {
	const char *file;
	struct pool *pool;
	struct problems *problems;
	size_t nodes;
	bool reals; /* they are taken */
};

static struct node *convert(struct converting *c, json_t *json, struct node *parent, int depth);

static bool make_room(struct converting *c, struct node *collection, size_t n)
{
	collection->items = pool_take(c->pool, n * sizeof(*collection->items));
	return collection->items;
}

static bool add(struct node *parent, struct node *child)
{
	if (!child)
		return false;
	child->index = parent->n;
	parent->items[parent->n++] = child;
	return true;
}

static bool convert_list(struct converting *c, json_t *json, struct node *list, int depth)
{
	json_t *item;
	size_t i;

	if (!make_room(c, list, json_array_size(json)))
		return false;
	json_array_foreach (json, i, item)
		if (!add(list, convert(c, item, list, depth + 1)))
			return false;
	return true;
}

static bool convert_object(struct converting *c, json_t *json, struct node *object, int depth)
{
	const char *key;
	json_t *value;

	if (json_object_size(json) > POLICY_FIELDS_MAX) {
		problem_at(c->problems, c->file, 0, 0, "more than %d fields in one object", POLICY_FIELDS_MAX);
		return false;
	}
	if (!make_room(c, object, json_object_size(json)))
		return false;
	json_object_foreach (json, key, value) {
		if (!add(object, convert(c, value, object, depth + 1)))
			return false;
		object->items[object->n - 1]->key = key;
	}
	return true;
}

static bool convert_real(struct converting *c, json_t *json, struct node *node)
{
	char number[64];

	snprintf(number, sizeof(number), "%.17g", json_real_value(json));
	if (!node_text_is_decimal(number))
		node->type = NODE_TEXT;
	node->text = c->reals ? pool_text(c->pool, number, strlen(number)) : NULL;
	return node->text;
}

/* There may be very many: no formats are read for them. */
static bool convert_integer(struct converting *c, json_int_t value, struct node *node)
{
	char digits[TEXT_NUMBER], *digit = text_digits(value < 0 ? -(uint64_t)value : (uint64_t)value, digits);

	if (value < 0)
		*--digit = '-';
	node->text = pool_text(c->pool, digit, strlen(digit));
	return node->text;
}

static bool convert_scalar(struct converting *c, json_t *json, struct node *node)
{
	switch (json_typeof(json)) {
	case JSON_STRING:
		node->text = json_string_value(json);
		return true;
	case JSON_INTEGER:
		return convert_integer(c, json_integer_value(json), node);
	case JSON_REAL:
		return convert_real(c, json, node);
	default:
		node->text = json_is_true(json) ? "true" : "false";
		return true;
	}
}

static enum node_type type_of(json_t *json)
{
	switch (json_typeof(json)) {
	case JSON_OBJECT:
		return NODE_OBJECT;
	case JSON_ARRAY:
		return NODE_LIST;
	case JSON_STRING:
		return NODE_TEXT;
	case JSON_INTEGER:
	case JSON_REAL:
		return NODE_NUMBER;
	case JSON_TRUE:
	case JSON_FALSE:
		return NODE_FLAG;
	default:
		return NODE_NULL;
	}
}

static bool convert_value(struct converting *c, json_t *json, struct node *node, int depth)
{
	if (node->type == NODE_OBJECT)
		return convert_object(c, json, node, depth);
	if (node->type == NODE_LIST)
		return convert_list(c, json, node, depth);
	return node->type == NODE_NULL || convert_scalar(c, json, node);
}

static bool has_room(struct converting *c, int depth)
{
	if (depth > POLICY_DEPTH_MAX)
		problem_at(c->problems, c->file, 0, 0, "more than %d levels of nesting", POLICY_DEPTH_MAX);
	else if (c->nodes++ > POLICY_NODES_MAX)
		problem_at(c->problems, c->file, 0, 0, "more than %d values in one document", POLICY_NODES_MAX);
	else
		return true;
	return false;
}

/* depth: of collections around it */
static struct node *convert(struct converting *c, json_t *json, struct node *parent, int depth)
{
	bool collection = json_is_object(json) || json_is_array(json);
	struct node *node = has_room(c, depth + collection) ? pool_take(c->pool, sizeof(*node)) : NULL;

	if (!node)
		return NULL;
	node->file = c->file;
	node->parent = parent;
	node->type = type_of(json);
	return convert_value(c, json, node, depth) ? node : NULL;
}

struct node *node_from_json(const char *file, json_t *json, struct pool *pool, struct problems *problems)
{
	struct converting c = { .file = file, .pool = pool, .problems = problems, .reals = true };

	return convert(&c, json, NULL, 0);
}

struct node *node_from_text(const char *file, json_t *json, struct pool *pool)
{
	CLEANUP_PROBLEMS struct problems problems = { 0 };

	return convert(&(struct converting){ .file = file, .pool = pool, .problems = &problems }, json, NULL, 0);
}
