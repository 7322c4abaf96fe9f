/* SPDX-License-Identifier: GPL-2.0 */
/* The lines of the agent's log, as text and as JSON, and what the journal gets. */
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
#include <jansson.h>

#include "base/cleanup.h"
#include "base/log.h"

/* stderr is a file meanwhile; journal: as if that were the journal's. */
static void logged(bool journal, char line[static 256])
{
	char stream[64], path[] = "/tmp/weir-log-XXXXXX";
	int fd = mkstemp(path), before = dup(STDERR_FILENO);
	struct stat file;
	ssize_t n;

	assert_true(fd >= 0 && before >= 0 && fstat(fd, &file) == 0);
	unlink(path);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)file.st_dev,
		 (unsigned long long)file.st_ino + !journal);
	setenv("JOURNAL_STREAM", stream, 1);
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	log_warning("server \"%s\"\n", "web");
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	unsetenv("JOURNAL_STREAM");
	n = pread(fd, line, 255, 0);
	assert_true(n > 0);
	line[n] = '\0';
	close(before);
	close(fd);
}

static void test_text(void **state)
{
	char line[256];

	(void)state;
	logged(false, line);
	assert_string_equal(line, "weir: warning: server \"web\"\\x0a\n");
	logged(true, line);
	assert_string_equal(line, "<4>weir: warning: server \"web\"\\x0a\n");
}

static void test_json(void **state)
{
	CLEANUP_JSON json_t *object = NULL;
	char line[256];

	(void)state;
	log_json(true);
	logged(true, line);
	log_json(false);
	assert_memory_equal(line, "<4>{", 4);
	object = json_loads(line + 3, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(object, "level")), "warning");
	assert_string_equal(json_string_value(json_object_get(object, "message")), "server \"web\"\\x0a");
	assert_int_equal(strlen(json_string_value(json_object_get(object, "time"))), strlen("2000-01-01T00:00:00Z"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_text), cmocka_unit_test(test_json) };

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
