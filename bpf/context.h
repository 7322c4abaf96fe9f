/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel hands to a program together with a packet: to tc's an skb, to XDP's a frame. Headers are read from either. It is
 * no typedef, because the kernel finds a context's fields by the name of its type.
 */
#ifndef WEIR_BPF_CONTEXT_H
#define WEIR_BPF_CONTEXT_H

#include <bpf/bpf_helpers.h>

#ifdef WEIR_XDP /* the object of XDP */

#define packet_context struct xdp_md

static __always_inline long context_load(packet_context *ctx, __u32 at, void *to, __u32 size)
{
	return bpf_xdp_load_bytes(ctx, at, to, size);
}

static __always_inline __u32 context_length(packet_context *ctx)
{
	return bpf_xdp_get_buff_len(ctx);
}

/* Is it several segments in one? No frame is. */
static __always_inline bool context_is_gso(packet_context *ctx __attribute__((unused)))
{
	return false;
}

#else

#define packet_context struct __sk_buff

static __always_inline long context_load(packet_context *ctx, __u32 at, void *to, __u32 size)
{
	return bpf_skb_load_bytes(ctx, at, to, size);
}

static __always_inline __u32 context_length(packet_context *ctx)
{
	return ctx->len;
}

static __always_inline bool context_is_gso(packet_context *ctx)
{
	return ctx->gso_size;
}

#endif
#endif
