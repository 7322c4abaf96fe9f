/* SPDX-License-Identifier: GPL-2.0 */
/* What becomes of a request inside a server, once all that there is to be read of it has been: the engine of the packets decides. */
#ifndef WEIR_BPF_INSIDE_DECIDE_H
#define WEIR_BPF_INSIDE_DECIDE_H

#include "weir/inside/share.h"

#include "inside_memory.h"

#include "box.h"
#include "inside_owe.h"
#include "inside_ready.h"
#include "inside_tell.h"
#include "sample.h"
#include "tally.h"

/* Nothing is refused then, for lack of room neither. */
#define INSIDE_REFUSES_NOT (WEIR_SERVER_PAUSED | WEIR_SERVER_DRY_RUN | WEIR_SERVER_INSIDE_HOLD)

static __always_inline __u32 inside_flags(const struct weir_server *server, const struct inside_request *r)
{
	bool limits = r->answers || (server->flags & WEIR_SERVER_INSIDE_HOLD);
	__u32 flags = server->flags | (limits ? 0 : WEIR_SERVER_DRY_RUN);

	return flags & INSIDE_REFUSES_NOT ? flags & ~(WEIR_SERVER_FULL_REFUSES | WEIR_SERVER_FULL_KNOWN) : flags;
}

/* A user who is named is a group of one. */
WEIR_SELDOM int inside_join_user(struct inside_piece *piece)
{
	const __u32 *bit;

	piece->known.server = piece->decision.server;
	piece->known.subject = piece->decision.identity.user;
	bit = bpf_map_lookup_elem(&groups, &piece->known);
	if (bit)
		weir_groups_add(&piece->decision.identity.groups, *bit);
	return 0;
}

WEIR_SELDOM int inside_clear_seats(struct decision *d)
{
	__builtin_memset(d->seats, 0, sizeof(d->seats));
	return 0;
}

/* As weir_list_of() has it of a path. */
static __always_inline __u64 inside_list(const struct weir_attributes *a)
{
	return a->verb == WEIR_VERB_LIST ? weir_pair(weir_pair(a->group, a->resource), a->namespace) : 0;
}

/* What the engine is asked. */
static __always_inline void inside_question(struct inside_piece *piece, const struct inside_request *r, __u32 server,
					    const struct weir_server *settings)
{
	const struct weir_trace *t = &r->record.trace;
	struct decision *d = &piece->decision;

	d->server = server;
	d->server_flags = inside_flags(settings, r);
	d->traits = settings->traits;
	d->generation = settings->generation;
	d->weight = d->asked = d->asked_anew = 1;
	d->look = d->unreadable = d->connects = d->unproven = 0;
	d->request = 0;
	d->event_key = WEIR_REASON_NONE;
	d->now_ns = d->at_ns = d->latest_ns = r->now_ns;
	d->identity = (struct weir_identity){
		.user = t->user,
		.namespace = t->attributes.namespace,
		.by = t->by,
		.groups = r->groups,
	};
	d->source = r->address;
	__builtin_memcpy(d->address, r->peer.address, sizeof(d->address));
	d->attributes = t->attributes;
	d->n_limits = 0;
	decision_start(d);
	d->seatless = !r->ends;
	if (WEIR_UNLIKELY(!d->seatless))
		inside_clear_seats(d);
	d->list_of = inside_list(&d->attributes);
	if (WEIR_UNLIKELY(d->server_flags & WEIR_SERVER_KNOWS_USERS))
		inside_join_user(piece);
}

static __always_inline enum weir_reason inside_ask(struct inside_piece *piece, const struct weir_server *settings,
						   bool health)
{
	struct decision *d = &piece->decision;

	if (weir_identity_exempt(&d->identity, &settings->groups) || limits_find(d, &piece->path))
		return WEIR_EXEMPT;
	if (WEIR_UNLIKELY(health) && health_find(d))
		return WEIR_EXEMPT;
	if (WEIR_UNLIKELY(inside_owes(d)))
		inside_owe(d);
	else if (!(d->server_flags & WEIR_SERVER_PAUSED))
		decide(d);
	if (WEIR_LIKELY(!(d->refused | d->overlooked)))
		return WEIR_PASSED;
	return d->refused && !(d->server_flags & WEIR_SERVER_DRY_RUN) ? WEIR_SHED : WEIR_DRY_RUN_SHED;
}

/* --- what is told of it */

static __always_inline void inside_count_refusal(const struct decision *d, __u32 n)
{
	__u32 reason = terms_of(d, n)->reason;

	if (d->penalised >> n & 1)
		count(d->server, WEIR_SHED_PENALTY);
	else if (d->denied >> n & 1)
		count(d->server, WEIR_SHED_DENIED);
	else if (reason < WEIR_REASON_COUNT)
		count(d->server, reason);
}

/* A subject of several parts is called what they are; names of users, namespaces and peers are remembered as they are read. */
static __always_inline void inside_name_parts(struct inside_piece *piece, __u32 n)
{
	struct decision *d = &piece->decision;
	__u32 key = terms_of(d, n)->key, length = 0;
	__u64 *parts = (__u64 *)piece->name.text, subject = d->subjects[n];

	if (!(key & (key - 1)) || subject == WEIR_SUBJECT_OVERFLOW)
		return;
	__builtin_memset(&piece->name, 0, sizeof(piece->name));
	for (__u32 i = 0; i < WEIR_KEY_PARTS; i++)
		if (key >> i & 1)
			parts[length++ & 7] = key_part(d, 1U << i, n);
	piece->name.kind = WEIR_NAME_PARTS;
	piece->name.length = piece->name.whole = length * sizeof(*parts);
	bpf_map_update_elem(&names, &d->subjects[n], &piece->name, BPF_ANY);
}

/* Limit n of the request. */
__noinline int inside_tell_limit(__u32 memory, __u32 n, __u32 refused)
{
	struct inside_piece *piece = inside_piece_of(memory);

	if (!piece || n >= WEIR_MATCHES_MAX)
		return 0;
	if (refused && piece->decision.refused >> n & 1)
		inside_count_refusal(&piece->decision, n);
	if (piece->decision.nameless >> n & 1)
		inside_name_parts(piece, n);
	return 0;
}

/* The narrowest limit that refused it, or would have, or has it paid for later: then its connection is held. */
WEIR_SELDOM int inside_refused_by(const struct decision *d, struct weir_asked *asked)
{
	__u32 refused = d->refused ?: d->overlooked, n;

	asked->counts.held = !refused;
	n = weir_lowest_bit(refused ?: d->waited) & (WEIR_MATCHES_MAX - 1);
	asked->slot = d->limits[n];
	asked->epoch = d->terms[n].epoch;
	return 0;
}

WEIR_SELDOM int inside_keep_decided(struct decision *d, struct inside_request *r)
{
	r->generation = d->generation;
	decided_keep(&r->decided, d);
	return 0;
}

/* What passes at HANDLE the server may still reject: what limits said is counted when it is executed. */
static __always_inline void inside_certain(struct decision *d, struct inside_request *r)
{
	if (!r->execute || r->decision == WEIR_SHED)
		tally_decision(d);
	else
		inside_keep_decided(d, r);
}

static __always_inline void inside_decided(struct decision *d, struct inside_request *r)
{
	struct weir_trace *t = &r->record.trace;
	__u32 refused = r->decision == WEIR_SHED ? d->refused : d->refused | d->overlooked;

	inside_certain(d, r);
	t->groups = d->identity.groups;
	t->retry_s = refused ? d->retry_s : 0;
	t->named = d->slowest;
	if (WEIR_UNLIKELY(d->refused | d->overlooked | d->waited))
		inside_refused_by(d, &r->asked);
	if (WEIR_UNLIKELY(d->nameless))
		inside_remember_user(r);
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (n >= d->n_limits)
			break;
		t->refused[t->n_refused & (WEIR_MATCHES_MAX - 1)] = d->limits[n];
		t->n_refused += refused >> n & 1;
		if (WEIR_UNLIKELY(((r->decision == WEIR_SHED ? d->refused : 0) | d->nameless) >> n & 1))
			inside_tell_limit(d->memory, n, r->decision == WEIR_SHED);
	}
}

#define INSIDE_TOO_MANY 429
#define INSIDE_FORBIDDEN 403

/* What the server is to answer, as packets' requests are answered; 0: nothing, the request passes. */
static __always_inline __u32 inside_status(const struct inside_request *r)
{
	if (r->decision != WEIR_SHED)
		return 0;
	return weir_trace_forbids(&r->record.trace) ? INSIDE_FORBIDDEN : INSIDE_TOO_MANY;
}

/* --- and taken back */

/* As if the request had never been asked for: the server has rejected it by itself. */
static __noinline int inside_undo(struct inside_request *r, __u32 server)
{
	struct weir_server *settings = server_of(server);
	struct inside_piece *piece = inside_claim();

	if (!piece)
		return 0;
	if (r && settings && settings->generation == r->generation) {
		inside_question(piece, r, server, settings);
		decided_recall(&piece->decision, &r->decided);
		each_limit(&piece->decision, terms_again);
		undo_decision(&piece->decision);
	}
	inside_give_back(piece);
	return 0;
}

/*
 * Who asks from an address matters though this request is one that is never refused: by what the server is set to, not by what was
 * decided. Where requests of some connections only are refused (attach --inside-share), nobody is held: XDP does not know which.
 */
static __always_inline void inside_tell_box(const struct inside_request *r, const struct decision *d, __u32 flags)
{
	if (WEIR_UNLIKELY(boxes_matter(flags, d->traits)) && r->peer.known)
		box_asked(d, r->decision == WEIR_EXEMPT || r->some);
}

/* charged: what limits have given before, by inside_limits_give(). Sets r->decision. */
static __always_inline void inside_decide_in_full(struct inside_request *r, struct inside_piece *piece, __u32 server,
						  const struct weir_server *settings, __u32 charged)
{
	inside_question(piece, r, server, settings);
	piece->decision.charged = charged;
	piece->decision.torn &= ~charged;
	r->decision = inside_ask(piece, settings, r->health);
	if (WEIR_UNLIKELY(r->ends))
		inside_keep_seats(piece, &r->key);
	if (WEIR_UNLIKELY(inside_owes(&piece->decision)))
		inside_take_turn(r, &piece->decision);
	inside_tell_box(r, &piece->decision, settings->flags);
	inside_decided(&piece->decision, r);
}

/* own: the piece that the request is in; NULL: it is kept in `inside_requests`. Sets r->decision. False: there was no memory to decide in. */
static __always_inline int inside_decide(struct inside_request *r, struct inside_piece *own, __u32 server,
					 const struct weir_server *settings)
{
	struct inside_piece *piece = own ?: inside_claim();
	__u32 gave = 0;

	if (WEIR_UNLIKELY(!piece))
		return 0;
	inside_fetch_ahead(server);
	if (WEIR_LIKELY(inside_is_ordinary(r, settings)))
		gave = inside_limits_give(&piece->decision, r, server, settings->traits);
	if (WEIR_LIKELY(gave & INSIDE_ALL_GAVE))
		r->decision = WEIR_PASSED;
	else
		inside_decide_in_full(r, piece, server, settings, gave);
	if (!own)
		inside_give_back(piece);
	return 1;
}

/* How it was read, whose it is, and what was decided. */
static __always_inline void inside_count(const struct inside_request *r, __u32 server, __u32 outcome, bool decided)
{
	enum weir_identified_by by = r->record.trace.by;

	if (WEIR_LIKELY(outcome == INSIDE_READ && decided && r->decision == WEIR_PASSED)) {
		count(server, WEIR_MOSTLY(WEIR_SEEN_AND_PASSED_USER, by != WEIR_IDENTIFIED_BY_SERVER,
					  WEIR_SEEN_AND_PASSED_NOBODY));
		return;
	}
	count(server, outcome == INSIDE_READ ? WEIR_INSIDE_SEEN : outcome);
	count(server, weir_identified_reason(by));
	count(server, decided ? r->decision : WEIR_INSIDE_NO_ROOM);
}

/* A refused request is not in flight, and some of them are told, as are all while somebody traces. */
WEIR_SELDOM int inside_tell_more(struct inside_request *r, const struct weir_inside_process *process,
				 const struct weir_server *server)
{
	const bool refused = r->decision == WEIR_SHED;
	struct weir_inside_key key = r->key;

	if (refused)
		inside_over(&key);
	if (server->trace_until_ns > r->now_ns || (refused && sample_refusal(process->server, r->now_ns)))
		inside_tell(r, process, r->decision);
	return 0;
}

/*
 * own: as of inside_decide(). outcome: of reading it. answers: it has come to a place where it can be refused. Sets r->decision.
 */
static __always_inline int inside_settle(struct inside_request *r, struct inside_piece *own,
					 const struct inside_hit *hit, __u32 outcome, __u32 answers)
{
	const struct weir_inside_process *process = hit->process;
	const struct weir_server *server = hit->server;
	const bool looked_at = inside_is_looked_at(r, server);
	struct weir_trace *t = &r->record.trace;
	struct weir_inside_open *open = NULL;

	t->by = t->user ? WEIR_IDENTIFIED_BY_SERVER : WEIR_IDENTIFIED_BY_NOBODY;
	if (WEIR_UNLIKELY(!t->user || (server->traits & WEIR_SERVER_SOURCES)))
		inside_by_peer(r);
	r->decision = WEIR_PASSED;
	r->asked.slot = WEIR_ASKED_NO_SLOT;
	r->asked.counts.held = 0;
	inside_asked(r, process);
	heavy_fetch(&r->asked);
	r->some = process->layout.share < WEIR_INSIDE_ALL;
	r->answers = answers && weir_inside_shares(process->layout.share, r->peer.known, r->peer.address, r->peer.port);
	if (WEIR_UNLIKELY(looked_at)) /* it is looked for now: the CPU waits for that while limits are asked */
		open = inside_open_of(&r->key);
	inside_count(r, process->server, outcome, inside_decide(r, own, process->server, server));
	inside_top(r, process);
	if (WEIR_LIKELY(r->decision != WEIR_SHED) && WEIR_UNLIKELY(looked_at))
		inside_is_open(r, process, open);
	if (WEIR_UNLIKELY(r->decision == WEIR_SHED) || WEIR_UNLIKELY(server->trace_until_ns > r->now_ns))
		inside_tell_more(r, process, server);
	return 0;
}

#endif
