/* SPDX-License-Identifier: GPL-2.0 */
/* The record of changes: each change of a server's settings is written down, with its author and the values before. */
#ifndef WEIR_USER_AGENT_AUDIT_H
#define WEIR_USER_AGENT_AUDIT_H

#include "agent/agent.h"
#include "audit/view.h"

/* Where the file of changes is. */
const char *audit_dir(const struct agent *agent);
/* The size of a time as the file has it (RFC 3339): such texts compare as their times do. */
#define AUDIT_TIME sizeof("2026-11-20T13:14:15.123Z")
void audit_time(const struct timespec *time, char text[static AUDIT_TIME]);

/* Keeps in *before what settings are before they may change. subject: of overrides only this one's may; NULL: any. Within a turn. */
void audit_begin(const struct agent *agent, const char *subject, struct audit_view *before);
/* Writes down what has changed since. by: who changed it, a reference that is taken over; command: as it is typed. */
void audit_end(struct agent *agent, const struct audit_view *before, json_t *by, const char *command);

/* {uid, pid, user, login_uid, login}: who asked; NULL: the agent itself. login: who logged in, before a su or sudo. */
json_t *audit_client(const struct control_client *client);

#endif
