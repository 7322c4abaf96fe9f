/* SPDX-License-Identifier: GPL-2.0 */
/* One agent for each state directory: who it is stands in the file STATE_DIR/lock, which it holds as long as it lives. */
#ifndef WEIR_USER_STATE_LOCK_H
#define WEIR_USER_STATE_LOCK_H

#include "base/error.h"

/*
 * Makes the directory if need be. Returns the lock, a descriptor that the caller closes, or a negative errno; -EBUSY: there
 * is an agent, and err says who it is and since when.
 */
int state_lock(const char *state_dir, struct error *err);

#endif
