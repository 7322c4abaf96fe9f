/* SPDX-License-Identifier: GPL-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "agent_log.h"
#include "cleanup.h"
#include "output.h"

static void log_line(const char *level, const char *format, va_list args)
{
	CLEANUP_FREE char *visible = NULL;
	char text[1024];

	vsnprintf(text, sizeof(text), format, args);
	visible = output_visible(text);
	fprintf(stderr, "weir: %s: %s\n", level, visible ? visible : "out of memory");
}

void log_info(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line("info", format, args);
	va_end(args);
}

void log_warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line("warning", format, args);
	va_end(args);
}

void log_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line("error", format, args);
	va_end(args);
}
