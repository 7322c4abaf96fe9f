/* SPDX-License-Identifier: GPL-2.0 */
/* The binary of a process: what is known of it, and opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "inside/process.h"

static void test_own(void **state)
{
	struct inside_process process = { .id = getpid() };
	CLEANUP_CLOSE int fd = -1;
	struct error err = { 0 };
	struct stat there, opened;

	(void)state;
	assert_int_equal(stat("/proc/self/exe", &there), 0);
	assert_int_equal(inside_process_read(&process, &err), 0);
	assert_true(process.device == there.st_dev);
	assert_true(process.inode == there.st_ino);
	fd = inside_process_open(getpid(), &err);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &opened), 0);
	assert_true(opened.st_dev == there.st_dev && opened.st_ino == there.st_ino);
}

static void test_nobodys(void **state)
{
	struct inside_process process = { .id = 0 };
	struct error err = { 0 };

	(void)state;
	assert_true(inside_process_read(&process, NULL) < 0);
	assert_true(inside_process_open(0, &err) < 0);
	assert_true(err.text[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
