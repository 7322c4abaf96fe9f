/* SPDX-License-Identifier: GPL-2.0 */
/* An error for people: what, where and what to do, in one line without a newline. */
#ifndef WEIR_USER_BASE_ERROR_H
#define WEIR_USER_BASE_ERROR_H

#include <errno.h>

struct error {
	char text[512];
	/* How many bytes of it name the field that is wrong, and the item of its list: FIELD: "ITEM": ... 0: it does not begin so. */
	unsigned short field, item;
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

/* The same of a field of what was read, and of the item of that name in its list (or NULL): whoever knows where both stand can tell. */
void error_write_field(struct error *err, const char *field, const char *item, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#define error_set_field(err, code, field, item, ...)              \
	({                                                        \
		int error_code = (code);                          \
		error_write_field(err, field, item, __VA_ARGS__); \
		error_code;                                       \
	})

/* Why the system's call has failed: below 0 whatever errno is, so that a failure never looks like success. */
static inline int error_errno(void)
{
	int error = -errno;

	return error < 0 ? error : -EIO;
}

#endif
