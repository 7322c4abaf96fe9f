/* SPDX-License-Identifier: GPL-2.0 */
/* Which packets the kernel marks: those that may point at pages of a process on this host. */
#ifndef WEIR_BPF_SHARED_PAGES_H
#define WEIR_BPF_SHARED_PAGES_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Of skb_shared_info's flags. */
#define SKBFL_ZEROCOPY_ENABLE 1 /* MSG_ZEROCOPY */
#define SKBFL_SHARED_FRAG 2	/* sendfile(), splice() */

/* Since Linux 6.2. A read by bpf_probe_read_kernel() would keep these programs from being loaded under lockdown. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym __weak;
extern void *bpf_rdonly_cast(const void *memory, __u32 type) __ksym __weak;

/* Where that cannot be known, they may. */
static __always_inline bool pages_may_be_shared(struct __sk_buff *skb)
{
	const struct skb_shared_info *shared;
	const struct sk_buff *kernel;

	if (!bpf_cast_to_kern_ctx || !bpf_rdonly_cast)
		return true;
	kernel = bpf_cast_to_kern_ctx(skb);
	shared = bpf_rdonly_cast(kernel->head + kernel->end, bpf_core_type_id_kernel(struct skb_shared_info));
	return shared->flags & (SKBFL_ZEROCOPY_ENABLE | SKBFL_SHARED_FRAG);
}

#endif
