/* SPDX-License-Identifier: GPL-2.0 */
/* Who makes the load, as the agent's commands tell it. */
#ifndef WEIR_USER_COMMANDS_TOP_H
#define WEIR_USER_COMMANDS_TOP_H

#include "agent/agent.h"

/* What --by calls the kinds of rows. */
extern const char *const top_bys[WEIR_HEAVY_BYS];

/* The row's counts, its server, and the names of whom it is of: members that its kind has. A new reference. */
json_t *top_row_json(struct net *net, const struct server *server, const struct weir_heavy_row *row);
json_t *top_counts_json(const struct weir_heavy_counts *counts);
/* What the rows of a server should come to, by its counters (WEIR_REASON_COUNT), and what a limit has counted. */
struct weir_heavy_counts top_total(const __u64 *counters);
/* Records among its requests. */
__u64 top_records(const __u64 *counters);
struct weir_heavy_counts top_limit_counts(const struct weir_limit_counts *counts);

#endif
