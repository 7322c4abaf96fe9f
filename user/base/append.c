/* SPDX-License-Identifier: GPL-2.0 */
#include "base/append.h"

#include <errno.h>
#include <unistd.h>

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
