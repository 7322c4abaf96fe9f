/* SPDX-License-Identifier: GPL-2.0 */
/* What the commands about policy files share. */
#ifndef WEIR_USER_CLI_POLICY_H
#define WEIR_USER_CLI_POLICY_H

#include "cli.h"
#include "policy.h"

/* What was given on the command line. */
struct policy_words {
	json_t *files; /* texts */
	const char *server;
	bool prune, ignore_not_found;
};

enum policy_option {
	POLICY_KEY_SERVER = 0x200,
	POLICY_KEY_PRUNE,
	POLICY_KEY_IGNORE,
};

#define POLICY_FILE_OPTION                                                                                             \
	{                                                                                                              \
		"filename", 'f', "FILE", 0,                                                                            \
			"a file, a directory of *.yaml, *.yml and *.json, or - for standard input; may be repeated", 0 \
	}

error_t policy_parse_option(int key, char *arg, struct argp_state *state);

/* Reads and checks all files; says on stderr what is wrong. -EINVAL: something is. */
int policy_load(const struct policy_words *words, struct policy *policy);

#endif
