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
/* Looks for the processes of a server that has just been attached. An error: they cannot be looked into. */
int inside_attach(struct agent *agent, int slot, struct error *err);
/* Are all of its processes looked into, so that its requests are decided there, and not held? */
bool inside_decides(const struct agent *agent, const struct server *server);
/* Are the requests of the server known that are in flight inside it? */
bool inside_shows_open(const struct agent *agent, int slot);
/* Does what is decided inside the server hold its connections back (attach --inside hold)? */
bool inside_holds(const struct agent *agent, const struct server *server);
/* Limits of some server have changed. If one of them is on requests in flight, it has to be probed where requests end. */
void inside_limits_changed(struct agent *agent);
/* The server is about to end: its processes are not looked into any more. */
void inside_forget(struct agent *agent, int slot);

/* {"asked", "lane", "text", "why", "processes"}: null where it was turned off. */
json_t *inside_status(const struct agent *agent, int slot);
/* What `auto` has chosen, as `attach` says it; the caller frees it. NULL: nothing that is worth a word, or there is no memory. */
char *inside_chosen(const struct agent *agent, int slot);
/* Limits of the server have changed. What `auto` takes instead of `see`, if they end that; the caller frees it. */
char *inside_chosen_anew(struct agent *agent, int slot);
/* How a request is decided there, for `explain`: enum weir_explain_inside. */
__u32 inside_explained(const struct agent *agent, int slot);
/* A limit that is for no request inside it, and why; the caller frees it. NULL: each is for some, or there is no memory. */
char *inside_idle_limit(const struct agent *agent, int slot);
/* Why limits refuse nobody inside it, in `see`, asked for or not; the caller frees it. NULL: they do, or there is no memory. */
char *inside_refuses_not(const struct agent *agent, int slot);
/* Where the requests of the server are read and refused: one of metrics_lanes. */
const char *inside_lane(const struct agent *agent, int slot);

#endif
