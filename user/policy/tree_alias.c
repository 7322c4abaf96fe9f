/* SPDX-License-Identifier: GPL-2.0 */
/* Anchors, and the aliases that stand for them: each is a copy of what its anchor has. */
#include <string.h>

#include "policy/bounds.h"
#include "policy/tree_yaml.h"

/* --- anchors */

const char *reading_anchor_name(const yaml_event_t *event)
{
	const yaml_char_t *name = event->type == YAML_SCALAR_EVENT	   ? event->data.scalar.anchor :
				  event->type == YAML_SEQUENCE_START_EVENT ? event->data.sequence_start.anchor :
				  event->type == YAML_MAPPING_START_EVENT  ? event->data.mapping_start.anchor :
									     event->data.alias.anchor;

	return (const char *)name;
}

const struct node *reading_anchored(const struct reading *r, const char *name)
{
	for (size_t i = 0; i < r->n_anchors; i++)
		if (strcmp(r->anchors[i].name, name) == 0)
			return r->anchors[i].node;
	return NULL;
}

void reading_anchor(struct reading *r, const yaml_event_t *event, const struct node *node)
{
	const char *name = reading_anchor_name(event);
	char *copy;

	if (!name)
		return;
	if (reading_anchored(r, name)) {
		say(r, event->start_mark, "anchor \"%s\" is there twice", name);
		reading_end(r);
		return;
	}
	if (r->n_anchors == POLICY_ANCHORS_MAX) {
		say(r, event->start_mark, "more than %d anchors in one document", POLICY_ANCHORS_MAX);
		reading_end(r);
		return;
	}
	copy = pool_text(&r->out->pool, name, strlen(name));
	if (!copy)
		reading_fail(r);
	r->anchors[r->n_anchors++] = (struct anchor){ copy, node };
}

/* --- aliases */

static struct node *copy_of(struct reading *r, const struct node *from, yaml_mark_t mark, struct node *parent,
			    unsigned int depth);

static void copy_items(struct reading *r, const struct node *from, yaml_mark_t mark, struct node *to,
		       unsigned int depth)
{
	size_t first = r->n_open;

	for (size_t i = 0; i < from->n && !r->ended; i++) {
		struct node *item = copy_of(r, from->items[i], mark, to, depth);

		if (!item)
			return;
		item->key = from->items[i]->key;
		item->key_line = from->items[i]->key_line;
		item->key_column = from->items[i]->key_column;
		reading_put(r, item);
	}
	if (!r->ended)
		reading_close(r, to, first);
}

/* A value stands where its anchor does. mark: the alias, for what is too much. */
static struct node *copy_of(struct reading *r, const struct node *from, yaml_mark_t mark, struct node *parent,
			    unsigned int depth)
{
	bool collection = from->type == NODE_OBJECT || from->type == NODE_LIST;
	struct node *copy;

	if (r->out->copies++ >= POLICY_COPIES_MAX) {
		say(r, mark, "aliases stand for more than %d values in all documents", POLICY_COPIES_MAX);
		reading_end(r);
		return NULL;
	}
	copy = reading_node(r, mark, parent, depth + collection);
	if (!copy)
		return NULL;
	copy->type = from->type;
	copy->text = from->text;
	copy->line = from->line;
	copy->column = from->column;
	if (collection)
		copy_items(r, from, mark, copy, depth + 1);
	return r->ended ? NULL : copy;
}

static bool is_within(const struct node *node, const struct node *outer)
{
	while (node && node != outer)
		node = node->parent;
	return node;
}

struct node *reading_alias(struct reading *r, const yaml_event_t *event, struct node *parent, unsigned int depth)
{
	const char *name = reading_anchor_name(event);
	const struct node *node = reading_anchored(r, name);

	if (node && !is_within(parent, node))
		return copy_of(r, node, event->start_mark, parent, depth);
	if (node)
		say(r, event->start_mark, "more than %d levels of nesting: \"%s\" is within itself", POLICY_DEPTH_MAX,
		    name);
	else
		say(r, event->start_mark, "not YAML: there is no anchor \"%s\" before it", name);
	reading_end(r);
	return NULL;
}
