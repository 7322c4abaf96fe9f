/* SPDX-License-Identifier: GPL-2.0 */
/* An error for people: what, where and what to do, in one line without a newline. */
#ifndef WEIR_USER_BASE_ERROR_H
#define WEIR_USER_BASE_ERROR_H

#include <errno.h>

struct error {
	char text[512];
};

/* Writes the line. err may be NULL. */
void error_write(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The same, and is `code` (a negative errno), so that callers can `return error_set(...)`. No function: who reads the caller
 * alone, as the analyzer does, sees that it fails there.
 */
#define error_set(err, code, ...)              \
	({                                     \
		int error_code = (code);       \
		error_write(err, __VA_ARGS__); \
		error_code;                    \
	})

/* Why the system's call has failed: below 0 whatever errno is, so that a failure never looks like success. */
static inline int error_errno(void)
{
	int error = -errno;

	return error < 0 ? error : -EIO;
}

#endif
