/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A state's file is one line. Behind it there may be more: {slot, limit, override} for each override that was set since by a command, as the
 * limit would have it. Thousands that are set one after the other are not written anew each time.
 *
 * A line is on disk before its command is answered, and no other line comes before that. So one that is cut can only be the last, of a command
 * that had no answer. Earlier versions refuse a file with such lines: an agent that stops leaves none.
 */
#ifndef WEIR_USER_SAVED_LINES_H
#define WEIR_USER_SAVED_LINES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json_text.h"

/* Puts the lines that are left of a file into the state that was read before them. *any: there are some. -EINVAL, -ENOMEM, -EIO. */
int lines_read(FILE *file, json_t *whole, bool *any, struct error *err);

/*
 * Adds a line to each of the state's files, of `size` bytes in these directories; NULL: there is none. It is on disk then. A negative errno: no
 * file has it, or it cannot be said what is there.
 */
int lines_add(const char *const directories[2], size_t size, const struct text *line);

#endif
