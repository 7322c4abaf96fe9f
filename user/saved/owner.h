/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which agent keeps its state in a persist directory: the one of this state directory, unless another one's is noted there.
 * Without a note (earlier versions left none) it is that of the default. A note that is empty or cannot be read is nobody's.
 */
#ifndef WEIR_USER_SAVED_OWNER_H
#define WEIR_USER_SAVED_OWNER_H

#include <stdbool.h>

#include "base/error.h"

#define STATE_DIR_DEFAULT "/run/weir"
#define OWNER_FILE "owner"

int persist_dir_own(const char *persist_dir, const char *state_dir, struct error *err);
bool persist_dir_is_of(const char *persist_dir, const char *state_dir);

#endif
