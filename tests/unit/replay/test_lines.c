/* SPDX-License-Identifier: GPL-2.0 */
/* Lines of a pipe, however they are cut by those who write them. */
#include "replay/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "replay/recording.h"

#define LONG (100 << 10) /* more than a read takes */

static void put(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void expect(struct lines *lines, int fd, bool wait, const char *wanted)
{
	char *line = NULL;
	size_t length = 0;

	assert_int_equal(lines_next(lines, fd, wait, &line, &length), 1);
	assert_string_equal(line, wanted);
	assert_int_equal(length, strlen(wanted));
}

static void expect_none(struct lines *lines, int fd, bool wait)
{
	char *line = NULL;
	size_t length = 0;

	assert_int_equal(lines_next(lines, fd, wait, &line, &length), 0);
	assert_null(line);
}

static void test_what_is_there_is_taken_without_waiting(void **state)
{
	struct lines lines = { 0 }, next = { 0 };
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	put(ends[1], "one\n\nthree\nfo");
	assert_int_equal(lines_begin(&lines, &next), 0);
	expect_none(&lines, ends[0], false);
	expect(&lines, ends[0], true, "one");
	expect(&lines, ends[0], false, "");
	expect(&lines, ends[0], false, "three");
	expect_none(&lines, ends[0], false);
	assert_int_equal(lines_begin(&next, &lines), 0);
	put(ends[1], "ur\nno end");
	close(ends[1]);
	expect(&next, ends[0], true, "four");
	expect(&next, ends[0], true, "no end");
	expect_none(&next, ends[0], true);
	assert_int_equal(lines_begin(&lines, &next), 0);
	expect_none(&lines, ends[0], true);
	close(ends[0]);
	lines_free(&lines);
	lines_free(&next);
}

static void test_a_line_is_as_long_as_it_is(void **state)
{
	char path[] = "/tmp/test-lines-XXXXXX", *text = malloc(LONG + 1);
	struct lines lines = { 0 }, none = { 0 };
	int fd = mkstemp(path);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', LONG);
	text[LONG] = 0;
	assert_int_equal(fd < 0, 0);
	unlink(path);
	put(fd, text);
	put(fd, "\nshort\n");
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(lines_begin(&lines, &none), 0);
	expect(&lines, fd, true, text);
	expect(&lines, fd, true, "short");
	expect_none(&lines, fd, true);
	close(fd);
	lines_free(&lines);
	free(text);
}

static void expect_length(size_t length, int wanted)
{
	char path[] = "/tmp/test-lines-XXXXXX", *text = calloc(1, length + 2), *line = NULL;
	struct lines lines = { 0 }, none = { 0 };
	int fd = mkstemp(path);
	size_t n = 0;

	assert_non_null(text);
	memset(text, 'x', length);
	unlink(path);
	for (int ended = 0; ended < 2; ended++) {
		text[length] = ended ? '\n' : 0;
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		put(fd, text);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(lines_begin(&lines, &none), 0);
		assert_int_equal(lines_next(&lines, fd, true, &line, &n), wanted);
		assert_int_equal(n, wanted == 1 ? length : 0);
		n = 0;
	}
	close(fd);
	lines_free(&lines);
	free(text);
}

static void test_no_line_is_longer_than_a_recorder_writes(void **state)
{
	(void)state;
	expect_length(RECORDED_LINE_MAX - 1, 1);
	expect_length(RECORDED_LINE_MAX, 1);
	expect_length(RECORDED_LINE_MAX + 1, -EFBIG);
	expect_length(3 * RECORDED_LINE_MAX, -EFBIG);
}

static void test_a_line_that_never_ends_is_given_up(void **state)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct lines lines = { 0 }, none = { 0 };
	char *line = NULL;
	size_t length;

	(void)state;
	assert_int_equal(fd < 0, 0);
	assert_int_equal(lines_begin(&lines, &none), 0);
	assert_int_equal(lines_next(&lines, fd, true, &line, &length), -EFBIG);
	assert_int_equal(lines.to < 2 * RECORDED_LINE_MAX, 1);
	close(fd);
	lines_free(&lines);
}

static void test_what_cannot_be_read_is_an_error(void **state)
{
	struct lines lines = { 0 }, none = { 0 };
	char *line = NULL;
	size_t length = 0;

	(void)state;
	assert_int_equal(lines_begin(&lines, &none), 0);
	assert_int_equal(lines_next(&lines, -1, true, &line, &length), -EBADF);
	assert_null(line);
	lines_free(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_there_is_taken_without_waiting),
		cmocka_unit_test(test_a_line_is_as_long_as_it_is),
		cmocka_unit_test(test_no_line_is_longer_than_a_recorder_writes),
		cmocka_unit_test(test_a_line_that_never_ends_is_given_up),
		cmocka_unit_test(test_what_cannot_be_read_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
