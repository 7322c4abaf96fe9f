/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel says of a request (weir/conn/explain.h), in words. */
#ifndef WEIR_USER_SHOW_EXPLAIN_H
#define WEIR_USER_SHOW_EXPLAIN_H

#include <jansson.h>

#include "weir/conn/explain.h"

#include "rules/server_rules.h"
#include "state/state.h"

/* What the answer itself does not hold. */
struct explain_context {
	const struct server *server;
	const struct server_rule *rules;
	size_t n_rules;
	const char *about; /* "request" or "connection" */
	const char *lane;  /* in which it is decided: one of metrics_lanes; NULL: it is a connection */
	json_t *request;   /* what was read, or is known of the connection: an object; borrowed */
	/* What a subject is called; the caller frees it, NULL without memory. */
	char *(*name)(void *arg, __u64 subject);
	void *arg;
};

/* The object that `weir explain --json` prints (docs/reference/output.md); NULL without memory. */
json_t *explain_json(const struct weir_explained *explained, const struct explain_context *context);

#endif
