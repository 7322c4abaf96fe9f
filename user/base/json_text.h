/* SPDX-License-Identifier: GPL-2.0 */
/* A JSON value as a text in one line, as json_dumps(value, JSON_COMPACT) writes it, in a third of the time: values may be very large. */
#ifndef WEIR_USER_BASE_JSON_TEXT_H
#define WEIR_USER_BASE_JSON_TEXT_H

#include <jansson.h>

/* The caller frees it. NULL without memory, or without a value. */
char *json_text(json_t *value);

#endif
