/* SPDX-License-Identifier: GPL-2.0 */
/* How many living connections of the table each address has, by its place in `holders`. */
#ifndef WEIR_BPF_HOLDERS_H
#define WEIR_BPF_HOLDERS_H

#include "identify.h"
#include "work.h"

static __always_inline struct weir_table *table_of_conns(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&table, &zero);
}

static __always_inline __u32 *holder_of(__u32 holder)
{
	__u32 index = holder - 1;

	return holder ? bpf_map_lookup_elem(&holders, &index) : NULL;
}

static __always_inline void holder_release(__u32 holder)
{
	__u32 *held = holder_of(holder);

	if (held)
		__sync_fetch_and_add(held, -1);
}

/*
 * Whose share of the table the packet's connection is; 0: nobody's. Those that bring the connections of many have none. Two
 * addresses may have one place: nobody can choose that, for the hash is keyed.
 */
__noinline int holder_find(__u32 hook)
{
	struct work *w = work_of(hook);
	__u8 address[16] __attribute__((aligned(8)));

	if (!w || !(w->server_flags & (WEIR_SERVER_FULL_KNOWN | WEIR_SERVER_XDP_COOKIES)))
		return 0;
	find_peer(w);
	if (bpf_map_lookup_elem(&proxies, &w->whose.peer) || bpf_map_lookup_elem(&balancers, &w->whose.peer))
		return 0;
	client_address(w, address);
	return 1 + weir_subject_of_address(w->settings.seed, WEIR_NAME_ADDRESS, address) % WEIR_HOLDERS;
}

static __always_inline bool holder_has_room(__u32 holder)
{
	const struct weir_table *t = table_of_conns();
	const __u32 *held = holder_of(holder);

	return !t || !held || *held < t->share;
}

/* Counts one more connection of the holder. False: its share of the table is used up, and the server has shares (--when-full known). */
static __always_inline bool holder_take(const struct work *w, __u32 holder)
{
	const struct weir_table *t = table_of_conns();
	__u32 *held = holder_of(holder);

	if (!t || !held || __sync_fetch_and_add(held, 1) < t->share || !(w->server_flags & WEIR_SERVER_FULL_KNOWN))
		return true;
	__sync_fetch_and_add(held, -1);
	return false;
}

#endif
