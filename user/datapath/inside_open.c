/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests in flight inside servers. The programs only write down where each begins. Whether it is still being worked on, its
 * goroutine says: its state and its number are read in the server's memory.
 */
#include <errno.h>
#include <stdlib.h>

#include "weir/inside/open.h"

#include "datapath/inside_private.h"
#include "datapath/private.h"
#include "sys/process_memory.h"

/* A process that serves, and its memory. */
struct memory {
	__u32 process;
	struct process_memory memory;
	int failed;  /* to be opened: a negative errno */
	__u16 state; /* of struct weir_inside_layout */
};

struct memories {
	struct memory of[WEIR_MAX_INSIDE_PROCESSES];
	size_t n;
};

static void memories_close(struct memories *memories)
{
	for (size_t i = 0; i < memories->n; i++)
		if (!memories->of[i].failed)
			process_memory_close(&memories->of[i].memory);
	free(memories);
}

static void cleanup_memories(struct memories **memories)
{
	if (*memories)
		memories_close(*memories);
}
#define CLEANUP_MEMORIES __attribute__((cleanup(cleanup_memories)))

/* NULL: it is not one that is looked into any more. */
static const struct memory *memory_of(const struct datapath_inside *inside, struct memories *memories, __u32 process)
{
	struct weir_inside_process there;
	struct memory *memory;

	for (size_t i = 0; i < memories->n; i++)
		if (memories->of[i].process == process)
			return &memories->of[i];
	if (memories->n == WEIR_MAX_INSIDE_PROCESSES ||
	    bpf_map_lookup_elem(bpf_map__fd(inside->skeleton->maps.inside_processes), &process, &there))
		return NULL;
	memory = &memories->of[memories->n++];
	*memory = (struct memory){ .process = process, .state = there.layout.state };
	memory->failed = process_memory_open(process, &memory->memory);
	return memory;
}

/* A process that is gone has no memory: then its requests have ended. */
static bool has_ended(const struct memory *memory, const struct weir_inside_key *key,
		      const struct weir_inside_open *open, bool *doubtful)
{
	struct weir_inside_goroutine now;

	*doubtful = weir_inside_may_have_ended(open) || memory->failed;
	if (memory->failed)
		return memory->failed == -ENOENT || memory->failed == -ESRCH;
	return process_memory_read(&memory->memory, key->goroutine + memory->state, &now, sizeof(now)) ||
	       weir_inside_has_ended(open, &now);
}

static int add(const struct datapath_inside *inside, struct memories *memories, const struct weir_inside_key *key,
	       const struct weir_inside_open *request, enum weir_heavy_by by, struct open_requests *out)
{
	const struct memory *memory = memory_of(inside, memories, key->process);
	bool doubtful;

	if (!memory || has_ended(memory, key, request, &doubtful))
		return 0;
	return open_requests_add(out, by, &request->asked, doubtful);
}

int datapath_inside_open(struct datapath *dp, enum weir_heavy_by by, struct open_requests *out)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	CLEANUP_MEMORIES struct memories *memories = calloc(1, sizeof(*memories));
	const struct datapath_inside *inside = dp->inside;
	int ret;

	if (!inside)
		return 0;
	if (!memories)
		return -ENOMEM;
	ret = map_cursor_open(&cursor, bpf_map__fd(inside->skeleton->maps.inside_open), sizeof(struct weir_inside_key),
			      sizeof(struct weir_inside_open));
	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_inside_key *keys = cursor.keys;
		const struct weir_inside_open *values = cursor.values;

		ret = 0;
		for (__u32 i = 0; i < cursor.n && !ret; i++)
			ret = add(inside, memories, &keys[i], &values[i], by, out);
	}
	return ret;
}
