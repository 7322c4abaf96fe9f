/* SPDX-License-Identifier: GPL-2.0 */
/* What a server's limits, priority levels and exemptions come to in the kernel. Nothing here touches it. */
#ifndef WEIR_USER_SERVER_RULES_H
#define WEIR_USER_SERVER_RULES_H

#include "datapath.h"
#include "rules.h"
#include "state.h"

/* A limit, and a priority level that is not exempt, as limits of the kernel. Their groups have bits (server_name_groups()). */
void server_kernel_limit(const struct server *server, const struct limit *limit, struct datapath_limit *out);
void server_kernel_level(const struct server *server, const struct priority_level *level, struct datapath_limit *out);

/*
 * All rules, in their order: exemptions, flow schemas, limits with names of their own, the narrow ones first. *out is NULL
 * when every request meets the same limits: the built-in ones. dp is whose subjects they are; NULL: of
 * no one, to see whether these rules can be.
 */
int server_rules(const struct server *server, struct datapath *dp, struct rules **out, struct error *err);

#endif
