/* SPDX-License-Identifier: GPL-2.0 */
/* The binary of a process: what is known of it, and opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* A process that has what this one has, until its end is closed. */
static pid_t child_begin(int *end)
{
	int ends[2];
	pid_t id;
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	id = fork();
	assert_true(id >= 0);
	if (!id) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1));
	}
	close(ends[0]);
	*end = ends[1];
	return id;
}

static void child_end(pid_t id, int end)
{
	close(end);
	assert_int_equal(waitpid(id, NULL, 0), id);
}

/* One that inherits the socket is told of once, when it is new. */
static void test_newcomers(void **state)
{
	CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct inside_listeners listeners = { .n = 1 };
	struct inside_present present = { 0 };
	struct stat there;
	pid_t child;
	int end;

	(void)state;
	assert_int_equal(fstat(fd, &there), 0);
	listeners.inodes[0] = there.st_ino;
	assert_int_equal(inside_newcomer_listens(&present, &listeners), 1); /* this process */
	assert_true(present.n > 0);
	assert_int_equal(inside_newcomer_listens(&present, &listeners), 0);

	child = child_begin(&end);
	assert_int_equal(inside_newcomer_listens(&present, &(struct inside_listeners){ .n = 0 }), 0);
	child_end(child, end);
	child = child_begin(&end);
	assert_int_equal(inside_newcomer_listens(&present, &listeners), 1);
	assert_int_equal(inside_newcomer_listens(&present, &listeners), 0);
	child_end(child, end);
	assert_int_equal(inside_newcomer_listens(&present, &listeners), 0);
	inside_present_clear(&present);
	assert_int_equal(present.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_nobodys),
		cmocka_unit_test(test_newcomers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
