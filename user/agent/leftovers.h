/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is pinned for network namespaces in which the state has no server. It is in force, and an agent that has lost its state
 * cannot tell what it limits. It goes when a server is attached there (net_clear_leftovers()), and with uninstall. What another
 * agent holds is that agent's, and is told only once it has let go.
 */
#ifndef WEIR_USER_AGENT_LEFTOVERS_H
#define WEIR_USER_AGENT_LEFTOVERS_H

#include "agent/agent.h"

/* Notes and logs what is there when the agent starts. */
void leftovers_look(struct agent *agent);
/* What is still there: its directories. A new reference. */
json_t *leftovers_to_json(const struct agent *agent);

#endif
