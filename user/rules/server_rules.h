/* SPDX-License-Identifier: GPL-2.0 */
/* What a server's limits, priority levels and exemptions come to in the kernel. Nothing here touches it. */
#ifndef WEIR_USER_RULES_SERVER_RULES_H
#define WEIR_USER_RULES_SERVER_RULES_H

#include "datapath/datapath.h"
#include "rules/rules.h"
#include "state/state.h"

/* A limit, and a priority level that is not exempt, as limits of the kernel. Their groups have bits (server_name_groups()). */
void server_kernel_limit(const struct server *server, const struct limit *limit, struct datapath_limit *out);
void server_kernel_level(const struct server *server, const struct priority_level *level, struct datapath_limit *out);

/*
 * All rules, in their order: exemptions, flow schemas, limits with names of their own, the narrow ones first. *out is NULL
 * when every request meets the same limits: the built-in ones. dp is whose subjects they are; NULL: of
 * no one, to see whether these rules can be.
 */
int server_rules(const struct server *server, struct datapath *dp, struct rules **out, struct error *err);

/* The rules by their numbers (weir/limit/match.h). */
struct server_rule {
	char *label;   /* whose it is: "limit secrets", "flow schema probes" */
	size_t nth;    /* of its rules, from 1 on */
	__u16 limit;   /* its slot; or WEIR_RULE_EXEMPT, WEIR_RULE_NOTHING */
	size_t family; /* rules of one family stand together; the first that matches counts */
};

/* Returns how many there are, or -ENOMEM. The caller frees *out (server_rules_list_free). */
int server_rules_list(const struct server *server, struct server_rule **out, struct error *err);
void server_rules_list_free(struct server_rule *rules, size_t n);

#endif
