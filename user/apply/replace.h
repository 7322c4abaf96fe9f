/* SPDX-License-Identifier: GPL-2.0 */
/* A server in the place of what it was. */
#ifndef WEIR_USER_APPLY_REPLACE_H
#define WEIR_USER_APPLY_REPLACE_H

#include "agent/agent.h"

/*
 * `to` is the server's new state (policy_server()), in the file and in the kernel. What was there before is the caller's: on
 * success to be freed, on failure to be put back. -errno.
 */
int server_replace(struct agent *agent, int slot, struct server *to, struct error *err);
/*
 * Undoes a replacement, also one that failed half-way, but for the file: agent_save_back() is the caller's, and so is the state that
 * was put there again.
 */
void server_put_back(struct agent *agent, int slot, struct server *from);

#endif
