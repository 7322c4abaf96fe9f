/* SPDX-License-Identifier: GPL-2.0 */
/* How much each server was asked lately: its counters beside those of ten to twenty seconds ago. */
#ifndef WEIR_USER_AGENT_RATES_H
#define WEIR_USER_AGENT_RATES_H

#include <jansson.h>

#include "weir/base/reason.h"
#include "weir/base/types.h"

struct agent;

struct rates_sample {
	__u64 time_ns; /* CLOCK_MONOTONIC; 0: there is none */
	__u64 requests, refused, would_refuse, records, inside;
};

/* The latest, and the one before it. */
struct rates {
	struct rates_sample latest, before;
};

/* Takes a sample of each server that is in force. A job. */
void rates_look(struct agent *agent);

/* {seconds, requests, refused, would_refuse, records, inside}, each a second; null before there is a sample. */
json_t *rates_json(const struct rates *rates, const __u64 counters[static WEIR_REASON_COUNT]);

#endif
