/* SPDX-License-Identifier: GPL-2.0 */
/* The daemon: owns the maps, keeps the desired state in force, answers commands. */
#ifndef WEIR_USER_DAEMON_DAEMON_H
#define WEIR_USER_DAEMON_DAEMON_H

#include "agent/options.h"
#include "base/error.h"

/* Runs until SIGTERM or SIGINT, then returns 0; what is in force stays in force. */
int agent_run(const struct agent_options *options, struct error *err);

#endif
