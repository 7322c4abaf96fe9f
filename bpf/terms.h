/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the limits of a request are to its subjects: looked up once, and copied. So are a limit's penalty and how many subjects may be
 * new to it. The agent replaces them at any time, and what is copied in the midst of that does not fit its seal
 * (include/weir/base/seal.h): it is looked up again. A limit's terms that have the seal of what was copied for the request before are
 * the same, and are not copied again.
 */
#ifndef WEIR_BPF_TERMS_H
#define WEIR_BPF_TERMS_H

#include "subjects.h"

#define TERMS_TRIES 4
#define COPIED() __asm__ volatile("" ::: "memory") /* what is checked is what was copied */

enum terms_copied {
	TERMS_NONE,
	TERMS_WHOLE,
	TERMS_TORN,
};

/* What is there is no copy of anything. */
static __always_inline void terms_forget(struct weir_terms *terms)
{
	terms->amount.seal = 0;
}

/* Is the copy that of the limit as it is now? */
static __always_inline bool terms_are_those_of(const struct weir_terms *terms, const struct weir_limit *limit)
{
	return terms->amount.seal && terms->amount.seal == WEIR_FRESH(limit->terms.amount.seal);
}

/* enum terms_copied */
__noinline int limit_copy(struct weir_terms *to, __u32 index)
{
	const struct weir_limit *limit = bpf_map_lookup_elem(&limits, &index);

	if (!to || !limit)
		return TERMS_NONE;
	if (terms_are_those_of(to, limit))
		return TERMS_WHOLE;
	*to = limit->terms;
	COPIED();
	if (weir_terms_seal(to, index) == to->amount.seal)
		return TERMS_WHOLE;
	terms_forget(to);
	return TERMS_TORN;
}

/* enum terms_copied */
__noinline int override_copy(struct weir_amount *to, __u32 index, __u64 subject)
{
	struct weir_override_key key = { .limit = index, .subject = subject };
	const struct weir_amount *amount = bpf_map_lookup_elem(&overrides, &key);

	if (!to || !amount)
		return TERMS_NONE;
	*to = *amount;
	COPIED();
	if (weir_override_seal(to, index, subject) == to->seal)
		return TERMS_WHOLE;
	to->seal = 0;
	return TERMS_TORN;
}

/* enum terms_copied */
__noinline int penalty_copy(struct weir_backoff *to, __u32 index)
{
	const struct weir_limit *limit = bpf_map_lookup_elem(&limits, &index);
	__u64 seal;

	if (!to || !limit)
		return TERMS_NONE;
	*to = limit->penalty;
	seal = limit->penalty_seal;
	COPIED();
	return weir_backoff_seal(to, index) == seal ? TERMS_WHOLE : TERMS_TORN;
}

/* enum terms_copied */
__noinline int newcomers_copy(struct decision *d)
{
	const struct weir_server *server = d ? server_of(d->server) : NULL;
	__u64 seal;

	if (!server)
		return TERMS_NONE;
	d->newcomers = server->newcomers;
	seal = server->newcomers_seal;
	COPIED();
	return weir_newcomers_seal(&d->newcomers, d->server) == seal ? TERMS_WHOLE : TERMS_TORN;
}

/* One try; known: d->subjects[n] is set already. */
static __always_inline int terms_try(struct decision *d, __u32 n, bool known)
{
	__u32 index = weir_limit_index(d->server, d->limits[n]);
	struct weir_terms *terms = &d->terms[n];
	__u64 seal = terms->amount.seal;
	int copied = limit_copy(terms, index);

	if (terms->amount.seal != seal)
		d->in_force[n].as_of = 0;
	if (!known) /* not that of an earlier request, whatever is copied */
		d->subjects[n] = copied == TERMS_WHOLE ? limit_subject(d, n) : 0;
	if (copied == TERMS_TORN)
		return copied;
	if (copied == TERMS_NONE) {
		terms_forget(terms);
		d->in_force[n].as_of = 0;
		terms->amount.flags = 0;
		terms->flags = 0;
		terms->key = 0;
		return copied;
	}
	return terms->flags & WEIR_LIMIT_OVERRIDDEN ? override_copy(&terms->amount, index, d->subjects[n]) : copied;
}

/* Sets d->terms[n]. Terms that are torn time and again are noted in d->torn. */
__noinline int terms_find(struct decision *d, __u32 n, __u32 known)
{
	int copied = TERMS_TORN;

	if (!d || n >= WEIR_MATCHES_MAX)
		return 0;
	WEIR_BARRIER(n); /* as it is: for verifiers that forget what a spilled register was compared with */
	n &= WEIR_MATCHES_MAX - 1;
	d->torn &= ~(1U << n);
#pragma GCC unroll 4
	for (int i = 0; i < TERMS_TRIES && copied == TERMS_TORN; i++)
		copied = terms_try(d, n, known);
	if (copied == TERMS_TORN)
		d->torn |= 1U << n;
	return 0;
}

/* Sets d->subjects[n], whom limit n of the request charges, and what the limit is to him. */
static __always_inline int subject_find(struct decision *d, __u32 n)
{
	return terms_find(d, n, false);
}

/* What the limit is to its subject by now. */
static __always_inline int terms_again(struct decision *d, __u32 n)
{
	return terms_find(d, n, true);
}

/* For limit n of the request; out of range: for another. */
static __always_inline const struct weir_terms *terms_of(const struct decision *d, __u32 n)
{
	return &d->terms[n & (WEIR_MATCHES_MAX - 1)];
}

#endif
