/* SPDX-License-Identifier: GPL-2.0 */
#include "audit/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/append.h"
#include "base/cleanup.h"
#include "base/regular.h"

#define FILE_NAME "audit.jsonl"
#define OLD_NAME "audit.jsonl.1"

static int file_path(const char *dir, const char *name, char path[static PATH_MAX], struct error *err)
{
	if (snprintf(path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
		return error_set(err, -ENAMETOOLONG, "the path of %s/%s is too long", dir, name);
	return 0;
}

/* --- writing */

/* NULL without memory; the caller frees it. */
static char *line_of(json_t *change)
{
	CLEANUP_JSON json_t *short_one = NULL;
	char *line = json_dumps(change, JSON_COMPACT);

	if (!line || strlen(line) < AUDIT_LINE_MAX)
		return line;
	free(line);
	short_one = json_copy(change);
	json_object_set_new(short_one, "before", json_string("(too long)"));
	json_object_set_new(short_one, "after", json_string("(too long)"));
	return json_dumps(short_one, JSON_COMPACT);
}

/* The caller frees *out. */
static int lines_of(json_t *list, char **out, size_t *length)
{
	FILE *file = open_memstream(out, length);
	json_t *change;
	size_t i;

	if (!file)
		return -ENOMEM;
	json_array_foreach (list, i, change) {
		CLEANUP_FREE char *line = line_of(change);

		if (line)
			fprintf(file, "%s\n", line);
	}
	return fclose(file) ? -ENOMEM : 0;
}

/* An older one goes. */
static int make_room(const char *path, const char *old, size_t length)
{
	struct stat st;

	if (stat(path, &st) || st.st_size + length <= AUDIT_BYTES)
		return 0;
	return rename(path, old) ? -errno : 0;
}

int audit_append(const char *dir, json_t *list, struct error *err)
{
	char path[PATH_MAX], old[PATH_MAX];
	CLEANUP_FREE char *lines = NULL;
	size_t length = 0;
	int ret = file_path(dir, FILE_NAME, path, err) ?: file_path(dir, OLD_NAME, old, err);

	if (ret)
		return ret;
	if (lines_of(list, &lines, &length))
		return error_set(err, -ENOMEM, "out of memory");
	ret = make_room(path, old, length);
	if (ret)
		return error_set(err, ret, "%s: %s", path, strerror(-ret));
	ret = append_lines(path, lines, length);
	return ret ? error_set(err, ret, "%s: %s", path, strerror(-ret)) : 0;
}

/* --- reading */

static bool is_wanted(json_t *change, const char *since, const char *server)
{
	const char *time = json_string_value(json_object_get(change, "time"));
	const char *of = json_string_value(json_object_get(change, "server"));

	return time && of && strcmp(time, since) >= 0 && (!server || !strcmp(of, server));
}

/* A line that is not whole, as a machine that lost its power leaves it, is passed over. */
static int read_one(const char *path, const char *since, const char *server, json_t *list, struct error *err)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int ret = regular_read(path, &file, err);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	while ((length = getline(&line, &room, file)) > 0) {
		CLEANUP_JSON json_t *change = json_loadb(line, length, 0, NULL);

		if (change && is_wanted(change, since, server))
			json_array_append(list, change);
	}
	return ferror(file) ? error_set(err, -EIO, "%s: cannot be read", path) : 0;
}

int audit_read(const char *dir, const char *since, const char *server, json_t **out, struct error *err)
{
	CLEANUP_JSON json_t *list = json_array();
	char path[PATH_MAX], old[PATH_MAX];
	int ret = file_path(dir, OLD_NAME, old, err)		  ?:
			  file_path(dir, FILE_NAME, path, err)	  ?:
			  read_one(old, since, server, list, err) ?:
								    read_one(path, since, server, list, err);

	if (!ret)
		*out = json_incref(list);
	return ret;
}

void audit_remove(const char *dir)
{
	char path[PATH_MAX];

	if (!file_path(dir, OLD_NAME, path, NULL))
		unlink(path);
	if (!file_path(dir, FILE_NAME, path, NULL))
		unlink(path);
}
