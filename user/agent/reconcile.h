/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is in force, brought in line with what was asked for: by several workers, from a work queue (reconcile.c). And
 * what of it others had changed (drift.c).
 */
#ifndef WEIR_USER_AGENT_RECONCILE_H
#define WEIR_USER_AGENT_RECONCILE_H

#include "agent/agent.h"

/* Starts the workers, and has all servers looked at. The agent is not locked, here and in the next two. */
int reconcile_start(struct agent *agent, struct error *err);
/* Returns true when every server was tried once; false when the agent ends. */
bool reconcile_wait(struct agent *agent);
/* Does what is in the queue, within a time, and ends the workers. */
void reconcile_stop(struct agent *agent);

/* Has all servers looked at. Without workers: nothing. */
void reconcile_all(struct agent *agent);
/* A server that is no more is not given up, either. */
void reconcile_forget(struct agent *agent, const char *name);
/* Brings the server up if it is not in force. If it is: finds what others have changed, repairs it, counts it and logs it. */
int server_reconcile(struct agent *agent, int slot, struct error *err);

/* {resync_seconds, queued, given_up: {KEY: {tries, error}}}, for status. A new reference. */
json_t *reconcile_status(const struct agent *agent);
/* Adds the families of the queue, of what was given up, and of drift. */
void reconcile_metrics(const struct agent *agent, json_t *families);

/* Counts and tells what was repaired in a namespace since `before`, as a server's. */
void drift_found(struct agent *agent, struct net *net, int slot, const struct datapath_written *before);
void drift_metrics(const struct agent *agent, json_t *families);
/* What was written to a namespace that is about to be closed counts on. */
void drift_keep_written(struct agent *agent, const struct net *net);

#endif
