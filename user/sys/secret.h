/* SPDX-License-Identifier: GPL-2.0 */
/* A file whose text must not be found anywhere afterwards: it is in no core dump, and wiped when it is let go. */
#ifndef WEIR_USER_SYS_SECRET_H
#define WEIR_USER_SYS_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct secret {
	char *text; /* a byte behind `length` is there, too */
	size_t length;
	size_t size; /* of the mapping */
};

/* -EAGAIN: it has more bytes than it says. */
int secret_read(const char *path, struct secret *out, struct error *err);
/* May others than its owner read the file? false also where that cannot be told. */
bool secret_is_open(const char *path);
void secret_wipe(struct secret *secret);
/* What functions that were called with parts of a secret have left on the stack below the caller. */
void secret_wipe_stack(void);
#define CLEANUP_SECRET __attribute__((cleanup(secret_wipe)))

#endif
