/* SPDX-License-Identifier: GPL-2.0 */
/* An agent over the kernel side in memory of the unit tests, one for each input of a fuzz target. */
#ifndef WEIR_TESTS_AGENT_IN_MEMORY_H
#define WEIR_TESTS_AGENT_IN_MEMORY_H

#include "agent/agent.h"

/* With nothing attached, in directories that are empty. */
void agent_begin(struct agent *agent);
void agent_finish(struct agent *agent);
/* All its servers as JSON; the caller frees it. */
char *agent_servers(const struct agent *agent);

#endif
