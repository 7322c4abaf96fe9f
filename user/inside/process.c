/* SPDX-License-Identifier: GPL-2.0 */
#include "inside/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "sys/mount_type.h"
#include "sys/netns.h"
#include "sys/privilege.h"
#include "sys/process_stat.h"
#include "sys/socket_diag.h"

/* --- sockets */

struct reading {
	const struct datapath_listen *listens;
	size_t n;
	struct inside_listeners *out;
	bool too_many;
};

static void take_listener(const struct socket_listener *listener, void *arg)
{
	struct reading *reading = arg;
	struct inside_listeners *out = reading->out;

	for (size_t i = 0; i < reading->n; i++) {
		if (!datapath_listen_hears(&reading->listens[i], listener->address, listener->port))
			continue;
		if (out->n < INSIDE_LISTENERS_MAX)
			out->inodes[out->n++] = listener->inode;
		else
			reading->too_many = true;
		return;
	}
}

static int read_inside(void *arg)
{
	return socket_diag_listeners(take_listener, arg);
}

/* Of sockets' inodes, and of processes' numbers, which are positive. */
static int compare(const void *a, const void *b)
{
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;

	return (x > y) - (x < y);
}

int inside_listeners_read(int netns_fd, const struct datapath_listen *listens, size_t n, struct inside_listeners *out,
			  struct error *err)
{
	struct reading reading = { listens, n, out, false };
	int ret;

	out->n = 0;
	ret = netns_run(netns_fd, read_inside, &reading, err);
	if (ret)
		return error_set(err, ret, "looking for the sockets that listen: %s", strerror(-ret));
	if (reading.too_many)
		return error_set(err, -E2BIG, "more than %d sockets listen there", INSIDE_LISTENERS_MAX);
	qsort(out->inodes, out->n, sizeof(*out->inodes), compare);
	return 0;
}

bool inside_listeners_equal(const struct inside_listeners *a, const struct inside_listeners *b)
{
	return a->n == b->n && !memcmp(a->inodes, b->inodes, a->n * sizeof(*a->inodes));
}

/* --- processes */

static int stat_read(struct inside_process *process)
{
	struct process_stat stat;
	int ret = process_stat_read(process->id, &stat);

	if (ret)
		return ret;
	process->start = stat.start;
	process->code = stat.code;
	process->stack = stat.stack;
	memcpy(process->command, stat.command, sizeof(process->command));
	return 0;
}

/* To be asked before anything is asked of the file system itself: of one whose server does not answer the agent would not come back. */
static int check_mount(int file, pid_t id, struct error *err)
{
	char type[MOUNT_TYPE_SIZE];

	if (mount_type_of(file, id, type))
		return error_set(err, -ENOTSUP,
				 "the binary of process %d is on no file system that is mounted where it runs", id);
	if (mount_type_is_served(type))
		return error_set(
			err, -ENOTSUP,
			"the binary of process %d is on a file system that a process or another host serves (%s): %s",
			id, type, "to read it may take for ever");
	return 0;
}

static int open_checked(pid_t id, struct error *err)
{
	CLEANUP_CLOSE int file = -1;
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/%d/exe", id);
	file = open(path, O_PATH | O_CLOEXEC);
	ret = file < 0 ? 0 : check_mount(file, id, err);
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = file < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? error_set(err, -errno, "opening the binary of process %d: %s", id, strerror(errno)) : fd;
}

int inside_process_open(pid_t id, struct error *err)
{
	CLEANUP_PRIVILEGED struct privileged find = privilege_begin(PRIVILEGE_FIND);
	CLEANUP_PRIVILEGED struct privileged read = privilege_begin(PRIVILEGE_READ);

	return open_checked(id, err);
}

int inside_process_read(struct inside_process *process, struct error *err)
{
	CLEANUP_PRIVILEGED struct privileged find = privilege_begin(PRIVILEGE_FIND);
	int ret = stat_read(process);
	struct statx st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", process->id);
	/* What the kernel knows: the file system itself is not asked. */
	if (!ret && statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st))
		ret = errno == ENOENT ? -ESRCH : -errno;
	if (ret)
		return error_set(err, ret, "process %d: %s", process->id, strerror(-ret));
	process->device = makedev(st.stx_dev_major, st.stx_dev_minor);
	process->inode = st.stx_ino;
	return 0;
}

static bool is_listener(const struct inside_listeners *listeners, const char *link)
{
	__u32 inode;
	int end = 0;

	if (sscanf(link, "socket:[%u]%n", &inode, &end) != 1 || !end)
		return false;
	return bsearch(&inode, listeners->inodes, listeners->n, sizeof(inode), compare);
}

/* Has the process a descriptor of one of the sockets? */
static bool has_listener(pid_t id, const struct inside_listeners *listeners)
{
	char path[PATH_MAX], link[64];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", id);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = 0;
		found = is_listener(listeners, link);
	}
	if (dir)
		closedir(dir);
	return found;
}

void inside_present_clear(struct inside_present *present)
{
	free(present->ids);
	*present = (struct inside_present){ 0 };
}

static int present_add(struct inside_present *present, pid_t id)
{
	pid_t *grown = array_grow(present->ids, present->n, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	present->ids = grown;
	present->ids[present->n++] = id;
	return 0;
}

static int present_read(struct inside_present *out)
{
	CLEANUP_PRESENT struct inside_present present = { 0 };
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		pid_t id = atoi(entry->d_name);

		ret = id ? present_add(&present, id) : 0;
	}
	closedir(dir);
	if (ret)
		return ret;
	if (present.n)
		qsort(present.ids, present.n, sizeof(*present.ids), compare);
	*out = present;
	present = (struct inside_present){ 0 };
	return 0;
}

int inside_processes_find(const struct inside_listeners *listeners, struct inside_process *out, struct error *err)
{
	CLEANUP_PRIVILEGED struct privileged find = privilege_begin(PRIVILEGE_FIND);
	CLEANUP_PRIVILEGED struct privileged read = privilege_begin(PRIVILEGE_READ);
	CLEANUP_PRESENT struct inside_present present = { 0 };
	int ret = present_read(&present), n = 0;

	if (ret)
		return error_set(err, ret, "reading /proc: %s", strerror(-ret));
	for (size_t i = 0; i < present.n && listeners->n; i++) {
		struct inside_process process = { .id = present.ids[i] };

		if (!has_listener(process.id, listeners) || inside_process_read(&process, NULL))
			continue;
		if (n < INSIDE_PROCESSES_MAX)
			out[n] = process;
		n++;
	}
	return n;
}

static bool was_present(const struct inside_present *before, pid_t id)
{
	return before->n && bsearch(&id, before->ids, before->n, sizeof(id), compare);
}

int inside_newcomer_listens(struct inside_present *present, const struct inside_listeners *listeners)
{
	CLEANUP_PRIVILEGED struct privileged find = privilege_begin(PRIVILEGE_FIND);
	CLEANUP_PRIVILEGED struct privileged read = privilege_begin(PRIVILEGE_READ);
	struct inside_present now = { 0 };
	bool listens = false;
	int ret = present_read(&now);

	if (ret)
		return ret;
	for (size_t i = 0; i < now.n && !listens; i++)
		listens = !was_present(present, now.ids[i]) && has_listener(now.ids[i], listeners);
	inside_present_clear(present);
	*present = now;
	return listens;
}
