/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests in flight inside servers. The programs only write down where each begins. Whether it is still being worked on, its
 * goroutine says: its state and its number are read in the server's memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weir/base/duration.h"
#include "weir/inside/open.h"

#include "base/array.h"
#include "base/clock.h"
#include "datapath/inside_private.h"
#include "datapath/map_cursor.h"
#include "datapath/private.h"
#include "sys/process_memory.h"

#define PATIENCE_MS 1000 /* with the memory of all processes together: who holds it up is not waited for */

/* A process that serves, and what it works on. */
struct process {
	__u32 id;
	__u16 state; /* of struct weir_inside_layout */
	size_t n;
	struct weir_inside_open *requests;
	struct process_place *goroutines; /* of each request */
};

struct processes {
	struct process of[WEIR_MAX_INSIDE_PROCESSES];
	size_t n;
};

static void processes_clear(struct processes **processes)
{
	for (size_t i = 0; *processes && i < (*processes)->n; i++) {
		free((*processes)->of[i].requests);
		free((*processes)->of[i].goroutines);
	}
	free(*processes);
}
#define CLEANUP_PROCESSES __attribute__((cleanup(processes_clear)))

/* NULL: it is not one that is looked into any more. */
static struct process *process_of(const struct datapath_inside *inside, struct processes *processes, __u32 id)
{
	struct weir_inside_process there;
	struct process *process;

	for (size_t i = 0; i < processes->n; i++)
		if (processes->of[i].id == id)
			return &processes->of[i];
	if (processes->n == WEIR_MAX_INSIDE_PROCESSES ||
	    bpf_map_lookup_elem(bpf_map__fd(inside->skeleton->maps.inside_processes), &id, &there))
		return NULL;
	process = &processes->of[processes->n++];
	*process = (struct process){ .id = id, .state = there.layout.state };
	return process;
}

static int note(const struct datapath_inside *inside, struct processes *processes, const struct weir_inside_key *key,
		const struct weir_inside_open *request)
{
	struct process *process = process_of(inside, processes, key->process);
	struct weir_inside_open *requests;
	struct process_place *goroutines;

	if (!process)
		return 0;
	requests = array_grow(process->requests, process->n, sizeof(*requests));
	if (!requests)
		return -ENOMEM;
	process->requests = requests;
	goroutines = array_grow(process->goroutines, process->n, sizeof(*goroutines));
	if (!goroutines)
		return -ENOMEM;
	process->goroutines = goroutines;
	requests[process->n] = *request;
	goroutines[process->n++] = (struct process_place){ .address = key->goroutine + process->state };
	return 0;
}

static bool has_ended(const struct weir_inside_open *request, const struct process_place *goroutine)
{
	struct weir_inside_goroutine now;

	_Static_assert(sizeof(now) == sizeof(goroutine->bytes), "as much is read");
	memcpy(&now, goroutine->bytes, sizeof(now));
	return !goroutine->there || weir_inside_has_ended(request, &now);
}

/* A process that is gone works on nothing. Of one whose memory cannot be read, every request may have ended. */
static int add(struct process *process, enum weir_heavy_by by, __u32 ms, struct open_requests *out)
{
	int failed = process_memory_read_places(process->id, process->goroutines, process->n, ms), ret = 0;

	if (failed == -ENOENT || failed == -ESRCH)
		return 0;
	for (size_t i = 0; i < process->n && !ret; i++) {
		const struct weir_inside_open *request = &process->requests[i];

		if (failed || !has_ended(request, &process->goroutines[i]))
			ret = open_requests_add(out, by, &request->asked,
						failed || weir_inside_may_have_ended(request));
	}
	return ret;
}

static int add_all(struct processes *processes, enum weir_heavy_by by, struct open_requests *out)
{
	const __u64 until = clock_ns(CLOCK_MONOTONIC) + PATIENCE_MS * WEIR_NS_PER_MS;
	int ret = 0;

	for (size_t i = 0; i < processes->n && !ret; i++) {
		__u64 now = clock_ns(CLOCK_MONOTONIC);

		ret = add(&processes->of[i], by, now < until ? (until - now) / WEIR_NS_PER_MS : 0, out);
	}
	return ret;
}

int datapath_inside_open(struct datapath *dp, enum weir_heavy_by by, struct open_requests *out)
{
	CLEANUP_PROCESSES struct processes *processes = calloc(1, sizeof(*processes));
	CLEANUP_CURSOR struct map_cursor cursor = {};
	const struct datapath_inside *inside = dp->inside;
	int ret;

	if (!inside)
		return 0;
	if (!processes)
		return -ENOMEM;
	ret = map_cursor_open(&cursor, bpf_map__fd(inside->skeleton->maps.inside_open), sizeof(struct weir_inside_key),
			      sizeof(struct weir_inside_open));
	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_inside_key *keys = cursor.keys;
		const struct weir_inside_open *values = cursor.values;

		ret = 0;
		for (__u32 i = 0; i < cursor.n && !ret; i++)
			ret = note(inside, processes, &keys[i], &values[i]);
	}
	return ret ?: add_all(processes, by, out);
}
