/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_SYS_CGROUP_H
#define WEIR_USER_SYS_CGROUP_H

#include "base/error.h"

/* Is this a directory of the cgroup2 hierarchy? */
int cgroup_check(const char *path, struct error *err);

/* Where the whole cgroup2 hierarchy is mounted, or part of it, and not hidden by another mount; the caller frees it. NULL: nowhere. */
char *cgroup_root(void);

#endif
