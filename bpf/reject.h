/* SPDX-License-Identifier: GPL-2.0 */
/* What becomes of a request that is ambiguous: it is rejected, or its server is to get it all the same. */
#ifndef WEIR_BPF_REJECT_H
#define WEIR_BPF_REJECT_H

#include "decide.h"
#include "top.h"
#include "trace.h"
#include "work.h"

/* Undoes the decision that the request may pass whose head was read in this packet. */
static __always_inline void undo_pass(struct work *w)
{
	if (w->tally.n_asked)
		w->tally.n_asked--;
	if (w->settings.tracing && w->tally.n_traced)
		w->tally.n_traced--;
	w->tally.outcome = WEIR_REASON_NONE;
	undo_decision(&w->decision);
}

/* What such a request asks for is not known. */
static __always_inline void note_rejected(struct __sk_buff *skb, struct work *w, __u32 decision)
{
	top_note(w, decision);
	if (!trace_wants(w, decision))
		return;
	__builtin_memset(&w->decision.attributes, 0, sizeof(w->decision.attributes));
	trace_note(skb, w, decision);
}

/* The framing machine was lost. A request that is rejected is charged to nobody. */
__noinline int reject(struct __sk_buff *skb, struct work *w)
{
	struct weir_request_reader *r;
	enum weir_reason why;

	if (!w)
		return 0;
	r = &w->request;
	if ((w->server_flags & (WEIR_SERVER_PAUSED | WEIR_SERVER_PASS_AMBIGUOUS)) || !weir_request_reader_may_reject(r))
		return 0;
	if (w->server_flags & WEIR_SERVER_DRY_RUN) {
		w->tally.dry_run_rejected = 1;
		note_rejected(skb, w, WEIR_DRY_RUN_REJECTED);
		return 0;
	}
	if (weir_request_reader_unpass(r))
		undo_pass(w);
	why = weir_request_reader_reject(r);
	if (r->held)
		w->tally.unanswered_why = why;
	else
		note_rejected(skb, w, WEIR_REJECTED);
	return 0;
}

#endif
