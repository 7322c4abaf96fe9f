/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What would become of a request now (include/weir/conn/explain.h): it is read, identified and asked of the limits by what does
 * that to a packet's requests, which only looks this time, unless the request is replayed.
 */
#ifndef WEIR_BPF_EXPLAIN_H
#define WEIR_BPF_EXPLAIN_H

#include "weir/conn/explain.h"

#include "admission.h"
#include "frame.h"
#include "settings.h"

#define EXPLAIN_AT (ETHERNET_BYTES + sizeof(struct weir_explain)) /* of the request */

/* When it comes; after load_settings(). */
static __always_inline void explain_time(struct work *w)
{
	if (!w->explain.question.now_ns)
		return;
	w->now_ns = w->explain.question.now_ns;
	w->decision.now_ns = w->now_ns;
	w->decision.at_ns = w->now_ns;
	w->decision.latest_ns = w->now_ns;
}

/* As if the request came on a connection that is idle. */
static __always_inline void explain_begin(struct work *w)
{
	__builtin_memset(&w->packet, 0, sizeof(w->packet));
	w->packet.payload = EXPLAIN_AT;
	w->packet.segment.len = w->explain.question.length;
	__builtin_memcpy(w->packet.source, w->explain.question.source, sizeof(w->packet.source));
	__builtin_memset(&w->request, 0, sizeof(w->request));
	weir_request_start(&w->request.request);
	w->request.lost = WEIR_REASON_NONE;
	w->request.why_not = WEIR_REASON_NONE;
	w->whose.preamble = (struct weir_preamble){};
	w->window.length = 0;
	w->decision.look = !w->explain.question.now_ns;
	w->whose.believed = w->explain.question.believed;
	w->decision.asked = !w->decision.look;
	w->decision.asked_anew = !w->decision.look;
	w->decision.source = 0;
	w->settings.tracing = 0;
}

/* What the subject of limit n has: its rate, its tokens and its penalty. */
static __always_inline void explain_rate(struct work *w, struct weir_explained_limit *e, const struct weir_terms *terms,
					 __u32 index, __u64 subject)
{
	struct weir_kept *kept = kept_of(index, subject);
	__u64 penalty;

	if (!kept) {
		w->decision.fresh = weir_kept_new(subject);
		kept = &w->decision.fresh;
	}
	if (!weir_limit_has_seats(terms->kind))
		e->tokens = weir_bucket_tokens(&kept->bucket, &terms->amount.history, w->now_ns);
	if (!weir_penalty_read(kept, subject, &penalty))
		return;
	e->penalty_ns = weir_penalty_wait_ns(penalty, w->now_ns);
	e->failures = weir_penalty_failures(penalty);
}

static __always_inline void explain_seats(struct work *w, struct weir_explained_limit *e,
					  const struct weir_terms *terms, __u32 index, __u64 subject)
{
	struct weir_in_flight_key key = { .limit = index, .epoch = terms->epoch, .subject = subject };
	struct weir_in_flight *f = bpf_map_lookup_elem(&in_flight, &key);

	e->flags |= WEIR_EXPLAINED_SEATS;
	e->seats = terms->amount.seats;
	e->taken = f ? weir_in_flight_taken(f->word) : 0;
	e->wanted = seats_wanted(&w->decision, terms);
	if (!f)
		e->flags |= WEIR_EXPLAINED_NEW;
	if (terms->flags & WEIR_LIMIT_WIDE_LISTS)
		w->explain.answer.width = w->decision.width;
}

/* Limit n of the request, as it stands and as it has answered. */
__noinline int explain_limit(__u32 hook, __u32 n)
{
	struct work *w = work_of(hook);
	struct weir_explained_limit *e;
	const struct weir_terms *terms;
	__u32 index;
	__u64 subject;

	if (!w || n >= WEIR_MATCHES_MAX)
		return 0;
	e = &w->explain.answer.limits[n];
	__builtin_memset(e, 0, sizeof(*e));
	e->slot = w->decision.limits[n];
	index = weir_limit_index(w->server, e->slot);
	terms_again(&w->decision, n);
	terms = terms_of(&w->decision, n);
	subject = w->decision.subjects[n];
	e->subject = subject;
	if (!(terms->amount.flags & WEIR_LIMIT_SET) || (!subject && terms->key))
		return 0;
	e->flags = WEIR_EXPLAINED_ASKED | (w->decision.refused >> n & 1 ? WEIR_EXPLAINED_REFUSED : 0) |
		   (w->decision.overlooked >> n & 1 ? WEIR_EXPLAINED_DRY_RUN : 0) |
		   (w->decision.penalised >> n & 1 ? WEIR_EXPLAINED_PENALISED : 0) |
		   (w->decision.nameless >> n & 1 ? WEIR_EXPLAINED_NEW : 0) |
		   (terms->amount.flags & WEIR_LIMIT_DENY ? WEIR_EXPLAINED_DENY : 0);
	e->wait_ns = (w->decision.refused & ~w->decision.penalised) >> n & 1 ? w->decision.waits_ns[n] : 0;
	e->per_ns = terms->amount.history.rates[0].per_ns;
	e->burst = terms->amount.history.rates[0].burst;
	explain_rate(w, e, terms, index, subject);
	if (weir_limit_has_seats(terms->kind))
		explain_seats(w, e, terms, index, subject);
	return 0;
}

static __always_inline __u32 explain_exempt(struct work *w)
{
	if (w->request.request.flags & WEIR_REQUEST_HEALTH)
		return WEIR_EXEMPT_HEALTH;
	return identity_exempt(w) ? WEIR_EXEMPT_GROUP : WEIR_EXEMPT_RULE;
}

/* Of those names that the settings say. */
static __always_inline void explain_names(struct work *w)
{
	struct weir_principal *user = principal_of(w, WEIR_KEY_USER), *namespace = principal_of(w, WEIR_KEY_NAMESPACE);

	__builtin_memset(&w->explain.answer.user_name, 0, sizeof(w->explain.answer.user_name));
	__builtin_memset(&w->explain.answer.namespace_name, 0, sizeof(w->explain.answer.namespace_name));
	if (user)
		w->explain.answer.user_name = user->user_name;
	if (namespace)
		w->explain.answer.namespace_name = namespace->namespace_name;
}

/* The request's attributes, as the decision knows them. */
static __always_inline void explain_read(struct work *w)
{
	struct weir_attributes *a = &w->decision.attributes;

	if (w->explain.question.inside & WEIR_EXPLAIN_BARE) {
		*a = (struct weir_attributes){ .verb = WEIR_VERB_OTHER };
		a->namespace_at = a->group_at = a->version_at = WEIR_SEGMENT_NONE;
		a->resource_at = a->subresource_at = a->name_at = WEIR_SEGMENT_NONE;
	}
	__builtin_memset(&w->explain.answer.trace, 0, sizeof(w->explain.answer.trace));
	weir_trace_request(&w->explain.answer.trace, &w->request, a, &w->packet.segment);
}

/* It is asked as the programs inside the server do (inside_decide.h). */
static __always_inline void explain_inside(struct work *w)
{
	__u32 sees = WEIR_EXPLAIN_SEE;

	if (!(w->explain.question.inside & WEIR_EXPLAIN_INSIDE))
		return;
	__builtin_memset(&w->request.request.path, 0, sizeof(w->request.request.path));
	w->decision.traits &= ~WEIR_SERVER_OBJECTS;
	w->server_flags &= ~WEIR_SERVER_HAS_ADDRESSES;
	if (w->decision.attributes.flags & WEIR_ATTRIBUTE_LONG_RUNNING)
		sees |= WEIR_EXPLAIN_TOO_MANY;
	if (!(w->explain.question.inside & sees))
		return;
	w->server_flags |= WEIR_SERVER_DRY_RUN;
	w->decision.server_flags |= WEIR_SERVER_DRY_RUN;
}

/* The head has ended, and `decision` is what would become of the request. */
__noinline int explain_decided(__u32 hook, __u32 decision)
{
	struct work *w = work_of(hook);
	struct weir_explained *e;
	bool exempt;

	if (!w)
		return 0;
	e = &w->explain.answer;
	e->trace.time_ns = w->now_ns;
	e->trace.server = w->server;
	e->trace.user = w->decision.identity.user;
	e->trace.groups = w->decision.identity.groups;
	e->trace.by = w->decision.identity.by;
	if (w->explain.question.inside && e->trace.by != WEIR_IDENTIFIED_BY_NOBODY)
		e->trace.by = WEIR_IDENTIFIED_BY_SERVER;
	e->trace.attributes.namespace = w->decision.identity.namespace;
	e->trace.decision = decision;
	e->trace.retry_s = w->decision.refused | w->decision.overlooked ? w->decision.retry_s : 0;
	e->trace.named = w->decision.slowest;
	e->trace.too_many = !!(w->explain.question.inside & WEIR_EXPLAIN_TOO_MANY);
	__builtin_memcpy(e->trace.client, w->explain.question.source, sizeof(e->trace.client));
	e->source = w->decision.source;
	e->event_key = w->decision.event_key;
	exempt = decision == WEIR_EXEMPT || decision == WEIR_ADMISSION_EXEMPT;
	e->exempt = exempt ? explain_exempt(w) : WEIR_EXEMPT_NOT;
	e->n_limits = exempt ? 0 : w->decision.n_limits;
	/* Of the other two nothing was looked up: the field has what another request has left. */
	e->generation = w->decision.generation && e->exempt != WEIR_EXEMPT_HEALTH && e->exempt != WEIR_EXEMPT_GROUP ?
				w->decision.generation :
				0;
	e->matched = w->decision.matched;
	e->width = (struct weir_width_said){};
	explain_names(w);
	return 0;
}

/* The same of a new connection. */
static __always_inline void explain_connection(struct work *w)
{
	__u32 decision = WEIR_ADMITTED;

	__builtin_memset(&w->explain.answer.trace, 0, sizeof(w->explain.answer.trace));
	w->explain.answer.lost = WEIR_REASON_NONE;
	w->explain.answer.whole = 1;
	if (admission_matters(w)) {
		decision = admission_decide(w->hook);
	} else {
		w->decision.generation = 0; /* no rule is looked up */
		admission_identify(w);
	}
	explain_decided(w->hook, decision);
}

/* Everything but what each limit says. */
__noinline int explain_request(struct __sk_buff *skb, struct work *w)
{
	struct feed feed = { .skb = skb, .work = w };
	enum weir_reason decision;

	if (!w)
		return 0;
	feed.server = server_of(w->server);
	if (!feed.server)
		return 0;
	w->frame_event = WEIR_FRAME_MORE;
	bpf_loop(FRAME_STEPS, request_step, &feed, 0);
	w->explain.answer.lost = w->request.lost;
	w->explain.answer.whole = w->frame_event == WEIR_FRAME_HEAD;
	if (w->frame_event != WEIR_FRAME_HEAD) {
		window_wipe(w);
		return 0;
	}
	note_attributes(w);
	explain_read(w);
	explain_inside(w);
	decision_start(&w->decision);
	decision = request_ask(skb, w);
	window_wipe(w);
	return explain_decided(w->hook, decision);
}

/* The question is in w->explain, the request's bytes are in the frame. False: there is no such server. */
static __always_inline bool explain_run(struct __sk_buff *skb, struct work *w)
{
	w->server = w->explain.question.server;
	if (!load_settings(w, HOOK_EXPLAIN))
		return false;
	explain_time(w);
	explain_begin(w);
	w->explain.answer.n_limits = 0;
	if (w->explain.question.length)
		explain_request(skb, w);
	else
		explain_connection(w);
#pragma GCC unroll 16
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (n >= w->explain.answer.n_limits)
			break;
		explain_limit(HOOK_EXPLAIN, n);
	}
	seats_undo(&w->decision, 1); /* of one that is replayed: when it was answered is not known */
	return true;
}

/* 1: there is no such server, or the frame is not what it has to be. */
SEC("tc")
int weir_explain(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_EXPLAIN);

	if (!w || bpf_skb_load_bytes(skb, ETHERNET_BYTES, &w->explain.question, sizeof(w->explain.question)))
		return 1;
	if (EXPLAIN_AT + w->explain.question.length > skb->len || !explain_run(skb, w))
		return 1;
	return bpf_skb_store_bytes(skb, ETHERNET_BYTES, &w->explain.answer, sizeof(w->explain.answer), 0) ? 1 : 0;
}

#endif
