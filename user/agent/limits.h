/* SPDX-License-Identifier: GPL-2.0 */
/* A server's limits in the kernel. */
#ifndef WEIR_USER_AGENT_LIMITS_H
#define WEIR_USER_AGENT_LIMITS_H

#include "agent/net.h"

/* Can the kernel have all the rules of this server? */
int limits_check_rules(struct agent *agent, const struct server *server, struct error *err);

/* Write a limit to the kernel: all but its overrides; a single override; all of it. */
int limit_apply(struct net *net, int slot, const struct server *server, const struct limit *limit, struct error *err);
int override_apply(struct net *net, int slot, const struct limit *limit, const struct override *override,
		   struct error *err);
int override_unapply(struct net *net, int slot, const struct limit *limit, const struct override *override,
		     struct error *err);
int limit_apply_whole(struct net *net, int slot, const struct server *server, const struct limit *limit,
		      struct error *err);
/* Writes all limits of a server to the kernel, and what goes with them. */
int limits_apply(struct net *net, int slot, const struct server *server, struct error *err);
/* Writes what differs between a server and what it was before. Overrides that are the same in both are not looked at. */
int limits_change(struct net *net, int slot, const struct server *from, const struct server *to, struct error *err);
/* Writes the rules of all limits of a server. */
int rules_apply(struct net *net, int slot, const struct server *server, struct error *err);
/* Writes the bits of the groups that the settings of a server name, and the users of its tokens and addresses, who carry such bits. */
int groups_apply(struct agent *agent, int slot, struct error *err);

#endif
