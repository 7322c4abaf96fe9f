/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Links of uprobes cannot have their program replaced. An agent that takes over therefore adds its own, which do nothing yet,
 * hands the processes over to them by their generation, and then takes off the earlier ones: no request is seen twice.
 */
#include "datapath/inside.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "weir/base/duration.h"

#include "base/clock.h"
#include "datapath/inside_pins.h"
#include "datapath/inside_private.h"
#include "datapath/private.h"
#include "sys/libbpf_log.h"
#include "sys/pins.h"
#include "sys/privilege.h"
#include "sys/process_namespace.h"
#include "weir.skel.h"

/* --- programs and maps */

/* Those that are of this object alone. */
static struct bpf_map *own_map(struct inside_bpf *skeleton, int i)
{
	struct bpf_map *const maps[] = {
#define X(name) skeleton->maps.name,
		DATAPATH_INSIDE_MAPS(X)
#undef X
	};

	return i < (int)(sizeof(maps) / sizeof(*maps)) ? maps[i] : NULL;
}

static int map_take(struct datapath *dp, struct bpf_map *map, struct error *err)
{
	const char *name = bpf_map__name(map);
	struct bpf_map_info info = {};
	char path[PATH_MAX];
	CLEANUP_CLOSE int fd = datapath_map_pinned(dp->dir, name, &info, err);
	int ret;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	pins_path(path, dp->dir, "%s", name);
	/* However many places it has: with two maps, programs of before would serve a process beside these, for a moment. */
	if (info.value_size != bpf_map__value_size(map) || info.key_size != bpf_map__key_size(map)) {
		unlink(path);
		return 0;
	}
	ret = bpf_map__reuse_fd(map, fd);
	return ret ? error_set(err, ret, "taking over %s: %s", path, strerror(-ret)) : 0;
}

/* Those of the datapath are shared by their names. */
static int maps_take(struct datapath *dp, struct inside_bpf *skeleton, struct error *err)
{
	struct bpf_map *map;
	int ret = datapath_maps_share(dp, skeleton->obj);

	if (ret)
		return error_set(err, ret, "sharing maps: %s", strerror(-ret));
	for (int i = 0; !ret && (map = own_map(skeleton, i)); i++)
		ret = map_take(dp, map, err);
	return ret;
}

static int maps_pin(const struct datapath *dp, struct inside_bpf *skeleton, struct error *err)
{
	struct bpf_map *map;
	int ret = 0;

	for (int i = 0; !ret && (map = own_map(skeleton, i)); i++)
		ret = datapath_map_pin(dp, map, err);
	return ret;
}

/* --- what the kernel lets programs do: its verdict on the least one that does it */

static bool is_allowed(const char *name, const struct bpf_insn *insns, size_t n, enum privilege privilege)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(privilege);
	CLEANUP_CLOSE int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, name, "GPL", insns, n, NULL);

	return fd >= 0;
}

bool datapath_inside_answers(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return is_allowed("weir_may_answer", insns, sizeof(insns) / sizeof(*insns), PRIVILEGE_LOAD);
}

/* It is never run. */
bool datapath_inside_writes(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10 },
		{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = -8 },
		{ .code = BPF_ALU64 | BPF_ADD, .dst_reg = BPF_REG_2, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 8 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_write_user },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return is_allowed("weir_may_write", insns, sizeof(insns) / sizeof(*insns), PRIVILEGE_PROBE);
}

/*
 * Programs that the kernel would refuse are left out, and those that may write memory, and what belongs to them, where nobody has asked for
 * that.
 */
static void choose_programs(const struct datapath_inside *inside)
{
	bool registers = datapath_inside_answers();

	for (int i = 0; i < WEIR_INSIDE_POINTS; i++) {
		if (inside_writes_registers(i))
			bpf_program__set_autoload(inside_program_of(inside->skeleton, i), registers);
		if (inside_is_by_memory(i))
			bpf_program__set_autoload(inside_program_of(inside->skeleton, i), inside->writes);
	}
}

static int load(struct datapath *dp, struct datapath_inside *inside, struct error *err)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(inside->writes ? PRIVILEGE_WRITE :
											   PRIVILEGE_LOAD);
	__u32 namespace;
	int ret = process_namespace(&namespace, err);

	if (ret)
		return ret;
	libbpf_log_begin();
	inside->skeleton = inside_bpf__open();
	if (!inside->skeleton)
		return error_set(err, -errno, "opening the BPF object: %s", libbpf_log_failure());
	/* Milliseconds: two agents do not begin in the same one. */
	inside->generation = clock_ns(CLOCK_BOOTTIME) / WEIR_NS_PER_MS;
	inside->skeleton->rodata->inside_generation = inside->generation;
	inside->skeleton->rodata->inside_process_namespace = namespace;
	inside->nested = namespace;
	memcpy(inside->seed, dp->seed, sizeof(inside->seed));
	choose_programs(inside);
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
	inside_links_close(inside);
	inside_bpf__destroy(inside->skeleton);
	free(inside);
}

void datapath_inside_close(struct datapath *dp)
{
	inside_free(dp->inside);
	dp->inside = NULL;
}

static int inside_open(struct datapath *dp, bool writes, struct error *err)
{
	struct datapath_inside *inside;
	int ret;

	if (dp->inside)
		return 0;
	inside = calloc(1, sizeof(*inside));
	if (!inside)
		return error_set(err, -ENOMEM, "out of memory");
	inside->writes = writes;
	ret = load(dp, inside, err);
	if (ret) {
		inside_free(inside);
		return ret;
	}
	dp->inside = inside;
	ret = inside_links_begin(dp, err);
	if (ret) {
		inside_links_end(inside);
		datapath_inside_close(dp);
	}
	return ret;
}

/* --- the whole */

int datapath_inside_check(struct error *err)
{
	(void)err;
	return 0;
}

/* What is kept of requests in processes that are not looked into any more, and their seats. */
static int requests_sweep(const struct datapath_inside *inside)
{
	const __u32 nothing = 0;

	return datapath_run(bpf_program__fd(inside->skeleton->progs.weir_inside_sweep), &nothing, sizeof(nothing));
}

/* All seats go back before what knows of them goes: an earlier agent may have left some. */
static void seats_return(struct datapath *dp)
{
	char path[PATH_MAX];

	pins_path(path, dp->dir, "inside_seats");
	if (!dp->inside && !access(path, F_OK))
		inside_open(dp, false, NULL);
	if (!dp->inside)
		return;
	inside_processes_drop_others(dp->inside, NULL, 0, NULL);
	requests_sweep(dp->inside);
}

int datapath_inside_remove(struct datapath *dp, struct error *err)
{
	seats_return(dp);
	if (dp->inside)
		inside_links_end(dp->inside);
	datapath_inside_close(dp);
	return inside_pins_drop(dp->dir, err);
}

static bool writes_memory(const struct datapath_process *processes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < processes[i].binary->n_probes; j++)
			if (inside_is_by_memory(processes[i].binary->probes[j].point))
				return true;
	return false;
}

/* The programs of dp->inside get them. Probes do nothing before a process is theirs, so if it fails all is as it was. */
static int processes_hand_over(struct datapath *dp, const struct datapath_process *processes, size_t n,
			       struct error *err)
{
	struct datapath_inside *inside = dp->inside;
	int ret = 0;

	for (size_t i = 0; i < inside->n_links; i++)
		inside->links[i].wanted = false;
	for (size_t i = 0; i < n && !ret; i++)
		ret = inside_links_add(dp, &processes[i], err);
	return ret ?: inside_processes_write(inside, processes, n, err);
}

/* What served them, and others, before. */
static int processes_clean(struct datapath *dp, const struct datapath_process *processes, size_t n, struct error *err)
{
	struct datapath_inside *inside = dp->inside;
	int ret = inside_processes_drop_others(inside, processes, n, err);

	if (!ret)
		ret = inside_near_sync(inside, processes, n, err);
	if (ret)
		return ret;
	inside_links_drop_unwanted(inside);
	requests_sweep(inside); /* now that no program of theirs keeps anything more */
	return inside_pins_drop_others(dp->dir, inside->generation, err);
}

static void inside_end(struct datapath_inside *inside)
{
	if (inside)
		inside_links_end(inside);
	inside_free(inside);
}

/* Programs that may write memory, or those that may not, take over from the others as another agent's would; or the others stay. */
static int programs_switch(struct datapath *dp, bool writes, const struct datapath_process *processes, size_t n,
			   struct error *err)
{
	struct datapath_inside *before = dp->inside;
	int ret;

	dp->inside = NULL;
	ret = inside_open(dp, writes, err) ?: processes_hand_over(dp, processes, n, err);
	if (ret) {
		inside_end(dp->inside);
		dp->inside = before;
		return ret;
	}
	inside_end(before);
	return 0;
}

int datapath_inside_sync(struct datapath *dp, const struct datapath_process *processes, size_t n, struct error *err)
{
	bool writes = writes_memory(processes, n);
	int ret;

	if (!n)
		return datapath_inside_remove(dp, err);
	if (dp->inside && dp->inside->writes == writes)
		ret = processes_hand_over(dp, processes, n, err);
	else
		ret = programs_switch(dp, writes, processes, n, err);
	return ret ?: processes_clean(dp, processes, n, err);
}

int datapath_inside_sweep(struct datapath *dp, struct error *err)
{
	int ret = dp->inside ? requests_sweep(dp->inside) : 0;

	return ret ? error_set(err, ret, "sweeping requests inside servers: %s", strerror(-ret)) : 0;
}
