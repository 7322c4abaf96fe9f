/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The programs that packets meet. Verifying them takes the kernel a second of CPU, so an agent that finds those of its own
 * build pinned, on the maps that are pinned, goes on with them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "weir/base/subject.h"
#include "weir/http/digest.h"

#include "datapath/private.h"
#include "sys/libbpf_log.h"
#include "sys/netns.h"
#include "sys/object_id.h"
#include "sys/pins.h"
#include "weir.skel.h"

/* More than any of them uses. */
#define PROGRAM_MAPS 64

static struct bpf_program *program_of(const struct weir_bpf *skeleton, enum datapath_program which)
{
	static const char *const names[] = {
#define X(name) "weir_" #name,
		DATAPATH_PROGRAMS(X)
#undef X
	};

	return bpf_object__find_program_by_name(skeleton->obj, names[which]);
}

const char *datapath_program_pin(enum datapath_program which)
{
	static const char *const pins[] = {
#define X(name) "prog-" #name,
		DATAPATH_PROGRAMS(X)
#undef X
	};

	return pins[which];
}

/* A number that no other object file has. */
static __u64 build_of(const void *object, size_t size)
{
	static const __u64 key[2];
	const __u8 *bytes = object;
	struct weir_subject_hash hash;

	weir_subject_start(&hash, key, 0);
	for (size_t i = 0; i < size; i++)
		weir_subject_byte(&hash, bytes[i]);
	return weir_subject_end(&hash);
}

int datapath_object_open(struct weir_bpf **out, struct error *err)
{
	struct weir_bpf *skeleton;
	__u64 seed[2];
	const void *object;
	size_t size;

	if (getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		return error_set(err, -errno, "random numbers: %s", strerror(errno));
	libbpf_log_begin();
	skeleton = weir_bpf__open();
	if (!skeleton)
		return error_set(err, -errno, "opening the BPF object: %s", libbpf_log_failure());
	object = weir_bpf__elf_bytes(&size);
	skeleton->rodata->weir_build = build_of(object, size);
	weir_digest_keys_make((struct weir_digest_keys *)skeleton->rodata_keys->digest_keys, seed);
	datapath_replay_wanted(skeleton->obj, false);
	*out = skeleton;
	return 0;
}

/* --- those that are pinned */

/* The constants that a program bears: the build's mark is among them. */
static bool is_same_constant(struct bpf_map *mine, int fd, const struct bpf_map_info *there)
{
	CLEANUP_FREE void *value = malloc(there->value_size);
	__u32 zero = 0;
	size_t size;
	const void *wanted = bpf_map__initial_value(mine, &size);

	return value && wanted && size == there->value_size && !bpf_map_lookup_elem(fd, &zero, value) &&
	       !memcmp(value, wanted, size);
}

static bool is_pinned_map(const struct datapath *dp, const struct bpf_map *map)
{
#define X(name) || map == dp->skeleton->maps.name
	return false DATAPATH_MAPS(X);
#undef X
}

/* A map of a program's is the one that this agent would give it. Scratch memory is any, and so are the keys of its digests. */
static bool is_same_map(const struct datapath *dp, __u32 id, bool *marked)
{
	CLEANUP_CLOSE int fd = datapath_map_by_id(id);
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);
	struct bpf_map *map;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &length))
		return false;
	map = bpf_object__find_map_by_name(dp->skeleton->obj, info.name);
	if (!map)
		return false;
	if (map == dp->skeleton->maps.rodata_keys)
		return true;
	if (bpf_map__is_internal(map))
		return *marked = is_same_constant(map, fd, &info);
	return !is_pinned_map(dp, map) || object_id(bpf_map__fd(map)) == id;
}

static bool is_same_program(const struct datapath *dp, const struct bpf_program *mine, int fd)
{
	__u32 maps[PROGRAM_MAPS];
	struct bpf_prog_info info = { .nr_map_ids = PROGRAM_MAPS, .map_ids = (__u64)(unsigned long)maps };
	__u32 length = sizeof(info);
	bool marked = false;

	if (bpf_obj_get_info_by_fd(fd, &info, &length) || info.nr_map_ids > PROGRAM_MAPS ||
	    strcmp(info.name, bpf_program__name(mine)) != 0)
		return false;
	for (__u32 i = 0; i < info.nr_map_ids; i++)
		if (!is_same_map(dp, maps[i], &marked))
			return false;
	return marked;
}

bool datapath_programs_find(struct datapath *dp)
{
	char path[PATH_MAX];

	for (int i = 0; i < DATAPATH_PROGRAMS_COUNT; i++) {
		pins_path(path, dp->dir, "%s", datapath_program_pin(i));
		CLEANUP_CLOSE int fd = bpf_obj_get(path);
		if (fd < 0 || !is_same_program(dp, program_of(dp->skeleton, i), fd)) {
			datapath_programs_close(dp);
			return false;
		}
		dp->programs[i] = cleanup_take(&fd);
	}
	return true;
}

/* --- keeping */

static int keep(struct datapath *dp, enum datapath_program which, struct error *err)
{
	const struct bpf_program *program = program_of(dp->skeleton, which);
	const char *pin = datapath_program_pin(which);
	int ret;

	if (dp->programs[which] < 0 && !bpf_program__autoload(program))
		return 0;
	if (dp->programs[which] < 0)
		dp->programs[which] = fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0);
	ret = dp->programs[which] < 0 ? -errno : pins_replace(dp->programs[which], dp->dir, pin);
	return ret ? error_set(err, ret, "pinning %s/%s: %s", dp->dir, pin, strerror(-ret)) : 0;
}

struct attach_call {
	struct datapath *dp;
	struct error *err;
};

static int take_over_inside(void *arg)
{
	struct attach_call *call = arg;

	return attach_take_over(&call->dp->attach, call->err);
}

static void programs_note(struct datapath *dp)
{
	const int *fds = dp->programs;

	dp->attach.dir = dp->dir;
	dp->attach.program[ATTACH_EGRESS].fd = fds[DATAPATH_PROGRAM_egress];
	dp->attach.program[ATTACH_EGRESS].id = object_id(fds[DATAPATH_PROGRAM_egress]);
	dp->attach.program[ATTACH_INGRESS].fd = fds[DATAPATH_PROGRAM_ingress];
	dp->attach.program[ATTACH_INGRESS].id = object_id(fds[DATAPATH_PROGRAM_ingress]);
	dp->on_cgroups[0] = (struct cgroup_program){ .name = CGROUP_HOLD,
						     .type = BPF_CGROUP_INET_INGRESS,
						     .fd = fds[DATAPATH_PROGRAM_hold] };
	dp->on_cgroups[1] = (struct cgroup_program){ .name = CGROUP_SOCKOPS,
						     .type = BPF_CGROUP_SOCK_OPS,
						     .fd = fds[DATAPATH_PROGRAM_sockops] };
	dp->override_end_fd = bpf_program__fd(dp->skeleton->progs.weir_override_end);
	dp->forget_fd = bpf_program__fd(dp->skeleton->progs.weir_forget);
	dp->forget_admitted_fd = bpf_program__fd(dp->skeleton->progs.weir_forget_admitted);
	dp->collect_fd = bpf_program__fd(dp->skeleton->progs.weir_collect);
}

int datapath_programs_keep(struct datapath *dp, struct error *err)
{
	struct attach_call call = { .dp = dp, .err = err };
	int ret = 0;

	for (int i = 0; i < DATAPATH_PROGRAMS_COUNT && !ret; i++)
		ret = keep(dp, i, err);
	if (ret)
		return ret;
	programs_note(dp);
	ret = netns_run(dp->netns_fd, take_over_inside, &call, err);
	for (int i = 0; i < DATAPATH_ON_CGROUPS && !ret && !dp->no_hold.text[0]; i++)
		ret = cgroup_links_take_over(dp->dir, &dp->on_cgroups[i], err);
	return ret;
}

void datapath_programs_close(struct datapath *dp)
{
	for (int i = 0; i < DATAPATH_PROGRAMS_COUNT; i++) {
		cleanup_close(&dp->programs[i]);
		dp->programs[i] = -1;
	}
}
