/* SPDX-License-Identifier: GPL-2.0 */
/* What one limit of a request gave, counted or began goes back. */
#ifndef WEIR_BPF_LIMIT_UNDO_H
#define WEIR_BPF_LIMIT_UNDO_H

#include "buckets.h"
#include "decision.h"
#include "penalty.h"

/* Gives back the tokens that limit_ask() took, or what it counted. */
static __always_inline void rate_undo(struct decision *d, __u32 n)
{
	__u32 index = weir_limit_index(d->server, d->limits[n & (WEIR_MATCHES_MAX - 1)]);
	const struct weir_terms *terms = terms_of(d, n);
	bool charged = d->charged >> n & 1, refused = (d->refused | d->waited | d->overlooked) >> n & 1;
	struct weir_kept *kept = NULL;
	int done = !charged;

	for (int i = 0; i < WEIR_BUCKET_TRIES; i++) {
		kept = kept_of(index, d->subjects[n]);
		if (!kept || done)
			break;
		done = bucket_give_back_try(&kept->bucket, &terms->amount.history, d->subjects[n], d->weight);
		if (!done)
			terms_again(d, n);
	}
	if (!kept)
		return;
	if (!done)
		count(d->server, WEIR_LIMIT_CONTENDED);
	if (charged && d->asked)
		add(&kept->bucket.passed, -(__u64)d->asked);
	bucket_count_refused(d, terms, &kept->bucket, refused ? -(__u64)d->asked_anew : 0);
}

/* Undoes what was done at limit n when it admitted, or when it refused. Seats: seats_undo(). */
__noinline int limit_undo(struct decision *d, __u32 n)
{
	const struct weir_terms *terms;
	__u32 asked = 0;

	if (!d || n >= WEIR_MATCHES_MAX)
		return 0;
	asked = (d->charged | d->refused | d->overlooked) >> n & 1;
	if (!asked)
		return 0;
	WEIR_BARRIER(n);
	n &= WEIR_MATCHES_MAX - 1;
	terms = terms_of(d, n);
	if (terms->amount.flags & WEIR_LIMIT_SET && !weir_limit_has_seats(terms->kind) &&
	    !((d->denied | d->torn) >> n & 1))
		rate_undo(d, n);
	if (d->failed >> n & 1)
		penalty_undo(d, n);
	d->charged &= ~(1U << n);
	d->refused &= ~(1U << n);
	d->waited &= ~(1U << n);
	d->overlooked &= ~(1U << n);
	d->failed &= ~(1U << n);
	d->penalised &= ~(1U << n);
	d->denied &= ~(1U << n);
	return 0;
}

#endif
