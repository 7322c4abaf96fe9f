/* SPDX-License-Identifier: GPL-2.0 */
/* What the commands about policy files share. */
#ifndef WEIR_USER_CLI_POLICY_H
#define WEIR_USER_CLI_POLICY_H

#include "cli/cli.h"
#include "policy/policy.h"

/* What was given on the command line. */
struct policy_words {
	json_t *files;	   /* texts */
	json_t *arguments; /* of what the agent is asked for */
};

struct policy_words policy_words(void);
void policy_words_clear(struct policy_words *words);
#define CLEANUP_POLICY_WORDS __attribute__((cleanup(policy_words_clear)))

enum policy_option {
	POLICY_KEY_SERVER = 0x200,
	POLICY_KEY_PRUNE,
	POLICY_KEY_IGNORE,
};

#define POLICY_FILE_OPTION                                                                                                  \
	{                                                                                                                   \
		"filename", 'f', "FILE", 0,                                                                                 \
			"a policy file, a directory of *.yaml, *.yml and *.json, or - for standard input; may be repeated", \
			0                                                                                                   \
	}

#define POLICY_SERVER_OPTION                                                                           \
	{                                                                                              \
		"server", POLICY_KEY_SERVER, "NAME", 0,                                                \
			"server of the EventRateLimit, FlowSchemas and PriorityLevelConfigurations "   \
			"(default: that of the only Throttle in the files, or the only one attached)", \
			0                                                                              \
	}

error_t policy_parse_option(int key, char *arg, struct argp_state *state);

#define POLICY_LARGE (64 << 10) /* bytes of a file from which on it is a large one */

/* Reads and checks all files; says on stderr what is wrong. -EINVAL: something is. */
int policy_load(const struct policy_words *words, struct policy *policy);
/* What levels mean (priority_seats_to_json()), a line each. */
void policy_print_levels(json_t *levels);
/* A Throttle that says where a server listens attaches it: in the network namespace of the command, unless it says more. */
void policy_add_home(json_t *arguments);
/* The same as policy_load(), and asks the agent for something with the objects. NULL: what went wrong has been said. */
json_t *policy_call(const char *request, const struct policy_words *words);
/*
 * policy_as_is.c: the same of one large file that is JSON, which the agent reads. It does so only if there is nothing to be said of it.
 * False: nothing is done, and the files are to be read here.
 */
bool policy_call_as_is(const char *request, const struct policy_words *words, json_t **result);

#endif
