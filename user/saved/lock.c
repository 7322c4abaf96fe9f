/* SPDX-License-Identifier: GPL-2.0 */
#include "saved/lock.h"

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

static int lock_path(const char *state_dir, char path[static PATH_MAX], struct error *err)
{
	if (snprintf(path, PATH_MAX, "%s/lock", state_dir) >= PATH_MAX)
		return error_set(err, -ENAMETOOLONG, "state directory %s: its path is too long", state_dir);
	return 0;
}

/* A file system that has become read-only still locks the file that is there, so that what is in force can be ended. */
static int open_lock(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 && errno == EROFS ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : fd;
}

/* What is written has always as many bytes. */
int state_lock(const char *state_dir, struct error *err)
{
	CLEANUP_CLOSE int fd = -1;
	char path[PATH_MAX];
	int ret = lock_path(state_dir, path, err);

	if (ret)
		return ret;
	if (mkdir(state_dir, 0700) && errno != EEXIST)
		return error_set(err, -errno, "state directory %s: %s", state_dir, strerror(errno));
	fd = open_lock(path);
	if (fd < 0)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB))
		return held_by_another(fd, state_dir, err);
	/* It is for people: on a full disk the lock does without. */
	dprintf(fd, "%-10d\n", getpid());
	return cleanup_take(&fd);
}

int state_lock_look_after(int *lock, const char *state_dir, struct error *err)
{
	struct stat held, there;
	char path[PATH_MAX];
	int fresh;

	if (*lock < 0 || lock_path(state_dir, path, err) || fstat(*lock, &held))
		return 0;
	if (!stat(path, &there) && there.st_dev == held.st_dev && there.st_ino == held.st_ino)
		return 0;
	fresh = state_lock(state_dir, err);
	if (fresh < 0)
		return fresh;
	close(*lock);
	*lock = fresh;
	return 1;
}
