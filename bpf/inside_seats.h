/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Seats of requests inside servers (include/weir/inside/seats.h). They go back
 *
 * - where the request's handler returns (weir_inside_end);
 * - where its goroutine ends, if a panic passed the returns (weir_inside_goexit), or where it begins another request;
 * - when its process ends or becomes another program, whether there is an agent or not (weir_inside_exit, _exec);
 * - by the agent's sweep, if its process is not looked into any more (weir_inside_sweep).
 */
#ifndef WEIR_BPF_INSIDE_SEATS_H
#define WEIR_BPF_INSIDE_SEATS_H

#include "weir/inside/seats.h"

#include "inside_memory.h"

#include "in_flight.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_INSIDE_REQUESTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_inside_key);
	__type(value, struct weir_inside_seats);
} inside_seats SEC(".maps");

/* The seats of the goroutine's request go back. reason: what is counted then; WEIR_REASON_NONE: nothing. */
__noinline int inside_give_seats(const struct weir_inside_key *of, __u32 reason)
{
	struct weir_inside_seats *entry;
	struct weir_inside_key key;
	struct weir_seats out;
	__u64 word;

	if (!of)
		return 0;
	key = *of;
	entry = bpf_map_lookup_elem(&inside_seats, &key);
	if (!entry)
		return 0;
	word = WEIR_FRESH(entry->word);
	if (!weir_inside_seats_are_of(word, &key) || __sync_val_compare_and_swap(&entry->word, word, 0) != word)
		return 0;
	for (__u32 i = 0; i < WEIR_SEAT_SLOTS; i++) {
		out = entry->seats[i];
		if (out.taken)
			in_flight_give(&out.key, out.taken);
	}
	if (reason < WEIR_REASON_COUNT)
		count(entry->server, reason);
	bpf_map_delete_elem(&inside_seats, &key);
	return 0;
}

/* The request that was decided in this piece has what it took. Where there is no room for that, it has nothing. */
WEIR_SELDOM int inside_keep_seats(struct inside_piece *piece, const struct weir_inside_key *of)
{
	struct weir_inside_seats *fresh = &piece->seats;
	struct decision *d = &piece->decision;
	struct weir_inside_key key = *of;
	__u32 taken = 0;

	for (__u32 i = 0; i < WEIR_SEAT_SLOTS; i++) {
		fresh->seats[i] = d->seats[i].now;
		taken |= d->seats[i].now.taken;
	}
	if (!taken)
		return 0;
	fresh->word = weir_inside_seats_word(&key, d->now_ns);
	fresh->server = d->server;
	if (!bpf_map_update_elem(&inside_seats, &key, fresh, BPF_NOEXIST))
		return 0;
	seats_undo(d, true);
	count(d->server, WEIR_IN_FLIGHT_MAP_FULL);
	return 0;
}

#endif
