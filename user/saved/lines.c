/* SPDX-License-Identifier: GPL-2.0 */
#include "saved/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/append.h"
#include "base/cleanup.h"
#include "base/json_list.h"

/* --- reading */

static json_t *overrides_of(json_t *whole, const char *slot, const char *name)
{
	json_t *server = json_object_get(json_object_get(whole, "servers"), slot);
	json_t *limit = list_named(json_object_get(server, "limits"), name);

	if (limit && !json_object_get(limit, "overrides"))
		json_object_set_new(limit, "overrides", json_array());
	return json_object_get(limit, "overrides");
}

/* The overrides of a limit by their subjects, of which there may be very many: they are looked through for its first line alone. */
static json_t *places_of(json_t *known, json_t *overrides)
{
	json_t *places, *override;
	char limit[32];
	size_t i;

	snprintf(limit, sizeof(limit), "%p", (void *)overrides);
	places = json_object_get(known, limit);
	if (places)
		return places;
	places = json_object();
	json_array_foreach (overrides, i, override)
		json_object_set(places, json_string_value(json_object_get(override, "subject")) ?: "", override);
	return json_object_set_new(known, limit, places) ? NULL : places;
}

static int put(json_t *overrides, json_t *places, const char *subject, json_t *override)
{
	json_t *there = json_object_get(places, subject);

	if (there)
		return json_object_clear(there) || json_object_update(there, override) ? -ENOMEM : 0;
	return json_array_append(overrides, override) || json_object_set(places, subject, override) ? -ENOMEM : 0;
}

static int put_line(json_t *known, json_t *whole, json_t *line, struct error *err)
{
	const char *slot, *name, *subject;
	json_t *override, *overrides;
	json_error_t why;

	if (json_unpack_ex(line, &why, 0, "{s:s, s:s, s:o !}", "slot", &slot, "limit", &name, "override", &override))
		return error_set(err, -EINVAL, "%s", why.text);
	overrides = overrides_of(whole, slot, name);
	if (!json_is_array(overrides))
		return error_set(err, -EINVAL, "server %s has no limit \"%s\"", slot, name);
	subject = json_string_value(json_object_get(override, "subject"));
	if (!subject)
		return error_set(err, -EINVAL, "the subject of an override is missing");
	if (put(overrides, places_of(known, overrides), subject, override))
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static bool is_blank(const char *line)
{
	return line[strspn(line, " \t\r\n")] == '\0';
}

static bool is_last(FILE *file)
{
	int c = getc(file);

	return c == EOF || ungetc(c, file) == EOF;
}

/* *line stays NULL where nothing is said, or not all of it. */
static int parse(FILE *file, const char *text, size_t length, json_t **line, struct error *err)
{
	json_error_t why = { .text = "it does not end" };

	if (text[length - 1] == '\n' && strlen(text) == length && is_blank(text))
		return 0;
	*line = text[length - 1] == '\n' ? json_loadb(text, length, JSON_REJECT_DUPLICATES, &why) : NULL;
	if (!*line && text[length - 1] == '\n' && json_error_code(&why) == json_error_out_of_memory)
		return error_set(err, -ENOMEM, "out of memory");
	return *line || is_last(file) ? 0 : error_set(err, -EINVAL, "%s", why.text);
}

static int read_line(FILE *file, const char *text, size_t length, json_t *known, json_t *whole, struct error *err)
{
	CLEANUP_JSON json_t *line = NULL;
	int ret = parse(file, text, length, &line, err);

	return ret || !line ? ret : put_line(known, whole, line, err);
}

int lines_read(FILE *file, json_t *whole, bool *any, struct error *err)
{
	CLEANUP_JSON json_t *known = json_object();
	CLEANUP_FREE char *text = NULL;
	size_t room = 0, number = 1;
	struct error why;
	ssize_t length;

	length = getline(&text, &room, file);
	if (length > 0 && !is_blank(text))
		return error_set(err, -EINVAL, "line 1: more than a state");
	while ((length = getline(&text, &room, file)) > 0) {
		int ret = read_line(file, text, length, known, whole, &why);

		number++;
		*any = true;
		if (ret)
			return error_set(err, ret, "line %zu: %s", number, why.text);
	}
	if (feof(file))
		return 0;
	return ferror(file) ? error_set(err, -EIO, "%s", strerror(EIO)) : error_set(err, -ENOMEM, "out of memory");
}

/* --- adding */

/* A negative errno: -ESTALE where the file is not as it was left. */
static int open_file(const char *directory, size_t size)
{
	CLEANUP_CLOSE int fd = -1;
	char path[PATH_MAX];
	struct stat info;

	if (snprintf(path, sizeof(path), "%s/state.json", directory) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &info))
		return -errno;
	if (!S_ISREG(info.st_mode) || info.st_size != (off_t)size)
		return -ESTALE;
	return cleanup_take(&fd);
}

static int add(int fd, const struct text *line)
{
	int ret = append_whole(fd, line->bytes, line->used);

	return ret ?: fsync(fd) ? -errno : 0;
}

/* What one of them has cannot be said by the other. */
static int take_back(int fd, size_t size, int why)
{
	return ftruncate(fd, size) || fsync(fd) ? -errno : why;
}

int lines_add(const char *const directories[2], size_t size, const struct text *line)
{
	int fds[2] = { -1, -1 }, ret = 0;

	for (int i = 0; i < 2 && !ret; i++) {
		fds[i] = directories[i] ? open_file(directories[i], size) : -1;
		ret = directories[i] && fds[i] < 0 ? fds[i] : 0;
	}
	for (int i = 0; i < 2 && !ret; i++)
		ret = fds[i] >= 0 ? add(fds[i], line) : 0;
	for (int i = 0; i < 2; i++) {
		if (ret && fds[i] >= 0)
			ret = take_back(fds[i], size, ret);
		cleanup_close(&fds[i]);
	}
	return ret;
}
