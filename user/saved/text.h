/* SPDX-License-Identifier: GPL-2.0 */
/* Servers as the state's files have them: what was chosen for them, their limits and policy, without a tree, which may be very large. */
#ifndef WEIR_USER_SAVED_TEXT_H
#define WEIR_USER_SAVED_TEXT_H

#include <stdio.h>

#include "state/state.h"

/* The text of the policy is kept with the server until it has another one. -ENOMEM; what else fails is told by ferror(). */
int server_write(struct server *server, FILE *out);

#endif
