/* SPDX-License-Identifier: GPL-2.0 */
/* What is in the place of a file: it is said, and not waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/regular.h"

static char directory[] = P_tmpdir "/weir-test-XXXXXX";
static char path[sizeof(directory) + sizeof("/file")];

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/file", directory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(directory);
}

static void refused(int reading, int writing)
{
	struct error err = { 0 };
	FILE *file = NULL;

	assert_int_equal(regular_read(path, &file, &err), reading);
	assert_null(file);
	assert_ptr_equal(strstr(err.text, path), err.text);
	assert_int_equal(regular_write(path, 0), writing);
}

static void a_file(void **state)
{
	CLEANUP_CLOSE int fd = regular_write(path, O_TRUNC);
	CLEANUP_FCLOSE FILE *file = NULL;
	struct stat info;
	char text[8] = "";

	(void)state;
	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(fstat(fd, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0600);
	assert_int_equal(regular_read(path, &file, NULL), 0);
	assert_string_equal(fgets(text, sizeof(text), file), "text");
	assert_int_equal(unlink(path), 0);
}

static void no_file(void **state)
{
	struct error err = { 0 };
	FILE *file = NULL;

	(void)state;
	assert_int_equal(regular_read(path, &file, &err), -ENOENT);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(-EINVAL, -ENXIO);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	refused(-EINVAL, -EISDIR);
	rmdir(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	refused(-EINVAL, -ELOOP);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file),
		cmocka_unit_test(no_file),
	};

	alarm(60); /* where it waits it fails */
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
