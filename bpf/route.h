/* SPDX-License-Identifier: GPL-2.0 */
/* A host that forwards packets sees some for others, who may have a server on the same port. */
#ifndef WEIR_BPF_ROUTE_H
#define WEIR_BPF_ROUTE_H

#include "socket.h"

#define FAMILY_INET 2
#define FAMILY_INET6 10

/* Would the kernel forward the packet by its routes? */
static __always_inline bool route_leads_on(packet_context *ctx, const struct packet *p)
{
	struct bpf_fib_lookup route = { .family = p->ipv6 ? FAMILY_INET6 : FAMILY_INET,
					.l4_protocol = TCP_PROTOCOL,
					.sport = p->source_port,
					.dport = p->dest_port,
					.ifindex = p->ifindex };
	long ret;

	if (p->ipv6) {
		__builtin_memcpy(route.ipv6_src, p->source, 16);
		__builtin_memcpy(route.ipv6_dst, p->dest, 16);
	} else {
		__builtin_memcpy(&route.ipv4_src, p->source + 12, 4);
		__builtin_memcpy(&route.ipv4_dst, p->dest + 12, 4);
	}
	ret = bpf_fib_lookup(ctx, &route, sizeof(route), 0);
	return ret >= 0 && ret != BPF_FIB_LKUP_RET_NOT_FWDED && ret != BPF_FIB_LKUP_RET_FWD_DISABLED;
}

/*
 * Does a packet of no known connection go on to another host? What has a socket of its own stays, whatever the routes say: a
 * transparent proxy takes what is for others.
 */
__noinline int packet_goes_on(packet_context *ctx, __u32 hook)
{
	struct work *w = work_of(hook);
	struct bpf_sock *sk;
	bool stays;

	if (!w || !route_leads_on(ctx, &w->packet))
		return 0;
	sk = socket_of(ctx, &w->packet);
	if (!sk)
		return 1;
	stays = sk->state != STATE_LISTEN;
	bpf_sk_release(sk);
	return !stays;
}

#endif
