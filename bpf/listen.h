/* SPDX-License-Identifier: GPL-2.0 */
/* Is a packet for an attached server, and of which connection? */
#ifndef WEIR_BPF_LISTEN_H
#define WEIR_BPF_LISTEN_H

#include "maps.h"
#include "packet.h"

static __always_inline bool server_listens(const __u8 *address, __u16 port, __u32 *server)
{
	__u32 host_port = bpf_ntohs(port);
	struct weir_port *entry = bpf_map_lookup_elem(&ports, &host_port);
	struct weir_listener key;
	__u32 *found;

	if (!entry)
		return false;
	if (entry->addresses) {
		__builtin_memset(&key, 0, sizeof(key));
		__builtin_memcpy(key.address, address, sizeof(key.address));
		key.port = host_port;
		found = bpf_map_lookup_elem(&listeners, &key);
		if (found) {
			*server = *found;
			return true;
		}
	}
	if (!entry->any)
		return false;
	*server = entry->any - 1;
	return true;
}

static __always_inline void flow_set(struct packet *p, bool from_client)
{
	struct weir_flow *f = &p->flow;

	__builtin_memcpy(f->client, from_client ? p->source : p->dest, 16);
	__builtin_memcpy(f->server, from_client ? p->dest : p->source, 16);
	f->client_port = from_client ? p->source_port : p->dest_port;
	f->server_port = from_client ? p->dest_port : p->source_port;
}

#endif
