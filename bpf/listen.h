/* SPDX-License-Identifier: GPL-2.0 */
/* Is a packet for an attached server, and of which connection? */
#ifndef WEIR_BPF_LISTEN_H
#define WEIR_BPF_LISTEN_H

#include "maps.h"
#include "packet.h"

/* The server that listens at this very address; NULL: none. */
static __noinline const __u32 *server_at(const __u8 *address, __u32 port)
{
	struct weir_listener key = { .port = port };

	__builtin_memcpy(key.address, __builtin_assume_aligned(address, 8), sizeof(key.address));
	return bpf_map_lookup_elem(&listeners, &key);
}

/* `address` is aligned as a word is. */
static __always_inline bool server_listens(const __u8 *address, __u16 port, __u32 *server)
{
	__u32 host_port = bpf_ntohs(port);
	struct weir_port *entry = bpf_map_lookup_elem(&ports, &host_port);
	const __u32 *found;

	if (!entry)
		return false;
	found = entry->addresses ? server_at(address, host_port) : NULL;
	if (!found && !entry->any)
		return false;
	*server = found ? *found : entry->any - 1;
	return true;
}

static __always_inline void flow_set(struct packet *p, bool from_client)
{
	const void *source = __builtin_assume_aligned(p->source, 8), *dest = __builtin_assume_aligned(p->dest, 8);

	__builtin_memcpy(p->flow.client, from_client ? source : dest, 16);
	__builtin_memcpy(p->flow.server, from_client ? dest : source, 16);
	p->flow.client_port = from_client ? p->source_port : p->dest_port;
	p->flow.server_port = from_client ? p->dest_port : p->source_port;
}

#endif
