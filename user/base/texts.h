/* SPDX-License-Identifier: GPL-2.0 */
/* Lists of texts, and their JSON. */
#ifndef WEIR_USER_BASE_TEXTS_H
#define WEIR_USER_BASE_TEXTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Texts, all of them owned. */
struct texts {
	char **items;
	size_t n;
};

void texts_clear(struct texts *texts);
bool texts_have(const struct texts *texts, const char *text);
/* The same texts in the same order. */
bool texts_equal(const struct texts *a, const struct texts *b);

/* The place of a word among n others, of which some may be NULL; or n. */
unsigned int words_find(const char *const *words, unsigned int n, const char *word);

/* A new reference. */
json_t *texts_to_json(const struct texts *texts);

/* The canonical form of one text, for the caller to free. */
typedef int make_text(const char *text, char **out, struct error *err);
make_text copy_text;

/* out: empty; the caller clears it, on failure too. Errors begin with the key. */
int texts_from_json(json_t *array, const char *key, make_text *make, struct texts *out, struct error *err);

#endif
