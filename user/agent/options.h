/* SPDX-License-Identifier: GPL-2.0 */
/* How `weir agent` was started. */
#ifndef WEIR_USER_AGENT_OPTIONS_H
#define WEIR_USER_AGENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "control/access.h"

struct agent_options {
	const char *state_dir;
	const char *pin_dir;
	const char *metrics;				/* ADDR:PORT; NULL: not served */
	struct access_group admin_group, monitor_group; /* who may talk to the agent beside root */
	unsigned int resync_s;				/* between two looks at all that is in force; at least 1 */
	unsigned int conns_max;				/* of one network namespace; 0: as it is, or the default */
	bool inside_off;				/* no server is looked into */
	unsigned int metrics_top;			/* users of each server in the metrics; 0: none */
	const char *const *policies;			/* files and directories to follow: absolute paths */
	size_t n_policies;
	const char *persist_dir; /* NULL: the state ends with the machine's uptime */
	const char *persisted;	 /* without it: where --persist keeps the state; NULL: nowhere */
};

#endif
