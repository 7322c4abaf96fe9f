/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Members of JSON objects, checked. `json` is the member or NULL where it is not given, which leaves *out as it is; `key` is
 * what errors call it. Each returns 0, -EINVAL with err filled in, or -ENOMEM.
 */
#ifndef WEIR_USER_BASE_JSON_READ_H
#define WEIR_USER_BASE_JSON_READ_H

#include <jansson.h>
#include <stdbool.h>

#include "weir/base/types.h"

#include "base/error.h"

/* null is none, too. The caller frees *out. */
int text_from_json(json_t *json, const char *key, char **out, struct error *err);
int flag_from_json(json_t *json, const char *key, bool *out, struct error *err);
int number_from_json(json_t *json, const char *key, __u32 max, __u32 *out, struct error *err);

/* Reads one item of a list into a zeroed place of the list's item size. On failure it leaves nothing to be cleared there. */
typedef int read_item(json_t *json, void *place, struct error *err);
/*
 * *out points to *n items, NULL for none, in an array that array_grow() can let grow. What was read is there on failure, too:
 * the caller clears and frees it.
 */
int list_from_json(json_t *array, const char *key, read_item *read, size_t size, void *out, size_t *n,
		   struct error *err);

/* Has the object other members than these (the last is NULL)? Then err names the first one. */
int members_check(json_t *object, const char *what, const char *const *known, struct error *err);

#endif
