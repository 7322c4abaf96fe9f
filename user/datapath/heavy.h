/* SPDX-License-Identifier: GPL-2.0 */
/* Who makes the load, and whose requests are in flight. */
#ifndef WEIR_USER_DATAPATH_HEAVY_H
#define WEIR_USER_DATAPATH_HEAVY_H

#include "weir/top/heavy.h"

#include "base/error.h"
#include "datapath/heavy_rows.h"
#include "datapath/open_requests.h"

struct datapath;

/* Who makes a server's load (weir/top/heavy.h): the rows of these kinds, of all CPUs together, the heaviest first. */
struct datapath_heavy_query {
	__u32 slot;
	__u32 by; /* a bit (1 << enum weir_heavy_by) for each kind */
};
/* The caller frees *out. Returns how many (>= 0). */
int datapath_heavy(struct datapath *dp, const struct datapath_heavy_query *query, struct weir_heavy_row **out,
		   struct error *err);
/* The rows of all servers, each CPU's for itself. The caller clears *out. */
int datapath_heavy_places(struct datapath *dp, struct heavy_places *out, struct error *err);

/*
 * Requests in flight, ready to be counted: those that packets show (weir_conn_has_request()), of which verb and resource are not known,
 * and those that are seen inside servers. Reads the whole table of connections. The caller clears *out.
 */
int datapath_open_requests(struct datapath *dp, enum weir_heavy_by by, struct open_requests *out, struct error *err);

#endif
