/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests in flight inside servers, for `weir top` (include/weir/inside/open.h). A goroutine's next request takes the place of the
 * one before, so there are never more entries than goroutines that have served requests at once.
 */
#ifndef WEIR_BPF_INSIDE_OPEN_H
#define WEIR_BPF_INSIDE_OPEN_H

#include "weir/inside/open.h"

#include "inside_known.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_INSIDE_REQUESTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_inside_key);
	__type(value, struct weir_inside_open);
} inside_open SEC(".maps");

/* The goroutine's request is over, as far as this can be seen. */
static __always_inline void inside_over(const struct weir_inside_key *key)
{
	bpf_map_delete_elem(&inside_open, key);
}

/* 0: it cannot be read. */
static __always_inline __u64 inside_goroutine_number(const struct weir_inside_key *key, __u16 state)
{
	struct weir_inside_goroutine g;

	if (bpf_probe_read_user(&g, sizeof(g), (const void *)(key->goroutine + state)))
		return 0;
	return weir_inside_number(&g);
}

/* The server works on it from now on. All of r->asked is set. */
static __always_inline void inside_is_open(struct inside_request *r, const struct weir_inside_process *process)
{
	if (!process->layout.state)
		return;
	r->open.number = inside_goroutine_number(&r->key, process->layout.state);
	r->open.goes_on = r->http1;
	r->open.end_known = r->ends;
	__builtin_memset(r->open.pad, 0, sizeof(r->open.pad));
	r->open.asked = r->asked;
	if (bpf_map_update_elem(&inside_open, &r->key, &r->open, BPF_ANY))
		count(process->server, WEIR_INSIDE_UNLISTED);
}

#endif
