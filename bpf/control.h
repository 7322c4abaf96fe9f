/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the agent has done in the kernel, where it is one step with what the packets do. These run by
 * BPF_PROG_TEST_RUN, their input behind the Ethernet header of a made-up frame: programs of type `syscall`, which
 * would take it as it is, may not use locks before Linux 6.2.
 */
#ifndef WEIR_BPF_CONTROL_H
#define WEIR_BPF_CONTROL_H

#include "admitted.h"
#include "decide.h"
#include "rest.h"
#include "track.h"

/*
 * Takes a subject's override away, and hands its bucket over to the limit's own rate. The generations of the two differ, so no
 * rate is taken for the other's. A request that another CPU decides in the midst of it may still write the override's; the next one does
 * not know that, and takes the bucket for a new one: that costs one burst at most.
 */
SEC("tc")
int weir_override_end(struct __sk_buff *skb)
{
	struct weir_override_key key = {};
	struct weir_override_end end;
	struct weir_level level;
	struct weir_amount *override;
	struct weir_rate_history from;
	struct weir_limit *limit;
	struct weir_kept *kept;

	if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, &end, sizeof(end)))
		return 0;
	key.limit = end.limit;
	key.subject = end.subject;
	override = bpf_map_lookup_elem(&overrides, &key);
	if (!override)
		return 0;
	from = override->history;
	bpf_map_delete_elem(&overrides, &key);
	limit = bpf_map_lookup_elem(&limits, &end.limit);
	if (!limit || !limit->terms.amount.history.rates[0].generation)
		return 0;
#pragma GCC unroll 8
	for (int i = 0; i < WEIR_BUCKET_TRIES; i++) {
		kept = kept_of(end.limit, end.subject);
		if (!kept)
			break;
		if (!weir_bucket_is_stale(WEIR_FRESH(kept->bucket.word), &limit->terms.amount.history))
			break;
		level = (struct weir_level){ .subject = end.subject };
		if (!bucket_level_settled(&kept->bucket, &from, end.now_ns, &level))
			continue;
		if (weir_bucket_hand_over_try(&kept->bucket, &limit->terms.amount.history, &level))
			break;
	}
	return 0;
}

/* Is the connection with this id in a table? `c`: the entry of its flow in `conns`, or NULL. */
static __always_inline bool conn_is_there(const struct weir_flow *flow, const struct weir_conn *c, __u64 id,
					  __u32 *server)
{
	const struct weir_resting *r;

	if (c) {
		*server = c->server;
		return c->id == id;
	}
	r = bpf_map_lookup_elem(&resting, flow);
	if (!r)
		return false;
	*server = r->server;
	return r->id == id;
}

/*
 * Forgets a connection whose socket is gone, and counts it; or lets go what is due of one that is dying, and one that is idle
 * rests from now on.
 */
SEC("tc")
int weir_forget(struct __sk_buff *skb)
{
	struct weir_forget forget;
	struct weir_conn *c;
	__u32 server = 0;

	if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, &forget, sizeof(forget)))
		return 0;
	c = bpf_map_lookup_elem(&conns, &forget.flow);
	if (forget.reason < WEIR_REASON_COUNT) {
		if (!conn_is_there(&forget.flow, c, forget.id, &server))
			return 0;
		count(server, forget.reason);
		conn_forget(&forget.flow, forget.id);
	} else if (c && !conn_let_go(&forget.flow, c)) {
		conn_rest(&forget.flow, c, bpf_ktime_get_ns());
	}
	return 0;
}

/* Gives back the seats of a connection that limits on connections had admitted, when nobody has its socket any more. */
SEC("tc")
int weir_forget_admitted(struct __sk_buff *skb)
{
	struct weir_forget forget;
	struct weir_admitted *a;
	__u32 server;

	if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, &forget, sizeof(forget)))
		return 0;
	a = bpf_map_lookup_elem(&admitted, &forget.flow);
	if (!a)
		return 0;
	server = a->server;
	if (admitted_end(&forget.flow, forget.id))
		count(server, WEIR_ADMISSION_SWEPT);
	return 0;
}

#endif
