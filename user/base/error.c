/* SPDX-License-Identifier: GPL-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

void error_write(struct error *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
}
