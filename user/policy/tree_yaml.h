/* SPDX-License-Identifier: GPL-2.0 */
/* What tree_yaml.c, which reads YAML, and tree_alias.c have in common. */
#ifndef WEIR_USER_POLICY_TREE_YAML_H
#define WEIR_USER_POLICY_TREE_YAML_H

#include <yaml.h>

#include "policy/bounds.h"
#include "policy/tree.h"

struct anchor {
	const char *name;
	const struct node *node;
};

struct reading {
	const char *file;
	yaml_parser_t parser;
	struct documents *out;
	struct problems *problems;
	int ret;
	bool ended; /* nothing more is read: it failed, or a problem says why */
	/* of a document: */
	struct node **open; /* what the collections that are being read have so far: the innermost's last */
	size_t n_open;
	size_t nodes;
	struct anchor anchors[POLICY_ANCHORS_MAX];
	size_t n_anchors;
};

#define say(r, mark, ...) problem_at((r)->problems, (r)->file, (mark).line + 1, (mark).column + 1, __VA_ARGS__)

/* Nothing more is read: a problem says why. */
void reading_end(struct reading *r);
/* Nothing more is read: there is no memory. */
void reading_fail(struct reading *r);

/* --- nodes */

/* Collections within each other are counted, this one as well if it is one. NULL: nothing more is read. */
struct node *reading_node(struct reading *r, yaml_mark_t mark, struct node *parent, unsigned int depth);
void reading_put(struct reading *r, struct node *node);
/* What was put since there were `first` is all that the collection has. */
void reading_close(struct reading *r, struct node *collection, size_t first);

/* --- anchors and aliases (tree_alias.c) */

/* NULL: it has none. */
const char *reading_anchor_name(const yaml_event_t *event);
/* NULL: there is none of this name yet. */
const struct node *reading_anchored(const struct reading *r, const char *name);
/* The node has the event's anchor, if there is one. */
void reading_anchor(struct reading *r, const yaml_event_t *event, const struct node *node);
/* NULL: nothing more is read. */
struct node *reading_alias(struct reading *r, const yaml_event_t *event, struct node *parent, unsigned int depth);

#endif
