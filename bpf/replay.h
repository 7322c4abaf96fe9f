/* SPDX-License-Identifier: GPL-2.0 */
/* Many requests of a recording in one run: asking for each by itself costs more than deciding it. */
#ifndef WEIR_BPF_REPLAY_H
#define WEIR_BPF_REPLAY_H

#include "explain.h"
#include "replay_map.h"

static __always_inline bool replay_slot(struct __sk_buff *skb, struct work *w, struct weir_replayed *slot)
{
	__u32 behind = slot->question.length - 1; /* the first byte: Linux 6.1 has to be shown that there is one */

	barrier_var(behind);
	if (behind >= WEIR_EXPLAIN_BYTES)
		return false;
	w->explain.question = slot->question;
	if (bpf_skb_store_bytes(skb, EXPLAIN_AT, slot->request, behind + 1, 0) || !explain_run(skb, w))
		return false;
	/* By way of the frame: under lockdown no program may use bpf_probe_read_kernel(). */
	return !bpf_skb_store_bytes(skb, ETHERNET_BYTES, &w->explain.answer, sizeof(w->explain.answer), 0) &&
	       !bpf_skb_load_bytes(skb, ETHERNET_BYTES, &slot->answer, sizeof(slot->answer));
}

/* Run again and again on one frame, whose mark is the slot that is next. */
SEC("?tc")
int weir_replay(struct __sk_buff *skb)
{
	struct work *w = work_of(HOOK_EXPLAIN);
	__u32 at = skb->mark;
	struct weir_replayed *slot = bpf_map_lookup_elem(&replayed, &at);

	skb->mark = at + 1;
	if (w && slot)
		slot->done = replay_slot(skb, w, slot) ? WEIR_REPLAY_DECIDED : WEIR_REPLAY_FAILED;
	return 0;
}

#endif
