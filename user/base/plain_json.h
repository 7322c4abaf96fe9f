/* SPDX-License-Identifier: GPL-2.0 */
/*
 * JSON of the plainest kind, token by token: an object or a list, of short ASCII texts without escapes, of decimals, true, false and null,
 * with blanks and newlines between them. That is what most large texts of JSON are. libyaml and jansson read each such text, too, and
 * come to the same, but take several times as long. Whatever else a text may hold is left to them.
 */
#ifndef WEIR_USER_BASE_PLAIN_JSON_H
#define WEIR_USER_BASE_PLAIN_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define PLAIN_TEXT_MAX 1000 /* of a text; libyaml has a bound for keys that is hardly larger */
#define PLAIN_DEPTH_MAX 64

enum plain_kind {
	PLAIN_END,   /* behind the whole */
	PLAIN_OTHER, /* it is more than plain, or no JSON at all */
	PLAIN_KEY,
	PLAIN_TEXT,
	PLAIN_WORD,   /* a decimal, true, false or null: as it is written */
	PLAIN_OBJECT, /* its members come next, then PLAIN_CLOSE */
	PLAIN_LIST,
	PLAIN_CLOSE,
};

struct plain_token {
	enum plain_kind kind;
	const char *text; /* without quotes; no NUL behind it */
	size_t length;
	unsigned int line, column; /* where it stands, from 0 */
};

/* Where a reader is. */
struct plain {
	const char *at, *end, *line_begin;
	unsigned int line;
	unsigned int depth;
	bool object[PLAIN_DEPTH_MAX]; /* of what it is within: is it an object? */
	bool first;		      /* of its object or list */
	bool valued;		      /* a key was read, and its value comes */
};

struct plain plain_begin(const char *text, size_t length);
void plain_next(struct plain *p, struct plain_token *token);
/* Is all of the text plain? */
bool plain_whole(const char *text, size_t length);

/* The text's value: a new reference. NULL: it is not all plain, says a key twice, or there is no memory. */
json_t *plain_to_json(const char *text, size_t length);

#endif
