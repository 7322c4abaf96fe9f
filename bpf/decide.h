/* SPDX-License-Identifier: GPL-2.0 */
/*
 * May this request (or the records of this segment) pass? Every limit that is for it is asked, the narrowest first; a
 * request that one of them refuses gives back what it took, so that it consumes nothing anywhere.
 */
#ifndef WEIR_BPF_DECIDE_H
#define WEIR_BPF_DECIDE_H

#include "buckets.h"
#include "decision.h"
#include "in_flight.h"
#include "match.h"
#include "penalty.h"
#include "subjects.h"
#include "width.h"

/* One of those that every server may have. */
static __always_inline void limit_add(struct decision *d, enum weir_limit_type type)
{
	if (d->traits & (WEIR_SERVER_LIMITED << type))
		d->limits[d->n_limits++ & (WEIR_MATCHES_MAX - 1)] = type;
}

/* Sets d->limits to those that are for the request (or the records), the narrowest first. True: it is exempt. */
static __always_inline bool limits_find(struct decision *d, const struct weir_path *path)
{
	bool exempt;

	d->n_limits = 0;
	limit_add(d, WEIR_LIMIT_SOURCE_AND_OBJECT);
	limit_add(d, WEIR_LIMIT_USER);
	exempt = d->generation && match_limits(d->memory, path);
	limit_add(d, WEIR_LIMIT_NAMESPACE);
	limit_add(d, WEIR_LIMIT_TOTAL);
	return exempt;
}

/* A health check is under no limit but its priority level, where there is one. True: there is none. */
__noinline int health_find(struct decision *d)
{
	if (!d)
		return 1;
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (n >= d->n_limits)
			break;
		subject_find(d, n);
		if (!(terms_of(d, n)->flags & WEIR_LIMIT_SEATS))
			continue;
		d->limits[0] = d->limits[n];
		d->n_limits = 1;
		return 0;
	}
	return 1;
}

/* Limit n has been asked: it has taken what it was asked for, or would do so in wait_ns. */
static __always_inline void limit_asked(struct decision *d, __u32 n, bool admits, __u64 wait_ns)
{
	bool dry_run = terms_of(d, n)->flags & WEIR_LIMIT_DRY_RUN;

	if (admits) {
		d->charged |= 1U << n;
		d->waited |= wait_ns ? 1U << n : 0;
		d->at_ns += wait_ns;
	} else if (wait_ns && dry_run) {
		d->overlooked |= 1U << n;
		if (wait_ns > d->overlooked_ns)
			d->overlooked_ns = wait_ns;
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

/* What the limit never lets pass needs no bucket, and no place. The answer names it, unless it is in a dry run. */
static __always_inline int deny(struct decision *d, __u32 n)
{
	d->denied |= 1U << n;
	limit_asked(d, n, false, WEIR_NEVER_NS);
	if (d->refused >> n & 1)
		d->slowest = d->limits[n & (WEIR_MATCHES_MAX - 1)];
	return 0;
}

/* A function of its own, whose stack buckets do not need. */
static __noinline int in_flight_ask(struct decision *d, __u32 n, __u32 index)
{
	enum in_flight_outcome outcome;

	if (d->unreadable || d->placeless)
		return 0;
	/* Penalties are kept with the buckets. */
	if (limit_penalises(terms_of(d, n)) && !kept_seen(d, n, index))
		return 1;
	outcome = in_flight_take(d, n, index, d->look || d->refused);
	if (outcome == IN_FLIGHT_NO_ROOM)
		no_room(d, n, WEIR_IN_FLIGHT_MAP_FULL);
	else
		limit_asked(d, n, outcome == IN_FLIGHT_TAKEN && !d->refused && !d->look,
			    outcome == IN_FLIGHT_REFUSED ? IN_FLIGHT_RETRY_NS : 0);
	return 0;
}

/* What limit_ask() says. */
enum limit_said {
	LIMIT_ASKED,
	LIMIT_NO_BUCKET, /* the subject, d->subjects[n], has none */
	LIMIT_CHANGED,	 /* its bucket, by someone else: to be asked again, with what there is by then */
};

#define CONTENDED_NS WEIR_NS_PER_S /* nobody knows when it will be quieter */

/* Does the request know the rate under which the bucket was written? */
static __always_inline bool rate_is_known(const struct weir_kept *kept, const struct weir_terms *terms)
{
	__u64 word = WEIR_FRESH(kept->bucket.word);

	return !(word & WEIR_GENERATIONS) || weir_bucket_rate(word, &terms->amount.history);
}

/* Looks the limit up again. True: it has another rate by now. */
static __always_inline bool terms_changed(struct decision *d, __u32 n)
{
	__u32 generation = terms_of(d, n)->amount.history.rates[0].generation;

	terms_again(d, n);
	return d->torn >> n & 1 || terms_of(d, n)->amount.history.rates[0].generation != generation;
}

/* Takes tokens of the bucket of limit n's subject, unless they would be given back at once. */
static __always_inline int rate_ask(struct decision *d, __u32 n, __u32 index)
{
	const struct weir_terms *terms = terms_of(d, n);
	struct weir_kept *kept = kept_seen(d, n, index);
	int taken;

	if (!kept)
		return LIMIT_NO_BUCKET;
	/* Someone may know a newer rate already: it is looked up again, before the bucket is taken as one that nobody knows. */
	if (d->tries > 1 && !rate_is_known(kept, terms) && terms_changed(d, n))
		return LIMIT_CHANGED;
	ask_begin(d, d->subjects[n], d->at_ns, d->latest_ns - d->at_ns, d->weight);
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
__noinline int limit_ask(struct decision *d, __u32 n)
{
	const struct weir_terms *terms;
	__u32 index;

	if (!d || n >= WEIR_MATCHES_MAX)
		return 0;
	WEIR_BARRIER(n); /* as it is: for verifiers that forget what a spilled register was compared with */
	n &= WEIR_MATCHES_MAX - 1;
	if (d->torn >> n & 1)
		return torn(d, n);
	terms = terms_of(d, n);
	if (!(terms->amount.flags & WEIR_LIMIT_SET) || (!d->subjects[n] && terms->key))
		return 0;
	if (terms->amount.flags & WEIR_LIMIT_DENY)
		return deny(d, n);
	index = weir_limit_index(d->server, d->limits[n]);
	return weir_limit_has_places(terms->kind) ? in_flight_ask(d, n, index) : rate_ask(d, n, index);
}

static __always_inline int ask_tries(struct decision *d, __u32 n)
{
	int said = LIMIT_CHANGED;

#pragma GCC unroll 8
	for (__u32 left = WEIR_BUCKET_TRIES; left && said == LIMIT_CHANGED; left--) {
		d->tries = left;
		said = limit_ask(d, n);
	}
	return said;
}

static __always_inline void make_tries(struct decision *d, __u32 n)
{
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

static __always_inline int ask(struct decision *d, __u32 n)
{
	if (waits_for_proof(d, n))
		return 0;
	if (ask_tries(d, n) != LIMIT_NO_BUCKET)
		return 0;
	make_tries(d, n);
	if (ask_tries(d, n) == LIMIT_NO_BUCKET)
		no_room(d, n, WEIR_BUCKET_MAP_FULL);
	return 0;
}

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
		if (!rate_is_known(kept, terms))
			terms_again(d, n);
		done = bucket_give_back_try(&kept->bucket, &terms->amount.history, d->subjects[n], d->weight);
	}
	if (!kept)
		return;
	if (!done)
		count(d->server, WEIR_LIMIT_CONTENDED);
	if (charged && d->asked)
		add(&kept->bucket.passed, -(__u64)d->asked);
	bucket_count_refused(d, terms, &kept->bucket, refused ? -(__u64)d->asked_anew : 0);
}

/* Undoes what was done at limit n when it admitted, or when it refused. Places: places_undo(). */
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
	if (terms->amount.flags & WEIR_LIMIT_SET && !weir_limit_has_places(terms->kind) &&
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

/* Calls a function for each limit of the request. Without a loop, which older verifiers would have to be shown the end of. */
static __always_inline void each_limit(struct decision *d, int (*call)(struct decision *d, __u32 n))
{
#pragma GCC unroll 16
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (n >= d->n_limits)
			break;
		call(d, n);
	}
}

/* The request (or the segment) decided last comes again: as if it had not been asked for. */
__noinline int undo_decision(struct decision *d)
{
	if (!d)
		return 0;
	each_limit(d, limit_undo);
	return places_undo(d, false);
}

static __always_inline int charge_undo(struct decision *d, __u32 n)
{
	return d->charged >> n & 1 ? limit_undo(d, n) : 0;
}

/* A limit has refused: those that admitted get back what they gave. */
static __always_inline void decision_give_back(struct decision *d)
{
	each_limit(d, charge_undo);
	places_undo(d, false);
}

/* What the decision means to the subject of limit n, who was penalised, or is from now on. */
static __always_inline int penalty_note(struct decision *d, __u32 n)
{
	if (!d->refused)
		return d->look ? 0 : penalty_end(d, n);
	return (d->refused & ~d->denied) >> n & 1 ? penalty_begin(d, n) : 0;
}

/* Seconds, for a Retry-After; 0: never. */
static __always_inline __u32 retry_after(const struct decision *d)
{
	const struct weir_server *server;
	__u32 seconds;

	if (d->denied & (d->refused ?: d->overlooked))
		return 0;
	seconds = weir_retry_after_s(d->refused ? d->wait_ns : d->overlooked_ns);
	server = server_of(d->server);
	return server && server->retry_max_s && seconds > server->retry_max_s ? server->retry_max_s : seconds;
}

/*
 * Decides what d->limits is for. Sets d->refused (a bit for each limit that refused, 0: the request may pass) and
 * d->retry_s. With d->look it says what it would decide, and leaves everything as it is.
 */
__noinline int decide(struct decision *d)
{
	bool penalties;

	if (!d)
		return 0;
	each_limit(d, subject_find);
	penalties = (d->traits & WEIR_SERVER_PENALTIES) && !d->unreadable && !(d->server_flags & WEIR_SERVER_DRY_RUN);
	if (((d->traits & WEIR_SERVER_IN_FLIGHT) || d->connects) && !d->unreadable && !d->placeless) {
		places_begin(d);
		width_find(d);
	}
	/* Those who do not back off are refused before any limit is asked. */
	if (penalties)
		each_limit(d, penalty_ask);
	if (!d->refused) {
		each_limit(d, ask);
		if (penalties)
			each_limit(d, penalty_note);
	}
	d->retry_s = retry_after(d);
	if (d->refused)
		decision_give_back(d);
	return 0;
}

#endif
