/* SPDX-License-Identifier: GPL-2.0 */
/* A file whose text another one takes the place of in one step, whenever the machine or the agent ends: DIRECTORY/NAME.new is renamed. */
#ifndef WEIR_USER_SAVED_FRESH_H
#define WEIR_USER_SAVED_FRESH_H

#include <stddef.h>

#include "base/error.h"

/* Beside the file, whose place it does not take yet. A link is not followed. */
int fresh_write(const char *directory, const char *name, const char *text, size_t length, struct error *err);
/* What was written beside it is the file, on disk, too. */
int fresh_place(const char *directory, const char *name, struct error *err);
/* Of one that is not to take the file's place, or of an agent that was killed meanwhile. */
void fresh_drop(const char *directory, const char *name);

#endif
