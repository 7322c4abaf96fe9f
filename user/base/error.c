/* SPDX-License-Identifier: GPL-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* As vsnprintf(). What is cut off does not end within a character of UTF-8, for it may become JSON. */
__attribute__((format(printf, 3, 0))) static void write_whole(char *text, size_t room, const char *format, va_list args)
{
	size_t at = room - 1;
	unsigned char first;

	if (vsnprintf(text, room, format, args) < (int)room)
		return;
	while (at && (text[at - 1] & 0xc0) == 0x80)
		at--;
	if (!at)
		return;
	first = text[at - 1];
	if (first >= 0xc0 && room - at < (first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2))
		text[at - 1] = '\0';
}

void error_write(struct error *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return;
	err->field = err->item = 0;
	va_start(args, format);
	write_whole(err->text, sizeof(err->text), format, args);
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
	write_whole(err->text + used, sizeof(err->text) - used, format, args);
	va_end(args);
	if (used + 1 == sizeof(err->text))
		return; /* there was no room for the names */
	err->field = strlen(field);
	err->item = item ? strlen(item) : 0;
}
