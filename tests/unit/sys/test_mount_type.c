/* SPDX-License-Identifier: GPL-2.0 */
/* What kind of file system a file is on, as a mountinfo says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sys/mount_type.h"

static const char mounts[] = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
			     "123 22 0:45 / /mnt/a\\040-\\040b rw,nosuid - fuse.sshfs x@y: rw\n"
			     "23 22 0:46 / /proc rw shared:3 master:4 - proc proc rw\n"
			     "cut off\n"
			     "24 22 0:47 / /x rw - ";

static int find(unsigned long long id, char type[static MOUNT_TYPE_SIZE])
{
	CLEANUP_FCLOSE FILE *file = fmemopen((void *)mounts, strlen(mounts), "r");

	assert_non_null(file);
	return mount_type_find(file, id, type);
}

static void test_find(void **state)
{
	char type[MOUNT_TYPE_SIZE] = "before";

	(void)state;
	assert_int_equal(find(1, type), -ENOENT);
	assert_int_equal(find(0, type), -ENOENT);
	assert_int_equal(find(24, type), -ENOENT);
	assert_string_equal(type, "before");
	assert_int_equal(find(22, type), 0);
	assert_string_equal(type, "ext4");
	assert_int_equal(find(123, type), 0);
	assert_string_equal(type, "fuse.sshfs");
	assert_int_equal(find(23, type), 0);
	assert_string_equal(type, "proc");
}

static void test_served(void **state)
{
	(void)state;
	assert_true(mount_type_is_served("fuse"));
	assert_true(mount_type_is_served("fuseblk"));
	assert_true(mount_type_is_served("fuse.sshfs"));
	assert_true(mount_type_is_served("nfs4"));
	assert_false(mount_type_is_served("ext4"));
	assert_false(mount_type_is_served("overlay"));
	assert_false(mount_type_is_served("tmpfs"));
}

static void test_own(void **state)
{
	CLEANUP_CLOSE int file = open("/proc/self/exe", O_PATH | O_CLOEXEC), proc = open("/proc", O_PATH | O_CLOEXEC);
	char type[MOUNT_TYPE_SIZE] = "";

	(void)state;
	assert_int_equal(mount_type_of(proc, getpid(), type), 0);
	assert_string_equal(type, "proc");
	assert_int_equal(mount_type_of(file, getpid(), type), 0);
	assert_true(strlen(type) > 0);
}

/* In a mount namespace of its own: 0, 1 (it says something else), or 77 (there is no FUSE here). */
static int ask_one_that_never_answers(void)
{
	char options[96], type[MOUNT_TYPE_SIZE] = "";
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), file;

	alarm(10);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (fuse < 0 || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/tmp", "fuse", MS_NOSUID | MS_NODEV, options))
		return 77;
	file = open("/tmp", O_PATH | O_CLOEXEC);
	return mount_type_of(file, getpid(), type) || strcmp(type, "fuse") != 0 || !mount_type_is_served(type);
}

/* Nobody answers there, and nobody is asked. */
static void test_never_answers(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (!child)
		_exit(ask_one_that_never_answers());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_served),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_never_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
