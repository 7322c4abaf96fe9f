/* SPDX-License-Identifier: GPL-2.0 */
/* Lists within JSON. */
#ifndef WEIR_USER_BASE_JSON_LIST_H
#define WEIR_USER_BASE_JSON_LIST_H

#include <jansson.h>

/* The object of a list whose "name" this is, borrowed; NULL: there is none. */
json_t *list_named(json_t *list, const char *name);

/* Puts the item, which it takes over, into a list that is in order of its items' names. */
void list_insert_named(json_t *list, json_t *item);

/* Appends the item to the list that is this member of the object, and makes the list if it is not there. Takes over the item. */
void list_append(json_t *object, const char *key, json_t *item);

#endif
