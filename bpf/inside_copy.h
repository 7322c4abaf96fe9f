/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Copies from the memory of the process that runs. It may not be there at the moment: programs that may not sleep fail then, and others
 * wait for it.
 */
#ifndef WEIR_BPF_INSIDE_COPY_H
#define WEIR_BPF_INSIDE_COPY_H

#include "inside_bring.h"
#include "maps.h"

/* What came of reading: a reason of the group INSIDE, or this. */
#define INSIDE_READ 0U

struct inside_missing {
	__u64 at;
	__u64 size;
};

/* What a thread has failed to read last. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct inside_missing);
} inside_missing SEC(".maps");

__noinline int inside_miss(__u64 at, __u64 size)
{
	struct inside_missing missing = { at, size };
	__u64 thread = bpf_get_current_pid_tgid();

	return bpf_map_update_elem(&inside_missing, &thread, &missing, BPF_ANY);
}

static __always_inline __u32 inside_copy(void *to, __u32 size, __u64 from)
{
	if (WEIR_LIKELY(!bpf_probe_read_user(to, size, (const void *)from)))
		return INSIDE_READ;
	inside_miss(from, size);
	return WEIR_INSIDE_UNREADABLE;
}

#define INSIDE_WAITS 64 /* for what a request misses, at most: in as many places */

/* In programs that may sleep: a byte that is brought where it is not there. False: it is nowhere, or may never come. */
static __always_inline bool inside_brought(__u64 at)
{
	__u8 byte;

	return inside_may_wait(at) && !bpf_copy_from_user(&byte, 1, (const void *)at);
}

/* Waits until what this thread has failed to read last is there. False: it does not come. */
static __always_inline bool inside_wait(void)
{
	__u64 thread = bpf_get_current_pid_tgid(), at, last;
	struct inside_missing *missing = bpf_map_lookup_elem(&inside_missing, &thread);

	if (!missing)
		return false;
	at = missing->at;
	last = at + missing->size - 1;
	bpf_map_delete_elem(&inside_missing, &thread);
	return inside_brought(at) && inside_brought(last);
}

/* sleeps: a constant, whether the program may sleep */
static __always_inline __u32 inside_word(__u64 at, __u64 *word, bool sleeps)
{
	long failed = bpf_probe_read_user(word, sizeof(*word), (const void *)at);

	if (failed && sleeps && inside_may_wait(at))
		failed = bpf_copy_from_user(word, sizeof(*word), (const void *)at);
	return failed ? WEIR_INSIDE_UNREADABLE : INSIDE_READ;
}

#endif
