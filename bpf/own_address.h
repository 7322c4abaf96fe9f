/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of this namespace. The agent keeps them; what it does not know yet is left to the kernel. */
#ifndef WEIR_BPF_OWN_ADDRESS_H
#define WEIR_BPF_OWN_ADDRESS_H

#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_OWN_ADDRESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_own_address);
	__type(value, __u32);
} own_addresses SEC(".maps");

/* The device that has the address that the packet is for; 0: several have. NULL: it is not this namespace's. */
static __always_inline const __u32 *own_address(const struct packet *p)
{
	struct weir_own_address key;

	__builtin_memcpy(key.bytes, p->dest, sizeof(key.bytes));
	return bpf_map_lookup_elem(&own_addresses, &key);
}

#endif
