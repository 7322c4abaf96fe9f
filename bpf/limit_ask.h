/* SPDX-License-Identifier: GPL-2.0 */
/* One limit of a request is asked: for a token of its subject's bucket, or for a seat. */
#ifndef WEIR_BPF_LIMIT_ASK_H
#define WEIR_BPF_LIMIT_ASK_H

#include "buckets.h"
#include "decision.h"
#include "in_flight.h"
#include "penalty.h"

/* What limit_ask() says. */
enum limit_said {
	LIMIT_ASKED,
	LIMIT_NO_BUCKET, /* the subject, d->subjects[n], has none */
	LIMIT_CHANGED,	 /* its bucket, by someone else: to be asked again, with what there is by then */
};

/* Nothing is refused, and what a limit has not is owed: a request inside a server whose connections are held (inside_owe.h). */
static __always_inline bool is_owed(const struct decision *d)
{
	return d->latest_ns > d->now_ns && !d->unreadable;
}

/* Limit n has been asked: it has taken what it was asked for, or would do so in wait_ns. */
static __always_inline void limit_asked(struct decision *d, __u32 n, bool admits, __u64 wait_ns)
{
	bool dry_run = terms_of(d, n)->flags & WEIR_LIMIT_DRY_RUN;

	if (admits) {
		d->charged |= 1U << n;
		d->waited |= wait_ns ? 1U << n : 0;
		d->at_ns += wait_ns;
	} else if (wait_ns && (dry_run || is_owed(d))) {
		d->overlooked |= 1U << n;
		if (wait_ns > d->overlooked_ns)
			d->overlooked_ns = wait_ns;
		if (!dry_run)
			wait_for(d, n, wait_ns);
	} else if (wait_ns) {
		d->refused |= 1U << n;
		d->waits_ns[n & (WEIR_MATCHES_MAX - 1)] = wait_ns;
		wait_for(d, n, wait_ns);
	}
}

/* There is no place in a table for what limit n would have to keep. */
static __always_inline void no_room(struct decision *d, __u32 n, enum weir_reason reason)
{
	count(d->server, reason);
	if (!(d->server_flags & WEIR_SERVER_FULL_REFUSES) || terms_of(d, n)->flags & WEIR_LIMIT_DRY_RUN)
		return;
	d->refused |= 1U << n;
	d->waits_ns[n & (WEIR_MATCHES_MAX - 1)] = 0;
	wait_for(d, n, 1);
}

/* What the limit never lets pass needs no bucket, and no seat. The answer names it, unless it is in a dry run. */
static __always_inline int deny(struct decision *d, __u32 n)
{
	d->denied |= 1U << n;
	limit_asked(d, n, false, WEIR_NEVER_NS);
	if (d->refused >> n & 1)
		d->slowest = d->limits[n & (WEIR_MATCHES_MAX - 1)];
	return LIMIT_ASKED;
}

/* Functions of their own ask for seats and for tokens: the verifier reads them once, and neither needs the other's stack. */
__noinline int in_flight_ask(struct decision *d, __u32 n)
{
	enum in_flight_outcome outcome;
	__u32 index;

	if (!d || n >= WEIR_MATCHES_MAX || d->unreadable || d->seatless)
		return LIMIT_ASKED;
	WEIR_BARRIER(n); /* as it is: for verifiers that forget what a spilled register was compared with */
	n &= WEIR_MATCHES_MAX - 1;
	index = weir_limit_index(d->server, d->limits[n]);
	/* Penalties are kept with the buckets. */
	if (limit_penalises(terms_of(d, n)) && !kept_seen(d, n, index))
		return LIMIT_NO_BUCKET;
	outcome = in_flight_take(d, n, index, d->look || d->refused);
	if (outcome == IN_FLIGHT_NO_ROOM)
		no_room(d, n, WEIR_IN_FLIGHT_MAP_FULL);
	else
		limit_asked(d, n, outcome == IN_FLIGHT_TAKEN && !d->refused && !d->look,
			    outcome == IN_FLIGHT_REFUSED ? IN_FLIGHT_RETRY_NS : 0);
	return LIMIT_ASKED;
}

#define CONTENDED_NS WEIR_NS_PER_S /* nobody knows when it will be quieter */

/* How long it may take until the tokens are there; for a limit in a dry run nobody waits. */
static __always_inline __u64 longest_wait(const struct decision *d, const struct weir_terms *terms)
{
	return terms->flags & WEIR_LIMIT_DRY_RUN ? 0 : d->latest_ns - d->at_ns;
}

/* Takes tokens of the bucket of limit n's subject, unless they would be given back at once. */
__noinline int rate_ask(struct decision *d, __u32 n)
{
	const struct weir_terms *terms;
	struct weir_kept *kept;
	int taken;

	if (!d || n >= WEIR_MATCHES_MAX)
		return LIMIT_ASKED;
	WEIR_BARRIER(n);
	n &= WEIR_MATCHES_MAX - 1;
	terms = terms_of(d, n);
	kept = kept_seen(d, n, weir_limit_index(d->server, d->limits[n]));
	if (!kept)
		return LIMIT_NO_BUCKET;
	ask_begin(d, d->subjects[n], d->at_ns, longest_wait(d, terms), d->weight);
	d->ask.look |= !!d->refused;
	taken = bucket_try(&kept->bucket, &terms->amount.history, &d->ask);
	if (taken == WEIR_LOST_RACE) {
		if (d->tries > 1)
			return LIMIT_CHANGED;
		count(d->server, WEIR_LIMIT_CONTENDED);
		d->ask.wait_ns = CONTENDED_NS;
	}
	if (taken == WEIR_TAKEN && d->asked)
		add(&kept->bucket.passed, d->asked);
	bucket_count_refused(d, terms, &kept->bucket, d->ask.wait_ns ? d->asked_anew : 0);
	limit_asked(d, n, taken == WEIR_TAKEN, d->ask.wait_ns);
	return LIMIT_ASKED;
}

/* The limit is replaced time and again. */
static __always_inline int torn(struct decision *d, __u32 n)
{
	count(d->server, WEIR_LIMIT_CONTENDED);
	limit_asked(d, n, false, CONTENDED_NS);
	return LIMIT_ASKED;
}

/*
 * Asks limit n of the request and, unless another one has refused before, takes d->weight tokens of it: at d->at_ns, which
 * it moves to when they are there, if that is not after d->latest_ns. Notes a refusal in d->refused and the longest wait in
 * d->wait_ns; notes in d->charged what was taken. Says enum limit_said.
 */
static __always_inline int limit_ask(struct decision *d, __u32 n)
{
	const struct weir_terms *terms;

	WEIR_BARRIER(n); /* addresses are made anew: what is kept from one try to the next would not fit the stack */
	n &= WEIR_MATCHES_MAX - 1;
	terms = terms_of(d, n);
	if (d->torn >> n & 1)
		return torn(d, n);
	if (!(terms->amount.flags & WEIR_LIMIT_SET) || (!d->subjects[n] && terms->key))
		return LIMIT_ASKED;
	if (terms->amount.flags & WEIR_LIMIT_DENY)
		return deny(d, n);
	return weir_limit_has_seats(terms->kind) ? in_flight_ask(d, n) : rate_ask(d, n);
}

static __always_inline int ask_tries(struct decision *d, __u32 n)
{
	int said = LIMIT_CHANGED;

	d->ask.forgotten = 0;
#pragma clang loop unroll(disable)
	for (__u32 left = WEIR_BUCKET_TRIES; left && said == LIMIT_CHANGED; left--) {
		d->tries = left;
		said = limit_ask(d, n);
		if (said == LIMIT_CHANGED)
			terms_again(d, n);
	}
	return said;
}

static __always_inline void make_tries(struct decision *d, __u32 n)
{
	d->ask.forgotten = 0;
#pragma GCC unroll 8
	for (__u32 left = WEIR_BUCKET_TRIES; left; left--) {
		d->tries = left;
		if (!bucket_make(d->memory, n))
			break;
	}
}

/* A limit with penalties refuses who has shown that the source is its own; from then on the penalty refuses its SYNs. */
static __always_inline bool waits_for_proof(const struct decision *d, __u32 n)
{
	return d->unproven && limit_penalises(terms_of(d, n)) && !(terms_of(d, n)->amount.flags & WEIR_LIMIT_DENY);
}

/* The verifier reads it once, not once for each limit of a request. */
__noinline int ask(struct decision *d, __u32 n)
{
	if (!d || n >= WEIR_MATCHES_MAX)
		return 0;
	WEIR_BARRIER(n);
	n &= WEIR_MATCHES_MAX - 1;
	if (waits_for_proof(d, n))
		return 0;
	if (ask_tries(d, n) != LIMIT_NO_BUCKET)
		return 0;
	make_tries(d, n);
	if (ask_tries(d, n) == LIMIT_NO_BUCKET)
		no_room(d, n, WEIR_BUCKET_MAP_FULL);
	return 0;
}

#endif
