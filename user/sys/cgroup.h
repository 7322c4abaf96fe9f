/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_SYS_CGROUP_H
#define WEIR_USER_SYS_CGROUP_H

#include <stdbool.h>

#include "weir/abi/abi.h"

#include "base/error.h"

/* Is this a directory of the cgroup2 hierarchy? */
int cgroup_check(const char *path, struct error *err);

/* One cgroup has many paths, and one id. 0: there is none at this path. */
__u64 cgroup_id(const char *path);

/* Where the whole cgroup2 hierarchy is mounted, or part of it, and not hidden by another mount; the caller frees it. NULL: nowhere. */
char *cgroup_root(void);

/* Is this the root of the hierarchy, below which every cgroup is? */
bool cgroup_is_whole(const char *path);

/* The path of the cgroup with this id, seen from a directory of the hierarchy; the caller frees it. NULL: it is gone, or out of reach from there. */
char *cgroup_find(const char *from, __u64 id);

/* Is the cgroup with this id the one at path, or below it? What cannot be found out is a no. */
bool cgroup_has(const char *path, __u64 id);

#endif
