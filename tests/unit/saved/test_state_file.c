/* SPDX-License-Identifier: GPL-2.0 */
/* state.json: written, read again, and refused if anything is wrong with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../state/server_fixture.h"
#include "base/cleanup.h"
#include "saved/saved.h"

/* A directory of its own for each test. */
static int make_dir(void **state)
{
	char *dir = strdup(P_tmpdir "/weir-test-XXXXXX");

	*state = mkdtemp(dir);
	return *state ? 0 : -1;
}

static void in_dir(const char *dir, const char *name, char path[static 256])
{
	snprintf(path, 256, "%s/%s", dir, name);
}

static int remove_dir(void **state)
{
	char path[256];

	in_dir(*state, "state.json", path);
	unlink(path);
	in_dir(*state, "state.json.new", path);
	rmdir(path);
	if (rmdir(*state))
		return -1;
	free(*state);
	return 0;
}

static void write_file(const char *dir, const char *text)
{
	char path[256];
	FILE *file;

	in_dir(dir, "state.json", path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void save_and_load(void **state)
{
	struct state saved = { 0 }, loaded = { 0 };
	CLEANUP_FREE char *text = NULL;
	CLEANUP_JSON json_t *json = NULL;
	char path[256];
	struct stat st;

	saved.servers[0] = server_at("first", 1, "[\"*:1\"]");
	saved.servers[63] = make_server(server_with_all);
	assert_int_equal(state_save(&saved, *state, NULL), 0);
	assert_int_equal(state_load(&loaded, *state, NULL), 0);
	json = server_to_json(loaded.servers[63]);
	text = json_dumps(json, JSON_COMPACT);
	assert_string_equal(text, server_with_all);
	assert_string_equal(loaded.servers[0]->name, "first");
	in_dir(*state, "state.json", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	state_clear(&saved);
	state_clear(&loaded);
}

/* Limits were a flat list then. */
static void version_before(void **state)
{
	struct state loaded = { 0 };
	const struct limit *user;

	write_file(*state, "{\"version\":1,\"servers\":{\"5\":{\"name\":\"a\",\"listen\":[\"*:1\"],\"limits\":["
			   "{\"type\":\"user\",\"subject\":\"alice\",\"qps\":\"7\",\"burst\":1,\"keys\":0},"
			   "{\"type\":\"user\",\"subject\":null,\"qps\":\"0.5\",\"burst\":3,\"keys\":64},"
			   "{\"type\":\"namespace\",\"subject\":\"dev\",\"qps\":\"8\",\"burst\":2,\"keys\":0}]}}}");
	assert_int_equal(state_load(&loaded, *state, NULL), 0);
	assert_int_equal(loaded.servers[5]->n_limits, 2);
	user = server_limit(loaded.servers[5], "user");
	assert_true(user->amount.set && user->amount.per_ns == WEIR_QPS / 2 && user->amount.burst == 3);
	assert_int_equal(user->keys, 64);
	assert_true(limit_override(user, "alice")->amount.per_ns == 7 * WEIR_QPS);
	assert_false(server_limit(loaded.servers[5], "namespace")->amount.set);
	assert_true(limit_override(server_limit(loaded.servers[5], "namespace"), "dev")->amount.burst == 2);
	state_clear(&loaded);
}

/* What is there may be as it should, and is not to be moved away. */
static void no_descriptors(void **state)
{
	struct rlimit before, none;
	struct state loaded = { 0 };
	struct error err = { 0 };
	int ret;

	write_file(*state, "{\"version\":2,\"servers\":{}}");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	ret = state_load(&loaded, *state, &err);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(ret, -EMFILE);
	assert_non_null(strstr(err.text, "Too many open files (leave it there, it may be whole)"));
}

static void no_file_is_empty(void **state)
{
	struct state loaded = { 0 };

	assert_int_equal(state_load(&loaded, *state, NULL), 0);
	assert_int_equal(state_find_only(&loaded, NULL), -ENOENT);
}

/* A save that fails leaves the file of before: here the place of the new file is taken by a directory. */
static void failed_save_changes_nothing(void **state)
{
	struct state before = { 0 }, after = { 0 }, loaded = { 0 };
	char path[256];

	before.servers[1] = server_at("before", 1, "[\"*:1\"]");
	after.servers[1] = server_at("after", 1, "[\"*:1\"]");
	assert_int_equal(state_save(&before, *state, NULL), 0);
	in_dir(*state, "state.json.new", path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(state_save(&after, *state, NULL) < 0);
	assert_int_equal(state_load(&loaded, *state, NULL), 0);
	assert_string_equal(loaded.servers[1]->name, "before");
	state_clear(&before);
	state_clear(&after);
	state_clear(&loaded);
}

static char *read_file(const char *dir)
{
	char path[256], *text = NULL;
	FILE *file;

	in_dir(dir, "state.json", path);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fscanf(file, "%m[^\n]", &text) == 1);
	fclose(file);
	return text;
}

/* A disk may have lost the end of it. */
static void cut_anywhere(void **state)
{
	struct state saved = { 0 }, loaded = { 0 };
	CLEANUP_FREE char *text = NULL;

	saved.servers[0] = make_server(server_with_all);
	assert_int_equal(state_save(&saved, *state, NULL), 0);
	text = read_file(*state);
	for (size_t length = strlen(text); length-- > 0;) {
		struct error err = { 0 };

		text[length] = '\0';
		write_file(*state, text);
		assert_true(state_load(&loaded, *state, &err) < 0);
		assert_non_null(strstr(err.text, "move it away to start with nothing"));
		assert_int_equal(state_find_only(&loaded, NULL), -ENOENT);
	}
	state_clear(&saved);
}

static void bad_files(void **state)
{
	static const char *const cases[] = {
		"",
		"{",
		"{\"version\":1}",
		"{\"version\":1,\"servers\":null}",
		"{\"version\":1,\"servers\":[1]}",
		"{\"version\":3,\"servers\":{}}",
		"{\"version\":1,\"servers\":{},\"more\":1}",
		"{\"version\":1,\"servers\":{\"64\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}}",
		"{\"version\":1,\"servers\":{\"-1\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}}",
		"{\"version\":1,\"servers\":{\"0\":{\"name\":\"a\",\"listen\":[\"*:1\"]},\"1\":{\"name\":\"a\",\"listen\":[\"*:2\"]}}}",
		"{\"version\":1,\"servers\":{\"0\":{\"name\":\"a\",\"listen\":[\"*:1\"]},\"1\":{\"name\":\"b\"}}}",
		"{\"version\":1,\"servers\":{\"0\":{\"name\":\"a\",\"listen\":[\"*:1\"]},\"00\":{\"name\":\"b\",\"listen\":[\"*:2\"]}}}",
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct state loaded = { 0 };
		struct error err = { 0 };

		write_file(*state, cases[i]);
		assert_true(state_load(&loaded, *state, &err) < 0);
		assert_non_null(strstr(err.text, "state.json"));
		for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
			assert_null(loaded.servers[slot]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(save_and_load, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(version_before, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(no_file_is_empty, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(no_descriptors, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(failed_save_changes_nothing, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(cut_anywhere, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(bad_files, make_dir, remove_dir),
	};

	return cmocka_run_group_tests_name("state file", tests, NULL, NULL);
}
