/* SPDX-License-Identifier: GPL-2.0 */
/* What of a limit is otherwise for requests that are decided inside a server (attach --inside) than for those in packets. */
#ifndef WEIR_USER_RULES_LIMIT_INSIDE_H
#define WEIR_USER_RULES_LIMIT_INSIDE_H

#include <jansson.h>

#include "model/limit.h"

/* Appends a text for each such thing, without the limit's name. holds: connections are held, and no request is refused (hold). */
void limit_inside(const struct limit *limit, bool holds, json_t *texts);

#endif
