/* SPDX-License-Identifier: GPL-2.0 */
/* What the commands about limits share. */
#ifndef WEIR_USER_COMMANDS_LIMITS_H
#define WEIR_USER_COMMANDS_LIMITS_H

#include "agent/agent.h"

/*
 * Sets a limit as it is given (limit.h), or what it allows a subject; what is not given stays as it is. The key and the rules of
 * a limit that is there cannot be changed.
 */
int limit_set(struct agent *agent, int slot, json_t *given, const char *subject, struct error *err);
/* A limit that a policy file sets is that file's to change. -EBUSY. */
int limit_check_file(const struct server *server, const struct limit *limit, struct error *err);
/* Takes a limit, which the state has no more, out of the kernel. */
int limit_take_out(struct agent *agent, int slot, const struct limit *limit, struct error *err);
/* Takes it out of both. */
int limit_remove(struct agent *agent, int slot, struct limit *limit, struct error *err);

#endif
