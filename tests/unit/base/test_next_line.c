/* SPDX-License-Identifier: GPL-2.0 */
/* Lines up to a bound. */
#include "base/next_line.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX 10000 /* more than the first room */

static char *text;
static size_t room;

static int forget(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	room = 0;
	return 0;
}

static FILE *file_of(const char *bytes, size_t length)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	rewind(file);
	return file;
}

static void expect(FILE *file, const char *wanted, size_t length)
{
	assert_int_equal(next_line(file, MAX, &text, &room), length);
	assert_memory_equal(text, wanted, length);
}

static void each_with_its_end(void **state)
{
	static const char bytes[] = "one\n\na\0b\nno end";
	FILE *file = file_of(bytes, sizeof(bytes) - 1);

	(void)state;
	expect(file, "one\n", 4);
	expect(file, "\n", 1);
	expect(file, "a\0b\n", 4);
	expect(file, "no end", 6);
	assert_int_equal(next_line(file, MAX, &text, &room), 0);
	fclose(file);
}

static void no_longer_than_the_bound(void **state)
{
	static const struct {
		size_t length;
		bool read;
	} lines[] = { { MAX - 1, true }, { MAX, true }, { MAX + 1, false }, { 10 * MAX, false } };
	char *bytes = malloc(10 * MAX + 1);

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(lines) / sizeof(*lines); i++) {
		size_t length = lines[i / 2].length, ended = i % 2;
		FILE *file;

		memset(bytes, 'x', length);
		bytes[length] = '\n';
		file = file_of(bytes, length + ended);
		assert_int_equal(next_line(file, MAX, &text, &room),
				 lines[i / 2].read ? (int)(length + ended) : -EFBIG);
		fclose(file);
	}
	free(bytes);
}

static void what_cannot_be_read(void **state)
{
	FILE *file = fopen("/", "re");

	(void)state;
	assert_non_null(file);
	assert_int_equal(next_line(file, MAX, &text, &room), -EISDIR);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_with_its_end, forget),
		cmocka_unit_test_teardown(no_longer_than_the_bound, forget),
		cmocka_unit_test_teardown(what_cannot_be_read, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
