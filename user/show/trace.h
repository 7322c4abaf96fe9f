/* SPDX-License-Identifier: GPL-2.0 */
/* A record of the ring `trace` in words. */
#ifndef WEIR_USER_SHOW_TRACE_H
#define WEIR_USER_SHOW_TRACE_H

#include <jansson.h>
#include <time.h>

#include "weir/conn/trace.h"

/* What the record itself does not hold. */
struct trace_context {
	const char *server;
	const char *user;      /* what its subjects are called */
	const char *namespace; /* NULL: none */
	json_t *groups;	       /* its user's, as far as the settings name them; borrowed */
	struct timespec time;  /* CLOCK_REALTIME */
	/* What the limits that refused it are called, in their order. */
	const char *const *limits;
	size_t n_limits;
	/* The subject of these bytes, as a segment of a path: it tells how the name in the request line was read. */
	__u64 (*subject)(void *arg, const char *bytes, size_t length);
	void *arg;
};

/* What weir has answered: 429, 403 or 400; 0: nothing. */
int trace_status(const struct weir_trace *trace);

/* The object that `weir trace --json` prints; NULL without memory. */
json_t *trace_json(const struct weir_trace_record *record, const struct trace_context *context);

#endif
