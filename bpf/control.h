/* SPDX-License-Identifier: GPL-2.0 */
/* What the agent has done in the kernel, where it is one step with what the packets do. */
#ifndef WEIR_BPF_CONTROL_H
#define WEIR_BPF_CONTROL_H

#include "decide.h"
#include "track.h"

/* Brings a subject's bucket up to date at the rate in force, before that rate is taken away. */
SEC("syscall")
int weir_settle(struct weir_settle *args)
{
	__u32 index = args->limit;
	__u64 subject = args->subject, now_ns = args->now_ns;
	struct weir_limit *limit = limit_of(index, subject);
	void *map = bpf_map_lookup_elem(&buckets, &index);
	struct lock *lock = lock_of(index, subject);
	struct weir_bucket *bucket;

	if (!limit || !map || !lock)
		return 0;
	bucket = bpf_map_lookup_elem(map, &subject);
	if (!bucket)
		return 0;
	bpf_spin_lock(&lock->lock);
	if (bucket->started) {
		bucket->tokens = weir_bucket_tokens(bucket, &limit->history, now_ns);
		bucket->last_ns = weir_bucket_clock(bucket, &limit->history, now_ns);
	}
	bpf_spin_unlock(&lock->lock);
	return 0;
}

/* Forgets a connection whose socket is gone, and counts it. */
SEC("syscall")
int weir_forget(struct weir_forget *args)
{
	struct weir_flow flow = args->flow;
	struct weir_conn *c = bpf_map_lookup_elem(&conns, &flow);

	if (!c || args->reason >= WEIR_REASON_COUNT)
		return 0;
	count(c->server, args->reason);
	conn_forget(&flow, c->server, c->splice.cuts);
	return 0;
}

#endif
