/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Links of uprobes cannot have their program replaced. An agent that takes over therefore adds its own, which do nothing yet,
 * hands the processes over to them by their generation, and then takes off the earlier ones: no request is seen twice.
 */
#include "datapath/inside.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "datapath/private.h"
#include "inside.skel.h"
#include "sys/libbpf_log.h"
#include "sys/pins.h"
#include "sys/privilege.h"
#include "weir.skel.h"

#define PIN "inside-"
#define LINKS_MAX 512

struct probe_link {
	dev_t device;
	ino_t inode;
	struct datapath_probe probe;
	struct bpf_link *link;
	bool wanted;
};

struct datapath_inside {
	struct inside_bpf *skeleton;
	__u32 generation;
	unsigned int pinned; /* so far: for their names */
	struct probe_link links[LINKS_MAX];
	size_t n_links;
};

/* --- programs and maps */

/* Those that are of this object alone. */
static struct bpf_map *own_map(struct inside_bpf *skeleton, int i)
{
	return i == 0 ? skeleton->maps.inside_processes : i == 1 ? skeleton->maps.inside_requests : NULL;
}

static int map_take(struct datapath *dp, struct bpf_map *map, struct error *err)
{
	const char *name = bpf_map__name(map);
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);
	char path[PATH_MAX];
	int ret;

	pins_path(path, dp->dir, "%s", name);
	CLEANUP_CLOSE int fd = bpf_obj_get(path);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &length))
		return error_set(err, -errno, "opening %s: %s", path, strerror(errno));
	/* What is kept of requests at this moment may be lost. */
	if (info.value_size != bpf_map__value_size(map) || info.key_size != bpf_map__key_size(map) ||
	    info.max_entries != bpf_map__max_entries(map)) {
		unlink(path);
		return 0;
	}
	ret = bpf_map__reuse_fd(map, fd);
	return ret ? error_set(err, ret, "taking over %s: %s", path, strerror(-ret)) : 0;
}

/* The maps of the datapath are shared by their names. */
static int maps_take(struct datapath *dp, struct inside_bpf *skeleton, struct error *err)
{
	struct bpf_map *map;
	int ret = 0;

	bpf_object__for_each_map (map, skeleton->obj) {
		struct bpf_map *there = bpf_object__find_map_by_name(dp->skeleton->obj, bpf_map__name(map));

		if (!bpf_map__is_internal(map) && there)
			ret = ret ?: bpf_map__reuse_fd(map, bpf_map__fd(there));
	}
	if (ret)
		return error_set(err, ret, "sharing maps: %s", strerror(-ret));
	for (int i = 0; !ret && (map = own_map(skeleton, i)); i++)
		ret = map_take(dp, map, err);
	return ret;
}

static int maps_pin(const struct datapath *dp, struct inside_bpf *skeleton, struct error *err)
{
	struct bpf_map *map;

	for (int i = 0; (map = own_map(skeleton, i)); i++) {
		char path[PATH_MAX];
		int ret;

		pins_path(path, dp->dir, "%s", bpf_map__name(map));
		ret = bpf_obj_pin(bpf_map__fd(map), path);
		if (ret && ret != -EEXIST)
			return error_set(err, ret, "pinning %s: %s", path, strerror(-ret));
	}
	return 0;
}

static int load(struct datapath *dp, struct datapath_inside *inside, struct error *err)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_LOAD);
	int ret;

	libbpf_log_begin();
	inside->skeleton = inside_bpf__open();
	if (!inside->skeleton)
		return error_set(err, -errno, "opening the BPF object: %s", libbpf_log_failure());
	/* Milliseconds: two agents do not begin in the same one. */
	inside->generation = clock_ns(CLOCK_BOOTTIME) / 1000000;
	inside->skeleton->rodata->inside_generation = inside->generation;
	ret = maps_take(dp, inside->skeleton, err);
	if (ret)
		return ret;
	ret = inside_bpf__load(inside->skeleton);
	return ret ? datapath_load_failed(ret, err) : maps_pin(dp, inside->skeleton, err);
}

static void inside_free(struct datapath_inside *inside)
{
	if (!inside)
		return;
	for (size_t i = 0; i < inside->n_links; i++) {
		bpf_link__disconnect(inside->links[i].link); /* what is pinned stays */
		bpf_link__destroy(inside->links[i].link);
	}
	inside_bpf__destroy(inside->skeleton);
	free(inside);
}

void datapath_inside_close(struct datapath *dp)
{
	inside_free(dp->inside);
	dp->inside = NULL;
}

static int inside_open(struct datapath *dp, struct error *err)
{
	struct datapath_inside *inside;
	int ret;

	if (dp->inside)
		return 0;
	inside = calloc(1, sizeof(*inside));
	if (!inside)
		return error_set(err, -ENOMEM, "out of memory");
	ret = load(dp, inside, err);
	if (ret) {
		inside_free(inside);
		return ret;
	}
	dp->inside = inside;
	return 0;
}

/* --- links */

static struct bpf_program *program_of(struct inside_bpf *skeleton, enum weir_inside_point point)
{
	switch (point) {
	case WEIR_INSIDE_REQUEST:
		return skeleton->progs.weir_inside_request;
	case WEIR_INSIDE_ATTRIBUTES:
		return skeleton->progs.weir_inside_attributes;
	default:
		return skeleton->progs.weir_inside_http;
	}
}

static struct probe_link *link_find(struct datapath_inside *inside, const struct datapath_binary *binary,
				    const struct datapath_probe *probe)
{
	for (size_t i = 0; i < inside->n_links; i++) {
		struct probe_link *link = &inside->links[i];

		if (link->device == binary->device && link->inode == binary->inode &&
		    link->probe.point == probe->point && link->probe.offset == probe->offset)
			return link;
	}
	return NULL;
}

/* -1 as process: in every one that has the file, which the program then tells apart. */
static struct bpf_link *attach(struct bpf_program *program, const struct datapath_binary *binary, __u64 offset)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_PROBE);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", binary->fd);
	return bpf_program__attach_uprobe(program, false, -1, path, offset);
}

static int link_add(struct datapath *dp, const struct datapath_binary *binary, const struct datapath_probe *probe,
		    struct error *err)
{
	struct datapath_inside *inside = dp->inside;
	struct probe_link *place = &inside->links[inside->n_links];
	char path[PATH_MAX];
	int ret;

	if (inside->n_links >= LINKS_MAX)
		return error_set(err, -ENOSPC, "there is no room for more than %d probes", LINKS_MAX);
	libbpf_log_begin();
	*place = (struct probe_link){ binary->device, binary->inode, *probe, NULL, true };
	place->link = attach(program_of(inside->skeleton, probe->point), binary, probe->offset);
	if (!place->link)
		return error_set(err, -errno, "probing the server's binary at %#llx: %s", probe->offset,
				 libbpf_log_failure());
	pins_path(path, dp->dir, PIN "%08x-%u", inside->generation, inside->pinned++);
	ret = bpf_link__pin(place->link, path);
	if (ret) {
		bpf_link__destroy(place->link);
		return error_set(err, ret, "pinning %s: %s", path, strerror(-ret));
	}
	inside->n_links++;
	return 0;
}

static int links_add(struct datapath *dp, const struct datapath_binary *binary, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < binary->n_probes && !ret; i++) {
		struct probe_link *link = link_find(dp->inside, binary, &binary->probes[i]);

		if (link)
			link->wanted = true;
		else
			ret = link_add(dp, binary, &binary->probes[i], err);
	}
	return ret;
}

static void links_drop_unwanted(struct datapath_inside *inside)
{
	for (size_t i = inside->n_links; i-- > 0;) {
		struct probe_link *link = &inside->links[i];

		if (link->wanted)
			continue;
		bpf_link__unpin(link->link);
		bpf_link__destroy(link->link);
		*link = inside->links[--inside->n_links];
	}
}

/* Those that earlier agents have pinned, or with generation 0 all. Where there is no directory, nothing is pinned. */
static int pins_drop_others(const struct datapath *dp, __u32 generation, struct error *err)
{
	char own[PINS_NAME_MAX];
	struct dirent *entry;
	DIR *dir = opendir(dp->dir);
	int ret = 0;

	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return error_set(err, -errno, "reading %s: %s", dp->dir, strerror(errno));
	snprintf(own, sizeof(own), PIN "%08x-", generation);
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, PIN, strlen(PIN)) != 0 || strncmp(entry->d_name, own, strlen(own)) == 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) && errno != ENOENT)
			ret = error_set(err, -errno, "removing %s/%s: %s", dp->dir, entry->d_name, strerror(errno));
	}
	closedir(dir);
	return ret;
}

/* --- processes */

static int processes_write(struct datapath_inside *inside, const struct datapath_process *processes, size_t n,
			   struct error *err)
{
	int fd = bpf_map__fd(inside->skeleton->maps.inside_processes);

	for (size_t i = 0; i < n; i++) {
		struct weir_inside_process wanted = processes[i].process, there;

		wanted.generation = inside->generation;
		if (!bpf_map_lookup_elem(fd, &processes[i].id, &there) && !memcmp(&there, &wanted, sizeof(there)))
			continue;
		if (bpf_map_update_elem(fd, &processes[i].id, &wanted, BPF_ANY))
			return datapath_map_failed(err, -errno, "inside_processes");
	}
	return 0;
}

struct wanted {
	const struct datapath_process *processes;
	size_t n;
};

static bool is_unwanted(const void *key, const void *value, const void *arg)
{
	const struct wanted *wanted = arg;

	(void)value;
	for (size_t i = 0; i < wanted->n; i++)
		if (wanted->processes[i].id == *(const __u32 *)key)
			return false;
	return true;
}

static int processes_drop_others(struct datapath_inside *inside, const struct datapath_process *processes, size_t n,
				 struct error *err)
{
	const struct wanted wanted = { processes, n };
	int ret = map_drop_if(bpf_map__fd(inside->skeleton->maps.inside_processes), sizeof(__u32),
			      sizeof(struct weir_inside_process), is_unwanted, &wanted);

	return ret < 0 ? datapath_map_failed(err, ret, "inside_processes") : 0;
}

/* --- the whole */

int datapath_inside_remove(struct datapath *dp, struct error *err)
{
	static const char *const maps[] = { "inside_processes", "inside_requests" };
	char path[PATH_MAX];
	int ret;

	datapath_inside_close(dp);
	ret = pins_drop_others(dp, 0, err);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps) && !ret; i++) {
		pins_path(path, dp->dir, "%s", maps[i]);
		if (unlink(path) && errno != ENOENT)
			ret = error_set(err, -errno, "removing %s: %s", path, strerror(errno));
	}
	return ret;
}

int datapath_inside_sync(struct datapath *dp, const struct datapath_process *processes, size_t n, struct error *err)
{
	struct datapath_inside *inside;
	int ret;

	if (!n)
		return datapath_inside_remove(dp, err);
	ret = inside_open(dp, err);
	if (ret)
		return ret;
	inside = dp->inside;
	for (size_t i = 0; i < inside->n_links; i++)
		inside->links[i].wanted = false;
	for (size_t i = 0; i < n && !ret; i++)
		ret = links_add(dp, processes[i].binary, err);
	ret = ret ?: processes_write(inside, processes, n, err);
	ret = ret ?: processes_drop_others(inside, processes, n, err);
	if (ret)
		return ret;
	links_drop_unwanted(inside);
	return pins_drop_others(dp, inside->generation, err);
}

/* --- requests that are kept */

static bool is_older(const void *key, const void *value, const void *arg)
{
	__u64 now_ns = ((const __u64 *)value)[1]; /* struct inside_request */

	(void)key;
	return now_ns < *(const __u64 *)arg;
}

int datapath_inside_sweep(struct datapath *dp, __u64 before_ns, struct error *err)
{
	struct bpf_map *map = dp->inside ? dp->inside->skeleton->maps.inside_requests : NULL;
	int ret;

	if (!map)
		return 0;
	ret = map_drop_if(bpf_map__fd(map), sizeof(struct weir_inside_key), bpf_map__value_size(map), is_older,
			  &before_ns);
	return ret < 0 ? datapath_map_failed(err, ret, "inside_requests") : 0;
}
