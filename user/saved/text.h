/* SPDX-License-Identifier: GPL-2.0 */
/* Servers as the state's files have them: what was chosen for them, their limits and policy, without a tree, which may be very large. */
#ifndef WEIR_USER_SAVED_TEXT_H
#define WEIR_USER_SAVED_TEXT_H

#include "base/json_text.h"
#include "state/state.h"

/* The text of the policy is kept with the server until it has another one. -ENOMEM; or the text has failed. */
int server_write(struct server *server, struct text *out);
/* A line behind the state (lines.h), with its end; or the text has failed. */
void override_line(int slot, const struct limit *limit, const struct override *override, struct text *out);

#endif
