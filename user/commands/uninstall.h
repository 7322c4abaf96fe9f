/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of everything that weir has in force, with an agent or without. It works on what is pinned, so what a killed
 * agent, a lost state or another version has left goes, too. Ended half-way, it can be begun again.
 */
#ifndef WEIR_USER_COMMANDS_UNINSTALL_H
#define WEIR_USER_COMMANDS_UNINSTALL_H

#include <jansson.h>
#include <stdbool.h>

#include "weir/base/types.h"

#include "base/error.h"

struct uninstall_options {
	const char *state_dir;
	const char *pin_dir;
	const char *persist_dir; /* what an agent with --persist keeps there goes, if it is the one of this state_dir */
	bool force; /* nothing stands in the way: translated connections are reset, an agent that does not end is killed */
	__u64 patience_ns; /* with force: how long translated connections are waited for before that */
	/* What is waited for, every two seconds from the third on. */
	void (*waiting)(const char *for_what, unsigned int seconds);
};

/* *result: {agent: its pid or null, namespaces: [{pins, reset, entered}], warnings: of what stays}. */
int uninstall(const struct uninstall_options *options, json_t **result, struct error *err);

#endif
