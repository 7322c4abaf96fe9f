/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XDP: connections that tc would refuse end here, before the kernel has an skb of their SYN. A SYN only asks, here and
 * at tc alike: nothing is taken or kept, and what passes is asked again there. So is all that XDP cannot be sure of: fragments,
 * tags that lead to no device of this namespace, frames for another host. Whose SYN is to be answered by a RST, tc answers. In a
 * flood a SYN that would pass may be answered here, in the kernel's place (cookie.h).
 */
#ifndef WEIR_BPF_XDP_H
#define WEIR_BPF_XDP_H

#include "admission.h"
#include "box.h"
#include "checksum.h"
#include "cookie.h"
#include "frame_parse.h"
#include "listen.h"
#include "own_address.h"
#include "settings.h"

/* Which frames are for a device of this namespace: the agent keeps it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_DEVICES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_device_key);
	__type(value, struct weir_device);
} devices SEC(".maps");

static __always_inline bool frame_is_ours(const struct frame_start *f, struct packet *p)
{
	const struct weir_device *d = bpf_map_lookup_elem(&devices, &f->device);
	bool same = d;

	p->ifindex = d ? d->ifindex : 0;
	p->answers = d ? d->answers : 0;
#pragma GCC unroll 6
	for (int i = 0; i < 6; i++)
		same = same && d->address[i] == f->dest[i];
	return same;
}

static __always_inline bool frame_checksums_are_right(struct xdp_md *ctx, struct work *w, __u32 l3)
{
	return ip_checksum_is_right(ctx, w, l3) && (checksum_is_begun(&w->packet) || segment_sum(ctx, w) == 0xffff);
}

/* What is for an address of another host's or namespace's is none of this one's. */
static __always_inline int syn_drop(struct work *w)
{
	if (!own_address(&w->packet))
		return XDP_PASS;
	admission_refused_syn(w, WEIR_ADMISSION_DROPPED);
	count(w->server, WEIR_XDP_DROPPED);
	return XDP_DROP;
}

/* If the kernel would not begin a connection by it, tc does not ask the limits either. */
static __always_inline int xdp_syn(struct xdp_md *ctx, struct work *w, __u32 l3)
{
	int socket, became;
	bool by_cookie;

	if (!admission_matters(w) && !cookies_matter(w))
		return XDP_PASS;
	flow_set(&w->packet, true);
	socket = admission_ask_socket(ctx, HOOK_XDP);
	by_cookie = socket == WEIR_SOCKET_COOKIES && cookies_matter(w);
	if (!weir_socket_begins_another(socket) || !(admission_matters(w) || by_cookie) ||
	    !frame_checksums_are_right(ctx, w, l3))
		return XDP_PASS;
	became = admission_of_syn(w);
	if (became == WEIR_ADMISSION_DROPPED)
		return syn_drop(w);
	if (by_cookie && became != WEIR_ADMISSION_EXEMPT && became != WEIR_ADMISSION_RESET && cookie_is_due(w))
		return cookie_answer(ctx, w, l3);
	return XDP_PASS;
}

/* Would the packet wait if its sender were boxed? Data that no entry says anything of passes: tc knows what it is. */
static __always_inline bool box_concerns(struct work *w)
{
	const struct weir_segment *g = &w->packet.segment;
	const struct weir_resting *r;
	const struct weir_conn *c;

	if (weir_segment_opens(g))
		return true;
	flow_set(&w->packet, true);
	c = bpf_map_lookup_elem(&conns, &w->packet.flow);
	if (c)
		return weir_box_holds_data(c, g);
	r = bpf_map_lookup_elem(&resting, &w->packet.flow);
	return r && weir_box_holds_resting(r, g);
}

/* Does the packet have to wait until a penalty is over? Not that of a client whose address tells that no limit applies to it. */
__noinline int xdp_holds(__u32 hook)
{
	struct work *w = work_of(hook);
	struct weir_box_key key;
	struct weir_box box;

	if (!w)
		return 0;
	key = weir_box_key(w->server, w->packet.source);
	box_read(&key, &box);
	w->decision.in_force[0].as_of = 0; /* of terms that are overwritten */
	if (!box_is_shut(&box, &w->decision.terms[0], bpf_ktime_get_ns()) || !box_concerns(w) ||
	    !load_settings(w, hook))
		return 0;
	admission_identify(w);
	return !peer_is_of_many(w) && !sender_is_exempt(w);
}

/* Does its sender go on while refused? */
static __always_inline bool sender_is_boxed(struct work *w)
{
	const struct weir_server *server = server_of(w->server);

	return server && boxes_matter(w->server_flags, server->traits) && xdp_holds(HOOK_XDP);
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
	if (!packet_parse_tcp(ctx, p, end) || !weir_segment_asks(&p->segment) || !server_is_attached(w) ||
	    !frame_is_ours(&start, p))
		return XDP_PASS;
	if (sender_is_boxed(w) && own_address(p)) {
		count(w->server, WEIR_BOXED);
		return XDP_DROP;
	}
	if (!weir_segment_opens(&p->segment) || !load_settings(w, HOOK_XDP) || !(w->server_flags & WEIR_SERVER_XDP))
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
