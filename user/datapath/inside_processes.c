/* SPDX-License-Identifier: GPL-2.0 */
/* Which processes the programs inside servers serve. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "datapath/inside_private.h"
#include "datapath/map_cursor.h"
#include "datapath/private.h"

/* What the kernel had of a process before it was written. */
struct earlier {
	bool there;
	struct weir_inside_process process;
};

static int process_write(int fd, const struct datapath_inside *inside, const struct datapath_process *process,
			 struct earlier *earlier)
{
	struct weir_inside_process wanted = process->process;
	int ret;

	wanted.generation = inside->generation;
	memcpy(wanted.seed, inside->seed, sizeof(wanted.seed));
	wanted.layout.set = inside_links_set(inside, process->binary);
	earlier->there = !bpf_map_lookup_elem(fd, &process->id, &earlier->process);
	if (earlier->there && !memcmp(&earlier->process, &wanted, offsetof(struct weir_inside_process, learnt)))
		return 0;
	ret = inside_near_leave(inside, process->id);
	return ret ?: bpf_map_update_elem(fd, &process->id, &wanted, BPF_ANY);
}

static void process_put_back(int fd, const struct datapath_process *process, const struct earlier *earlier)
{
	if (earlier->there)
		bpf_map_update_elem(fd, &process->id, &earlier->process, BPF_ANY);
	else
		bpf_map_delete_elem(fd, &process->id);
}

int inside_processes_write(struct datapath_inside *inside, const struct datapath_process *processes, size_t n,
			   struct error *err)
{
	CLEANUP_FREE struct earlier *earlier = calloc(n, sizeof(*earlier));
	int fd = bpf_map__fd(inside->skeleton->maps.inside_processes), ret = 0;
	size_t i;

	if (!earlier)
		return error_set(err, -ENOMEM, "out of memory");
	for (i = 0; i < n && !ret; i++)
		ret = process_write(fd, inside, &processes[i], &earlier[i]);
	while (ret && i--)
		process_put_back(fd, &processes[i], &earlier[i]);
	return ret ? datapath_map_failed(err, ret, "inside_processes") : 0;
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

int inside_processes_drop_others(struct datapath_inside *inside, const struct datapath_process *processes, size_t n,
				 struct error *err)
{
	const struct wanted wanted = { processes, n };
	int ret = inside_near_leave_if(inside, is_unwanted, &wanted);

	if (!ret)
		ret = map_drop_if(bpf_map__fd(inside->skeleton->maps.inside_processes), sizeof(__u32),
				  sizeof(struct weir_inside_process), is_unwanted, &wanted);

	return ret < 0 ? datapath_map_failed(err, ret, "inside_processes") : 0;
}
