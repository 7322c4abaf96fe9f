/* SPDX-License-Identifier: GPL-2.0 */
/* Where the cgroup2 hierarchy is, among mounts that hide each other. Each scene has a mount namespace of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sys/cgroup.h"

#define NOT_HERE 77

static int mount_cgroup2(const char *point)
{
	return mkdir(point, 0700) ?: mount("none", point, "cgroup2", 0, NULL);
}

/* Nothing but a /proc and a tmpfs, on /tmp. */
static int begin(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/sys", "tmpfs", 0, NULL) || mount("none", "/tmp", "tmpfs", 0, NULL))
		return -1;
	return mount_cgroup2("/tmp/a b");
}

static int expect(const char *wanted)
{
	CLEANUP_FREE char *root = cgroup_root();

	return !root || !wanted ? root != wanted : strcmp(root, wanted) != 0;
}

static int one(void)
{
	return expect("/tmp/a b");
}

static int hidden(void)
{
	return mount("none", "/tmp/a b", "tmpfs", 0, NULL) ?: expect(NULL);
}

static int hidden_from_above(void)
{
	return mount("none", "/tmp", "tmpfs", 0, NULL) ?: expect(NULL);
}

static int another_is_reached(void)
{
	return mount_cgroup2("/tmp/c") ?: mount("none", "/tmp/a b", "tmpfs", 0, NULL) ?: expect("/tmp/c");
}

/* Part of a hierarchy is taken only where there is no whole one. */
static int part(void)
{
	CLEANUP_CLOSE int hierarchy = open("/tmp/a b", O_DIRECTORY | O_CLOEXEC);
	char made[] = "/tmp/a b/weir-test-XXXXXX";
	int ret = !mkdtemp(made) || mkdir("/tmp/c", 0700) || mount(made, "/tmp/c", NULL, MS_BIND, NULL) ||
		  mount(made, "/tmp/a b", NULL, MS_BIND, NULL) || expect("/tmp/c") || mount_cgroup2("/tmp/d") ||
		  expect("/tmp/d");

	unlinkat(hierarchy, strrchr(made, '/') + 1, AT_REMOVEDIR);
	return ret;
}

static void run(int (*scene)(void))
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(begin() ? NOT_HERE : scene());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NOT_HERE)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define TEST(scene)                            \
	static void test_##scene(void **state) \
	{                                      \
		(void)state;                   \
		run(scene);                    \
	}
TEST(one)
TEST(hidden)
TEST(hidden_from_above)
TEST(another_is_reached)
TEST(part)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_hidden_from_above),
		cmocka_unit_test(test_another_is_reached),
		cmocka_unit_test(test_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
