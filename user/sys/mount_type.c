/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/mount_type.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS"; spaces in names are escaped. */
int mount_type_find(FILE *mounts, unsigned long long id, char type[static MOUNT_TYPE_SIZE])
{
	CLEANUP_FREE char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, mounts) > 0) {
		const char *end = strstr(line, " - ");

		if (strtoull(line, NULL, 10) == id && end && sscanf(end, " - %31s", type) == 1)
			return 0;
	}
	return -ENOENT;
}

static int find_in(const char *path, unsigned long long id, char type[static MOUNT_TYPE_SIZE])
{
	CLEANUP_FCLOSE FILE *mounts = fopen(path, "re");

	return mounts ? mount_type_find(mounts, id, type) : -errno;
}

int mount_type_of(int fd, pid_t process, char type[static MOUNT_TYPE_SIZE])
{
	struct statx of;
	char path[64];

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &of))
		return -errno;
	if (!(of.stx_mask & STATX_MNT_ID))
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", process);
	return find_in(path, of.stx_mnt_id, type) ? find_in("/proc/self/mountinfo", of.stx_mnt_id, type) : 0;
}

bool mount_type_is_served(const char *type)
{
	static const char *const served[] = { "fuse", "nfs", "cifs", "smb", "ceph", "9p", "afs" };

	for (size_t i = 0; i < sizeof(served) / sizeof(*served); i++)
		if (!strncmp(type, served[i], strlen(served[i])))
			return true;
	return false;
}
