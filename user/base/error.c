/* SPDX-License-Identifier: GPL-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void error_write(struct error *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return;
	err->field = err->item = 0;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
}

void error_write_field(struct error *err, const char *field, const char *item, const char *format, ...)
{
	size_t used;
	va_list args;

	if (!err)
		return;
	if (item)
		error_write(err, "%s: \"%s\": ", field, item);
	else
		error_write(err, "%s: ", field);
	used = strlen(err->text);
	va_start(args, format);
	vsnprintf(err->text + used, sizeof(err->text) - used, format, args);
	va_end(args);
	if (used + 1 == sizeof(err->text))
		return; /* there was no room for the names */
	err->field = strlen(field);
	err->item = item ? strlen(item) : 0;
}
