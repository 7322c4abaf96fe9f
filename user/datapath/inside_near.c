/* SPDX-License-Identifier: GPL-2.0 */
/* Processes that programs inside servers find at once: what is written in which order, and why, include/weir/inside/near.h says. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "weir/inside/near.h"

#include "base/cleanup.h"
#include "datapath/inside_private.h"
#include "datapath/map_cursor.h"
#include "datapath/private.h"

/* The map, and what it becomes. */
struct near {
	struct weir_inside_near there[WEIR_INSIDE_NEAR];
	struct weir_inside_near wanted[WEIR_INSIDE_NEAR]; /* id 0: what is there stays */
};

static int entry_read(const struct datapath_inside *inside, __u32 at, struct weir_inside_near *out)
{
	return bpf_map_lookup_elem(bpf_map__fd(inside->skeleton->maps.inside_near), &at, out);
}

static int number_set(const struct datapath_inside *inside, __u32 at, __u32 id)
{
	const struct weir_inside_numbered numbered = { .at = at, .id = id };

	return datapath_run(bpf_program__fd(inside->skeleton->progs.weir_inside_near_number), &numbered,
			    sizeof(numbered));
}

int inside_near_leave(const struct datapath_inside *inside, __u32 process)
{
	const __u32 at = weir_inside_near_of(process);
	struct weir_inside_near there;
	int ret = entry_read(inside, at, &there);

	return ret || there.id != process ? ret : number_set(inside, at, 0);
}

int inside_near_leave_if(const struct datapath_inside *inside, map_test *leaves, const void *arg)
{
	int ret = 0;

	for (__u32 at = 0; at < WEIR_INSIDE_NEAR && !ret; at++) {
		struct weir_inside_near there;

		ret = entry_read(inside, at, &there);
		if (!ret && there.id && leaves(&there.id, &there.process, arg))
			ret = number_set(inside, at, 0);
	}
	return ret;
}

/* As the agent has written it into `inside_processes`. */
static int process_read(const struct datapath_inside *inside, __u32 id, struct weir_inside_process *out)
{
	int ret = bpf_map_lookup_elem(bpf_map__fd(inside->skeleton->maps.inside_processes), &id, out);

	memset(&out->learnt, 0, sizeof(out->learnt));
	return ret;
}

/* Whatever an earlier agent has left there. */
static bool is_wrong(const void *id, const void *value, const void *arg)
{
	struct weir_inside_process wanted;

	return process_read(arg, *(const __u32 *)id, &wanted) ||
	       memcmp(value, &wanted, offsetof(struct weir_inside_process, learnt)) != 0;
}

/* Of those that share a place, the one that has it keeps it; else it is the first one's. */
static int near_choose(const struct datapath_inside *inside, const struct datapath_process *processes, size_t n,
		       struct near *near)
{
	int ret = 0;

	for (__u32 at = 0; at < WEIR_INSIDE_NEAR && !ret; at++)
		ret = entry_read(inside, at, &near->there[at]);
	for (size_t i = 0; i < n && !ret; i++) {
		const __u32 at = weir_inside_near_of(processes[i].id);
		struct weir_inside_near *wanted = &near->wanted[at];

		if (near->there[at].id || wanted->id)
			continue;
		wanted->id = processes[i].id;
		ret = process_read(inside, wanted->id, &wanted->process);
	}
	return ret;
}

static bool was_used(const struct weir_inside_near *there)
{
	static const struct weir_inside_process never;

	return memcmp(&there->process, &never, sizeof(never)) != 0;
}

/* Nobody reads what is there. */
static int entry_write(const struct datapath_inside *inside, __u32 at, const struct weir_inside_near *wanted)
{
	struct weir_inside_near content = { .process = wanted->process };
	int ret = bpf_map_update_elem(bpf_map__fd(inside->skeleton->maps.inside_near), &at, &content, BPF_ANY);

	return ret ?: number_set(inside, at, wanted->id);
}

/* Where the kernel does not say when programs have ended, no entry is used again: those processes are searched for. */
static int near_write(const struct datapath_inside *inside, const struct near *near)
{
	bool again = false, waited;
	int ret = 0;

	for (__u32 at = 0; at < WEIR_INSIDE_NEAR; at++)
		again |= near->wanted[at].id && was_used(&near->there[at]);
	waited = again && datapath_wait_for_programs();
	for (__u32 at = 0; at < WEIR_INSIDE_NEAR && !ret; at++)
		if (near->wanted[at].id && (waited || !was_used(&near->there[at])))
			ret = entry_write(inside, at, &near->wanted[at]);
	return ret;
}

int inside_near_sync(const struct datapath_inside *inside, const struct datapath_process *processes, size_t n,
		     struct error *err)
{
	CLEANUP_FREE struct near *near = calloc(1, sizeof(*near));
	int ret;

	if (!near)
		return error_set(err, -ENOMEM, "out of memory");
	ret = inside_near_leave_if(inside, is_wrong, inside)  ?:
		      near_choose(inside, processes, n, near) ?:
								near_write(inside, near);
	return ret ? datapath_map_failed(err, ret, "inside_near") : 0;
}
