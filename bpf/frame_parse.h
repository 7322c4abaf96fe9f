/* SPDX-License-Identifier: GPL-2.0 */
/* A frame's headers, as XDP has them: with the VLAN tags that a device has not taken off. */
#ifndef WEIR_BPF_FRAME_PARSE_H
#define WEIR_BPF_FRAME_PARSE_H

#include "packet.h"

#define VLAN_BYTES 4

struct ethernet_header {
	__u8 dest[6], source[6];
	__be16 kind;
} __attribute__((packed));

struct vlan_tag {
	__be16 control, kind;
};

/* The link header of a frame. */
struct frame_start {
	struct weir_device_key device; /* of the host's, that it goes to */
	__u8 dest[6];
	__be16 kind; /* of what follows */
	__u32 l3;
};

static __always_inline bool is_vlan(__be16 kind)
{
	return kind == bpf_htons(ETHERTYPE_VLAN) || kind == bpf_htons(ETHERTYPE_SERVICE_VLAN);
}

/* False: it ends before. */
static __always_inline bool frame_start(struct xdp_md *ctx, struct packet *p, struct frame_start *f)
{
	const struct ethernet_header *ethernet = header_at(ctx, p, 0, ETHERNET_BYTES);
	const struct vlan_tag *tag;

	if (!ethernet)
		return false;
	__builtin_memcpy(f->dest, ethernet->dest, sizeof(f->dest));
	f->kind = ethernet->kind;
	f->l3 = ETHERNET_BYTES;
	f->device.ifindex = ctx->ingress_ifindex;
	f->device.tags = 0;
#pragma GCC unroll 2
	for (int i = 0; i < WEIR_DEVICE_TAGS; i++) {
		if (!is_vlan(f->kind))
			break;
		tag = header_at(ctx, p, f->l3, VLAN_BYTES);
		if (!tag)
			return false;
		f->device.tags = weir_device_tags(f->device.tags, bpf_ntohs(tag->control),
						  f->kind == bpf_htons(ETHERTYPE_SERVICE_VLAN));
		f->kind = tag->kind;
		f->l3 += VLAN_BYTES;
	}
	return true;
}

#endif
