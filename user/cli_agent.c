/* SPDX-License-Identifier: GPL-2.0 */
#include <string.h>

#include "agent.h"
#include "cli.h"
#include "parse.h"

#define METRICS_DEFAULT "127.0.0.1:9790"

static const struct argp_option options[] = {
	{ "metrics", 'm', "ADDR:PORT", 0, "where to serve Prometheus (default: " METRICS_DEFAULT "), or off", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct agent_options *agent = state->input;
	struct datapath_listen listen;
	struct error err;

	if (key == ARGP_KEY_ARG)
		cli_too_many(state, arg);
	if (key != 'm')
		return ARGP_ERR_UNKNOWN;
	agent->metrics = NULL;
	if (strcmp(arg, "off") == 0)
		return 0;
	cli_check(state, parse_listen(arg, &listen, &err), "--metrics", &err);
	agent->metrics = arg;
	return 0;
}

int cli_agent(const struct command *command, int argc, char **argv)
{
	struct agent_options agent = { .metrics = METRICS_DEFAULT };
	struct error err;

	cli_parse(command, options, parse, &agent, argc, argv);
	agent.state_dir = cli.state_dir;
	agent.pin_dir = cli.pin_dir;
	return agent_run(&agent, &err) ? cli_fail(&err) : 0;
}
