/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_AGENT_SWEEP_H
#define WEIR_USER_AGENT_SWEEP_H

#include "agent/agent.h"

int sweeper_start(struct agent *agent, struct error *err);
/* Once nobody wakes it any more: a sweep that has begun is stopped. */
void sweeper_stop(struct agent *agent);
/* Has all tables looked through soon; without the thread, at once. The lock is not held. */
void sweeper_wake(struct agent *agent);
/* The namespace is about to end: returns when nobody sweeps its table, and nobody does again. Within a turn, with the lock. */
void sweeper_leave(struct net *net);

#endif
