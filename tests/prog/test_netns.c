/* SPDX-License-Identifier: GPL-2.0 */
/* What is no network namespace is not opened: a FIFO would keep the agent's only thread for changes for good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sys/netns.h"

static void test_own(void **state)
{
	CLEANUP_CLOSE int fd = netns_open(NULL, NULL), named = netns_open("/proc/self/ns/net", NULL);

	(void)state;
	assert_true(fd >= 0);
	assert_true(named >= 0);
}

static void refused(const char *path, int ret)
{
	struct error err = { 0 };

	assert_int_equal(netns_open(path, &err), ret);
	assert_non_null(strstr(err.text, path));
}

static void test_others(void **state)
{
	char directory[] = P_tmpdir "/weir-test-XXXXXX", fifo[sizeof(directory) + sizeof("/fifo")];

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	refused(fifo, -EINVAL);
	unlink(fifo);
	refused(fifo, -ENOENT);
	rmdir(directory);
	refused("/", -EINVAL);
	refused("/dev/zero", -EINVAL);
	refused("/proc/self/ns/uts", -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_others),
	};

	alarm(60); /* where it hangs it fails */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
