/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a decision took. A caller that may have to give it back later keeps this copy, because the decision's memory is used
 * again.
 */
#ifndef WEIR_BPF_UNDO_H
#define WEIR_BPF_UNDO_H

#include "decide.h"

/* As in struct decision. Seats are not among it. */
struct decided {
	__u64 subjects[WEIR_MATCHES_MAX];
	__u64 words_before[WEIR_MATCHES_MAX], words_after[WEIR_MATCHES_MAX]; /* where one has failed */
	__u32 limits[WEIR_MATCHES_MAX];
	__u32 n_limits;
	__u32 charged, refused, waited, overlooked, failed, denied;
};

static __always_inline void decided_keep(struct decided *kept, const struct decision *d)
{
	__builtin_memcpy(kept->subjects, d->subjects, sizeof(kept->subjects));
	__builtin_memcpy(kept->limits, d->limits, sizeof(kept->limits));
	if (d->failed) {
		__builtin_memcpy(kept->words_before, d->words_before, sizeof(kept->words_before));
		__builtin_memcpy(kept->words_after, d->words_after, sizeof(kept->words_after));
	}
	kept->n_limits = d->n_limits;
	kept->charged = d->charged;
	kept->refused = d->refused;
	kept->waited = d->waited;
	kept->overlooked = d->overlooked;
	kept->failed = d->failed;
	kept->denied = d->denied;
}

/* As if it had just been decided, for undo_decision(). */
static __always_inline void decided_recall(struct decision *d, const struct decided *kept)
{
	__builtin_memcpy(d->subjects, kept->subjects, sizeof(d->subjects));
	__builtin_memcpy(d->limits, kept->limits, sizeof(d->limits));
	if (kept->failed) {
		__builtin_memcpy(d->words_before, kept->words_before, sizeof(d->words_before));
		__builtin_memcpy(d->words_after, kept->words_after, sizeof(d->words_after));
	}
	d->n_limits = kept->n_limits;
	d->charged = kept->charged;
	d->refused = kept->refused;
	d->waited = kept->waited;
	d->overlooked = kept->overlooked;
	d->failed = kept->failed;
	d->denied = kept->denied;
}

#endif
