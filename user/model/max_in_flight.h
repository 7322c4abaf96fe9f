/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kube-apiserver's --max-requests-inflight and --max-mutating-requests-inflight as two limits: what only reads, and what may
 * change something. Neither counts long-running requests.
 */
#ifndef WEIR_USER_MODEL_MAX_IN_FLIGHT_H
#define WEIR_USER_MODEL_MAX_IN_FLIGHT_H

#include <jansson.h>
#include <stdbool.h>

#include "weir/base/types.h"

const char *max_in_flight_name(bool read_only);
/* The limit (limit.h); seats: requests at once. A new reference. */
json_t *max_in_flight_limit(bool read_only, __u32 seats);

#endif
