/* SPDX-License-Identifier: GPL-2.0 */
#include "datapath/remains.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "sys/attach.h"
#include "sys/cgroup_links.h"
#include "sys/netns.h"
#include "sys/pace.h"

/* The version is read in it: as long as any other pin is there, it is there, too. */
#define LAST "settings"

struct call {
	const char *dir;
	struct error *err;
};

static int leave_devices(void *arg)
{
	const struct call *call = arg;
	const struct attach attach = { .dir = call->dir };
	CLEANUP_FREE __u32 *ifindexes = NULL;
	int n = attach_list(&attach, &ifindexes);

	if (n < 0)
		return error_set(call->err, n, "reading %s: %s", call->dir, strerror(-n));
	for (int i = 0; i < n; i++)
		attach_remove(&attach, ifindexes[i]);
	return pace_device_remove(call->err);
}

static int leave_cgroups(const char *dir, struct error *err)
{
	struct cgroup_program programs[] = {
		{ .name = CGROUP_HOLD, .fd = -1 },
		{ .name = CGROUP_SOCKOPS, .fd = -1 },
	};
	struct datapath_changes changes = { 0 };
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(programs) / sizeof(*programs); i++)
		ret = cgroup_links_sync(dir, &programs[i], NULL, 0, &changes, err);
	return ret;
}

static bool is_pin(const char *name)
{
	return strcmp(name, ".") && strcmp(name, "..") && strcmp(name, LAST);
}

static int unpin(int dir_fd, const char *name)
{
	/* Notes of attach.h are directories. */
	if (!unlinkat(dir_fd, name, 0) || errno == ENOENT)
		return 0;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) && errno != ENOENT ? -errno : 0;
}

static int unpin_all(const char *path, int dir_fd, struct error *err)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return error_set(err, -errno, "reading %s: %s", path, strerror(errno));
	while (!ret && (entry = readdir(dir)))
		ret = is_pin(entry->d_name) ? unpin(dir_fd, entry->d_name) : 0;
	closedir(dir);
	ret = ret ?: unpin(dir_fd, LAST);
	if (!ret && rmdir(path))
		ret = -errno;
	return ret ? error_set(err, ret, "removing %s: %s", path, strerror(-ret)) : 0;
}

int remains_remove(const char *dir, int netns_fd, struct error *err)
{
	CLEANUP_CLOSE int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct call call = { .dir = dir, .err = err };
	int ret = 0;

	if (dir_fd < 0)
		return errno == ENOENT ? 0 : error_set(err, -errno, "%s: %s", dir, strerror(errno));
	if (flock(dir_fd, LOCK_EX | LOCK_NB))
		return error_set(err, -EBUSY, "an agent holds the pins in %s: stop it first", dir);
	if (netns_fd >= 0)
		ret = netns_run(netns_fd, leave_devices, &call, err);
	return ret ?: leave_cgroups(dir, err) ?: unpin_all(dir, dir_fd, err);
}

bool remains_held(const char *dir)
{
	CLEANUP_CLOSE int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir_fd >= 0 && flock(dir_fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}
