/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/privilege.h"

#define NETNS_SELF "/proc/thread-self/ns/net"
#define NETNS_NAMED "/run/netns/"

/*
 * /proc/PID/ns/net is for those who may trace the process. Whatever else somebody has named is not opened: a FIFO would keep the
 * caller for good, and a device may begin to do something. Returns a descriptor, -EINVAL if it is of no namespace, or -errno.
 */
static int open_any(const char *path)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_FIND);
	struct statfs fs;
	int fd;

	if (statfs(path, &fs))
		return -errno;
	if (fs.f_type != NSFS_MAGIC)
		return -EINVAL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int netns_open(const char *path, struct error *err)
{
	CLEANUP_CLOSE int fd = -1;
	char named[4096];

	if (!path) {
		path = NETNS_SELF;
	} else if (!strchr(path, '/')) {
		if ((size_t)snprintf(named, sizeof(named), NETNS_NAMED "%s", path) >= sizeof(named))
			return error_set(err, -ENAMETOOLONG, "a network namespace's name is too long");
		path = named;
	}
	fd = open_any(path);
	if (fd < 0 && fd != -EINVAL)
		return error_set(err, fd, "network namespace %s: %s", path, strerror(-fd));
	if (fd < 0 || ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
		return error_set(err, -EINVAL, "%s is not a network namespace", path);
	return cleanup_take(&fd);
}

static int cookie_read(void *arg)
{
	socklen_t length = sizeof(__u64);
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, arg, &length))
		return -errno;
	return 0;
}

int netns_cookie(int netns_fd, __u64 *cookie, struct error *err)
{
	__u64 found = 0;
	int ret = netns_run(netns_fd, cookie_read, &found, err);

	if (ret)
		return error_set(err, ret, "the cookie of the network namespace: %s", strerror(-ret));
	*cookie = found;
	return 0;
}

int netns_run(int netns_fd, int (*run)(void *arg), void *arg, struct error *err)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_NAMESPACE);
	CLEANUP_CLOSE int home = open(NETNS_SELF, O_RDONLY | O_CLOEXEC);
	int ret;

	if (home < 0 || setns(netns_fd, CLONE_NEWNET))
		return error_set(err, -errno, "entering the network namespace: %s%s", strerror(errno),
				 errno == EPERM ? ": this needs root (CAP_SYS_ADMIN)" : "");
	ret = run(arg);
	if (setns(home, CLONE_NEWNET))
		abort();
	return ret;
}
