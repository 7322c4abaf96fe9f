/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/cgroup_links.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "sys/cgroup.h"
#include "sys/object_id.h"
#include "sys/pins.h"
#include "sys/privilege.h"

/* Programs that may come to a cgroup while it is looked at. */
#define NEWCOMERS 16

/* The id of a cgroup is the inode of its directory. */
static bool link_id(const struct cgroup_program *program, const char *pin, unsigned long long *id)
{
	size_t n = strlen(program->name);
	int end = 0;

	if (strncmp(pin, "link-", 5) != 0 || strncmp(pin + 5, program->name, n) != 0)
		return false;
	pin += 5 + n;
	return sscanf(pin, "-%llu%n", id, &end) == 1 && !pin[end];
}

static void link_remove(const char *path)
{
	CLEANUP_CLOSE int fd = bpf_obj_get(path);

	/* Unpinning alone would take the program off only some time later. */
	if (fd >= 0)
		bpf_link_detach(fd);
	unlink(path);
}

/* -ENOLINK: the cgroup is gone. */
static int link_update(const char *path, int prog_fd)
{
	CLEANUP_CLOSE int fd = bpf_obj_get(path);
	int ret = fd < 0 ? fd : bpf_link_update(fd, prog_fd, NULL);

	if (ret == -ENOLINK) {
		unlink(path);
		return 0;
	}
	return ret;
}

struct visit {
	const struct cgroup_program *program;
	struct datapath_changes *changes;
	struct error *err;
};

/* Of each link of the program that is pinned, until one fails. */
static int each_link(const char *dir, const struct visit *visit,
		     int (*call)(const struct visit *visit, const char *path, unsigned long long id))
{
	unsigned long long id;
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *pins = opendir(dir);
	int ret = 0;

	if (!pins)
		return error_set(visit->err, -errno, "reading %s: %s", dir, strerror(errno));
	while (!ret && (entry = readdir(pins))) {
		if (!link_id(visit->program, entry->d_name, &id))
			continue;
		pins_path(path, dir, "%s", entry->d_name);
		ret = call(visit, path, id);
	}
	closedir(pins);
	return ret;
}

static int take_over(const struct visit *visit, const char *path, unsigned long long id)
{
	int ret = link_update(path, visit->program->fd);

	(void)id;
	return ret ? error_set(visit->err, ret, "replacing the program of %s: %s", path, strerror(-ret)) : 0;
}

int cgroup_links_take_over(const char *dir, const struct cgroup_program *program, struct error *err)
{
	return each_link(dir, &(struct visit){ .program = program, .err = err }, take_over);
}

/* The program of a cgroup sees what is below it, too. One that saw a packet twice would count it twice. */
static bool is_served_by_another(const char *const *cgroups, const __u64 *ids, size_t n, size_t at)
{
	for (size_t i = 0; i < n; i++) {
		if (ids[i] != ids[at] && cgroup_has(cgroups[i], ids[at]))
			return true;
	}
	return false;
}

static int link_create(const struct cgroup_program *program, int cgroup_fd)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_CGROUP);

	return bpf_link_create(program->fd, cgroup_fd, program->type, NULL);
}

/*
 * 1: it does. 0: it is not there, or was detached, and is without a cgroup. A negative errno: nobody can tell, as without a free descriptor,
 * or on a bpffs that is read-only.
 */
static int link_runs(const char *path, int prog_fd, unsigned long long id)
{
	CLEANUP_CLOSE int fd = bpf_obj_get(path);
	struct bpf_link_info info = {};
	__u32 length = sizeof(info);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	return !bpf_obj_get_info_by_fd(fd, &info, &length) && info.cgroup.cgroup_id == id &&
	       info.prog_id == object_id(prog_fd);
}

static bool id_among(const unsigned long long *ids, size_t n, unsigned long long id)
{
	for (size_t i = 0; i < n; i++) {
		if (ids[i] == id)
			return true;
	}
	return false;
}

/* before: the cgroups that had it. */
static int link_add(const char *dir, const struct cgroup_program *program, const char *cgroup,
		    const struct cgroup_program *before, unsigned long long *id, struct datapath_changes *changes)
{
	CLEANUP_CLOSE int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP_CLOSE int link = -1;
	char path[PATH_MAX];
	struct stat st;
	int runs;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	*id = st.st_ino;
	pins_path(path, dir, "link-%s-%llu", program->name, *id);
	runs = link_runs(path, program->fd, *id);
	if (runs)
		return runs < 0 ? runs : 0;
	link_remove(path);
	*(id_among(before->ids, before->n, *id) ? &changes->changed : &changes->added) += 1;
	link = link_create(program, fd);
	return link < 0 ? link : bpf_obj_pin(link, path);
}

static int prune(const struct visit *visit, const char *path, unsigned long long id)
{
	if (id_among(visit->program->ids, visit->program->n, id))
		return 0;
	link_remove(path);
	visit->changes->dropped++;
	return 0;
}

int cgroup_links_sync(const char *dir, struct cgroup_program *program, const char *const *cgroups, size_t n,
		      struct datapath_changes *changes, struct error *err)
{
	const struct cgroup_program before = *program;
	struct visit visit = { .program = program, .changes = changes };
	__u64 ids[WEIR_MAX_SERVERS];
	bool all_known = true;
	int ret = 0, failed;

	if (n > WEIR_MAX_SERVERS)
		return error_set(err, -ENOSPC, "%zu cgroups: at most %d can be held", n, WEIR_MAX_SERVERS);
	program->n = 0;
	for (size_t i = 0; i < n; i++)
		ids[i] = cgroup_id(cgroups[i]);
	for (size_t i = 0; i < n; i++) {
		unsigned long long id = 0;

		if (is_served_by_another(cgroups, ids, n, i))
			continue;
		failed = link_add(dir, program, cgroups[i], &before, &id, changes);
		all_known = all_known && id;
		if (!id_among(program->ids, program->n, id))
			program->ids[program->n++] = id;
		if (failed && !ret)
			ret = error_set(err, failed, "attaching to cgroup %s: %s", cgroups[i], strerror(-failed));
	}
	/* What belongs to a cgroup that could not be looked at is not taken off. */
	if (!all_known)
		return ret;
	visit.err = ret ? NULL : err;
	failed = each_link(dir, &visit, prune);
	/* Where nothing is pinned any more there is nothing to take off. */
	return ret ?: failed == -ENOENT ? 0 : failed;
}

bool cgroup_program_runs(const struct cgroup_program *program, const char *cgroup)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_CGROUP);
	CLEANUP_CLOSE int fd = program->fd < 0 ? -1 : open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP_FREE __u32 *ids = NULL;
	__u32 n = 0, id = object_id(program->fd);

	if (fd < 0 || !id || bpf_prog_query(fd, program->type, BPF_F_QUERY_EFFECTIVE, NULL, NULL, &n))
		return false;
	n += NEWCOMERS;
	ids = calloc(n, sizeof(*ids));
	if (!ids || bpf_prog_query(fd, program->type, BPF_F_QUERY_EFFECTIVE, NULL, ids, &n))
		return false;
	for (__u32 i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}
