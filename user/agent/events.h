/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests in words, and the latest refusals: what `weir events` shows. The kernel tells of refusals also when nobody
 * traces, as far as its sample has room (weir/conn/trace.h).
 */
#ifndef WEIR_USER_AGENT_EVENTS_H
#define WEIR_USER_AGENT_EVENTS_H

#include "agent/agent.h"
#include "weir/conn/trace.h"

/* Is a request with this decision a refusal? */
bool event_is(enum weir_reason decision);

/* The object that `weir trace --json` prints; NULL without memory. Its server is attached. */
json_t *event_json(struct net *net, const struct weir_trace_record *record);

/* Adds an event to the latest ones, with a reference of its own. NULL: nothing is added. */
void event_keep(struct agent *agent, json_t *event);

/* Is the event of this server? server NULL: it may be of any. */
bool event_is_of(json_t *event, const char *server);

#endif
