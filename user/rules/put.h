/* SPDX-License-Identifier: GPL-2.0 */
/* What a server was told, written to the kernel's maps: by the agent, and where its policy is only tried on a recording. */
#ifndef WEIR_USER_RULES_PUT_H
#define WEIR_USER_RULES_PUT_H

#include "datapath/datapath.h"
#include "state/state.h"

/* Those of enum weir_server_flags that follow from the server alone. */
__u32 server_own_flags(const struct server *server);

/* All but tokens, addresses, limits and rules. */
int server_put_settings(struct datapath *dp, __u32 slot, const struct server *server, __u32 flags, struct error *err);
/* The groups and users that its settings name. */
int server_put_groups(struct datapath *dp, __u32 slot, const struct server *server, struct error *err);

int server_put_limit(struct datapath *dp, __u32 slot, const struct server *server, const struct limit *limit,
		     struct error *err);
int server_put_override(struct datapath *dp, __u32 slot, const struct limit *limit, const struct override *override,
			struct error *err);
int server_put_rules(struct datapath *dp, __u32 slot, const struct server *server, struct error *err);
/* All limits, priority levels and rules: these and no others. */
int server_put_limits(struct datapath *dp, __u32 slot, const struct server *server, struct error *err);
/*
 * The same where the kernel has what the server was told before. Overrides that are as they were are not looked at: there may be very
 * many, and what others have changed is found by whoever looks after the server.
 */
int server_change_limits(struct datapath *dp, __u32 slot, const struct server *from, const struct server *to,
			 struct error *err);

#endif
