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

#include "base/cleanup.h"

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
