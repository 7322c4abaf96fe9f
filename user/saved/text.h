/* SPDX-License-Identifier: GPL-2.0 */
/* Servers as the state's files have them: the text of server_to_json(), without its tree, which may be very large. */
#ifndef WEIR_USER_SAVED_TEXT_H
#define WEIR_USER_SAVED_TEXT_H

#include <stdio.h>

#include "state/state.h"

/* The text of the policy is kept with the server until it has another one. -ENOMEM; what else fails is told by ferror(). */
int server_write(struct server *server, FILE *out);

#endif
