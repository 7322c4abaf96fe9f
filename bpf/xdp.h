/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XDP: connections that tc would refuse end here, before the kernel has an skb of their SYN. Nothing is admitted here, and
 * nothing kept: what passes is decided at tc, as if XDP had not been asked. So is all that XDP cannot be sure of: fragments,
 * tags that lead to no device of this namespace, frames for another host. Whose SYN is to be answered by a RST, tc answers.
 */
#ifndef WEIR_BPF_XDP_H
#define WEIR_BPF_XDP_H

#include "admission.h"
#include "checksum.h"
#include "frame_parse.h"
#include "listen.h"
#include "settings.h"

/* Which frames are for a device of this namespace: the agent keeps it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_DEVICES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_device_key);
	__type(value, struct weir_device);
} devices SEC(".maps");

static __always_inline bool frame_is_ours(const struct frame_start *f)
{
	const struct weir_device *d = bpf_map_lookup_elem(&devices, &f->device);
	bool same = d;

#pragma GCC unroll 6
	for (int i = 0; i < 6; i++)
		same = same && d->address[i] == f->dest[i];
	return same;
}

static __always_inline bool frame_checksums_are_right(struct xdp_md *ctx, struct work *w, __u32 l3)
{
	return ip_checksum_is_right(ctx, w, l3) && (checksum_is_begun(&w->packet) || segment_sum(ctx, w) == 0xffff);
}

/* Would the SYN ask the limits at tc? */
static __always_inline bool syn_asks(struct xdp_md *ctx, struct work *w)
{
	const struct weir_admitted *there;

	flow_set(&w->packet, true);
	there = bpf_map_lookup_elem(&admitted, &w->packet.flow);
	return weir_admission_of_syn(&w->packet.segment, admission_ask_socket(ctx, HOOK_XDP), there) == WEIR_ASKS_NOW;
}

/* Of what is not dropped here, it is as if the limits had not been asked: tc asks them. */
static __always_inline bool syn_is_refused(struct work *w)
{
	if (admission_decide(HOOK_XDP) == WEIR_ADMISSION_DROPPED) {
		tally_decision(&w->decision);
		return true;
	}
	undo_decision(&w->decision);
	return false;
}

static __always_inline int xdp_syn(struct xdp_md *ctx, struct work *w, __u32 l3)
{
	if (!admission_matters(w) || !syn_asks(ctx, w) || !frame_checksums_are_right(ctx, w, l3) || !syn_is_refused(w))
		return XDP_PASS;
	count(w->server, WEIR_ADMISSION_DROPPED);
	count(w->server, WEIR_XDP_DROPPED);
	return XDP_DROP;
}

static __always_inline int xdp_frame(struct xdp_md *ctx)
{
	struct work *w = work_of(HOOK_XDP);
	struct frame_start start;
	struct packet *p;
	__u32 end;

	if (!w)
		return XDP_PASS;
	p = &w->packet;
	if (!frame_start(ctx, p, &start) || !packet_parse_ip(ctx, p, start.kind, start.l3, &end) ||
	    !packet_parse_ports(ctx, p) || !server_listens(p->dest, p->dest_port, &w->server) || p->fragment)
		return XDP_PASS;
	if (!packet_parse_tcp(ctx, p, end) || !weir_segment_opens(&p->segment) || !frame_is_ours(&start) ||
	    !load_settings(w, HOOK_XDP) || !(w->server_flags & WEIR_SERVER_XDP))
		return XDP_PASS;
	return xdp_syn(ctx, w, start.l3);
}

SEC("xdp.frags")
int weir_xdp(struct xdp_md *ctx)
{
	return xdp_frame(ctx);
}

/*
 * For generic mode: the kernel makes another skb for a program that takes frames in pieces (since Linux 6.9), and that one has no
 * mac_len, so that programs at tc find no Ethernet header (seen on 6.18).
 */
SEC("xdp")
int weir_xdp_generic(struct xdp_md *ctx)
{
	return xdp_frame(ctx);
}

#endif
