/* SPDX-License-Identifier: GPL-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "agent/log.h"
#include "base/cleanup.h"
#include "base/output.h"

void log_event(const char *level, const char *format, ...)
{
	CLEANUP_FREE char *visible = NULL;
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	visible = output_visible(text);
	fprintf(stderr, "weir: %s: %s\n", level, visible ? visible : "out of memory");
}
