/* SPDX-License-Identifier: GPL-2.0 */
/* Directories on a bpffs, where maps, programs and links outlive the process that made them. */
#ifndef WEIR_USER_SYS_PINS_H
#define WEIR_USER_SYS_PINS_H

#include <linux/limits.h>
#include <stdbool.h>

#include "base/error.h"

#define PINS_NAME_MAX 64 /* bytes of a name in such a directory, with its '/' and NUL */

/*
 * Mounts /sys/fs/bpf, where the path lies in it and nothing is mounted there: for who will not be allowed to any more when
 * the directory is made.
 */
int pins_mount(const char *path, struct error *err);

/*
 * Makes the directory (mode 0700) and those above it. -EINVAL when it would not be on a bpffs; only where the path lies
 * in /sys/fs/bpf and nothing is mounted there, that is mounted.
 */
int pins_directory(const char *path, struct error *err);

/* -EROFS when it is on a bpffs that is mounted read-only: nothing can be pinned there, nor what is pinned be opened to change it. */
int pins_writable(const char *path, struct error *err);

/* Is it on a bpffs, or can one be mounted for it? */
bool pins_possible(const char *path);

/*
 * Does what is pinned there end with this mount namespace? As it does below `ip netns exec`, which has a /sys of its own. 1 yes,
 * 0 no, or a negative errno: it cannot be told, without root at least.
 */
int pins_private(const char *path);

/* DIR/name; names stay below PINS_NAME_MAX and DIR below PATH_MAX - PINS_NAME_MAX. */
void pins_path(char path[static PATH_MAX], const char *dir, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Pins under this name, in place of what is pinned there. Negative errno. */
int pins_replace(int fd, const char *dir, const char *name);

#endif
