/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/netns_find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "sys/netns.h"

/* A descriptor when the path is this namespace, or -1. */
static int is_it(const char *path, __u64 cookie)
{
	CLEANUP_CLOSE int fd = netns_open(path, NULL);
	__u64 found;

	if (fd < 0 || netns_cookie(fd, &found, NULL) || found != cookie)
		return -1;
	return cleanup_take(&fd);
}

/* Those at DIR/ENTRY and what follows it. */
static int find_below(const char *directory, bool processes, __u64 cookie)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[PATH_MAX];
	int fd = -1;

	if (!dir)
		return -1;
	while (fd < 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || (processes && !isdigit((unsigned char)entry->d_name[0])))
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", directory, entry->d_name, processes ? "/ns/net" : "");
		fd = is_it(path, cookie);
	}
	closedir(dir);
	return fd;
}

int netns_find(__u64 cookie)
{
	int fd = is_it("/proc/self/ns/net", cookie);

	if (fd < 0)
		fd = find_below("/run/netns", false, cookie);
	if (fd < 0)
		fd = find_below("/proc", true, cookie);
	return fd < 0 ? -ENOENT : fd;
}
