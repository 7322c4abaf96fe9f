/* SPDX-License-Identifier: GPL-2.0 */
#include "state/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"

/* The file was written when its holder began. */
static int held_by_another(int fd, const char *state_dir, struct error *err)
{
	char pid[16] = "?", since[32] = "?";
	struct stat st;
	struct tm tm;

	if (pread(fd, pid, sizeof(pid) - 1, 0) > 0)
		pid[strcspn(pid, " \n")] = 0;
	if (!fstat(fd, &st) && localtime_r(&st.st_mtime, &tm))
		strftime(since, sizeof(since), "%F %T", &tm);
	return error_set(err, -EBUSY, "another agent (pid %s, since %s) runs on %s", pid, since, state_dir);
}

/* What is written has always as many bytes. */
int state_lock(const char *state_dir, struct error *err)
{
	CLEANUP_CLOSE int fd = -1;
	char path[PATH_MAX];

	if (mkdir(state_dir, 0700) && errno != EEXIST)
		return error_set(err, -errno, "state directory %s: %s", state_dir, strerror(errno));
	if (snprintf(path, sizeof(path), "%s/lock", state_dir) >= (int)sizeof(path))
		return error_set(err, -ENAMETOOLONG, "state directory %s: its path is too long", state_dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB))
		return held_by_another(fd, state_dir, err);
	if (dprintf(fd, "%-10d\n", getpid()) < 0)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	return cleanup_take(&fd);
}
