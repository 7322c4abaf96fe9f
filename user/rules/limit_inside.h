/* SPDX-License-Identifier: GPL-2.0 */
/* What of a limit is otherwise for requests that are decided inside a server (attach --inside) than for those in packets. */
#ifndef WEIR_USER_RULES_LIMIT_INSIDE_H
#define WEIR_USER_RULES_LIMIT_INSIDE_H

#include <jansson.h>

#include "model/limit.h"

/* How requests inside are refused. */
struct inside_refusals {
	bool holds;  /* connections are held, and no request is refused (hold) */
	bool writes; /* by memory, where registers cannot be written (--write-memory) */
};

/* Appends a text for each such thing, without the limit's name. There is none of a limit on connections: packets decide it everywhere. */
void limit_inside(const struct limit *limit, struct inside_refusals how, json_t *texts);

/*
 * Is the limit for no request that is decided inside a server which is no Kubernetes API server? Such a server says only who its peer is. The
 * text, without the limit's name; NULL: it is for some.
 */
const char *limit_inside_any(const struct limit *limit);

#endif
