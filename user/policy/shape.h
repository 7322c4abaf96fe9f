/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a document may hold, as tables: the parser and the JSON Schema are made of the same ones, so that they cannot disagree.
 */
#ifndef WEIR_USER_POLICY_SHAPE_H
#define WEIR_USER_POLICY_SHAPE_H

#include <jansson.h>

#include "weir/base/types.h"

#include "base/error.h"
#include "policy/tree.h"

enum field_type {
	FIELD_TEXT,
	FIELD_NUMBER, /* whole */
	FIELD_RATE,   /* a decimal, or one as a text */
	FIELD_FLAG,
	FIELD_OBJECT,
	FIELD_IGNORED, /* anything: what others wrote into the document, which means nothing here */
};

struct field;

/* A text that words cannot list: 0, or a negative errno with err filled in. */
typedef int check_text(const struct field *field, const char *text, struct error *err);
/* What no single field can tell of an object all of whose fields are right; its JSON, in weir's own names (policy_own_names). */
typedef int check_object(json_t *object, struct error *err);

struct shape {
	const struct field *fields; /* the last has no name */
	check_object *check;	    /* NULL: nothing more */
	bool late; /* the check costs as much as making the server does, and that finds the same, if not where it stands */
};

struct field {
	const char *name;
	enum field_type type;
	bool list;	      /* of such values */
	bool required;	      /* and not null; of a list: and not empty */
	__u32 min, max;	      /* of a number */
	__u32 most;	      /* of a list: so many values; 0: any number */
	const char *distinct; /* of a list of objects: no two have the same text here; a late check. NULL: they may */
	const char *const *words; /* of a text: the only ones there are, NULL behind them; or NULL */
	check_text *check;
	const struct shape *shape; /* of an object */
	const char *help;
};

/* Everything that is wrong with a document is added to the problems. */
void shape_check(const struct shape *shape, const struct node *object, struct problems *problems);
/*
 * The same without what late checks find, for a caller that makes a server of the document next. True: all of the document means something,
 * so shape_to_json() leaves nothing out.
 */
bool shape_check_early(const struct shape *shape, const struct node *object, struct problems *problems);
/* What the shape knows of an object that is right: neither ignored nor null members. A new reference. */
json_t *shape_to_json(const struct shape *shape, const struct node *object);

/* What tables of fields have in common: a document's first ones, one that means nothing here, and the end. */
#define FIELDS_HEAD                                                     \
	{ .name = "apiVersion", .type = FIELD_TEXT, .required = true }, \
	{                                                               \
		.name = "kind", .type = FIELD_TEXT, .required = true    \
	}
#define FIELDS_IGNORED(field)                          \
	{                                              \
		.name = (field), .type = FIELD_IGNORED \
	}
#define FIELDS_END \
	{          \
		0  \
	}

#endif
