/* SPDX-License-Identifier: GPL-2.0 */
/* Servers: what is in force of each. The seed of one is filled in. Slots 0..WEIR_MAX_SERVERS-1 are given out by the caller. */
#ifndef WEIR_USER_DATAPATH_SERVERS_H
#define WEIR_USER_DATAPATH_SERVERS_H

#include "weir/abi/abi.h"

#include "base/error.h"
#include "datapath/address.h"

struct datapath;

int datapath_server_set(struct datapath *dp, __u32 slot, const struct weir_server *server,
			const struct datapath_listen *listens, size_t n_listens, const struct datapath_cidr *proxies,
			size_t n_proxies, struct error *err);
/* Has it been found out that the server takes bodies for requests (bpf/body_served.h)? */
int datapath_serves_bodies(struct datapath *dp, __u32 slot, bool *found, struct error *err);
/* Returns when no program runs that has seen the old flags: whatever it did to a connection is counted by then. */
int datapath_server_flags(struct datapath *dp, __u32 slot, __u32 flags, struct error *err);
/* Nothing is limited any more: new connections are left alone, translated ones go on. */
int datapath_drain_all(struct datapath *dp, struct error *err);
/* What a LIST takes of a level's seats, as struct weir_server has it. */
int datapath_lists_set(struct datapath *dp, __u32 slot, __u32 width, __u32 object_bytes, struct error *err);
/* Forgets listeners, proxies, limits, overrides, buckets and how wide lists are; the counters of the slot start at 0 for its next owner. */
int datapath_server_clear(struct datapath *dp, __u32 slot, struct error *err);

#endif
