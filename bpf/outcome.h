/* SPDX-License-Identifier: GPL-2.0 */
/* What became of a packet's requests, counted when it is certain. */
#ifndef WEIR_BPF_OUTCOME_H
#define WEIR_BPF_OUTCOME_H

#include "frame.h"

static __always_inline void count_refusal(const struct decision *d, __u32 n)
{
	__u32 reason = terms_of(d, n)->reason;

	if (reason < WEIR_REASON_COUNT)
		count(d->server, reason);
}

static __always_inline void count_shed(const struct work *w)
{
	__u32 s = w->server;

	count(s, WEIR_SHED);
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (w->decision.penalised >> n & 1)
			count(s, WEIR_SHED_PENALTY);
		else if (w->decision.denied >> n & 1)
			count(s, WEIR_SHED_DENIED);
		else if (w->decision.refused >> n & 1)
			count_refusal(&w->decision, n);
	}
}

static __always_inline void count_tallies(__u32 s, const struct tally *t)
{
	if (t->passed)
		count_in_place(s, WEIR_PASSED, t->passed);
	if (t->exempt)
		count_many(s, WEIR_EXEMPT, t->exempt);
	if (t->dry_run)
		count_many(s, WEIR_DRY_RUN_SHED, t->dry_run);
	for (int key = 0; key < WEIR_EVENT_KEYS; key++) {
		if (t->events[key])
			count_many(s, WEIR_EVENT_KEYED + key, t->events[key]);
	}
	for (int i = 0; i < WEIR_IDENTIFIED_WAYS; i++) {
		if (t->identified[i])
			count_in_place(s, WEIR_BY_REQUEST_HEADER + i, t->identified[i]);
	}
	for (int i = 0; i < WEIR_NOTES; i++) {
		if (t->notes[i])
			count_many(s, WEIR_UNTRUSTED_IDENTITY + i, t->notes[i]);
	}
	if (t->dry_run_rejected)
		count(s, WEIR_DRY_RUN_REJECTED);
}

__noinline int count_requests(struct work *w, __u32 action)
{
	if (!w)
		return 0;
	decision_stands(w);
	tally_packet(w);
	count_tallies(w->server, &w->tally);
	if (action == WEIR_CLOSE)
		count(w->server, WEIR_ANSWERED_CLOSE);
	if (w->request.shed && w->request.answer.rejected)
		count(w->server, WEIR_REJECTED);
	else if (w->request.shed)
		count_shed(w);
	return 0;
}

#endif
