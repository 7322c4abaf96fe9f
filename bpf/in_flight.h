/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Seats that connections have while their requests are outstanding (seats.h). Seats that a packet took are in its draft first,
 * and then with the connection. The program that takes them out of there gives them back, so that this happens once.
 */
#ifndef WEIR_BPF_IN_FLIGHT_H
#define WEIR_BPF_IN_FLIGHT_H

#include "buckets.h"
#include "decision.h"

#define IN_FLIGHT_RETRY_NS WEIR_NS_PER_S /* told to who is refused: nobody knows when a seat will be free */

/*
 * A subject's entry goes with its last seat. That of a limit without a key stays: everyone takes seats there. One addition gives
 * them back: it cannot fail.
 */
__noinline int in_flight_give(const struct weir_in_flight_key *of, __u32 taken)
{
	struct weir_in_flight_key key;
	struct weir_in_flight *f;
	__u64 none;

	if (!of || !taken)
		return 0;
	key = *of;
	none = weir_in_flight_none(&key);
	f = bpf_map_lookup_elem(&in_flight, &key);
	if (!f || weir_in_flight_taken(WEIR_FRESH(f->word)) < taken)
		return 0;
	__sync_fetch_and_add(&f->word, -(__u64)taken);
	if (key.subject && __sync_val_compare_and_swap(&f->word, none, none | WEIR_IN_FLIGHT_DEAD) == none)
		bpf_map_delete_elem(&in_flight, &key);
	return 0;
}

/* Seats that the request would take of a limit. */
static __always_inline __u32 seats_wanted(const struct decision *d, const struct weir_terms *terms)
{
	__u32 wanted = terms->flags & WEIR_LIMIT_WIDE_LISTS ? d->width.seats : 1, there_are = terms->amount.seats;

	return wanted > there_are && there_are ? there_are : wanted;
}

/* Makes the entry of a subject that has none. */
static __always_inline struct weir_in_flight *in_flight_make(const struct weir_in_flight_key *key)
{
	const struct weir_in_flight none = { .word = weir_in_flight_none(key) };

	bpf_map_update_elem(&in_flight, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&in_flight, key);
}

enum in_flight_outcome {
	IN_FLIGHT_TAKEN,
	IN_FLIGHT_REFUSED,
	IN_FLIGHT_NO_ROOM, /* in the table: nothing is known, and nothing was taken */
	IN_FLIGHT_CHANGED, /* by another CPU, or about to be deleted: to be tried again */
};

#define IN_FLIGHT_TRIES 8 /* an entry that is about to be deleted is gone a moment later */

static __always_inline void note_highest(__u32 index, __u64 taken)
{
	struct weir_limit_counts *counts = bpf_map_lookup_elem(&limit_counts, &index);
	__u64 highest;

	for (int i = 0; i < IN_FLIGHT_TRIES && counts; i++) {
		highest = WEIR_FRESH(counts->highest);
		if (taken <= highest || __sync_val_compare_and_swap(&counts->highest, highest, taken) == highest)
			break;
	}
}

/*
 * Takes seats of an entry, or only looks whether they are there. Says enum in_flight_outcome. The verifier reads it once, not
 * once for each way to each try.
 */
__noinline int in_flight_try(const struct weir_in_flight_key *of, __u32 wanted, __u32 there_are, __u32 look)
{
	struct weir_in_flight_key key;
	struct weir_in_flight *f;
	__u64 word;

	if (!of)
		return IN_FLIGHT_NO_ROOM;
	key = *of;
	f = bpf_map_lookup_elem(&in_flight, &key);
	if (!f && look)
		return wanted <= there_are ? IN_FLIGHT_TAKEN : IN_FLIGHT_REFUSED;
	if (!f)
		f = in_flight_make(&key);
	if (!f)
		return IN_FLIGHT_NO_ROOM;
	word = WEIR_FRESH(f->word);
	if (!weir_in_flight_is_of(word, &key))
		return IN_FLIGHT_CHANGED;
	if (!weir_in_flight_fits(word, wanted, there_are))
		return IN_FLIGHT_REFUSED;
	if (look)
		return IN_FLIGHT_TAKEN;
	if (__sync_val_compare_and_swap(&f->word, word, word + wanted) != word)
		return IN_FLIGHT_CHANGED;
	note_highest(key.limit, weir_in_flight_taken(word + wanted));
	return IN_FLIGHT_TAKEN;
}

/* The draft's slot of a key, or a free one; WEIR_SEAT_SLOTS: there is none. The verifier reads what follows once, not for each slot. */
__noinline int seat_slot(const struct decision *d, const struct weir_in_flight_key *key)
{
	__u32 slot = WEIR_SEAT_SLOTS;

	if (!d || !key)
		return slot;
	for (__u32 i = 0; i < WEIR_SEAT_SLOTS; i++) {
		if (weir_seats_are_of(&d->seats[i].now, key))
			return i;
		if (!d->seats[i].now.taken)
			slot = i;
	}
	return slot;
}

/*
 * Takes the seats that are missing for a subject, unless `look` says to look only. A request for which there is no slot waits
 * until the connection has fewer outstanding: one alone always has enough of them.
 */
static __always_inline enum in_flight_outcome in_flight_take(struct decision *d, __u32 n, __u32 index, bool look)
{
	const struct weir_terms *terms = terms_of(d, n);
	struct weir_in_flight_key key = { .limit = index, .epoch = terms->epoch, .subject = d->subjects[n] };
	__u32 there_are = terms->amount.seats, missing = seats_wanted(d, terms);
	int outcome = IN_FLIGHT_CHANGED;
	__u32 slot = seat_slot(d, &key);
	struct weir_seats_draft *draft;

	if (slot >= WEIR_SEAT_SLOTS)
		return IN_FLIGHT_REFUSED;
	WEIR_BARRIER(slot); /* the verifier has to see that what was compared is what is used */
	draft = &d->seats[slot & (WEIR_SEAT_SLOTS - 1)];
	missing = missing > draft->now.taken ? missing - draft->now.taken : 0;
	if (!missing && draft->now.taken)
		outcome = IN_FLIGHT_TAKEN;
	for (int i = 0; i < IN_FLIGHT_TRIES && outcome == IN_FLIGHT_CHANGED; i++)
		outcome = in_flight_try(&key, missing, there_are, look);
	if (outcome == IN_FLIGHT_CHANGED) {
		count(d->server, WEIR_LIMIT_CONTENDED);
		return IN_FLIGHT_REFUSED;
	}
	if (outcome == IN_FLIGHT_TAKEN && !look)
		weir_draft_take(draft, &key, missing, d->request + 1);
	return outcome;
}

/* The request that is decided now is asked of limits on requests in flight. */
static __always_inline void seats_begin(struct decision *d)
{
	for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
		weir_draft_request(&d->seats[i]);
	d->seats_asked = 1;
}

/* What the request that was decided last has taken goes back; all: what all of the packet's have. */
__noinline int seats_undo(struct decision *d, __u32 all)
{
	if (!d || (!all && !d->seats_asked))
		return 0;
	for (__u32 i = 0; i < WEIR_SEAT_SLOTS; i++) {
		struct weir_seats_draft *draft = &d->seats[i];

		in_flight_give(&draft->now.key, all ? weir_draft_undo(draft) : weir_draft_undo_request(draft));
	}
	d->seats_asked = 0;
	return 0;
}

#endif
