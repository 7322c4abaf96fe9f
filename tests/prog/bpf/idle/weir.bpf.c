// SPDX-License-Identifier: GPL-2.0
/*
 * The object of bpf/weir.bpf.c with programs that leave every packet as it is, for tests of how programs and maps are
 * opened, attached, pinned and removed: the kernel verifies these in no time. What the agent runs by itself is the real one.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define TC_ACT_UNSPEC (-1)
#define TC_ACT_SHOT 2
#define PACKET_HOST 0
#define PACKET_OTHERHOST 3

#include "collect.h"
#include "control.h"
#include "replay_map.h"

SEC("tc")
int weir_egress(struct __sk_buff *skb)
{
	(void)skb;
	return TC_ACT_UNSPEC;
}

/* On a map: whoever takes the program over looks whether it is the one that is pinned. */
SEC("tc")
int weir_ingress(struct __sk_buff *skb)
{
	__u32 zero = 0;

	(void)skb;
	return bpf_map_lookup_elem(&counters, &zero) ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

SEC("tc")
int weir_explain(struct __sk_buff *skb)
{
	(void)skb;
	return TC_ACT_UNSPEC;
}

SEC("?tc")
int weir_replay(struct __sk_buff *skb)
{
	(void)skb;
	return TC_ACT_UNSPEC;
}

SEC("cgroup_skb/ingress")
int weir_hold(struct __sk_buff *skb)
{
	(void)skb;
	return 1;
}

SEC("sockops")
int weir_sockops(struct bpf_sock_ops *ops)
{
	(void)ops;
	return 1;
}

const volatile __u64 weir_build = 0;
const volatile __u64 digest_keys[sizeof(struct weir_digest_keys) / 8] SEC(".rodata.keys") = {};

char LICENSE[] SEC("license") = "GPL";
