/* SPDX-License-Identifier: GPL-2.0 */
/* Options of which each sets a member of what the agent is asked for: a table says which, and how. */
#ifndef WEIR_USER_CLI_SETTER_H
#define WEIR_USER_CLI_SETTER_H

#include <argp.h>
#include <jansson.h>

#include "weir/base/types.h"

struct choice;

struct setter {
	int key;
	const char *option, *member;
	/* Ends the program where the option's value is none. */
	void (*set)(const struct argp_state *state, json_t *object, const struct setter *o, char *arg);
	const struct choice *choice; /* of setter_mode() */
	__u64 most;		     /* of numbers */
};

/* One word of a few. */
void setter_mode(const struct argp_state *state, json_t *object, const struct setter *o, char *arg);
/* As cli_set_count() and cli_set_whole(). */
void setter_count(const struct argp_state *state, json_t *object, const struct setter *o, char *arg);
void setter_whole(const struct argp_state *state, json_t *object, const struct setter *o, char *arg);
/* An option without a value. */
void setter_true(const struct argp_state *state, json_t *object, const struct setter *o, char *arg);

/* ARGP_ERR_UNKNOWN: the table has no such key. */
error_t setters_apply(const struct setter *setters, size_t n, const struct argp_state *state, json_t *object, int key,
		      char *arg);

#endif
