/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/privilege.h"

#define ID_OF_ROOT 1
#define HANDLE_IS_ID 0xfe /* FILEID_KERNFS: the kernel's own number, not in its user headers */

int cgroup_check(const char *path, struct error *err)
{
	struct statfs fs;
	struct stat st;

	if (statfs(path, &fs) || stat(path, &st))
		return error_set(err, -errno, "cgroup %s: %s", path, strerror(errno));
	if (fs.f_type != CGROUP2_SUPER_MAGIC || !S_ISDIR(st.st_mode))
		return error_set(err, -EINVAL, "%s is not a directory of the cgroup2 hierarchy", path);
	return 0;
}

struct mount {
	unsigned long long id;
	char root[PATH_MAX]; /* what of the file system is there */
	char point[PATH_MAX];
};

/* In place: what mountinfo writes as \ooo. */
static void unescape(char *name)
{
	unsigned int byte;
	char *to = name;

	for (const char *from = name; *from; to++) {
		bool escaped = *from == '\\' && sscanf(from + 1, "%3o", &byte) == 1;

		*to = escaped ? (char)byte : *from;
		from += escaped ? 4 : 1;
	}
	*to = '\0';
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS" */
static bool read_cgroup2(const char *line, struct mount *mount)
{
	const char *end = strstr(line, " - ");

	if (!end || strncmp(end, " - cgroup2 ", 11) != 0 ||
	    sscanf(line, "%llu %*u %*s %4095s %4095s", &mount->id, mount->root, mount->point) != 3)
		return false;
	unescape(mount->point);
	return true;
}

/* Whoever opens its directory may come to another mount, which hides it. */
static bool is_reached(const struct mount *mount)
{
	struct statx there;

	return !statx(AT_FDCWD, mount->point, AT_STATX_DONT_SYNC, STATX_MNT_ID, &there) &&
	       (there.stx_mask & STATX_MNT_ID) && there.stx_mnt_id == mount->id;
}

char *cgroup_root(void)
{
	CLEANUP_FCLOSE FILE *mounts = fopen("/proc/self/mountinfo", "re");
	CLEANUP_FREE char *line = NULL;
	char *found = NULL;
	struct mount mount;
	bool whole = false;
	size_t size = 0;

	while (mounts && !whole && getline(&line, &size, mounts) > 0) {
		if (!read_cgroup2(line, &mount) || !is_reached(&mount))
			continue;
		whole = !strcmp(mount.root, "/");
		if (found && !whole)
			continue;
		free(found);
		found = strdup(mount.point);
	}
	return found;
}

/* The id of a cgroup is the inode of its directory. */
__u64 cgroup_id(const char *path)
{
	struct error err;
	struct stat st;

	return cgroup_check(path, &err) || stat(path, &st) ? 0 : st.st_ino;
}

bool cgroup_is_whole(const char *path)
{
	return cgroup_id(path) == ID_OF_ROOT;
}

static int open_by_id(int from, __u64 id)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_READ);
	_Alignas(struct file_handle) char buffer[sizeof(struct file_handle) + sizeof(id)];
	struct file_handle *handle = (struct file_handle *)buffer;

	handle->handle_bytes = sizeof(id);
	handle->handle_type = HANDLE_IS_ID;
	memcpy(handle->f_handle, &id, sizeof(id));
	return open_by_handle_at(from, handle, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

char *cgroup_find(const char *from, __u64 id)
{
	CLEANUP_CLOSE int at = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP_CLOSE int fd = at < 0 ? -1 : open_by_id(at, id);
	char link[32], path[PATH_MAX];
	ssize_t n;

	if (fd < 0)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	return n > 0 && n < (ssize_t)sizeof(path) ? strndup(path, n) : NULL;
}

static bool is_below(const char *path, const char *other)
{
	size_t length = strlen(other);

	return strlen(path) > length && !strncmp(path, other, length) && path[length] == '/';
}

bool cgroup_has(const char *path, __u64 id)
{
	CLEANUP_FREE char *found = NULL, *whole = NULL;
	__u64 own = cgroup_id(path);

	if (own == ID_OF_ROOT || (own && own == id))
		return true;
	found = own ? cgroup_find(path, id) : NULL;
	whole = found ? realpath(path, NULL) : NULL;
	return whole && is_below(found, whole);
}
