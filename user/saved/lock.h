/* SPDX-License-Identifier: GPL-2.0 */
/* One agent for each state directory. It locks the file STATE_DIR/lock as long as it lives, and writes its pid there. */
#ifndef WEIR_USER_SAVED_LOCK_H
#define WEIR_USER_SAVED_LOCK_H

#include "base/error.h"

/*
 * Makes the directory if need be. Returns the lock, a descriptor that the caller closes, or a negative errno; -EBUSY: there
 * is an agent, and err says who it is and since when.
 */
int state_lock(const char *state_dir, struct error *err);
/*
 * Where somebody has deleted the lock, as what cleans up /run may, another agent could start: it is made again, with its directory. Returns 1
 * then; 0: nothing is missing. lock: replaced; what is below 0 is no lock to look after.
 */
int state_lock_look_after(int *lock, const char *state_dir, struct error *err);

#endif
