/* SPDX-License-Identifier: GPL-2.0 */
/* A record of the ring `trace` in words. */
#ifndef WEIR_USER_TRACE_H
#define WEIR_USER_TRACE_H

#include <jansson.h>
#include <time.h>

#include "weir/trace.h"

/* What the record itself does not hold. */
struct trace_context {
	const char *server;
	const char *user;      /* names of its subjects */
	const char *namespace; /* NULL: none */
	struct timespec time;  /* CLOCK_REALTIME */
};

/* The object that `weir trace --json` prints; NULL without memory. */
json_t *trace_json(const struct weir_trace_record *record, const struct trace_context *context);

#endif
