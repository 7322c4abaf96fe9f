/* SPDX-License-Identifier: GPL-2.0 */
/* The requests that the programs write down. */
#ifndef WEIR_USER_DATAPATH_TRACE_H
#define WEIR_USER_DATAPATH_TRACE_H

#include <stdbool.h>

#include "weir/base/types.h"

#include "base/error.h"

struct datapath;
struct weir_trace_record;

/*
 * The ring of requests. until: CLOCK_MONOTONIC, up to which those of a slot are written; 0: no more. read gives what is
 * there to tell(arg, record), to which the bytes behind its line_kept do not belong; returns whether there may be more.
 */
int datapath_trace_until(struct datapath *dp, __u32 slot, __u64 until_ns, struct error *err);
int datapath_trace_fd(const struct datapath *dp);
bool datapath_trace_read(struct datapath *dp, void (*tell)(void *arg, const struct weir_trace_record *record),
			 void *arg);

#endif
