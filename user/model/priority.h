/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Priority levels and flow schemas, as Kubernetes' API Priority and Fairness has them (flowcontrol.apiserver.k8s.io): a
 * request is of the first schema, by its precedence, that matches it; the schema names its level; and a level has as many
 * seats of the server as its share comes to. What is beyond them is refused. As JSON (* what must be there):
 *
 *   priority_levels  {name*, exempt: true, or shares*}
 *   flow_schemas     {name*, level*, precedence: 1 (first) to 10000, 1000 where not given, distinguisher: "ByUser" or
 *                    "ByNamespace", which tell the flows of a queue apart: there is none, rules*}
 *
 * and in state.json alone a level's number (limit.h).
 */
#ifndef WEIR_USER_MODEL_PRIORITY_H
#define WEIR_USER_MODEL_PRIORITY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "model/rule.h"

#define PRIORITY_PRECEDENCE_MAX 10000
#define PRIORITY_SHARES_MAX 1000000

struct priority_level {
	char *name;
	bool exempt;
	__u32 shares;
	__u32 number; /* 0: none yet */
};

enum flow_distinguisher {
	FLOW_BY_NOTHING,
	FLOW_BY_USER,
	FLOW_BY_NAMESPACE,
	FLOW_DISTINGUISHERS,
};

struct flow_schema {
	char *name, *level;
	__u32 precedence;
	enum flow_distinguisher distinguisher;
	struct rule *rules;
	size_t n_rules;
};

struct priorities {
	struct priority_level *levels;
	size_t n_levels;
	struct flow_schema *schemas; /* in their order: by precedence, then by name */
	size_t n_schemas;
};

void priorities_clear(struct priorities *priorities);

/* New references. */
json_t *priority_levels_to_json(const struct priorities *priorities);
json_t *flow_schemas_to_json(const struct priorities *priorities);

/* Either may be NULL. The schemas' levels must be there, and no name twice. Caller clears *out, on failure too. */
int priorities_from_json(json_t *levels, json_t *schemas, struct priorities *out, struct error *err);

struct priority_level *priority_level(const struct priorities *priorities, const char *name);
/* A level's part of all the server's seats, rounded up. */
__u32 priority_seats(const struct priorities *priorities, const struct priority_level *level, __u32 concurrency);
/*
 * For people, of each level that is not exempt: {level, seats, of: all the server's, lists: that may be in flight at once if
 * they are narrow, wide_lists: if they are as wide as a LIST can be}. list_width: as in struct server. A new reference.
 */
json_t *priority_seats_to_json(const struct priorities *priorities, __u32 concurrency, __u32 list_width);

#endif
