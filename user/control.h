/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control protocol: JSON objects over STATE_DIR/weir.sock, one in a line each way, answered in order.
 *
 *   request  {"command": NAME, "arguments": {...}}
 *   reply    {"result": ...} or {"error": TEXT}
 *
 * Only root and the agent's own user are served. A line is at most CONTROL_LINE_MAX bytes; a client that is silent or
 * does not read its replies is dropped after CONTROL_TIMEOUT_S.
 */
#ifndef WEIR_USER_CONTROL_H
#define WEIR_USER_CONTROL_H

#include <event2/event.h>
#include <jansson.h>
#include <sys/un.h>

#include "error.h"

#define CONTROL_LINE_MAX (1U << 20)
#define CONTROL_CLIENTS_MAX 128 /* served at once; the others wait in the socket's queue */
#define CONTROL_TIMEOUT_S 10

/* The address of a state directory's socket; -ENAMETOOLONG. */
int control_address(const char *state_dir, struct sockaddr_un *address, struct error *err);

/* Handles a command. Sets *result (a new reference) and returns 0, or a negative errno with err filled in. */
typedef int control_handler(void *context, const char *command, json_t *arguments, json_t **result, struct error *err);

struct control;

/* Binds the socket (a stale one is replaced: the caller holds the lock of the directory) and serves it from `base`. */
int control_open(struct control **out, struct event_base *base, const char *state_dir, control_handler *handler,
		 void *context, struct error *err);
/* Drops every client and takes the socket away. */
void control_close(struct control *control);

/*
 * The client's side: one command, one reply. *result is a new reference. The agent's own errors come back as -EREMOTEIO
 * with its text. waiting, if not NULL, is called once when the reply takes more than two seconds.
 */
int control_call(const char *state_dir, const char *command, json_t *arguments, json_t **result, void (*waiting)(void),
		 struct error *err);

#endif
