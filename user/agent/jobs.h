/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What may have to wait, for programs that are loaded or for the disk, is done by one thread in the order in which it came.
 * The event loop only adds jobs, and answers when they are done. Nothing else frees servers and namespaces.
 */
#ifndef WEIR_USER_AGENT_JOBS_H
#define WEIR_USER_AGENT_JOBS_H

#include <stdbool.h>

#include "base/error.h"

struct agent;

/* Starts the thread. The event loop does not run yet. */
int jobs_start(struct agent *agent, struct error *err);
/* No job is begun or added any more. */
void jobs_end(struct agent *agent);
/* After that: lets the job at hand come to its end; what has not begun is not run, but is done. The loop runs no more, but for this. */
void jobs_stop(struct agent *agent);
void jobs_free(struct agent *agent);

/* Queues run(agent). All who ask before it begins get one run together. Without the thread it runs at once. */
void jobs_add(struct agent *agent, void (*run)(struct agent *agent));
/*
 * Has run(arg) called, and then done(arg) by the event loop. -ENOMEM, -ESHUTDOWN: neither will be. A question changes nothing:
 * it waits until no other job does, so that whoever may only ask holds up nobody's changes.
 */
int jobs_add_call(struct agent *agent, void (*run)(void *arg), void (*done)(void *arg), void *arg, bool question);

#endif
