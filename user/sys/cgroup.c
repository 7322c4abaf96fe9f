/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "sys/cgroup.h"

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

char *cgroup_root(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount;
	char *root = NULL;

	if (!mounts)
		return NULL;
	while (!root && (mount = getmntent(mounts)))
		if (strcmp(mount->mnt_type, "cgroup2") == 0)
			root = strdup(mount->mnt_dir);
	endmntent(mounts);
	return root;
}
