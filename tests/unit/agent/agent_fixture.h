/* SPDX-License-Identifier: GPL-2.0 */
/* An agent in directories of its own, over the kernel side in memory (fake_datapath.h). */
#ifndef WEIR_TESTS_AGENT_FIXTURE_H
#define WEIR_TESTS_AGENT_FIXTURE_H

#include "agent/reconcile.h"

struct fixture {
	struct agent agent;
	struct agent_options options;
	char state_dir[32], pin_dir[32];
	struct error err; /* of the latest command */
};

/* cmocka's setup and teardown. */
int set_up(void **state);
int tear_down(void **state);
/* Flags of a server that was attached without options. */
#define ACTIVE (WEIR_SERVER_ACTIVE | WEIR_SERVER_FULL_REFUSES | WEIR_SERVER_FULL_KNOWN | WEIR_SERVER_XDP)

#define with_agent(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

void start_agent(struct fixture *f);
/* What workers do, of whom the fixture has none: each server is looked at once. */
void reconcile(struct fixture *f);
/* As SIGKILL would: what is in the kernel and in the file stays as it is. */
void end_agent(struct fixture *f);

/* Runs a command; its result, which the caller owns, or NULL when it failed. */
json_t *run(struct fixture *f, const char *command, const char *arguments);
void succeed(struct fixture *f, const char *command, const char *arguments);
/* The error must contain `word`. */
void refuse(struct fixture *f, const char *command, const char *arguments, const char *word);

/* A file that the agent is to read. */
void write_file(const char *path, const char *text);

/* state.json; the caller frees it. */
char *saved_state(const struct fixture *f);
/* It is as it was. */
void assert_saved(const struct fixture *f, const char *before);

#define ATTACH \
	"{\"server\":{\"name\":\"api\",\"listen\":[\"*:80\",\"10.0.0.1:81\"],\"trusted_proxies\":[\"10.0.0.0/8\"]}}"

#endif
