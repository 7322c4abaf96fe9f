/* SPDX-License-Identifier: GPL-2.0 */
/* Files of the agent's own, and binaries. What somebody has put in the place of one, such as a FIFO, is not waited for. */
#ifndef WEIR_USER_BASE_REGULAR_H
#define WEIR_USER_BASE_REGULAR_H

#include <stdio.h>

#include "base/error.h"

/* A descriptor to read from, or a negative errno: -EINVAL where it is no regular file. err says the path. */
int regular_open(const char *path, struct error *err);

/* The same as a stream: *out is the caller's to close. */
int regular_read(const char *path, FILE **out, struct error *err);

/* To be written: a descriptor, or a negative errno. flags: besides those of any. A link is not followed; ENXIO: a FIFO. */
int regular_write(const char *path, int flags);

#endif
