/* SPDX-License-Identifier: GPL-2.0 */
#include "history/files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/append.h"
#include "base/cleanup.h"
#include "base/regular.h"

#define HOUR_S 3600
#define CLOCK_STEP_S 60 /* more than a clock that is set right moves from one sample to the next */
#define SUFFIX ".jsonl"
#define LAST "last.json"
#define LAST_FRESH "last.json.new"
#define NAME_SIZE sizeof("2026-11-23T04" SUFFIX)

static int file_path(const char *dir, const char *name, char path[static PATH_MAX], struct error *err)
{
	if (snprintf(path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
		return error_set(err, -ENAMETOOLONG, "the path of %s/%s is too long", dir, name);
	return 0;
}

/* Names sort as the hours do. */
static void hour_name(time_t time, char name[static NAME_SIZE])
{
	struct tm parts;

	gmtime_r(&time, &parts);
	strftime(name, NAME_SIZE, "%Y-%m-%dT%H" SUFFIX, &parts);
}

static bool is_hour(const char *name)
{
	return strlen(name) == NAME_SIZE - 1 && strcmp(name + NAME_SIZE - sizeof(SUFFIX), SUFFIX) == 0;
}

static int hours_only(const struct dirent *entry)
{
	return is_hour(entry->d_name);
}

/* The hours there are, in their order; the caller frees each and the list. Returns how many. */
static int list_hours(const char *dir, struct dirent ***out)
{
	int n = scandir(dir, out, hours_only, alphasort);

	return n < 0 && errno == ENOENT ? 0 : n < 0 ? -errno : n;
}

static void free_hours(struct dirent **list, int n)
{
	for (int i = 0; i < n; i++)
		free(list[i]);
	if (n > 0)
		free(list);
}

/* --- writing */

bool history_clock_is_steady(struct history_clock *clock, time_t now, __u64 since_boot_s)
{
	time_t ahead = now - since_boot_s, moved = ahead - clock->ahead;

	if (!clock->known || moved > CLOCK_STEP_S || moved < -CLOCK_STEP_S)
		*clock = (struct history_clock){
			.known = true,
			.ahead = ahead,
			.steady_s = clock->known ? since_boot_s + HOUR_S : 0,
		};
	return since_boot_s >= clock->steady_s;
}

/* Also what a clock that was wrong has left in times to come. */
static void remove_others(const char *dir, time_t now)
{
	char oldest[NAME_SIZE], latest[NAME_SIZE], path[PATH_MAX];
	struct dirent **list = NULL;
	int n = list_hours(dir, &list);

	hour_name(now - HISTORY_HOURS * HOUR_S, oldest);
	hour_name(now + HOUR_S, latest);
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;

		if ((strcmp(name, oldest) < 0 || strcmp(name, latest) > 0) && !file_path(dir, name, path, NULL))
			unlink(path);
	}
	free_hours(list, n);
}

int history_append(const char *dir, time_t now, bool prune, const char *lines, size_t length, struct error *err)
{
	char name[NAME_SIZE], path[PATH_MAX];
	int ret;

	hour_name(now, name);
	ret = file_path(dir, name, path, err);
	if (ret)
		return ret;
	if (mkdir(dir, 0700) && errno != EEXIST)
		return error_set(err, -errno, "cannot make %s: %s", dir, strerror(errno));
	if (prune)
		remove_others(dir, now);
	ret = append_lines(path, lines, length);
	return ret ? error_set(err, ret, "cannot write %s: %s", path, strerror(-ret)) : 0;
}

/* --- reading */

struct reading {
	time_t since, now;
	const char *by;
	history_take *take;
	void *arg;
};

static bool is_wanted(const struct reading *reading, json_t *object)
{
	json_t *time = json_object_get(object, "time"), *seconds = json_object_get(object, "seconds");
	const char *by = json_string_value(json_object_get(object, "by"));

	return json_is_integer(time) && json_is_number(seconds) && by && strcmp(by, reading->by) == 0 &&
	       json_integer_value(time) <= reading->now &&
	       json_integer_value(time) + json_number_value(seconds) > reading->since;
}

/* 1: take() wants no more. */
static int read_hour(const char *path, const struct reading *reading)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;
	ssize_t length;

	if (regular_read(path, &file, NULL))
		return 0;
	while ((length = getline(&line, &room, file)) > 0) {
		/* Most lines are of another kind: they need not be parsed. */
		CLEANUP_JSON json_t *object = strstr(line, reading->by) ? json_loadb(line, length, 0, NULL) : NULL;

		if (object && is_wanted(reading, object) && !reading->take(reading->arg, object))
			return 1;
	}
	return 0;
}

int history_read(const char *dir, time_t since, time_t now, const char *by, history_take *take, void *arg,
		 struct error *err)
{
	const struct reading reading = { .since = since, .now = now, .by = by, .take = take, .arg = arg };
	char first[NAME_SIZE], path[PATH_MAX];
	struct dirent **list = NULL;
	int n = list_hours(dir, &list), ret = 0;

	if (n < 0)
		return error_set(err, n, "cannot read %s: %s", dir, strerror(-n));
	hour_name(since, first);
	for (int i = 0; i < n && !ret; i++) {
		if (strcmp(list[i]->d_name, first) < 0)
			continue;
		ret = file_path(dir, list[i]->d_name, path, err) ?: read_hour(path, &reading);
	}
	free_hours(list, n);
	return ret < 0 ? ret : 0;
}

/* --- a file beside them */

int history_save_last(const char *dir, json_t *json, struct error *err)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	int ret = file_path(dir, LAST, path, err) ?: file_path(dir, LAST_FRESH, fresh, err);

	if (ret)
		return ret;
	if (mkdir(dir, 0700) && errno != EEXIST)
		return error_set(err, -errno, "cannot make %s: %s", dir, strerror(errno));
	unlink(fresh);
	errno = EIO;
	if (json_dump_file(json, fresh, JSON_COMPACT) || rename(fresh, path)) {
		ret = error_set(err, -errno, "cannot write %s: %s", path, strerror(errno));
		unlink(fresh);
	}
	return ret;
}

json_t *history_load_last(const char *dir)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	char path[PATH_MAX];

	return file_path(dir, LAST, path, NULL) || regular_read(path, &file, NULL) ? NULL : json_loadf(file, 0, NULL);
}

void history_remove(const char *dir)
{
	static const char *const others[] = { LAST, LAST_FRESH };
	struct dirent **list = NULL;
	char path[PATH_MAX];
	int n = list_hours(dir, &list);

	for (int i = 0; i < n; i++)
		if (!file_path(dir, list[i]->d_name, path, NULL))
			unlink(path);
	free_hours(list, n);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!file_path(dir, others[i], path, NULL))
			unlink(path);
	rmdir(dir);
}
