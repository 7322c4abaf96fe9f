/* SPDX-License-Identifier: GPL-2.0 */
/* An error for people: what, where and what to do, in one line without a newline. */
#ifndef WEIR_USER_BASE_ERROR_H
#define WEIR_USER_BASE_ERROR_H

#include <errno.h>

struct error {
	char text[512];
};

/* Writes the line and returns `code` (a negative errno), so that callers can `return error_set(...)`. err may be NULL. */
int error_set(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Why the system's call has failed: below 0 whatever errno is, so that a failure never looks like success. */
static inline int error_errno(void)
{
	int error = errno;

	return error > 0 ? -error : -EIO;
}

#endif
