/* SPDX-License-Identifier: GPL-2.0 */
/* The history: what came since a mark, the files of a day, and what is made of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "history/files.h"
#include "history/mark.h"
#include "history/sum.h"

#define NOON 1764072000 /* 2025-11-25T12:00:00Z */
#define HOUR 3600

static struct error err;
static char dir[64], parent[32];

static int set_up(void **state)
{
	(void)state;
	strcpy(parent, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(parent));
	snprintf(dir, sizeof(dir), "%s/history", parent);
	return 0;
}

/* What is removed is all there was. */
static int tear_down(void **state)
{
	(void)state;
	history_remove(dir);
	return rmdir(parent);
}

/* --- marks */

static struct weir_heavy_row row_of(__u64 subject, __u64 first_ns, __u64 requests, __u64 refused)
{
	return (struct weir_heavy_row){
		.what = { .by = WEIR_HEAVY_USER, .subjects = { subject } },
		.first_ns = first_ns,
		.counts = { .requests = requests, .refused = refused },
	};
}

static void put(struct heavy_places *places, __u32 at, struct weir_heavy_row row)
{
	assert_int_equal(heavy_places_add(places, at, &row), 0);
}

static void what_came_since(void **state)
{
	CLEANUP_HEAVY_PLACES struct heavy_places before = { 0 }, now = { 0 };
	CLEANUP_FREE struct weir_heavy_row *rows = NULL;
	struct history_mark mark = { 0 }, read = { 0 };
	CLEANUP_JSON json_t *json = NULL;

	(void)state;
	put(&before, 0, row_of(1, 10, 100, 5));
	put(&before, 7, row_of(2, 11, 50, 0));
	put(&before, 8, row_of(1, 12, 30, 0));
	assert_int_equal(history_mark_set(&mark, &before), 0);
	json = history_mark_to_json(&mark);
	assert_int_equal(history_mark_from_json(&read, json), 0);
	history_mark_clear(&mark);

	put(&now, 0, row_of(1, 10, 107, 6)); /* 7 more */
	put(&now, 3, row_of(4, 20, 1, 0));   /* new */
	put(&now, 7, row_of(3, 21, 60, 60)); /* has taken over the row of 2 */
	put(&now, 8, row_of(1, 12, 34, 0));  /* 4 more on another CPU */
	put(&now, 9, row_of(1, 30, 9, 0));   /* and all of a third one's */
	assert_int_equal(history_added(&read, &now, &rows), 3);
	assert_int_equal(rows[0].what.subjects[0], 3);
	assert_int_equal(rows[0].counts.requests, 60);
	assert_int_equal(rows[1].what.subjects[0], 1);
	assert_int_equal(rows[1].counts.requests, 20);
	assert_int_equal(rows[1].counts.refused, 1);
	assert_int_equal(rows[2].what.subjects[0], 4);
	history_mark_clear(&read);
}

static void nothing_came(void **state)
{
	CLEANUP_HEAVY_PLACES struct heavy_places places = { 0 };
	CLEANUP_FREE struct weir_heavy_row *rows = NULL, *all = NULL;
	struct history_mark mark = { 0 };

	(void)state;
	assert_int_equal(history_added(NULL, &places, &all), 0);
	put(&places, 0, row_of(1, 10, 100, 5));
	assert_int_equal(history_mark_set(&mark, &places), 0);
	assert_int_equal(history_added(&mark, &places, &rows), 0);
	free(all);
	assert_int_equal(history_added(NULL, &places, &all), 1);
	assert_int_equal(all[0].counts.requests, 100);
	history_mark_clear(&mark);
}

static void marks_that_are_none(void **state)
{
	static const char *const texts[] = { "{}", "[1]", "[[1,2,3,4,5]]", "[[1,2,3,4,5,6,7]]", "[[1,2,3,4,5,\"6\"]]" };
	struct history_mark mark = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		CLEANUP_JSON json_t *json = json_loads(texts[i], 0, NULL);

		assert_int_equal(history_mark_from_json(&mark, json), -EINVAL);
		assert_null(mark.rows);
	}
}

/* --- files */

static void append_text(time_t now, const char *lines)
{
	assert_int_equal(history_append(dir, now, true, lines, strlen(lines), &err), 0);
}

static void append_row(time_t time, const char *by, const char *user, int requests)
{
	char line[256];

	snprintf(line, sizeof(line),
		 "{\"time\":%lld,\"seconds\":60,\"by\":\"%s\",\"server\":\"web\",\"user\":\"%s\",\"requests\":%d,"
		 "\"refused\":1,\"dry_run\":0,\"held\":0}\n",
		 (long long)time, by, user, requests);
	append_text(time + 60, line);
}

static char found[1024];

static bool note(void *arg, json_t *object)
{
	(void)arg;
	strcat(found, json_string_value(json_object_get(object, "user")));
	strcat(found, " ");
	return true;
}

static const char *read_until(time_t since, time_t now)
{
	*found = '\0';
	assert_int_equal(history_read(dir, since, now, "user", note, NULL, &err), 0);
	return found;
}

static const char *read_since(time_t since)
{
	return read_until(since, NOON + 26 * HOUR);
}

static bool has_hour(const char *name)
{
	char path[128];
	struct stat known;

	snprintf(path, sizeof(path), "%s/%s.jsonl", dir, name);
	return stat(path, &known) == 0;
}

static void a_day_of_files(void **state)
{
	(void)state;
	assert_string_equal(read_since(0), "");
	append_row(NOON - 60, "user", "a", 1);
	append_row(NOON, "limit", "no", 1);
	append_row(NOON, "user", "b", 2);
	append_row(NOON + 2 * HOUR, "user", "c", 3);
	assert_string_equal(read_since(0), "a b c ");
	assert_string_equal(read_since(NOON - 1), "a b c ");
	assert_string_equal(read_since(NOON), "b c ");
	assert_string_equal(read_since(NOON + 59), "b c ");
	assert_string_equal(read_since(NOON + 60), "c ");
	/* 24 hours are kept, and the one that is not over. */
	append_row(NOON + 24 * HOUR, "user", "d", 1);
	assert_true(has_hour("2025-11-25T12"));
	append_row(NOON + 25 * HOUR, "user", "e", 1);
	assert_false(has_hour("2025-11-25T12"));
	assert_string_equal(read_since(0), "c d e ");
}

/* A clock that was wrong for a while. */
static void hours_to_come(void **state)
{
	(void)state;
	append_row(NOON + 48 * HOUR, "user", "tomorrow", 1);
	append_row(NOON + 60, "user", "a-minute-ahead", 1);
	/* Nothing was written since it is right again. */
	assert_string_equal(read_until(0, NOON), "");
	append_row(NOON, "user", "a", 1);
	assert_string_equal(read_until(0, NOON), "a ");
	assert_string_equal(read_until(0, NOON + 59), "a ");
	assert_string_equal(read_until(0, NOON + 60), "a-minute-ahead a ");
}

/* A clock that is not believed removes nothing. */
static void nothing_is_removed(void **state)
{
	(void)state;
	append_row(NOON, "user", "a", 1);
	assert_int_equal(history_append(dir, NOON + 48 * HOUR, false, "x\n", 2, &err), 0);
	assert_string_equal(read_until(0, NOON + HOUR), "a ");
}

static void a_clock_that_is_set(void **state)
{
	struct history_clock clock = { 0 };
	const __u64 boot = 100;

	(void)state;
	assert_true(history_clock_is_steady(&clock, NOON, boot));
	assert_true(history_clock_is_steady(&clock, NOON + 61, boot + 60));
	/* Suspended, and the time since boot goes on. */
	assert_true(history_clock_is_steady(&clock, NOON + 48 * HOUR, boot + 48 * HOUR));
	/* A day ahead for half an hour. */
	assert_false(history_clock_is_steady(&clock, NOON + 72 * HOUR, boot + 48 * HOUR + 60));
	assert_false(history_clock_is_steady(&clock, NOON + 72 * HOUR + 1800, boot + 48 * HOUR + 1860));
	assert_false(history_clock_is_steady(&clock, NOON + 48 * HOUR + 1920, boot + 48 * HOUR + 1920));
	assert_false(history_clock_is_steady(&clock, NOON + 49 * HOUR + 1919, boot + 49 * HOUR + 1919));
	assert_true(history_clock_is_steady(&clock, NOON + 49 * HOUR + 1920, boot + 49 * HOUR + 1920));
}

static void lines_that_are_none(void **state)
{
	(void)state;
	append_row(NOON, "user", "a", 1);
	append_text(NOON, "\"user\"\n{\"by\":\"user\"}\n[]\n\nuser\n{\"time\":\"user\"}\n");
	append_text(NOON, "{\"time\":1,\"seconds\":60,\"by\":\"user\",\"us\n");
	append_row(NOON, "user", "b", 1);
	append_text(NOON, "{\"time\":1,\"by\":\"user"); /* its end is missing */
	assert_string_equal(read_since(0), "a b ");
}

static void what_is_not_ours(void **state)
{
	char path[128];
	FILE *file;

	(void)state;
	append_row(NOON, "user", "a", 1);
	snprintf(path, sizeof(path), "%s/notes", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_string_equal(read_since(0), "a ");
	history_remove(dir);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
}

static void cannot_be_written(void **state)
{
	(void)state;
	assert_int_equal(history_append("/proc/self/history", NOON, true, "x\n", 2, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/proc/self/history"));
}

static void the_last_one(void **state)
{
	CLEANUP_JSON json_t *json = json_pack("{s:i}", "a", 1), *read = NULL;

	(void)state;
	assert_null(history_load_last(dir));
	assert_int_equal(history_save_last(dir, json, &err), 0);
	read = history_load_last(dir);
	assert_true(json_equal(json, read));
}

/* --- sums */

static void added_up(void **state)
{
	CLEANUP_HISTORY_SUM struct history_sum *sum = history_sum_new(NULL, NULL, true);
	CLEANUP_JSON json_t *rows = NULL;
	json_t *first;

	(void)state;
	append_row(NOON, "user", "alice", 60);
	append_row(NOON, "user", "bob", 600);
	append_row(NOON + 60, "user", "alice", 1200);
	assert_int_equal(history_read(dir, 0, NOON + HOUR, "user", history_sum_take, sum, &err), 0);
	rows = history_sum_rows(sum);
	assert_int_equal(json_array_size(rows), 2);
	first = json_array_get(rows, 0);
	assert_string_equal(json_string_value(json_object_get(first, "user")), "alice");
	assert_int_equal(json_integer_value(json_object_get(first, "requests")), 1260);
	assert_int_equal(json_integer_value(json_object_get(first, "refused")), 2);
	assert_true(json_number_value(json_object_get(first, "seconds")) == 120);
	assert_int_equal(json_integer_value(json_object_get(first, "minutes")), 2);
	assert_true(json_real_value(json_object_get(first, "peak")) == 20);
	assert_null(json_object_get(first, "time"));
}

/* The end of a history is short: its rate is that of its own time, to the millisecond. */
static double peak_of(double seconds, int requests)
{
	CLEANUP_HISTORY_SUM struct history_sum *sum = history_sum_new(NULL, NULL, true);
	CLEANUP_JSON json_t *row = json_pack("{s:i, s:f, s:s, s:s, s:i}", "time", 60, "seconds", seconds, "server",
					     "web", "user", "alice", "requests", requests);
	CLEANUP_JSON json_t *rows = NULL;

	history_sum_take(sum, row);
	rows = history_sum_rows(sum);
	return json_real_value(json_object_get(json_array_get(rows, 0), "peak"));
}

static void part_of_a_minute(void **state)
{
	(void)state;
	assert_float_equal(peak_of(1.3, 52), 40, 1e-9);
	assert_float_equal(peak_of(1.001, 1001), 1000, 1e-9);
	assert_float_equal(peak_of(1, 40), 40, 1e-9);
	assert_float_equal(peak_of(0.999, 40), 40, 1e-9);
	assert_float_equal(peak_of(0, 40), 40, 1e-9);
	assert_float_equal(peak_of(90.5, 181), 2, 1e-9);
}

/* One more minute, of so many requests; returns what the limit would have refused of them. */
static double over(struct history_sum *sum, int minute, const char *user, int requests)
{
	CLEANUP_JSON json_t *row = json_pack("{s:I, s:i, s:s, s:s, s:i}", "time", (json_int_t)NOON + minute * 60,
					     "seconds", 60, "server", "web", "user", user, "requests", requests);

	history_sum_take(sum, row);
	return json_real_value(json_object_get(row, "over"));
}

/* 2 a second and a burst of 4: 124 in a first minute, 120 in one after another. */
static void a_limit_in_mind(void **state)
{
	const struct history_limit limit = { .qps = 2, .burst = 4 };
	CLEANUP_HISTORY_SUM struct history_sum *sum = history_sum_new(NULL, NULL, true);
	CLEANUP_JSON json_t *rows = NULL;

	(void)state;
	sum->limit = &limit;
	assert_true(over(sum, 0, "alice", 123) == 0);
	assert_true(over(sum, 1, "alice", 130) == 9); /* one was left */
	assert_true(over(sum, 1, "bob", 125) == 1);   /* a bucket of his own */
	assert_true(over(sum, 2, "alice", 121) == 1);
	assert_true(over(sum, 9, "alice", 125) == 1); /* it was full again, and no fuller */
	assert_true(over(sum, 10, "alice", 0) == 0);
	assert_true(over(sum, 11, "alice", 125) == 1);
	rows = history_sum_rows(sum);
	assert_int_equal(json_array_size(rows), 2);
	assert_true(json_real_value(json_object_get(json_array_get(rows, 0), "over")) == 12);
}

static void no_limit_in_mind(void **state)
{
	CLEANUP_HISTORY_SUM struct history_sum *sum = history_sum_new(NULL, NULL, true);
	CLEANUP_JSON json_t *rows = NULL;

	(void)state;
	over(sum, 0, "alice", 1000);
	rows = history_sum_rows(sum);
	assert_null(json_object_get(json_array_get(rows, 0), "over"));
}

static size_t count_of(const char *server, const char *filter)
{
	CLEANUP_HISTORY_SUM struct history_sum *sum = history_sum_new(server, filter, false);
	CLEANUP_JSON json_t *rows = NULL;

	assert_int_equal(history_read(dir, 0, NOON + HOUR, "user", history_sum_take, sum, &err), 0);
	rows = history_sum_rows(sum);
	return json_array_size(rows);
}

static void some_of_them(void **state)
{
	(void)state;
	append_row(NOON, "user", "alice", 60);
	append_row(NOON, "user", "bob", 600);
	assert_int_equal(count_of(NULL, NULL), 2);
	assert_int_equal(count_of("web", NULL), 2);
	assert_int_equal(count_of("we", NULL), 0);
	assert_int_equal(count_of(NULL, "LIC"), 1);
	assert_int_equal(count_of("web", "carol"), 0);
}

static void too_many(void **state)
{
	CLEANUP_HISTORY_SUM struct history_sum *sum = history_sum_new(NULL, NULL, false);
	CLEANUP_JSON json_t *rows = NULL;

	(void)state;
	for (int i = 0; i < HISTORY_ROWS_MAX + 3; i++) {
		CLEANUP_JSON json_t *row = json_pack("{s:i}", "time", i);

		history_sum_take(sum, row);
		if (i == HISTORY_ROWS_MAX - 1)
			assert_int_equal(history_sum_left_out(sum), 0);
	}
	rows = history_sum_rows(sum);
	assert_int_equal(json_array_size(rows), HISTORY_ROWS_MAX);
	assert_int_equal(history_sum_left_out(sum), 3);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 0), "time")), 3);
}

#define with_dir(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_came_since),
		cmocka_unit_test(nothing_came),
		cmocka_unit_test(marks_that_are_none),
		with_dir(a_day_of_files),
		with_dir(hours_to_come),
		with_dir(nothing_is_removed),
		cmocka_unit_test(a_clock_that_is_set),
		with_dir(lines_that_are_none),
		with_dir(what_is_not_ours),
		with_dir(cannot_be_written),
		with_dir(the_last_one),
		with_dir(added_up),
		cmocka_unit_test(part_of_a_minute),
		cmocka_unit_test(a_limit_in_mind),
		cmocka_unit_test(no_limit_in_mind),
		with_dir(some_of_them),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
