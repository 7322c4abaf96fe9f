/* SPDX-License-Identifier: GPL-2.0 */
/* The file of changes: two files at most, lines that are not too long, and what is wanted of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/file.h"
#include "base/cleanup.h"

static char dir[] = P_tmpdir "/weir-test-XXXXXX";
static struct error err;

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	audit_remove(dir);
	return rmdir(dir);
}

static void append(const char *time, const char *server, json_t *after)
{
	CLEANUP_JSON json_t *list = json_pack("[{s:s, s:s, s:n, s:o}]", "time", time, "server", server, "before",
					      "after", after);

	assert_non_null(list);
	assert_int_equal(audit_append(dir, list, &err), 0);
}

static json_t *read_since(const char *since, const char *server)
{
	json_t *list = NULL;

	assert_int_equal(audit_read(dir, since, server, &list, &err), 0);
	return list;
}

static void wanted(void **state)
{
	CLEANUP_JSON json_t *nothing = read_since("", NULL), *all = NULL, *later = NULL, *one = NULL;

	(void)state;
	assert_int_equal(json_array_size(nothing), 0);
	append("2026-01-01T00:00:00.000Z", "a", json_integer(1));
	append("2026-01-02T00:00:00.000Z", "b", json_integer(2));
	all = read_since("", NULL);
	later = read_since("2026-01-01T00:00:00.001Z", NULL);
	one = read_since("", "a");
	assert_int_equal(json_array_size(all), 2);
	assert_int_equal(json_array_size(later), 1);
	assert_string_equal(json_string_value(json_object_get(json_array_get(later, 0), "server")), "b");
	assert_int_equal(json_array_size(one), 1);
	audit_remove(dir);
}

static void long_lines(void **state)
{
	char text[AUDIT_LINE_MAX] = "";
	CLEANUP_JSON json_t *list = NULL;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	append("2026", "a", json_string(text));
	list = read_since("", NULL);
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "after")), "(too long)");
	audit_remove(dir);
}

/* The latest are there, and never more than two files' worth. */
static void bounded(void **state)
{
	char text[4096] = "", path[128];
	CLEANUP_JSON json_t *list = NULL;
	const int n = 3 * AUDIT_BYTES / sizeof(text);
	struct stat st;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	for (int i = 0; i < n; i++)
		append("2026", "a", json_pack("[i, s]", i, text));
	for (int old = 0; old < 2; old++) {
		snprintf(path, sizeof(path), "%s/audit.jsonl%s", dir, old ? ".1" : "");
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_size <= AUDIT_BYTES);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	list = read_since("", NULL);
	assert_true(json_array_size(list) > AUDIT_BYTES / sizeof(text) - 2);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *after = json_object_get(json_array_get(list, i), "after");

		assert_int_equal(json_integer_value(json_array_get(after, 0)), n - json_array_size(list) + i);
	}
	audit_remove(dir);
}

/* A machine that lost its power has left half a line: it costs no other. */
static void behind_half_a_line(void **state)
{
	CLEANUP_JSON json_t *list = NULL;
	char path[128];
	FILE *file;

	(void)state;
	append("2026", "before", json_integer(1));
	snprintf(path, sizeof(path), "%s/audit.jsonl", dir);
	file = fopen(path, "a");
	assert_non_null(file);
	fputs("{\"time\":\"2026\",\"server\":\"ha", file);
	fclose(file);
	append("2026", "after", json_integer(2));
	append("2026", "last", json_integer(3));
	list = read_since("", NULL);
	assert_int_equal(json_array_size(list), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "server")), "after");
	audit_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wanted),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(bounded),
		cmocka_unit_test(behind_half_a_line),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
