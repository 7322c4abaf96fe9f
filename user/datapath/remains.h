/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is in force of weir in one network namespace, taken away by what its pins are called and nothing else: that is the
 * same in every version, while maps and programs may differ in everything.
 */
#ifndef WEIR_USER_DATAPATH_REMAINS_H
#define WEIR_USER_DATAPATH_REMAINS_H

#include <stdbool.h>

#include "base/error.h"

/*
 * dir: PIN_DIR/net-COOKIE. netns_fd: -1 where the namespace cannot be entered; what is there but not pinned (filters of
 * clsact, the device of pace.h) stays then, and ends with the namespace. -EBUSY: an agent is at work on it. May be repeated.
 */
int remains_remove(const char *dir, int netns_fd, struct error *err);

/* Whether an agent, which may be this one, is at work on it. */
bool remains_held(const char *dir);

#endif
