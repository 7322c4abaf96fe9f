/* SPDX-License-Identifier: GPL-2.0 */
/* Overrides that are added to the state's files: they are there after any end of the agent, and no file has what another lacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../state/server_fixture.h"
#include "base/cleanup.h"
#include "directories.h"
#include "saved/lines.h"
#include "saved/saved.h"

#define SLOT 7
#define MANY 64

struct scene {
	struct directories d;
	struct state state;
};

static struct limit *limit_of(struct state *state)
{
	return server_limit(state->servers[SLOT], "user");
}

/* Enough of them for a few lines to be added before all is saved as a whole. */
static void fill(struct limit *limit)
{
	const struct datapath_amount amount = { .set = true, .per_ns = 3 * WEIR_QPS, .burst = 4 };
	char subject[32];

	for (int i = 0; i < MANY; i++) {
		snprintf(subject, sizeof(subject), "user-%d", i);
		assert_int_equal(limit_override_add(limit, subject, &amount), 0);
	}
}

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	directories_make(&s->d);
	s->state.persist_dir = s->d.lib;
	s->state.servers[SLOT] = make_server("{\"name\":\"a\",\"listen\":[\"*:1\"],\"limits\":["
					     "{\"name\":\"user\",\"qps\":\"1\",\"burst\":1},"
					     "{\"name\":\"busy\",\"key\":\"user\",\"number\":1,\"in_flight\":1}]}");
	fill(limit_of(&s->state));
	assert_int_equal(state_save(&s->state, s->d.run, NULL), 0);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	directories_remove(&s->d);
	state_clear(&s->state);
	free(s);
	return 0;
}

/* As the command does it. */
static int set(struct scene *s, const char *name, const char *subject, struct datapath_amount amount)
{
	struct limit *limit = server_limit(s->state.servers[SLOT], name);
	struct override *override = limit_override(limit, subject);

	amount.set = true;
	if (override)
		override->amount = amount;
	else
		assert_int_equal(limit_override_add(limit, subject, &amount), 0);
	return state_save_override(&s->state, SLOT, limit, limit_override(limit, subject), s->d.run, NULL);
}

static int set_rate(struct scene *s, const char *subject, unsigned int qps)
{
	return set(s, "user", subject, (struct datapath_amount){ .per_ns = qps * WEIR_QPS, .burst = 5 });
}

static struct stat stat_of(const char *directory)
{
	struct stat info;
	char path[64];

	path_in(directory, path);
	assert_int_equal(stat(path, &info), 0);
	return info;
}

/* What is read from the directory is what the state says. */
static void assert_read(const struct scene *s, const char *directory)
{
	CLEANUP_JSON json_t *asked = server_to_json(s->state.servers[SLOT]), *read = NULL;
	struct state loaded = { 0 };
	struct error err;

	if (state_load(&loaded, directory, &err))
		fail_msg("%s", err.text);
	read = server_to_json(loaded.servers[SLOT]);
	if (!json_equal(asked, read))
		fail_msg("%s: %s", directory, json_dumps(read, 0));
	state_clear(&loaded);
}

static void assert_both(const struct scene *s)
{
	assert_read(s, s->d.run);
	assert_read(s, s->d.lib);
}

static void added_and_read(void **state)
{
	struct scene *s = *state;
	const ino_t run = stat_of(s->d.run).st_ino, lib = stat_of(s->d.lib).st_ino;

	assert_int_equal(set_rate(s, "new", 9), 0);
	assert_int_equal(set_rate(s, "user-3", 9), 0);
	assert_int_equal(set(s, "user", "one with \"quotes\"", (struct datapath_amount){ .per_ns = 1, .burst = 2 }), 0);
	assert_int_equal(set(s, "user", "new", (struct datapath_amount){ .deny = true }), 0);
	assert_int_equal(set(s, "busy", "new", (struct datapath_amount){ .seats = 7 }), 0);
	assert_int_equal(set(s, "busy", "new", (struct datapath_amount){ .seats = 8 }), 0);
	assert_both(s);
	assert_int_equal(stat_of(s->d.run).st_ino, run);
	assert_int_equal(stat_of(s->d.lib).st_ino, lib);
}

/* Of a limit without an amount of its own, the first override that is not denied says what kind it is. */
static void kind_of_the_first(void **state)
{
	struct scene *s = *state;
	struct limit *busy = server_limit(s->state.servers[SLOT], "busy");

	busy->amount = (struct datapath_amount){ .set = true, .deny = true };
	assert_int_equal(state_save(&s->state, s->d.run, NULL), 0);
	assert_int_equal(set(s, "busy", "new", (struct datapath_amount){ .seats = 7 }), 0);
	assert_both(s);
}

/* They take no more room than the state does, and an agent that ends leaves none. */
static void saved_as_a_whole(void **state)
{
	struct scene *s = *state;
	const off_t whole = stat_of(s->d.run).st_size;

	for (unsigned int i = 1; i < 4 * MANY; i++) {
		assert_int_equal(set_rate(s, "user-1", i), 0);
		assert_true(stat_of(s->d.run).st_size <= 2 * whole + 16);
		assert_int_equal(stat_of(s->d.run).st_size, stat_of(s->d.lib).st_size);
		assert_both(s);
	}
	assert_true(s->state.saved.lines);
	assert_int_equal(state_save(&s->state, s->d.run, NULL), 0);
	assert_false(s->state.saved.lines);
	assert_true(stat_of(s->d.run).st_size <= whole + 16);
}

/* What has been read is saved as a whole before anything is added. */
static void after_a_start(void **state)
{
	struct scene *s = *state;
	struct stat before;

	assert_int_equal(set_rate(s, "new", 9), 0);
	state_clear(&s->state);
	before = stat_of(s->d.run);
	assert_int_equal(state_begin(&s->state, s->d.run, s->d.lib, NULL), STATE_CURRENT);
	assert_true(s->state.saved.lines);
	assert_int_equal(set_rate(s, "newer", 9), 0);
	assert_int_not_equal(stat_of(s->d.run).st_ino, before.st_ino);
	assert_false(s->state.saved.lines);
	assert_both(s);
}

static void write_at(const char *directory, off_t offset, const void *bytes, size_t size)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	char path[64];

	path_in(directory, path);
	file = fopen(path, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, offset, SEEK_SET), 0);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
}

static unsigned int qps_of(const char *directory, const char *subject)
{
	struct state loaded = { 0 };
	struct error err;
	const struct override *override;
	unsigned int qps;

	if (state_load(&loaded, directory, &err))
		fail_msg("%s", err.text);
	override = limit_override(limit_of(&loaded), subject);
	qps = override ? override->amount.per_ns / WEIR_QPS : 0;
	state_clear(&loaded);
	return qps;
}

/* The machine lost its power while the second line was written: its end is not there, or has not arrived on the disk. */
static void cut_anywhere(void **state)
{
	struct scene *s = *state;
	off_t first, second;
	char path[64];

	assert_int_equal(set_rate(s, "new", 8), 0);
	first = stat_of(s->d.run).st_size;
	assert_int_equal(set_rate(s, "new", 9), 0);
	second = stat_of(s->d.run).st_size;
	assert_int_equal(qps_of(s->d.run, "new"), 9);
	path_in(s->d.run, path);
	for (off_t at = first; at < second - 1; at++) {
		write_at(s->d.lib, at, "", 1);
		assert_int_equal(qps_of(s->d.lib, "new"), 8);
	}
	for (off_t size = second - 1; size >= first; size--) {
		assert_int_equal(truncate(path, size), 0);
		assert_int_equal(qps_of(s->d.run, "new"), 8);
	}
	assert_int_equal(truncate(path, first - 1), 0);
	assert_int_equal(qps_of(s->d.run, "new"), 0);
}

static void append(const char *directory, const char *text)
{
	write_at(directory, stat_of(directory).st_size, text, strlen(text));
}

static void bad_lines(void **state)
{
	static const struct {
		const char *lines, *said;
	} cases[] = {
		{ "{\"slot\":\"7\"\n{}\n", "line 2: " },
		{ "\n{}\n", "line 3: " },
		{ "[]\n", "line 2: " },
		{ "{\"slot\":\"7\",\"limit\":\"user\",\"override\":{\"subject\":\"x\",\"deny\":true},\"more\":1}\n",
		  "more" },
		{ "{\"slot\":\"8\",\"limit\":\"user\",\"override\":{\"subject\":\"x\",\"deny\":true}}\n",
		  "server 8 has no limit \"user\"" },
		{ "{\"slot\":\"7\",\"limit\":\"total\",\"override\":{\"subject\":\"x\",\"deny\":true}}\n",
		  "has no limit \"total\"" },
		{ "{\"slot\":\"7\",\"limit\":\"user\",\"override\":{\"deny\":true}}\n", "subject" },
		{ "{\"slot\":\"7\",\"limit\":\"user\",\"override\":{\"subject\":\"x\"}}\n", "are missing" },
		{ "{\"slot\":\"7\",\"limit\":\"user\",\"override\":{\"subject\":\"x\",\"in_flight\":1}}\n", "a rate" },
	};
	struct scene *s = *state;
	char path[64];

	path_in(s->d.run, path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const off_t whole = stat_of(s->d.run).st_size;
		struct state loaded = { 0 };
		struct error err = { 0 };

		append(s->d.run, cases[i].lines);
		assert_int_equal(state_load(&loaded, s->d.run, &err), -EINVAL);
		if (!strstr(err.text, cases[i].said) || !strstr(err.text, "state.json") ||
		    !strstr(err.text, "move it away"))
			fail_msg("%s: %s", cases[i].lines, err.text);
		assert_null(loaded.servers[SLOT]);
		assert_int_equal(truncate(path, whole), 0);
	}
	assert_int_equal(truncate(path, stat_of(s->d.run).st_size - 1), 0);
	append(s->d.run, " more\n");
	assert_int_equal(state_load(&(struct state){ 0 }, s->d.run, NULL), -EINVAL);
}

/* A file that somebody has changed or removed is written anew, and so is the other one. */
static void files_that_were_changed(void **state)
{
	struct scene *s = *state;
	const char *const directories[] = { s->d.run, s->d.lib };
	char path[64];

	for (unsigned int i = 0; i < 2; i++) {
		append(directories[i], "x");
		assert_int_equal(set_rate(s, "new", 10 + i), 0);
		assert_both(s);
		path_in(directories[i], path);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(set_rate(s, "new", 20 + i), 0);
		assert_both(s);
	}
}

/* The file of one directory is new, that of the other one is as it was, and as large: no line stands behind both. */
static void after_a_save_that_failed(void **state)
{
	struct scene *s = *state;
	char path[STATE_PATH], aside[STATE_PATH + 8];

	path_in(s->d.run, path);
	snprintf(aside, sizeof(aside), "%s.aside", path);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	s->state.servers[SLOT]->name[0] = 'b';
	assert_true(state_save(&s->state, s->d.run, NULL) < 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(aside, path), 0);
	assert_read(s, s->d.lib);
	assert_int_equal(stat_of(s->d.run).st_size, stat_of(s->d.lib).st_size);

	assert_int_equal(set_rate(s, "new", 9), 0);
	assert_both(s);
}

/* As if the disk had room for so many bytes more. */
static void leave_room(off_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size < 0 ? limit.rlim_max : (rlim_t)size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Neither file has anything of a line for which there was no room. Nor can all be saved: a directory is where the new file is to be. */
static void no_room(void **state)
{
	struct scene *s = *state;
	char path[256];

	signal(SIGXFSZ, SIG_IGN);
	snprintf(path, sizeof(path), "%s/state.json.new", s->d.run);
	for (off_t room = 0; room < 40; room++) {
		off_t size = stat_of(s->d.run).st_size;
		int ret;

		assert_int_equal(mkdir(path, 0700), 0);
		leave_room(size + room);
		ret = set_rate(s, "user-2", 8);
		leave_room(-1);
		assert_true(ret < 0);
		assert_int_equal(stat_of(s->d.run).st_size, size);
		assert_int_equal(stat_of(s->d.lib).st_size, size);
		assert_int_equal(qps_of(s->d.lib, "user-2"), 3);
		assert_int_equal(rmdir(path), 0);
		limit_override(limit_of(&s->state), "user-2")->amount.per_ns = 3 * WEIR_QPS;
		assert_int_equal(state_save(&s->state, s->d.run, NULL), 0);
	}
}

/* What the first file has goes again when the second one has no room: here both are one, of which the second line is too much. */
static void room_for_the_first(void **state)
{
	struct scene *s = *state;
	struct text line = { .bytes = "{}\n", .used = 3 };
	const char *const both[] = { s->d.run, s->d.run };
	off_t size = stat_of(s->d.run).st_size;
	int ret;

	signal(SIGXFSZ, SIG_IGN);
	leave_room(size + 4);
	ret = lines_add(both, size, &line);
	leave_room(-1);
	assert_int_equal(ret, -EFBIG);
	assert_int_equal(stat_of(s->d.run).st_size, size);
	assert_read(s, s->d.run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(added_and_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kind_of_the_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(saved_as_a_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(after_a_start, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cut_anywhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_that_were_changed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(after_a_save_that_failed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(room_for_the_first, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("state lines", tests, NULL, NULL);
}
