/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trees from libyaml's events, each of which is looked at once. Its documents would be a second tree, and it would make them in a time that
 * grows with the square of how many collections are within each other, and of how many anchors there are. The bounds are told here
 * before any of that is held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "policy/bounds.h"
#include "policy/tree_yaml.h"

static struct node *read_next(struct reading *r, struct node *parent, unsigned int depth);

void reading_end(struct reading *r)
{
	r->ended = true;
}

void reading_fail(struct reading *r)
{
	r->ret = -ENOMEM;
	r->ended = true;
}

static bool says(const char *said, const char *words)
{
	return said && strcmp(said, words) == 0;
}

/* libyaml takes it for an alias: *:8080. */
static const char *advice(const yaml_parser_t *parser)
{
	if (says(parser->context, "while scanning an alias"))
		return ": write what begins with * in quotes";
	if (says(parser->problem, "found character that cannot start any token") && *parser->buffer.pointer == '\t')
		return ": indent with spaces, not with tabs";
	return "";
}

/* Of a character that is refused before anything is made of it, libyaml knows the byte. */
static yaml_mark_t problem_place(const yaml_parser_t *parser)
{
	const unsigned char *text = parser->input.string.start;
	yaml_mark_t place = { 0 };

	if (parser->error != YAML_READER_ERROR)
		return parser->problem_mark;
	for (size_t i = 0; i < parser->problem_offset; i++) {
		bool ends = text[i] == '\n', begins = (text[i] & 0xc0) != 0x80;

		place.line += ends;
		place.column = ends ? 0 : place.column + begins;
	}
	return place;
}

static void say_syntax(struct reading *r)
{
	const yaml_parser_t *parser = &r->parser;

	say(r, problem_place(parser), "not YAML: %s%s%s%s", parser->problem ?: "unreadable", parser->context ? " " : "",
	    parser->context ?: "", advice(parser));
}

/* The caller deletes the event, if there is one. */
static bool next_event(struct reading *r, yaml_event_t *event)
{
	if (r->ended)
		return false;
	if (yaml_parser_parse(&r->parser, event))
		return true;
	if (r->parser.error == YAML_MEMORY_ERROR)
		r->ret = -ENOMEM;
	else
		say_syntax(r);
	reading_end(r);
	return false;
}

/* --- nodes */

/* Collections within each other are counted, this one as well if it is one. NULL: nothing more is read. */
struct node *reading_node(struct reading *r, yaml_mark_t mark, struct node *parent, unsigned int depth)
{
	struct node *node = NULL;

	if (depth > POLICY_DEPTH_MAX) {
		say(r, mark, "more than %d levels of nesting", POLICY_DEPTH_MAX);
		reading_end(r);
	} else if (r->nodes++ > POLICY_NODES_MAX) {
		say(r, mark, "more than %d values in one document", POLICY_NODES_MAX);
		reading_end(r);
	} else {
		node = pool_take(&r->out->pool, sizeof(*node));
		if (!node)
			reading_fail(r);
	}
	if (!node)
		return NULL;
	node->file = r->file;
	node->parent = parent;
	node->line = mark.line + 1;
	node->column = mark.column + 1;
	return node;
}

void reading_put(struct reading *r, struct node *node)
{
	struct node **grown = array_grow(r->open, r->n_open, sizeof(*grown));

	if (!grown) {
		reading_fail(r);
		return;
	}
	r->open = grown;
	grown[r->n_open++] = node;
}

/* What was put since there were `first` is all that the collection has. */
void reading_close(struct reading *r, struct node *collection, size_t first)
{
	collection->n = r->n_open - first;
	r->n_open = first;
	collection->items = pool_take(&r->out->pool, collection->n * sizeof(*collection->items));
	if (!collection->items) {
		collection->n = 0;
		reading_fail(r);
		return;
	}
	for (size_t i = 0; i < collection->n; i++) {
		collection->items[i] = r->open[first + i];
		collection->items[i]->index = i;
	}
}

/* --- values */

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

static void read_scalar(struct reading *r, const yaml_event_t *event, struct node *node)
{
	const char *text = (const char *)event->data.scalar.value;

	if (strlen(text) != event->data.scalar.length)
		say(r, event->start_mark, "a text must not hold a NUL character");
	node->type = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_type(text) : NODE_TEXT;
	if (node->type == NODE_NULL)
		return;
	node->text = pool_text(&r->out->pool, text, strlen(text));
	if (!node->text)
		reading_fail(r);
}

static void read_list(struct reading *r, struct node *list, unsigned int depth)
{
	size_t first = r->n_open;
	struct node *item;

	list->type = NODE_LIST;
	while ((item = read_next(r, list, depth)))
		reading_put(r, item);
	if (!r->ended)
		reading_close(r, list, first);
}

/* NULL: it is not one, or nothing more is read. */
static const char *read_key(struct reading *r, const yaml_event_t *event)
{
	const struct node *node = event->type == YAML_ALIAS_EVENT ? reading_anchored(r, reading_anchor_name(event)) :
								    NULL;
	const char *text = event->type == YAML_SCALAR_EVENT ? (const char *)event->data.scalar.value :
			   node				    ? node->text :
							      NULL;
	char *key;

	if (!text) {
		say(r, event->start_mark, "a key must be a text");
		return NULL;
	}
	if (event->type == YAML_SCALAR_EVENT && strlen(text) != event->data.scalar.length) {
		say(r, event->start_mark, "a key must not hold a NUL character");
		return NULL;
	}
	if (node)
		return text;
	key = pool_text(&r->out->pool, text, strlen(text));
	if (!key)
		reading_fail(r);
	return key;
}

/* A key that aliases refer to is a value to them. */
static void note_key(struct reading *r, const yaml_event_t *event, struct node *object, unsigned int depth)
{
	struct node *node;

	if (event->type == YAML_ALIAS_EVENT || !reading_anchor_name(event))
		return;
	node = reading_node(r, event->start_mark, object, depth);
	if (!node)
		return;
	read_scalar(r, event, node);
	reading_anchor(r, event, node);
}

/* A member is never null to node_member(), so twice is looked for by the key alone. */
static const struct node *same_key(const struct reading *r, size_t first, const char *key)
{
	for (size_t i = first; i < r->n_open; i++)
		if (strcmp(r->open[i]->key, key) == 0)
			return r->open[i];
	return NULL;
}

static void put_member(struct reading *r, yaml_mark_t mark, const char *key, struct node *value, size_t first)
{
	const struct node *before = same_key(r, first, key);

	if (before) {
		say(r, mark, "\"%s\" is there twice: first in line %u", key, before->key_line);
		return;
	}
	value->key = key;
	value->key_line = mark.line + 1;
	value->key_column = mark.column + 1;
	reading_put(r, value);
}

static struct node *read_value(struct reading *r, const yaml_event_t *event, struct node *parent, unsigned int depth);

/* first: where the object's members begin among what is open. */
static void read_member(struct reading *r, const yaml_event_t *event, struct node *object, size_t first,
			unsigned int depth)
{
	bool scalar = event->type == YAML_SCALAR_EVENT || event->type == YAML_ALIAS_EVENT;
	const char *key = read_key(r, event);
	struct node *value;

	if (r->n_open - first == POLICY_FIELDS_MAX) {
		say(r, event->start_mark, "more than %d fields in one object", POLICY_FIELDS_MAX);
		reading_end(r);
		return;
	}
	/* A node in the place of a key is read to its end, because it may have anchors. */
	if (!scalar && !read_value(r, event, object, depth))
		return;
	if (scalar)
		note_key(r, event, object, depth);
	value = read_next(r, object, depth);
	if (value && key && !r->ended)
		put_member(r, event->start_mark, key, value, first);
}

static void read_object(struct reading *r, struct node *object, unsigned int depth)
{
	size_t first = r->n_open;
	yaml_event_t key;

	object->type = NODE_OBJECT;
	while (next_event(r, &key)) {
		bool over = key.type == YAML_MAPPING_END_EVENT;

		if (!over)
			read_member(r, &key, object, first, depth);
		yaml_event_delete(&key);
		if (over) {
			reading_close(r, object, first);
			return;
		}
	}
}

static void check_tag(struct reading *r, const yaml_event_t *event)
{
	static const char *const usual[] = { "!", YAML_STR_TAG, YAML_SEQ_TAG, YAML_MAP_TAG };
	const yaml_char_t *tag = event->type == YAML_SCALAR_EVENT	  ? event->data.scalar.tag :
				 event->type == YAML_SEQUENCE_START_EVENT ? event->data.sequence_start.tag :
									    event->data.mapping_start.tag;

	if (!tag)
		return;
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		if (strcmp((const char *)tag, usual[i]) == 0)
			return;
	say(r, event->start_mark, "tags (\"%s\") are not supported", tag);
}

/* depth: of collections around it. NULL: nothing more is read. */
static struct node *read_value(struct reading *r, const yaml_event_t *event, struct node *parent, unsigned int depth)
{
	bool collection = event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT;
	struct node *node;

	if (event->type == YAML_ALIAS_EVENT)
		return reading_alias(r, event, parent, depth);
	node = reading_node(r, event->start_mark, parent, depth + collection);
	if (!node)
		return NULL;
	check_tag(r, event);
	reading_anchor(r, event, node);
	if (event->type == YAML_SCALAR_EVENT)
		read_scalar(r, event, node);
	else if (event->type == YAML_SEQUENCE_START_EVENT)
		read_list(r, node, depth + 1);
	else
		read_object(r, node, depth + 1);
	return r->ended ? NULL : node;
}

/* NULL: the list is at its end, or nothing more is read. */
static struct node *read_next(struct reading *r, struct node *parent, unsigned int depth)
{
	struct node *node = NULL;
	yaml_event_t event;

	if (!next_event(r, &event))
		return NULL;
	if (event.type != YAML_SEQUENCE_END_EVENT)
		node = read_value(r, &event, parent, depth);
	yaml_event_delete(&event);
	return node;
}

/* --- documents */

/* "---" with nothing behind it is none. */
static void read_document(struct reading *r)
{
	struct node *root, **grown;

	r->nodes = r->n_anchors = r->n_open = 0;
	root = read_next(r, NULL, 0);
	if (!root || root->type == NODE_NULL)
		return;
	grown = array_grow(r->out->items, r->out->n, sizeof(*grown));
	if (!grown) {
		reading_fail(r);
		return;
	}
	r->out->items = grown;
	grown[r->out->n++] = root;
}

static void read_stream(struct reading *r)
{
	yaml_event_t event;

	while (next_event(r, &event)) {
		if (event.type == YAML_DOCUMENT_START_EVENT)
			read_document(r);
		else if (event.type == YAML_STREAM_END_EVENT)
			reading_end(r);
		yaml_event_delete(&event);
	}
}

int documents_read(const char *file, const char *text, size_t length, struct documents *out, struct problems *problems)
{
	struct reading r = { .file = file, .out = out, .problems = problems };
	CLEANUP_FREE char *joined = NULL;

	if (documents_join_pairs(text, &length, &joined) || !yaml_parser_initialize(&r.parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)(joined ?: text), length);
	read_stream(&r);
	yaml_parser_delete(&r.parser);
	free(r.open);
	return r.ret;
}
