/* SPDX-License-Identifier: GPL-2.0 */
#include "base/append.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/regular.h"

static int write_all(int fd, const char *text, size_t length)
{
	for (size_t written = 0; written < length;) {
		ssize_t n = write(fd, text + written, length - written);

		if (n < 0 && errno != EINTR)
			return -errno;
		written += n < 0 ? 0 : n;
	}
	return 0;
}

int append_whole(int fd, const char *text, size_t length)
{
	off_t before = lseek(fd, 0, SEEK_END);
	int ret = before < 0 ? -errno : write_all(fd, text, length);

	if (ret && before >= 0 && ftruncate(fd, before))
		return -errno;
	return ret;
}

static bool ends_within_a_line(const char *path)
{
	CLEANUP_FCLOSE FILE *file = NULL;

	if (regular_read(path, &file, NULL) || fseek(file, -1, SEEK_END))
		return false;
	return getc(file) != '\n';
}

int append_lines(const char *path, const char *lines, size_t length)
{
	CLEANUP_CLOSE int fd = regular_write(path, 0);
	int ret = fd < 0 ? fd : 0;

	if (!ret && ends_within_a_line(path))
		ret = append_whole(fd, "\n", 1);
	return ret ?: append_whole(fd, lines, length);
}
