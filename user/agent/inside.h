/* SPDX-License-Identifier: GPL-2.0 */
/* Servers that are looked into: the processes that listen on their ports, found and followed. */
#ifndef WEIR_USER_AGENT_INSIDE_H
#define WEIR_USER_AGENT_INSIDE_H

#include <jansson.h>
#include <linux/types.h>
#include <stdbool.h>

#include "base/error.h"

struct agent;
struct datapath;
struct net;
struct server;

/* Is there anything to follow? Asked each second. */
bool inside_wanted(const struct agent *agent);
/* Follows all of them: restarts, replaced binaries, further processes. A job. */
void inside_follow(struct agent *agent);
/* A namespace's datapath has been taken over: where nobody may be looked into, what an earlier agent has pinned for that goes. */
int inside_open(const struct agent *agent, struct datapath *dp, struct error *err);
/* The same for one that has just been attached. An error: its process is not one that can be looked into. */
int inside_attach(struct agent *agent, int slot, struct error *err);
/* Are all of its processes looked into, so that its requests are decided there, and not held? */
bool inside_decides(const struct agent *agent, const struct server *server);
/* And are those in flight known? */
bool inside_shows_open(const struct agent *agent, int slot);
/* And do their decisions hold connections back (attach --inside hold)? */
bool inside_holds(const struct agent *agent, const struct server *server);
/* After a command: limits on requests in flight ask where requests end. */
void inside_limits_changed(struct agent *agent);
/* It is about to end. */
void inside_forget(struct agent *agent, int slot);

/* {"asked", "lane", "text", "why", "processes"}: null where it was turned off. */
json_t *inside_status(const struct agent *agent, int slot);
/* What `auto` has chosen, as `attach` says it; the caller frees it. NULL: nothing that is worth a word, or there is no memory. */
char *inside_chosen(const struct agent *agent, int slot);
/* How a request is decided there, for `explain`: enum weir_explain_inside. */
__u32 inside_explained(const struct agent *agent, int slot);
/* Why limits refuse nobody inside it, in `see`, asked for or not; the caller frees it. NULL: they do, or there is no memory. */
char *inside_refuses_not(const struct agent *agent, int slot);
/* One of metrics_lanes. */
const char *inside_lane(const struct agent *agent, int slot);

#endif
