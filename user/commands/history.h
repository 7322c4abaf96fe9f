/* SPDX-License-Identifier: GPL-2.0 */
/* The history: what the kernel counted in each minute, written to files (history/files.h). Its functions are jobs. */
#ifndef WEIR_USER_COMMANDS_HISTORY_H
#define WEIR_USER_COMMANDS_HISTORY_H

#include "agent/agent.h"

/* Takes up where the agent before has written last. -ENOMEM. */
int history_open(struct agent *agent, struct error *err);
void history_close(struct agent *agent);

/* Where nothing was taken up: what is counted already is of no minute. */
void history_begin(struct agent *agent);
/* Writes down what was counted since the last time. */
void history_write(struct agent *agent);
/* Has a minute ended since the last time that this was asked? */
bool history_is_due(struct agent *agent);

#endif
