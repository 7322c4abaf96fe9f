/* SPDX-License-Identifier: GPL-2.0 */
/* What the commands about limits share. */
#ifndef WEIR_USER_AGENT_LIMITS_H
#define WEIR_USER_AGENT_LIMITS_H

#include "agent/private.h"

/* The namespace of a server that is in force. NULL: it gets its limits when it is brought up. */
struct net *limits_net(const struct agent *agent, int slot);
int limits_save(struct agent *agent, struct error *err);

/* Can all the rules of a server be? */
int limits_check_rules(struct agent *agent, const struct server *server, struct error *err);

/* What the kernel is told of a limit: all but its overrides; a single one of these; all of it. */
int limit_apply(struct net *net, int slot, const struct server *server, const struct limit *limit, struct error *err);
int override_apply(struct net *net, int slot, const struct limit *limit, const struct override *override,
		   struct error *err);
int override_unapply(struct net *net, int slot, const struct limit *limit, const struct override *override,
		     struct error *err);
int limit_apply_whole(struct net *net, int slot, const struct server *server, const struct limit *limit,
		      struct error *err);
/* The rules of all limits; whom they are for by group. */
int rules_apply(struct net *net, int slot, const struct server *server, struct error *err);
int groups_apply(struct agent *agent, int slot, struct error *err);

/*
 * Sets a limit as it is given (limit.h), or what it allows a subject; what is not given stays as it is. The key and the rules of
 * a limit that is there cannot be changed.
 */
int limit_set(struct agent *agent, int slot, json_t *given, const char *subject, struct error *err);
/* A limit that a policy file sets is that file's to change. -EBUSY. */
int limit_check_file(const struct limit *limit, struct error *err);
/* Takes a limit, which the state has no more, out of the kernel. */
int limit_take_out(struct agent *agent, int slot, const struct limit *limit, struct error *err);
/* Takes it out of both. */
int limit_remove(struct agent *agent, int slot, struct limit *limit, struct error *err);

#endif
