/* SPDX-License-Identifier: GPL-2.0 */
#include "policy/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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

void documents_clear(struct documents *documents)
{
	pool_clear(&documents->pool);
	free(documents->items);
	*documents = (struct documents){ 0 };
}
