/* SPDX-License-Identifier: GPL-2.0 */
/*
 * May this request (or the records of this segment) pass? Every limit that is for it is asked, the narrowest first; a
 * request that one of them refuses gives back what it took, so that it consumes nothing anywhere.
 */
#ifndef WEIR_BPF_DECIDE_H
#define WEIR_BPF_DECIDE_H

#include "limit_ask.h"
#include "limit_ready.h"
#include "limit_undo.h"
#include "match.h"
#include "subjects.h"
#include "width.h"

/* One of those that every server may have. */
static __always_inline void limit_add(struct decision *d, enum weir_builtin_limit builtin)
{
	if (d->traits & (WEIR_SERVER_LIMITED << builtin))
		d->limits[d->n_limits++ & (WEIR_MATCHES_MAX - 1)] = builtin;
}

/* Sets d->limits to those that are for the request (or the records), the narrowest first. True: it is exempt. */
static __always_inline bool limits_find(struct decision *d, const struct weir_path *path)
{
	bool exempt;

	d->n_limits = 0;
	limit_add(d, WEIR_BUILTIN_SOURCE_AND_OBJECT);
	limit_add(d, WEIR_BUILTIN_USER);
	exempt = d->generation && match_limits(d->memory, path);
	limit_add(d, WEIR_BUILTIN_NAMESPACE);
	limit_add(d, WEIR_BUILTIN_TOTAL);
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
		if (!(terms_of(d, n)->flags & WEIR_LIMIT_WIDE_LISTS))
			continue;
		d->limits[0] = d->limits[n];
		d->n_limits = 1;
		return 0;
	}
	return 1;
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

/*
 * Asks the limits for tokens that may be there only later, until d->latest_ns. The broadest comes first, so that the time it sets is
 * the time at which the narrower one is asked: that keeps nobody else waiting.
 */
static __always_inline void ask_in_turn(struct decision *d)
{
#pragma GCC unroll 16
	for (__u32 i = 0; i < WEIR_MATCHES_MAX; i++) {
		if (i >= d->n_limits)
			break;
		ask(d, d->n_limits - 1 - i);
	}
}

/* The request (or the segment) decided last comes again: as if it had not been asked for. */
__noinline int undo_decision(struct decision *d)
{
	if (!d)
		return 0;
	each_limit(d, limit_undo);
	return seats_undo(d, false);
}

/* But for seats, which somebody else has given back. */
__noinline int undo_all_but_seats(struct decision *d)
{
	if (d)
		each_limit(d, limit_undo);
	return 0;
}

static __always_inline int charge_undo(struct decision *d, __u32 n)
{
	return d->charged >> n & 1 ? limit_undo(d, n) : 0;
}

/* A limit has refused: those that admitted get back what they gave. */
static __always_inline void decision_give_back(struct decision *d)
{
	each_limit(d, charge_undo);
	seats_undo(d, false);
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

/* The seats that the request would take. */
static __always_inline void decide_seats(struct decision *d)
{
	if (((d->traits & WEIR_SERVER_IN_FLIGHT) || d->connects) && !d->unreadable && !d->seatless) {
		seats_begin(d);
		width_find(d);
	}
}

static __always_inline int find_and_ask(struct decision *d, __u32 n)
{
	if (ask_ready(d, n))
		return 0;
	subject_find(d, n);
	return ask(d, n);
}

/* In a loop: most requests have one limit or two, and the instructions for sixteen would lie between them and what comes after. */
static __always_inline void find_and_ask_all(struct decision *d)
{
#pragma clang loop unroll(disable)
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (n >= d->n_limits)
			break;
		find_and_ask(d, n);
	}
}

/* Where there are penalties: those who do not back off are refused before any limit is asked. */
static __always_inline void decide_penalties(struct decision *d)
{
	each_limit(d, subject_find);
	each_limit(d, penalty_ask);
	if (d->refused)
		return;
	each_limit(d, ask);
	each_limit(d, penalty_note);
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
	penalties = (d->traits & WEIR_SERVER_PENALTIES) && !d->unreadable && !(d->server_flags & WEIR_SERVER_DRY_RUN);
	decide_seats(d);
	if (penalties)
		decide_penalties(d);
	else
		find_and_ask_all(d);
	d->retry_s = d->refused | d->overlooked ? retry_after(d) : 0;
	if (d->refused && !d->look)
		decision_give_back(d);
	return 0;
}

#endif
