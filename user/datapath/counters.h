/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs have counted. */
#ifndef WEIR_USER_DATAPATH_COUNTERS_H
#define WEIR_USER_DATAPATH_COUNTERS_H

#include "weir/abi/abi.h"

#include "base/error.h"

struct datapath;

/* Sums over CPUs; `counters` has WEIR_REASON_COUNT places. */
int datapath_counters(struct datapath *dp, __u32 slot, __u64 *counters, struct error *err);

struct datapath_subject_use {
	__u32 slot; /* of the limit */
	__u64 subject;
	__u64 passed, shed;
	__u64 dry_run_shed; /* would have been refused, were it not for a dry run */
};
/* The n subjects that were refused most, most first; returns how many (>= 0). */
int datapath_top(struct datapath *dp, __u32 server, struct datapath_subject_use *top, size_t n, struct error *err);

#endif
