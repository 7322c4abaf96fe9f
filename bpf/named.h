/* SPDX-License-Identifier: GPL-2.0 */
/* Which packets are limited where a server's devices were named (attach --interface). */
#ifndef WEIR_BPF_NAMED_H
#define WEIR_BPF_NAMED_H

#include "badge.h"
#include "maps.h"

/*
 * Did the packet come by a device that nobody named? A badge says that a program saw it on one that was. Some devices can have no
 * program, or their packets do not pass it: a tun device, one in a VRF, an ipvlan. What comes by these is known by the device alone.
 */
static __noinline bool came_by_other_device(struct __sk_buff *skb, const struct work *w)
{
	__u32 ifindex = skb->ifindex;

	if (!(w->server_flags & WEIR_SERVER_SOME_INTERFACES) || badge_is_any(skb))
		return false;
	return !bpf_map_lookup_elem(&named_devices, &ifindex);
}

#endif
