/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Places of requests inside servers (include/weir/inside/places.h). They go back
 *
 * - where the request's handler returns (weir_inside_end);
 * - where its goroutine ends, if a panic passed the returns (weir_inside_goexit), or where it begins another request;
 * - when its process ends or becomes another program, whether there is an agent or not (weir_inside_exit, _exec);
 * - by the agent's sweep, if its process is not looked into any more (weir_inside_sweep).
 */
#ifndef WEIR_BPF_INSIDE_PLACES_H
#define WEIR_BPF_INSIDE_PLACES_H

#include "weir/inside/places.h"

#include "inside_memory.h"

#include "in_flight.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_INSIDE_REQUESTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_inside_key);
	__type(value, struct weir_inside_places);
} inside_places SEC(".maps");

/* What the goroutine's request holds goes back. reason: what is counted then; WEIR_REASON_NONE: nothing. */
__noinline int inside_give_places(const struct weir_inside_key *of, __u32 reason)
{
	struct weir_inside_places *held;
	struct weir_inside_key key;
	struct weir_place out;
	__u64 word;

	if (!of)
		return 0;
	key = *of;
	held = bpf_map_lookup_elem(&inside_places, &key);
	if (!held)
		return 0;
	word = WEIR_FRESH(held->word);
	if (!weir_inside_places_are_of(word, &key) || __sync_val_compare_and_swap(&held->word, word, 0) != word)
		return 0;
	for (__u32 i = 0; i < WEIR_PLACES_MAX; i++) {
		out = held->places[i];
		if (out.taken)
			in_flight_give(&out.key, out.taken);
	}
	if (reason < WEIR_REASON_COUNT)
		count(held->server, reason);
	bpf_map_delete_elem(&inside_places, &key);
	return 0;
}

/* The request that was decided in this piece holds what it took. Where there is no room for that, it holds nothing. */
static __always_inline void inside_keep_places(struct inside_piece *piece, const struct weir_inside_key *of)
{
	struct weir_inside_places *fresh = &piece->places;
	struct decision *d = &piece->decision;
	struct weir_inside_key key = *of;
	__u32 taken = 0;

	for (__u32 i = 0; i < WEIR_PLACES_MAX; i++) {
		fresh->places[i] = d->places[i].now;
		taken |= d->places[i].now.taken;
	}
	if (!taken)
		return;
	fresh->word = weir_inside_places_word(&key, d->now_ns);
	fresh->server = d->server;
	if (!bpf_map_update_elem(&inside_places, &key, fresh, BPF_NOEXIST))
		return;
	places_undo(d, true);
	count(d->server, WEIR_IN_FLIGHT_MAP_FULL);
}

#endif
