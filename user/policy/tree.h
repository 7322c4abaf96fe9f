/* SPDX-License-Identifier: GPL-2.0 */
/*
 * YAML (JSON is YAML) as a tree that knows where each of its nodes stands, and the list of what is wrong in it. Anchors and
 * aliases are resolved; tags and merge keys are not.
 */
#ifndef WEIR_USER_POLICY_TREE_H
#define WEIR_USER_POLICY_TREE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "base/pool.h"

#define POLICY_FILE_MAX (16U << 20) /* bytes of a file */

enum node_type {
	NODE_NULL,
	NODE_FLAG,
	NODE_NUMBER, /* decimal: its text may be a fraction */
	NODE_TEXT,
	NODE_OBJECT,
	NODE_LIST,
};

struct node {
	enum node_type type;
	const char *file;	   /* borrowed from whoever had it read */
	unsigned int line, column; /* from 1; of a member: its value's */
	struct node *parent;
	const char *key; /* in an object, else NULL */
	unsigned int key_line, key_column;
	size_t index;	  /* in its parent */
	const char *text; /* of a flag, number or text: as it is written */
	struct node **items;
	size_t n;
};

/* The member of an object, or NULL: it is not there, or null. */
struct node *node_member(const struct node *object, const char *key);
/* A member of a member ...: "spec.rules". */
struct node *node_find(const struct node *object, const char *path);
/* The text, or "" for other nodes and NULL. */
const char *node_text(const struct node *node);
bool node_text_is_decimal(const char *text);
/* "a list", "a number": with an article, for errors. */
const char *node_type_name(enum node_type type);
/* A new reference; whole numbers stay whole, others become texts as they are written. */
json_t *node_to_json(const struct node *node);

/* --- what is wrong, or worth a warning */

struct problem {
	const char *file; /* borrowed */
	unsigned int line, column;
	bool warning;
	char *path; /* in the document: "$.spec.limits[2].qps"; "" where there is none */
	char *text;
};

struct problems {
	struct problem *items;
	size_t n;
	size_t errors, warnings; /* that there are; the first thousand of each are kept */
};

void problems_clear(struct problems *problems);
#define CLEANUP_PROBLEMS __attribute__((cleanup(problems_clear)))
/* Those that were there before stay. */
void problems_cut(struct problems *problems, const struct problems *before);
/* By file, line and column. */
void problems_sort(struct problems *problems);
/* "file:line:column: $.path: text"; the caller frees it, NULL without memory. */
char *problem_text(const struct problem *problem);
/* One a line. */
void problems_print(const struct problems *problems, FILE *out);
json_t *problems_to_json(const struct problems *problems);

void problem_at(struct problems *problems, const char *file, unsigned int line, unsigned int column, const char *format,
		...) __attribute__((format(printf, 5, 6)));
void problem_node(struct problems *problems, const struct node *node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* What is wrong with an object, in weir's own words: at the member that the error names, if it names one. The text becomes another. */
void problem_error(struct problems *problems, const struct node *object, struct error *why);
/* At the node's key, not at its value. */
void problem_key(struct problems *problems, const struct node *node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void warn_node(struct problems *problems, const struct node *node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- reading */

struct documents {
	struct node **items;
	size_t n;
	size_t copies;	  /* nodes that aliases asked for */
	struct pool pool; /* of all their nodes */
};

void documents_clear(struct documents *documents);
#define CLEANUP_DOCUMENTS __attribute__((cleanup(documents_clear)))

/*
 * Where the text is JSON, its pairs of surrogates are YAML's escapes in *joined, which the caller frees, and *length is that text's (as_yaml.c).
 * NULL: it has none, and is read as it is. -ENOMEM.
 */
int documents_join_pairs(const char *text, size_t *length, char **joined);

/*
 * The documents of a text (tree_yaml.c), empty ones left out. What is wrong is added to the problems; behind what is no YAML, or too
 * much, nothing is read. -ENOMEM.
 */
int documents_read(const char *file, const char *text, size_t length, struct documents *out, struct problems *problems);

/*
 * The tree of a document that is JSON already (tree_json.c), in the pool, with the JSON's own texts: its nodes stand nowhere. NULL: a
 * problem says why, or no memory.
 */
struct node *node_from_json(const char *file, json_t *json, struct pool *pool, struct problems *problems);
/* The same of a whole file. NULL as well where its text may come to another tree: of fractions it keeps how they are written. */
struct node *node_from_text(const char *file, json_t *json, struct pool *pool);

#endif
