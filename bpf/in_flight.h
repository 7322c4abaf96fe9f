/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Places that requests hold while they are outstanding. What a request has taken stands in the map `places` under its
 * connection and number, and is given back once: when its response has been sent, or when its connection is gone.
 */
#ifndef WEIR_BPF_IN_FLIGHT_H
#define WEIR_BPF_IN_FLIGHT_H

#include "buckets.h"
#include "width.h"
#include "work.h"

#define IN_FLIGHT_RETRY_NS WEIR_NS_PER_S /* nobody knows when a place will be free */

/* A subject's entry goes with its last place. That of a limit without a key stays: everyone takes places there. */
static __always_inline void in_flight_give(const struct weir_in_flight_key *key, __u32 taken)
{
	struct weir_in_flight *f = bpf_map_lookup_elem(&in_flight, key);
	struct lock *lock = lock_of(key->limit, key->subject);
	bool dead;

	if (!f || !lock)
		return;
	bpf_spin_lock(&lock->lock);
	f->taken -= taken;
	dead = !f->taken && key->subject;
	f->dead = dead;
	bpf_spin_unlock(&lock->lock);
	if (dead)
		bpf_map_delete_elem(&in_flight, key);
}

/* Places that the request would take of a limit of which there are so many. */
static __always_inline __u32 places_wanted(const struct work *w, const struct weir_limit *limit, __u32 there_are)
{
	__u32 wanted = limit->flags & WEIR_LIMIT_SEATS ? w->width.seats : 1;

	return wanted > there_are && there_are ? there_are : wanted;
}

/* Makes the entry of a subject that has none. */
static __always_inline struct weir_in_flight *in_flight_make(const struct weir_in_flight_key *key)
{
	const struct weir_in_flight none = {};

	bpf_map_update_elem(&in_flight, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&in_flight, key);
}

enum in_flight_outcome {
	IN_FLIGHT_TAKEN,
	IN_FLIGHT_REFUSED,
	IN_FLIGHT_NO_ROOM, /* in the table: nothing is known, and nothing was taken */
	IN_FLIGHT_DYING,   /* the entry is about to be deleted, by another CPU */
};

static __always_inline void note_highest(__u32 index, __u32 taken)
{
	struct weir_limit_counts *counts = bpf_map_lookup_elem(&limit_counts, &index);

	if (counts && taken > counts->highest)
		counts->highest = taken;
}

/* Takes places of an entry, or only looks whether they are there. */
static __always_inline enum in_flight_outcome in_flight_try(const struct weir_in_flight_key *key, __u32 wanted,
							    __u32 there_are, bool look)
{
	struct weir_in_flight *f = bpf_map_lookup_elem(&in_flight, key);
	struct lock *lock = lock_of(key->limit, key->subject);
	bool fits, dead;
	__u32 taken;

	if (!f && look)
		return wanted <= there_are ? IN_FLIGHT_TAKEN : IN_FLIGHT_REFUSED;
	if (!f)
		f = in_flight_make(key);
	if (!f || !lock)
		return IN_FLIGHT_NO_ROOM;
	bpf_spin_lock(&lock->lock);
	dead = f->dead;
	fits = !dead && f->taken + wanted <= there_are;
	if (fits && !look)
		f->taken += wanted;
	taken = f->taken;
	bpf_spin_unlock(&lock->lock);
	if (dead)
		return IN_FLIGHT_DYING;
	if (fits && !look)
		note_highest(key->limit, taken);
	return fits ? IN_FLIGHT_TAKEN : IN_FLIGHT_REFUSED;
}

#define IN_FLIGHT_TRIES 4 /* an entry that is dying is gone a moment later */

/* Takes places for a subject, unless `look` says to look only; what was taken is noted in w->places. */
static __always_inline enum in_flight_outcome in_flight_take(struct work *w, const struct weir_limit *limit,
							     const struct weir_amount *amount, __u32 index,
							     __u64 subject, bool look)
{
	struct weir_in_flight_key key = { .limit = index, .epoch = limit->epoch, .subject = subject };
	__u32 wanted = places_wanted(w, limit, amount->places);
	enum in_flight_outcome outcome = IN_FLIGHT_DYING;
	__u32 n = w->places.n, at = n;

	if (n >= WEIR_PLACES_MAX)
		return IN_FLIGHT_NO_ROOM;
	for (int i = 0; i < IN_FLIGHT_TRIES && outcome == IN_FLIGHT_DYING; i++)
		outcome = in_flight_try(&key, wanted, amount->places, look);
	if (outcome == IN_FLIGHT_DYING)
		return IN_FLIGHT_REFUSED;
	if (outcome == IN_FLIGHT_TAKEN && !look) {
		WEIR_BARRIER(at); /* as it is: for the verifier, who has forgotten what was compared */
		at &= WEIR_PLACES_MAX - 1;
		w->places.of[at].key = key;
		w->places.of[at].taken = wanted;
		w->places.n = n + 1;
	}
	return outcome;
}

/* Gives back what w->places says, which is nobody else's to give. */
__noinline int places_undo(__u32 hook)
{
	struct work *w = work_of(hook);

	if (!w)
		return 0;
	for (__u32 i = 0; i < WEIR_PLACES_MAX; i++) {
		if (i >= w->places.n)
			break;
		in_flight_give(&w->places.of[i].key, w->places.of[i].taken);
	}
	w->places.n = 0;
	return 0;
}

/* Which request is it? One that was decided before, when its packet was not taken in the end, holds its places already. */
__noinline int places_begin(__u32 hook)
{
	struct work *w = work_of(hook);

	if (!w)
		return 0;
	w->places.n = 0;
	w->place_key.flow = w->packet.flow;
	w->place_key.request = w->request.requests + w->request.heads;
	w->in_flight_held = !!bpf_map_lookup_elem(&places, &w->place_key);
	width_find(hook);
	return 0;
}

/* The request may pass: it holds what it took. 1: there is no room for that. */
__noinline int places_keep(__u32 hook)
{
	struct work *w = work_of(hook);

	if (!w || !w->places.n)
		return 0;
	if (bpf_map_update_elem(&places, &w->place_key, &w->places, BPF_NOEXIST)) {
		places_undo(hook);
		return 1;
	}
	w->places_end = w->place_key.request + 1;
	return 0;
}

/* It may not, after all. */
__noinline int places_drop(__u32 hook)
{
	struct work *w = work_of(hook);

	if (!w || !w->places.n)
		return 0;
	bpf_map_delete_elem(&places, &w->place_key);
	return places_undo(hook);
}

/* What a request holds is given back, by whom comes first. */
__noinline int places_release(const struct weir_flow *flow, __u32 request)
{
	struct weir_place_key key = {};
	struct weir_places *p;
	__u32 n;

	if (!flow)
		return 0;
	key.flow = *flow;
	key.request = request;
	p = bpf_map_lookup_elem(&places, &key);
	if (!p)
		return 0;
	n = __sync_lock_test_and_set(&p->n, 0);
	for (__u32 i = 0; i < WEIR_PLACES_MAX; i++) {
		if (i >= n)
			break;
		in_flight_give(&p->of[i].key, p->of[i].taken);
	}
	bpf_map_delete_elem(&places, &key);
	return 0;
}

/* The same of all requests from `from` on and before `end`, of which there are at most WEIR_OUTSTANDING_MAX and one. */
__noinline int places_release_all(const struct weir_flow *flow, __u32 from, __u32 end)
{
	if (!flow)
		return 0;
	for (__u32 i = 0; i <= WEIR_OUTSTANDING_MAX; i++) {
		if (!seq_before(from + i, end))
			break;
		places_release(flow, from + i);
	}
	return 0;
}

#endif
