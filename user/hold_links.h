/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hold program on cgroups, by links that are pinned as DIR/link-cgroup-ID, with the kernel's id of the cgroup.
 * A cgroup below another one that has the program needs none of its own: it would see its packets twice.
 */
#ifndef WEIR_USER_HOLD_LINKS_H
#define WEIR_USER_HOLD_LINKS_H

#include <stddef.h>

#include "error.h"

/* Puts the program in the place of the one on the cgroups that have it. */
int hold_links_take_over(const char *dir, int prog_fd, struct error *err);

/*
 * Makes these cgroups (paths) the ones with the program; none: takes it off everywhere. One that fails does not keep the
 * others from being served; the first failure is told.
 */
int hold_links_sync(const char *dir, int prog_fd, const char *const *cgroups, size_t n, struct error *err);

#endif
