/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects as servers keep them, in lists: {file, followed, document}. file is the one that it was in; followed, which is
 * missing where the object was applied by command, is the path that the agent follows and found that file by.
 */
#ifndef WEIR_USER_POLICY_OBJECTS_H
#define WEIR_USER_POLICY_OBJECTS_H

#include "policy/policy.h"

/* The members of an object: borrowed, or NULL. */
json_t *policy_object_document(json_t *object);
const char *policy_object_file(json_t *object);
const char *policy_object_followed(json_t *object);

bool policy_object_is(json_t *object, enum policy_kind_id id);
/* Of an object of a known kind. */
void policy_object_label(json_t *object, char label[static POLICY_LABEL]);

/* Is all of it right, as far as policy_server() does not find it? (saved.c) */
int policy_object_check(json_t *object, struct error *err);

/* Have two documents one kind and one name? */
bool policy_same_object(json_t *a, json_t *b);
/* The place in a list of the object with such a document, or how many there are. */
size_t policy_object_place(json_t *objects, json_t *document);
/* A server has one Throttle at most: borrowed, or NULL. */
json_t *policy_throttle_of(json_t *objects);

/* --- settings.c; new references */

/* What holds of a server's settings where its objects do not say it, but for defaults. */
json_t *policy_base(const struct server *server);
/* The server's JSON as it is before its objects say anything. */
json_t *policy_bare(const struct server *server, json_t *base, json_t *objects);
/* What a Throttle says, in weir's own names. */
void policy_settings_set(json_t *json, json_t *spec);

#endif
