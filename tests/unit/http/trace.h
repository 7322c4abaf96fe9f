/* SPDX-License-Identifier: GPL-2.0 */
/* What a machine makes of a stream, as one line of text: requests and responses. */
#ifndef WEIR_TESTS_TRACE_H
#define WEIR_TESTS_TRACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "weir/base/reason.h"

/* By reason. */
static const char *const labels[] = {
#define X(name, label, group) label,
	WEIR_REASONS(X)
#undef X
};

struct trace {
	char text[512];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct trace *t, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(t->text + t->length, sizeof(t->text) - t->length, format, arguments);
	va_end(arguments);
	assert_true(n >= 0 && (size_t)n < sizeof(t->text) - t->length);
	t->length += n;
}

#endif
