/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The file of changes: JSON, an object a line. When it has AUDIT_BYTES it takes the place of an older one, so the latest ones are
 * there, in two files at most.
 */
#ifndef WEIR_USER_AUDIT_FILE_H
#define WEIR_USER_AUDIT_FILE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

#define AUDIT_BYTES (1U << 20)
#define AUDIT_LINE_MAX 8192 /* a longer one does not say what was there before and after */

/* A line for each of the list's objects. */
int audit_append(const char *dir, json_t *list, struct error *err);

/* Those whose "time" is not before `since`, in their order; server NULL: of all. A new reference in *out. */
int audit_read(const char *dir, const char *since, const char *server, json_t **out, struct error *err);

void audit_remove(const char *dir);

#endif
