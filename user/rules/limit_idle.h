/* SPDX-License-Identifier: GPL-2.0 */
/* What of a limit is never used, because no request is as its rules, its key or its overrides ask for: most likely a mistake. */
#ifndef WEIR_USER_RULES_LIMIT_IDLE_H
#define WEIR_USER_RULES_LIMIT_IDLE_H

#include <jansson.h>
#include <stdbool.h>

#include "model/limit.h"

/*
 * A text for each such thing, without the limit's name; a new reference. by_path: the namespace of a request is that of its
 * path, as Kubernetes has it.
 */
json_t *limit_idle(const struct limit *limit, bool by_path);

#endif
