/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the agent has done in the kernel, where it is one step with what the packets do. These run by
 * BPF_PROG_TEST_RUN, their input behind the Ethernet header of a made-up frame: programs of type `syscall`, which
 * would take it as it is, may not use locks before Linux 6.2.
 */
#ifndef WEIR_BPF_CONTROL_H
#define WEIR_BPF_CONTROL_H

#include "decide.h"
#include "track.h"

/* Brings a subject's bucket up to date at the rate in force, before that rate is taken away. */
SEC("tc")
int weir_settle(struct __sk_buff *skb)
{
	struct weir_settle settle;
	struct weir_bucket *bucket;
	struct weir_amount *amount;
	struct weir_limit *limit;
	struct lock *lock;

	if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, &settle, sizeof(settle)))
		return 0;
	limit = bpf_map_lookup_elem(&limits, &settle.limit);
	amount = limit ? amount_of(limit, settle.limit, settle.subject) : NULL;
	bucket = bucket_of(settle.limit, settle.subject);
	lock = lock_of(settle.limit, settle.subject);
	if (!amount || !bucket || !lock)
		return 0;
	bpf_spin_lock(&lock->lock);
	if (bucket->started) {
		bucket->tokens = weir_bucket_tokens(bucket, &amount->history, settle.now_ns);
		bucket->last_ns = weir_bucket_clock(bucket, &amount->history, settle.now_ns);
	}
	bpf_spin_unlock(&lock->lock);
	return 0;
}

/* Forgets a connection whose socket is gone, and counts it; or lets go what is due of one that is dying. */
SEC("tc")
int weir_forget(struct __sk_buff *skb)
{
	struct weir_forget forget;
	struct weir_conn *c;

	if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, &forget, sizeof(forget)))
		return 0;
	c = bpf_map_lookup_elem(&conns, &forget.flow);
	if (!c)
		return 0;
	if (forget.reason < WEIR_REASON_COUNT) {
		if (c->id != forget.id)
			return 0;
		count(c->server, forget.reason);
		conn_forget(&forget.flow, forget.id);
	} else {
		conn_let_go(&forget.flow, c);
	}
	return 0;
}

#endif
