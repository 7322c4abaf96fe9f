/* SPDX-License-Identifier: GPL-2.0 */
/* The kinds of documents that policy files may hold: weir's own, and those of Kubernetes as they are written there. */
#ifndef WEIR_USER_POLICY_KINDS_H
#define WEIR_USER_POLICY_KINDS_H

#include "policy/shape.h"

enum policy_kind_id {
	POLICY_THROTTLE,	 /* a server and its limits */
	POLICY_EVENT_RATE_LIMIT, /* the configuration of Kubernetes' admission plugin */
	POLICY_FLOW_SCHEMA,
	POLICY_PRIORITY_LEVEL,
	POLICY_ADMISSION, /* points to an EventRateLimit, or holds one */
};

struct policy_kind {
	enum policy_kind_id id;
	const char *kind;
	const char *const *versions; /* of the API; NULL behind them */
	const struct shape *shape;
};

extern const struct policy_kind policy_kinds[]; /* ends with a NULL kind */

/* The kind of a document. NULL when a problem says why it is none. */
const struct policy_kind *policy_kind_of(const struct node *document, struct problems *problems);

extern const struct shape policy_throttle_shape;				 /* throttle.c */
extern const struct shape policy_own_rule_shape, policy_own_limit_shape;	 /* limit_fields.c */
extern const struct shape policy_own_level_shape, policy_own_schema_shape;	 /* priority.c */
extern const struct shape policy_event_rate_limit_shape, policy_admission_shape; /* admission.c */
extern const struct shape policy_flow_schema_shape, policy_priority_level_shape; /* kube.c */

/* A new reference (schema.c). */
json_t *policy_schema(void);

#endif
