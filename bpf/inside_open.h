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

static const struct weir_inside_open inside_open_nothing = {};

/* The first request of a goroutine makes its entry. */
WEIR_SELDOM int inside_open_make(const struct weir_inside_key *of)
{
	struct weir_inside_key key = *of;

	return bpf_map_update_elem(&inside_open, &key, &inside_open_nothing, BPF_NOEXIST);
}

/* An entry belongs to its goroutine: nobody else writes there. NULL: it has none yet. */
static __always_inline struct weir_inside_open *inside_open_of(const struct weir_inside_key *key)
{
	return bpf_map_lookup_elem(&inside_open, key);
}

/* In a loop, as in inside_clear(). */
static __always_inline void inside_open_copy(struct weir_inside_open *open, const struct weir_asked *asked)
{
	const __u64 *from = (const __u64 *)asked;
	__u64 *to = (__u64 *)&open->asked;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < sizeof(*asked) / 8; i++) {
		to[i] = from[i];
		WEIR_FRESH_ALL();
	}
}

/*
 * Does anybody ask whether it is in flight? Who begins to look asks for those that may have been there for long: watches and their like,
 * lists, which may be as large as the whole store, and what does not say how long it takes. Where one over HTTP/1 ends, nobody sees.
 */
static __always_inline bool inside_is_looked_at(const struct inside_request *r, const struct weir_server *server)
{
	const struct weir_attributes *a = &r->record.trace.attributes;

	return WEIR_UNLIKELY(server->look_until_ns > r->now_ns) || WEIR_UNLIKELY(r->http1) ||
	       WEIR_UNLIKELY(!r->fields_at) || WEIR_UNLIKELY(a->verb == WEIR_VERB_LIST) ||
	       WEIR_UNLIKELY(a->flags & WEIR_ATTRIBUTE_LONG_RUNNING);
}

/*
 * The server works on it from now on. All of r->asked is set. Its number comes last: who reads before finds one that has ended.
 * open: inside_open_of()
 */
static __always_inline void inside_is_open(struct inside_request *r, const struct weir_inside_process *process,
					   struct weir_inside_open *open)
{
	if (!process->layout.state)
		return;
	if (WEIR_UNLIKELY(!open) && !inside_open_make(&r->key))
		open = inside_open_of(&r->key);
	if (WEIR_UNLIKELY(!open)) {
		count(process->server, WEIR_INSIDE_UNLISTED);
		return;
	}
	open->goes_on = r->http1;
	open->end_known = r->ends;
	inside_open_copy(open, &r->asked);
	WEIR_FRESH_ALL();
	open->number = inside_goroutine_number(&r->key, process->layout.state);
}

#endif
