/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request inside a server that is not made to refuse, but whose connections can be held (attach --inside hold): it passes and
 * takes its tokens, also those that are there only later. Until then its connection waits for its turn (include/weir/inside/turn.h).
 */
#ifndef WEIR_BPF_INSIDE_OWE_H
#define WEIR_BPF_INSIDE_OWE_H

#include "decide.h"
#include "inside_request.h"
#include "turns.h"

static __always_inline bool inside_owes(const struct decision *d)
{
	return (d->server_flags & WEIR_SERVER_INSIDE_HOLD) &&
	       !(d->server_flags & (WEIR_SERVER_PAUSED | WEIR_SERVER_DRY_RUN));
}

/*
 * Sets d->at_ns to when it has paid. d->overlooked: these limits are never paid, for it would take too long, or they have nothing to be
 * paid with; d->wait_ns: how long its connection is to wait for that. The other limits get what they are owed.
 */
__noinline int inside_owe(struct decision *d)
{
	if (!d)
		return 0;
	d->latest_ns = d->now_ns + WEIR_TURN_DEBT_NS;
	each_limit(d, subject_find);
	decide_seats(d);
	ask_in_turn(d);
	d->retry_s = retry_after(d);
	if (d->at_ns > d->now_ns && !d->overlooked)
		count(d->server, WEIR_INSIDE_OWED);
	return 0;
}

/* When the user is out of debt, as far as his connections wait for that. */
static __always_inline __u64 inside_turn_ns(const struct decision *d, const struct weir_server *server)
{
	__u64 wait_ns = d->at_ns - d->now_ns, longest_ns = weir_turn_longest_ns(server->hold_max_s);

	if (wait_ns < d->wait_ns)
		wait_ns = d->wait_ns;
	return d->now_ns + (wait_ns < longest_ns ? wait_ns : longest_ns);
}

static __always_inline void inside_note_turn(const struct inside_request *r, __u32 server, __u16 port, __u64 at_ns)
{
	struct weir_turn_key key;
	struct weir_turns *turns;

	turn_key(&key, server, r->peer.address, port);
	turns = turns_make(&key);
	if (turns)
		turn_note(turns, weir_turn_tag(r->record.trace.user), at_ns, r->now_ns);
}

/*
 * Notes whose turn it is when, for the request's connection and for its address. A user who is not in debt frees both; who has no
 * name is his address, and frees nobody: without one, anyone could. Only where inside_owes().
 */
__noinline int inside_take_turn(struct inside_request *r, const struct decision *d)
{
	const struct weir_server *server;
	__u64 at_ns;

	if (!r || !d || !r->peer.known)
		return 0;
	server = server_of(d->server);
	if (!server)
		return 0;
	at_ns = inside_turn_ns(d, server);
	if (at_ns <= d->now_ns && r->record.trace.by == WEIR_IDENTIFIED_BY_NOBODY)
		return 0;
	inside_note_turn(r, d->server, r->peer.port, at_ns);
	inside_note_turn(r, d->server, 0, at_ns);
	return 0;
}

#endif
