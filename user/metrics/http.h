/* SPDX-License-Identifier: GPL-2.0 */
/* GET /metrics, /healthz, /livez and /readyz over HTTP. */
#ifndef WEIR_USER_METRICS_HTTP_H
#define WEIR_USER_METRICS_HTTP_H

#include <event2/event.h>
#include <stdbool.h>

#include "base/error.h"

/* The text to serve, which the server frees; NULL: it cannot be had now. */
typedef char *metrics_http_read(void *context);

/* Is what should be in force in force? */
typedef bool metrics_http_ready(void *context);

struct metrics_http;

/* address: ADDR:PORT. An address in use is an error. */
int metrics_http_open(struct metrics_http **out, struct event_base *base, const char *address, metrics_http_read *read,
		      metrics_http_ready *ready, void *context, struct error *err);
void metrics_http_close(struct metrics_http *http);

#endif
