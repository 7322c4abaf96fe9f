/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/pins.h"
#include "sys/privilege.h"
#include "sys/process_stat.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PINS_USUAL_MOUNT "/sys/fs/bpf"

static bool on_bpffs(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && fs.f_type == BPF_FS_MAGIC;
}

/* Cuts the path down to the part that exists. */
static void nearest_existing(char *path)
{
	struct stat st;

	while (stat(path, &st) && errno == ENOENT) {
		char *slash = strrchr(path, '/');

		if (!slash) {
			strcpy(path, ".");
			return;
		}
		slash[slash == path] = 0;
	}
}

static int directory_make(const char *path, struct error *err)
{
	char part[PATH_MAX];

	for (size_t i = 1; i <= strlen(path); i++) {
		if (path[i] && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdir(part, 0700) && errno != EEXIST)
			return error_set(err, -errno, "making the directory %s: %s", part, strerror(errno));
	}
	return 0;
}

int pins_writable(const char *path, struct error *err)
{
	struct statfs fs;

	if (statfs(path, &fs) || fs.f_type != BPF_FS_MAGIC || !(fs.f_flags & ST_RDONLY))
		return 0;
	return error_set(
		err, -EROFS,
		"the bpffs of %s is mounted read-only, so nothing can be changed there: what is in force stays. "
		"Mount it for writing (mount -o remount,rw DIR)",
		path);
}

int pins_mount(const char *path, struct error *err)
{
	char existing[PATH_MAX];
	size_t length = strlen(path);

	if (!length || length >= PATH_MAX - 2 * PINS_NAME_MAX)
		return error_set(err, -ENAMETOOLONG, "the pin directory's path is empty or too long");
	memcpy(existing, path, length + 1);
	while (length > 1 && existing[length - 1] == '/')
		existing[--length] = 0;
	nearest_existing(existing);

	if (!on_bpffs(existing) && !strcmp(existing, PINS_USUAL_MOUNT) &&
	    mount("bpf", PINS_USUAL_MOUNT, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return error_set(err, -errno,
				 "mounting a bpffs on " PINS_USUAL_MOUNT
				 ": %s: mount one yourself, or name another directory that is on one (--pin-dir)",
				 strerror(errno));
	if (!on_bpffs(existing))
		return error_set(
			err, -EINVAL,
			"%s is not on a bpffs: mount one (mount -t bpf bpf DIR) or name another directory (--pin-dir)",
			path);
	return pins_writable(existing, err);
}

int pins_directory(const char *path, struct error *err)
{
	return pins_mount(path, err) ?: directory_make(path, err);
}

bool pins_possible(const char *path)
{
	char existing[PATH_MAX];

	snprintf(existing, sizeof(existing), "%s", path);
	nearest_existing(existing);
	return on_bpffs(existing) || !strcmp(existing, PINS_USUAL_MOUNT);
}

/* 0: there is none, or none that can be seen. */
static pid_t parent_of(pid_t pid)
{
	struct process_stat process = { 0 };

	process_stat_read(pid, &process);
	return process.parent;
}

static bool same_directory(const char *path, int pid)
{
	char existing[PATH_MAX], theirs[PATH_MAX + 64];
	struct stat own, other;

	snprintf(existing, sizeof(existing), "%s", path);
	nearest_existing(existing);
	snprintf(theirs, sizeof(theirs), "/proc/%d/root%s", pid, existing);
	return !stat(existing, &own) && !stat(theirs, &other) && own.st_dev == other.st_dev;
}

/* What an ancestor in another mount namespace sees, too, outlives this one. */
int pins_private(const char *path)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_FIND);
	struct stat own, other;
	char theirs[64];
	int ret = -EACCES;

	if (stat("/proc/self/ns/mnt", &own))
		return -errno;
	for (pid_t pid = getppid(); pid; pid = parent_of(pid)) {
		snprintf(theirs, sizeof(theirs), "/proc/%d/ns/mnt", pid);
		if (stat(theirs, &other))
			break;
		if (other.st_ino != own.st_ino)
			return !same_directory(path, pid);
		ret = 0;
	}
	return ret;
}

void pins_path(char path[static PATH_MAX], const char *dir, const char *format, ...)
{
	int length = snprintf(path, PATH_MAX, "%s/", dir);
	va_list args;

	va_start(args, format);
	vsnprintf(path + length, PATH_MAX - length, format, args);
	va_end(args);
}

/* bpffs pins only under free names, but it can rename. */
int pins_replace(int fd, const char *dir, const char *name)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	int ret;

	pins_path(path, dir, "%s", name);
	pins_path(fresh, dir, "%s-new", name);
	unlink(fresh);
	ret = bpf_obj_pin(fd, fresh);
	if (!ret && rename(fresh, path))
		ret = -errno;
	return ret;
}
