/* SPDX-License-Identifier: GPL-2.0 */
/* GET /metrics and /healthz over HTTP. */
#ifndef WEIR_USER_METRICS_HTTP_H
#define WEIR_USER_METRICS_HTTP_H

#include <event2/event.h>

#include "base/error.h"

/* The text to serve, which the server frees; NULL: it cannot be had now. */
typedef char *metrics_http_read(void *context);

struct metrics_http;

/* address: ADDR:PORT. An address in use is an error. */
int metrics_http_open(struct metrics_http **out, struct event_base *base, const char *address, metrics_http_read *read,
		      void *context, struct error *err);
void metrics_http_close(struct metrics_http *http);

#endif
