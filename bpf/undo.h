/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet's requests are decided one after the other, and it may turn out at the end that the packet cannot be committed: it comes
 * again, and so do they. What the latest one took is in the working memory; what those before it took is kept here until
 * then, so that all of it can go back.
 */
#ifndef WEIR_BPF_UNDO_H
#define WEIR_BPF_UNDO_H

#include "decide.h"
#include "work.h"

struct decided {
	__u64 subjects[WEIR_MATCHES_MAX];
	__u64 words_before[WEIR_MATCHES_MAX], words_after[WEIR_MATCHES_MAX];
	__u32 limits[WEIR_MATCHES_MAX];
	__u32 n_limits;
	__u32 charged, refused, waited, overlooked, failed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_OUTSTANDING_MAX);
	__type(key, __u32);
	__type(value, struct decided);
} decided SEC(".maps");

static __always_inline void decision_keep(struct work *w)
{
	__u32 index = w->n_decided;
	struct decided *d = bpf_map_lookup_elem(&decided, &index);

	/* Nothing is kept of one that took nothing, nor was refused anything. */
	if (!d || !(w->charged | w->refused | w->overlooked))
		return;
	w->n_decided++;
	__builtin_memcpy(d->subjects, w->subjects, sizeof(d->subjects));
	__builtin_memcpy(d->limits, w->limits, sizeof(d->limits));
	__builtin_memcpy(d->words_before, w->words_before, sizeof(d->words_before));
	__builtin_memcpy(d->words_after, w->words_after, sizeof(d->words_after));
	d->n_limits = w->n_limits;
	d->charged = w->charged;
	d->refused = w->refused;
	d->waited = w->waited;
	d->overlooked = w->overlooked;
	d->failed = w->failed;
}

static __always_inline void decision_recall(struct work *w, const struct decided *d)
{
	__builtin_memcpy(w->subjects, d->subjects, sizeof(d->subjects));
	__builtin_memcpy(w->limits, d->limits, sizeof(d->limits));
	__builtin_memcpy(w->words_before, d->words_before, sizeof(d->words_before));
	__builtin_memcpy(w->words_after, d->words_after, sizeof(d->words_after));
	w->n_limits = d->n_limits;
	w->charged = d->charged;
	w->refused = d->refused;
	w->waited = d->waited;
	w->overlooked = d->overlooked;
	w->failed = d->failed;
}

/* The packet is not committed: as if none of its requests had been asked for. What has gone back once is not known any more. */
__noinline int undo_packet(struct work *w)
{
	struct decided *d;
	__u32 n;

	if (!w)
		return 0;
	places_undo(w, true);
	undo_decision(w);
	n = w->n_decided;
	w->n_decided = 0;
	for (__u32 i = 0; i < WEIR_OUTSTANDING_MAX; i++) {
		__u32 index = i;

		if (i >= n)
			break;
		d = bpf_map_lookup_elem(&decided, &index);
		if (!d)
			break;
		decision_recall(w, d);
		undo_decision(w);
	}
	return 0;
}

#endif
