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

__noinline int count_requests(struct work *w, __u32 action)
{
	__u32 s;

	if (!w)
		return 0;
	decision_stands(w);
	tally_packet(w);
	s = w->server;
	if (w->tally.passed)
		count_many(s, WEIR_PASSED, w->tally.passed);
	if (w->tally.exempt)
		count_many(s, WEIR_EXEMPT, w->tally.exempt);
	if (w->tally.dry_run)
		count_many(s, WEIR_DRY_RUN_SHED, w->tally.dry_run);
	for (int key = 0; key < WEIR_EVENT_KEYS; key++) {
		if (w->tally.events[key])
			count_many(s, WEIR_EVENT_KEYED + key, w->tally.events[key]);
	}
	for (int i = 0; i < WEIR_IDENTIFIED_WAYS; i++) {
		if (w->tally.identified[i])
			count_many(s, WEIR_BY_REQUEST_HEADER + i, w->tally.identified[i]);
	}
	for (int i = 0; i < WEIR_NOTES; i++) {
		if (w->tally.notes[i])
			count_many(s, WEIR_UNTRUSTED_IDENTITY + i, w->tally.notes[i]);
	}
	if (w->tally.dry_run_rejected)
		count(s, WEIR_DRY_RUN_REJECTED);
	if (action == WEIR_CLOSE)
		count(s, WEIR_ANSWERED_CLOSE);
	if (!w->request.shed)
		return 0;
	if (w->request.answer.rejected) {
		count(s, WEIR_REJECTED);
		return 0;
	}
	count(s, WEIR_SHED);
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (w->decision.penalised >> n & 1)
			count(s, WEIR_SHED_PENALTY);
		else if (w->decision.denied >> n & 1)
			count(s, WEIR_SHED_DENIED);
		else if (w->decision.refused >> n & 1)
			count_refusal(&w->decision, n);
	}
	return 0;
}

#endif
