/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_DAEMON_REQUEST_H
#define WEIR_USER_DAEMON_REQUEST_H

#include "agent/agent.h"

/* A command by its name (control_handler); context: the agent. What changes something is a job, if there are jobs. */
int agent_request(void *context, struct control_client *client, const char *name, json_t *arguments, json_t **result,
		  struct error *err);
/* For the event loop (control_aside): there are jobs. */
int agent_aside(void *context, void (*run)(void *arg), void (*done)(void *arg), void *arg, bool question);

#endif
