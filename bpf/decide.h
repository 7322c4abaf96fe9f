/* SPDX-License-Identifier: GPL-2.0 */
/*
 * May this request (or the records of this segment) pass? Every limit that is for it is asked, the narrowest first; a
 * request that one of them refuses gives back what it took, so that it consumes nothing anywhere.
 */
#ifndef WEIR_BPF_DECIDE_H
#define WEIR_BPF_DECIDE_H

#include "buckets.h"
#include "in_flight.h"
#include "match.h"
#include "names.h"
#include "penalty.h"
#include "subjects.h"
#include "work.h"

/* Everything there is to one limit of one request. The pointers are of this very packet, in one program run. */
struct charge {
	struct weir_limit *limit;
	struct weir_amount *amount;
	__u32 index;
};

/* One of those that every server may have. */
static __always_inline void limit_add(struct work *w, enum weir_limit_type type)
{
	if (w->traits & (WEIR_SERVER_LIMITED << type))
		w->limits[w->n_limits++ & (WEIR_MATCHES_MAX - 1)] = type;
}

/* Sets w->limits to those that are for the request (or the records), the narrowest first. True: it is exempt. */
static __always_inline bool limits_find(struct work *w)
{
	bool exempt;

	w->n_limits = 0;
	limit_add(w, WEIR_LIMIT_SOURCE_AND_OBJECT);
	limit_add(w, WEIR_LIMIT_USER);
	exempt = w->generation && match_limits(w->hook);
	limit_add(w, WEIR_LIMIT_NAMESPACE);
	limit_add(w, WEIR_LIMIT_TOTAL);
	return exempt;
}

/* A health check is under no limit but its priority level, where there is one. True: there is none. */
__noinline int health_find(__u32 hook)
{
	struct work *w = work_of(hook);
	struct weir_limit *limit;
	__u32 index;

	if (!w)
		return 1;
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (n >= w->n_limits)
			break;
		index = weir_limit_index(w->server, w->limits[n]);
		limit = bpf_map_lookup_elem(&limits, &index);
		if (!limit || !(limit->flags & WEIR_LIMIT_SEATS))
			continue;
		w->limits[0] = w->limits[n];
		w->n_limits = 1;
		return 0;
	}
	return 1;
}

/* Limit n has been asked: it has taken what it was asked for, or would do so in wait_ns. */
static __always_inline void limit_asked(struct work *w, const struct charge *c, __u32 n, bool admits, __u64 wait_ns)
{
	bool dry_run = c->limit->flags & WEIR_LIMIT_DRY_RUN;

	limit_count(w, c->index, c->limit, admits ? w->asked : 0, !admits && wait_ns ? w->asked_anew : 0);
	if (admits) {
		w->charged |= 1U << n;
		w->waited |= wait_ns ? 1U << n : 0;
		w->at_ns += wait_ns;
	} else if (wait_ns && dry_run) {
		w->overlooked |= 1U << n;
		if (wait_ns > w->overlooked_ns)
			w->overlooked_ns = wait_ns;
	} else if (wait_ns) {
		w->refused |= 1U << n;
		w->waits_ns[n & (WEIR_MATCHES_MAX - 1)] = wait_ns;
		if (wait_ns > w->wait_ns)
			w->wait_ns = wait_ns;
	}
}

/* There is no place in a table for what limit n would have to keep. */
static __always_inline void no_room(struct work *w, __u32 n, enum weir_reason reason)
{
	count(w->server, reason);
	if (!(w->server_flags & WEIR_SERVER_FULL_REFUSES))
		return;
	w->refused |= 1U << n;
	w->waits_ns[n & (WEIR_MATCHES_MAX - 1)] = 0;
}

/* A function of its own, whose stack buckets do not need. */
static __noinline int in_flight_ask(struct work *w, const struct charge *c, __u32 n)
{
	enum in_flight_outcome outcome;

	if (w->unreadable)
		return 0;
	/* Penalties are kept with the buckets. */
	if (limit_penalises(c->limit) && !kept_seen(w, n, c->index))
		return 1;
	outcome = in_flight_take(w, c->limit, c->amount, c->index, w->subjects[n], w->look || w->refused);
	if (outcome == IN_FLIGHT_NO_ROOM)
		no_room(w, n, WEIR_IN_FLIGHT_MAP_FULL);
	else
		limit_asked(w, c, n, outcome == IN_FLIGHT_TAKEN && !w->refused && !w->look,
			    outcome == IN_FLIGHT_REFUSED ? IN_FLIGHT_RETRY_NS : 0);
	return 0;
}

/* What limit_ask() says. */
enum limit_said {
	LIMIT_ASKED,
	LIMIT_NO_BUCKET, /* the subject, w->subjects[n], has none */
	LIMIT_CHANGED,	 /* its bucket, by someone else: to be asked again, with what there is by then */
};

/* Takes tokens of the bucket of limit n's subject, unless they would be given back at once. */
static __always_inline int rate_ask(struct work *w, struct charge *c, __u32 n)
{
	struct weir_kept *kept = kept_seen(w, n, c->index);
	__u64 word;
	int taken;

	if (!kept)
		return LIMIT_NO_BUCKET;
	/* Someone may know a newer rate already: it is looked up again, before the bucket is taken as one that nobody knows. */
	word = WEIR_FRESH(kept->bucket.word);
	if (w->tries == WEIR_BUCKET_TRIES && word && !weir_bucket_rate(word, &c->amount->history))
		return LIMIT_CHANGED;
	ask_begin(w, w->at_ns, w->latest_ns - w->at_ns, w->weight);
	w->ask.look |= !!w->refused;
	taken = bucket_try(&kept->bucket, &c->amount->history, &w->ask);
	if (taken == WEIR_LOST_RACE) {
		if (w->tries > 1)
			return LIMIT_CHANGED;
		count(w->server, WEIR_LIMIT_CONTENDED);
		w->ask.wait_ns = WEIR_NS_PER_S;
	}
	if (taken == WEIR_TAKEN && w->asked)
		add(&kept->bucket.passed, w->asked);
	bucket_count_refused(w, c->limit, &kept->bucket, w->ask.wait_ns ? w->asked_anew : 0);
	limit_asked(w, c, n, taken == WEIR_TAKEN, w->ask.wait_ns);
	return LIMIT_ASKED;
}

/*
 * Asks limit n of the request and, unless another one has refused before, takes w->weight tokens of it: at w->at_ns, which
 * it moves to when they are there, if that is not after w->latest_ns. Notes a refusal in w->refused and the longest wait in
 * w->wait_ns; notes in w->charged what was taken. Says enum limit_said.
 */
__noinline int limit_ask(struct work *w, __u32 n)
{
	struct charge c;

	if (!w || n >= WEIR_MATCHES_MAX)
		return 0;
	WEIR_BARRIER(n); /* as it is: for verifiers that forget what a spilled register was compared with */
	n &= WEIR_MATCHES_MAX - 1;
	c.index = weir_limit_index(w->server, w->limits[n]);
	c.limit = bpf_map_lookup_elem(&limits, &c.index);
	if (!c.limit)
		return 0;
	if (!w->subjects[n] && c.limit->key)
		return 0;
	c.amount = amount_of(c.limit, c.index, w->subjects[n]);
	if (!c.amount)
		return 0;
	return c.limit->kind == WEIR_LIMIT_IN_FLIGHT ? in_flight_ask(w, &c, n) : rate_ask(w, &c, n);
}

static __always_inline int ask_tries(struct work *w, __u32 n)
{
	int said = LIMIT_CHANGED;

#pragma GCC unroll 8
	for (__u32 left = WEIR_BUCKET_TRIES; left && said == LIMIT_CHANGED; left--) {
		w->tries = left;
		said = limit_ask(w, n);
	}
	return said;
}

static __always_inline void make_tries(struct work *w, __u32 n)
{
#pragma GCC unroll 8
	for (__u32 left = WEIR_BUCKET_TRIES; left; left--) {
		w->tries = left;
		if (!bucket_make(w->hook, n))
			break;
	}
}

static __always_inline int ask(struct work *w, __u32 n)
{
	if (ask_tries(w, n) != LIMIT_NO_BUCKET)
		return 0;
	make_tries(w, n);
	if (ask_tries(w, n) == LIMIT_NO_BUCKET)
		no_room(w, n, WEIR_BUCKET_MAP_FULL);
	return 0;
}

/* Gives back the tokens that limit_ask() took, or what it counted. */
static __always_inline void rate_undo(struct work *w, struct charge *c, __u32 n)
{
	bool charged = w->charged >> n & 1, refused = (w->refused | w->waited | w->overlooked) >> n & 1;
	struct weir_kept *kept = NULL;
	int done = !charged;

	for (int i = 0; i < WEIR_BUCKET_TRIES; i++) {
		kept = kept_of(c->index, w->subjects[n]);
		if (!kept || done)
			break;
		done = bucket_give_back_try(&kept->bucket, &c->amount->history, w->weight);
	}
	if (!kept)
		return;
	if (!done)
		count(w->server, WEIR_LIMIT_CONTENDED);
	if (charged && w->asked)
		add(&kept->bucket.passed, -(__u64)w->asked);
	bucket_count_refused(w, c->limit, &kept->bucket, refused ? -(__u64)w->asked_anew : 0);
}

/* Undoes what was done at limit n when it admitted, or when it refused. Places: places_undo(). */
__noinline int limit_undo(struct work *w, __u32 n)
{
	__u32 asked = 0;
	struct charge c;

	if (!w || n >= WEIR_MATCHES_MAX)
		return 0;
	asked = (w->charged | w->refused | w->overlooked) >> n & 1;
	if (!asked)
		return 0;
	c.index = weir_limit_index(w->server, w->limits[n]);
	c.limit = bpf_map_lookup_elem(&limits, &c.index);
	if (!c.limit)
		return 0;
	c.amount = amount_of(c.limit, c.index, w->subjects[n]);
	if (c.amount && c.limit->kind == WEIR_LIMIT_RATE)
		rate_undo(w, &c, n);
	limit_count(w, c.index, c.limit, w->charged >> n & 1 ? -(__u64)w->asked : 0,
		    (w->refused | w->overlooked) >> n & 1 ? -(__u64)w->asked_anew : 0);
	if (w->failed >> n & 1)
		penalty_undo(w, n);
	w->charged &= ~(1U << n);
	w->refused &= ~(1U << n);
	w->waited &= ~(1U << n);
	w->overlooked &= ~(1U << n);
	w->failed &= ~(1U << n);
	w->penalised &= ~(1U << n);
	return 0;
}

/* Calls a function for each limit of the request. Without a loop, which older verifiers would have to be shown the end of. */
static __always_inline void each_limit(struct work *w, int (*call)(struct work *w, __u32 n))
{
#pragma GCC unroll 16
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (n >= w->n_limits)
			break;
		call(w, n);
	}
}

/* The request (or the segment) decided last comes again: as if it had not been asked for. */
__noinline int undo_decision(struct work *w)
{
	if (!w)
		return 0;
	each_limit(w, limit_undo);
	return places_undo(w, false);
}

static __always_inline int charge_undo(struct work *w, __u32 n)
{
	return w->charged >> n & 1 ? limit_undo(w, n) : 0;
}

/* A limit has refused: those that admitted get back what they gave. */
static __always_inline void decision_give_back(struct work *w)
{
	each_limit(w, charge_undo);
	places_undo(w, false);
}

/* What the decision means to the subject of limit n, who was penalised, or is from now on. */
static __always_inline int penalty_note(struct work *w, __u32 n)
{
	if (!w->refused)
		return w->look ? 0 : penalty_end(w, n);
	return w->refused >> n & 1 ? penalty_begin(w, n) : 0;
}

/*
 * Decides what w->limits is for. Sets w->refused (a bit for each limit that refused, 0: the request may pass) and
 * w->retry_s. With w->look it says what it would decide, and leaves everything as it is.
 */
__noinline int decide(struct __sk_buff *skb, struct work *w)
{
	bool penalties;

	if (!w)
		return 0;
	each_limit(w, subject_find);
	penalties = (w->traits & WEIR_SERVER_PENALTIES) && !w->unreadable && !(w->server_flags & WEIR_SERVER_DRY_RUN);
	if ((w->traits & WEIR_SERVER_IN_FLIGHT) && !w->unreadable) {
		places_begin(w);
		width_find(w->hook);
	}
	/* Those who do not back off are refused before any limit is asked. */
	if (penalties)
		each_limit(w, penalty_ask);
	if (!w->refused) {
		each_limit(w, ask);
		if (penalties)
			each_limit(w, penalty_note);
		if (!w->look)
			remember_names(skb, w);
	}
	w->retry_s = weir_retry_after_s(w->refused ? w->wait_ns : w->overlooked_ns);
	if (w->refused)
		decision_give_back(w);
	return 0;
}

#endif
