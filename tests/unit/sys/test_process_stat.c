/* SPDX-License-Identifier: GPL-2.0 */
/* What /proc/ID/stat says, of processes with any name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/process_stat.h"

#define FIELDS "S 7 1 1 0 -1 4194560 2 3 4 5 6 7 8 9 20 0 1 0 4711 99 98 97 1000 1001 2000 0 0"

static int parse(const char *line, struct process_stat *out)
{
	char text[256];

	snprintf(text, sizeof(text), "%s", line);
	return process_stat_parse(text, out);
}

static void test_parse(void **state)
{
	static const char *const names[] = { "weir", "", "a b", "a) S 1", ")", "((", ") T 9 (", "a\nb" };
	struct process_stat stat;
	char line[256];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(line, sizeof(line), "12 (%s) " FIELDS "\n", names[i]);
		assert_int_equal(parse(line, &stat), 0);
		assert_string_equal(stat.command, names[i]);
		assert_int_equal(stat.state, 'S');
		assert_int_equal(stat.parent, 7);
		assert_int_equal(stat.start, 4711);
		assert_int_equal(stat.code, 1000);
		assert_int_equal(stat.stack, 2000);
	}
}

static void test_no_stat(void **state)
{
	static const char *const lines[] = { "", "12", "12 (a", ("12 a) " FIELDS), ")(", "12 (a) S 7 1" };
	struct process_stat stat = { .parent = 3 };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(parse(lines[i], &stat), -EPROTO);
	assert_int_equal(stat.parent, 3);
}

/* A child that has such a name and stops. */
static void test_stopped(void **state)
{
	struct process_stat stat;
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_NAME, "a) b (c");
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(process_stat_read(child, &stat), 0);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	assert_string_equal(stat.command, "a) b (c");
	assert_int_equal(stat.state, 'T');
	assert_int_equal(stat.parent, getpid());
	assert_true(stat.start > 0);
	assert_int_equal(process_stat_read(child, &stat), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_no_stat),
		cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
