/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests and the attributes that Kubernetes' own RequestInfo has for them, from the table attributes.txt (or another
 * one named on the command line). A line of it:
 *
 *   METHOD TARGET <tab> VERB|FLAGS|g=GROUP|v=VERSION|ns=NAMESPACE|r=RESOURCE|s=SUBRESOURCE|n=NAME
 *
 * Names are written as in a query. `bad`: the target is refused.
 */
#include "request_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

static const char *table = "tests/unit/http/attributes.txt";

static const char *const verbs[] = {
#define X(name, text) text,
	WEIR_VERBS(X)
#undef X
};

/* Percent-encoding, and in a query `+`. The bytes may be NUL. */
static size_t decode(const char *text, size_t length, bool query, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < length; i++) {
		unsigned int byte = (unsigned char)text[i];

		if (text[i] == '%') {
			assert_int_equal(sscanf(text + i + 1, "%2x", &byte), 1);
			i += 2;
		} else if (query && text[i] == '+') {
			byte = ' ';
		}
		out[n++] = byte;
	}
	return n;
}

/* One name, in the table and in the request: its bytes, and its subject. */
static void check_name(const struct weir_request *r, const char *head, const char *expected, __u8 at, __u64 subject)
{
	const struct weir_path_segment none = { .length = 0 };
	const struct weir_path_segment *segment = at == WEIR_SEGMENT_NONE ? &none : &r->path.segments[at];
	char wanted[1024], found[1024];
	size_t n = decode(expected, strcspn(expected, "|"), true, wanted);

	assert_true(at == WEIR_SEGMENT_NONE || at <= WEIR_PATH_SELECTED);
	assert_int_equal(decode(head + segment->offset, segment->length, at == WEIR_PATH_SELECTED, found), n);
	assert_memory_equal(found, wanted, n);
	assert_int_equal(subject, n ? request_subject(WEIR_NAME_NAMESPACE, wanted, n) : 0);
}

static const char *value_of(const char *expected, const char *key)
{
	const char *value = strstr(expected, key);

	assert_non_null(value);
	return value + strlen(key);
}

static void check_attributes(const struct weir_request *r, const char *head, const char *expected)
{
	const struct weir_path *p = &r->path;
	const char *version = value_of(expected, "|v=");
	struct weir_attributes a;
	char text[128];

	weir_attributes_of(r, &request_reading, &a);
	snprintf(text, sizeof(text), "%s|%s%s%s|", verbs[a.verb], a.flags & WEIR_ATTRIBUTE_RESOURCE ? "resource," : "",
		 a.flags & WEIR_ATTRIBUTE_READ_ONLY ? "read," : "",
		 a.flags & WEIR_ATTRIBUTE_LONG_RUNNING ? "long," : "");
	assert_memory_equal(text, expected, strlen(text));
	check_name(r, head, value_of(expected, "|g="), a.group_at, a.group);
	check_name(r, head, version, a.version_at,
		   a.version_at == WEIR_SEGMENT_NONE ? 0 : p->segments[a.version_at].subject);
	check_name(r, head, value_of(expected, "|ns="), a.namespace_at, a.namespace);
	check_name(r, head, value_of(expected, "|r="), a.resource_at, a.resource);
	check_name(r, head, value_of(expected, "|s="), a.subresource_at, a.subresource);
	check_name(r, head, value_of(expected, "|n="), a.name_at, a.name);
}

/* The bytes before the cut and those behind it come apart; within each, eight at once where that is possible. */
static void check_cut(const char *head, size_t length, size_t cut, const char *expected)
{
	enum weir_frame_event event = WEIR_FRAME_MORE;
	struct weir_request r;
	size_t at = 0;

	weir_request_start(&r);
	while (at < length && event == WEIR_FRAME_MORE) {
		size_t end = at < cut ? cut : length;
		__u32 taken = weir_request_take(&r, weir_run_word((const __u8 *)head + at, end - at));

		if (!taken)
			event = weir_request_byte(&r, &request_reading, head[at]);
		at += taken ? taken : 1;
	}
	assert_int_equal(event, strcmp(expected, "bad") ? WEIR_FRAME_HEAD : WEIR_FRAME_LOST);
	if (event == WEIR_FRAME_HEAD)
		check_attributes(&r, head, expected);
}

static void check_line(const char *line, const char *expected)
{
	char head[2048];
	size_t length = snprintf(head, sizeof(head), "%s" V11, line);

	assert_true(length < sizeof(head));
	for (size_t cut = 0; cut < length; cut++)
		check_cut(head, length, cut, expected);
}

static void test_table(void **state)
{
	CLEANUP_FCLOSE FILE *file = fopen(table, "re");
	char line[4096];
	int lines = 0;

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		char *expected = strchr(line, '\t');

		if (*line == '#')
			continue;
		assert_non_null(expected);
		*expected++ = '\0';
		expected[strcspn(expected, "\n")] = '\0';
		check_line(line, expected);
		lines++;
	}
	assert_true(lines > 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
	};

	if (argc > 1)
		table = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
