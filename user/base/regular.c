/* SPDX-License-Identifier: GPL-2.0 */
#include "base/regular.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

int regular_open(const char *path, struct error *err)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat info;

	if (fd < 0 || fstat(fd, &info))
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(info.st_mode))
		return error_set(err, -EINVAL, "%s: not a regular file", path);
	return cleanup_take(&fd);
}

int regular_read(const char *path, FILE **out, struct error *err)
{
	CLEANUP_CLOSE int fd = regular_open(path, err);

	if (fd < 0)
		return fd;
	*out = fdopen(fd, "r");
	if (!*out)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	cleanup_take(&fd);
	return 0;
}

int regular_write(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | flags, 0600);

	return fd < 0 ? -errno : fd;
}
