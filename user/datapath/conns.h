/* SPDX-License-Identifier: GPL-2.0 */
/* The table of connections. */
#ifndef WEIR_USER_DATAPATH_CONNS_H
#define WEIR_USER_DATAPATH_CONNS_H

#include "weir/base/duration.h"
#include "weir/base/types.h"

#include "base/error.h"

struct datapath;

/*
 * Connections. sweep forgets those whose socket is gone and that have been idle for idle_ns, and returns how many; before,
 * it lets go what is due of dying ones (weir_conn_due()).
 * reset ends, by RST to both sides, the translated connections of a slot; returns how many. max: what the table can hold.
 */
#define DATAPATH_EVERY_SLOT WEIR_MAX_SERVERS
#define DATAPATH_IDLE_NS (120 * WEIR_NS_PER_S) /* an idle_ns after which one looks */
__u32 datapath_conns_max(const struct datapath *dp);
int datapath_sweep(struct datapath *dp, __u64 idle_ns, struct error *err);
/* From another thread: a sweep ends soon, and none begins any more. */
void datapath_sweep_stop(struct datapath *dp);
int datapath_reset_translated(struct datapath *dp, __u32 slot, struct error *err);

/*
 * Connections of the table that stand at an address' place; the subject is that of its address. Another address may have the same place.
 */
__u32 datapath_connections_of(struct datapath *dp, __u64 subject);

#endif
