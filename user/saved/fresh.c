/* SPDX-License-Identifier: GPL-2.0 */
#include "saved/fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/regular.h"

/* more: "" for the file itself. */
static int file_path(const char *directory, const char *name, const char *more, char path[static PATH_MAX],
		     struct error *err)
{
	if (snprintf(path, PATH_MAX, "%s/%s%s", directory, name, more) >= PATH_MAX)
		return error_set(err, -ENAMETOOLONG, "the path of %s/%s%s is too long", directory, name, more);
	return 0;
}

static int fresh_path(const char *directory, const char *name, char path[static PATH_MAX], struct error *err)
{
	return file_path(directory, name, ".new", path, err);
}

static int write_whole(const char *path, const char *text, size_t length, struct error *err)
{
	CLEANUP_CLOSE int fd = regular_write(path, O_TRUNC);
	size_t written = 0;

	if (fd < 0)
		return error_set(err, fd, "cannot write %s: %s", path, strerror(-fd));
	while (written < length) {
		ssize_t n = write(fd, text + written, length - written);

		if (n < 0)
			return error_set(err, -errno, "cannot write %s: %s", path, strerror(errno));
		written += n;
	}
	return fsync(fd) ? error_set(err, -errno, "cannot write %s: %s", path, strerror(errno)) : 0;
}

/* A rename is on disk when its directory is. */
static int sync_dir(const char *path, struct error *err)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd))
		return error_set(err, -errno, "cannot sync %s: %s", path, strerror(errno));
	return 0;
}

int fresh_write(const char *directory, const char *name, const char *text, size_t length, struct error *err)
{
	char path[PATH_MAX];
	int ret = fresh_path(directory, name, path, err);

	return ret ?: write_whole(path, text, length, err);
}

int fresh_place(const char *directory, const char *name, struct error *err)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	int ret = file_path(directory, name, "", path, err) ?: fresh_path(directory, name, fresh, err);

	if (!ret && rename(fresh, path))
		ret = error_set(err, -errno, "cannot replace %s: %s", path, strerror(errno));
	return ret ?: sync_dir(directory, err);
}

void fresh_drop(const char *directory, const char *name)
{
	char path[PATH_MAX];

	if (!fresh_path(directory, name, path, NULL))
		unlink(path);
}
