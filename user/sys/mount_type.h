/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What kind of file system a file is on, without asking it. One that a process or another host serves may keep whoever asks it waiting
 * for good, and not even a signal ends that.
 */
#ifndef WEIR_USER_SYS_MOUNT_TYPE_H
#define WEIR_USER_SYS_MOUNT_TYPE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define MOUNT_TYPE_SIZE 32

/* Of an open file (O_PATH will do), among the mounts that a process has, or this one. -ENOENT: it is none of these. */
int mount_type_of(int fd, pid_t process, char type[static MOUNT_TYPE_SIZE]);
/* The same in the text of a mountinfo, of the mount with this number. */
int mount_type_find(FILE *mounts, unsigned long long id, char type[static MOUNT_TYPE_SIZE]);
/* Does a process or another host serve file systems of this type? */
bool mount_type_is_served(const char *type);

#endif
