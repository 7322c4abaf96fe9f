/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "cli/cli.h"
#include "daemon/daemon.h"
#include "metrics/top.h"
#include "model/parse.h"

#define METRICS_DEFAULT "127.0.0.1:9790"
#define CONNECTIONS_MAX (1U << 24)
#define RESYNC_DEFAULT_S 60
#define RESYNC_MAX_S 86400

enum {
	KEY_ADMIN_GROUP = 256,
	KEY_MONITOR_GROUP,
	KEY_PERSIST,
	KEY_LOG,
	KEY_INSIDE,
	KEY_METRICS_TOP,
};

const struct argp_option cli_agent_options[] = {
	{ "metrics", 'm', "ADDR:PORT", 0,
	  "listen address for Prometheus metrics, or off (default: " METRICS_DEFAULT ")", 0 },
	{ "metrics-top", KEY_METRICS_TOP, "N", 0,
	  "show the N users with the most requests of each server in the metrics, 10 to 1000 (default: 0, none)", 0 },
	{ "connections", 'c', "N", 0,
	  "size of the connection table of each network namespace (default: 262144). An existing table keeps its size",
	  0 },
	{ "resync", 'r', "TIME", 0,
	  "interval for comparing the kernel with the desired state and repairing differences, whole seconds up to 24h (default: 60s)",
	  0 },
	{ "admin-group", KEY_ADMIN_GROUP, "GROUP", 0, "members may run all commands, as root may", 0 },
	{ "monitor-group", KEY_MONITOR_GROUP, "GROUP", 0,
	  "members may run read-only commands: status, top, history, audit, suggest, limit list, metrics, export, explain, diff",
	  0 },
	{ "persist", KEY_PERSIST, NULL, 0,
	  "keep what commands set when the machine is rebooted, in /var/lib/weir (WEIR_PERSIST_DIR)", 0 },
	{ "log", KEY_LOG, "FORMAT", 0, "lines of the log on stderr: text (the default) or json", 0 },
	{ "inside", KEY_INSIDE, "MODE", 0,
	  "off: put probes into no server, whatever attach or a policy says. on: do as they say (the default)", 0 },
	{ "policy", 'p', "FILE-OR-DIR", 0,
	  "follow a policy file, or a directory of *.yaml, *.yml and *.json files. The path is absolute. Repeatable",
	  0 },
	{ 0 },
};

/* The agent's options, and the list in them that is its own. */
struct agent_words {
	struct agent_options options;
	const char **policies;
};

static void set_inside(const struct argp_state *state, struct agent_options *agent, const char *arg)
{
	agent->inside_off = strcmp(arg, "off") == 0;
	if (!agent->inside_off && strcmp(arg, "on") != 0)
		cli_refuse(state, "--inside: \"%s\" must be on or off", arg);
}

static void set_log(const struct argp_state *state, const char *arg)
{
	bool json = strcmp(arg, "json") == 0;

	if (!json && strcmp(arg, "text") != 0)
		cli_refuse(state, "--log: \"%s\" must be text or json", arg);
	log_json(json);
}

static void set_resync(const struct argp_state *state, struct agent_options *agent, const char *arg)
{
	agent->resync_s = cli_seconds(state, "--resync", RESYNC_MAX_S, arg);
}

static void set_connections(const struct argp_state *state, struct agent_options *agent, const char *arg)
{
	struct error err;
	__u64 n;

	cli_check(state, parse_number(arg, CONNECTIONS_MAX, &n, &err), "--connections", &err);
	if (!n)
		cli_refuse(state, "--connections: at least one");
	agent->conns_max = n;
}

static void set_metrics(const struct argp_state *state, struct agent_options *agent, const char *arg)
{
	struct datapath_listen listen;
	struct error err;

	agent->metrics = NULL;
	if (strcmp(arg, "off") == 0)
		return;
	cli_check(state, parse_listen(arg, &listen, &err), "--metrics", &err);
	agent->metrics = arg;
}

static void set_metrics_top(const struct argp_state *state, struct agent_options *agent, const char *arg)
{
	struct error err;
	__u64 n = 0;
	int ret = parse_number(arg, METRICS_TOP_MAX, &n, &err);

	if (!ret && n && n < METRICS_TOP_LEAST)
		ret = error_set(&err, -EINVAL, "must be 0, or at least %d", METRICS_TOP_LEAST);
	cli_check(state, ret, "--metrics-top", &err);
	agent->metrics_top = n;
}

static void set_group(const struct argp_state *state, const char *option, struct access_group *group, const char *arg)
{
	struct error err;

	cli_check(state, access_group_parse(arg, group, &err), option, &err);
}

static void add_policy(const struct argp_state *state, struct agent_words *words, const char *arg)
{
	size_t n = words->options.n_policies;

	if (*arg != '/')
		cli_refuse(state, "--policy: \"%s\" is not an absolute path of a file or directory", arg);
	for (size_t i = 0; i < n; i++)
		if (strcmp(words->policies[i], arg) == 0)
			cli_refuse(state, "--policy: %s is there twice", arg);
	words->policies = array_grow(words->policies, n, sizeof(*words->policies));
	if (!words->policies)
		argp_failure(state, 1, 0, "out of memory");
	words->policies[n] = arg;
	words->options.policies = words->policies;
	words->options.n_policies++;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct agent_words *words = state->input;
	struct agent_options *agent = &words->options;

	switch (key) {
	case ARGP_KEY_ARG:
		cli_too_many(state, arg);
		break;
	case KEY_ADMIN_GROUP:
		set_group(state, "--admin-group", &agent->admin_group, arg);
		break;
	case KEY_MONITOR_GROUP:
		set_group(state, "--monitor-group", &agent->monitor_group, arg);
		break;
	case 'c':
		set_connections(state, agent, arg);
		break;
	case 'r':
		set_resync(state, agent, arg);
		break;
	case 'm':
		set_metrics(state, agent, arg);
		break;
	case KEY_METRICS_TOP:
		set_metrics_top(state, agent, arg);
		break;
	case KEY_LOG:
		set_log(state, arg);
		break;
	case KEY_INSIDE:
		set_inside(state, agent, arg);
		break;
	case KEY_PERSIST:
		agent->persist_dir = cli_persist_dir();
		break;
	case 'p':
		add_policy(state, words, arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cli_agent(const struct command *command, int argc, char **argv)
{
	struct agent_words words = { .options = { .metrics = METRICS_DEFAULT, .resync_s = RESYNC_DEFAULT_S } };
	struct error err;
	int ret;

	cli_parse(command, parse, &words, argc, argv);
	words.options.state_dir = cli.state_dir;
	words.options.pin_dir = cli.pin_dir;
	if (!words.options.persist_dir)
		words.options.persisted = cli_persist_dir();
	ret = agent_run(&words.options, &err);
	free(words.policies);
	return ret ? cli_fail(&err) : 0;
}
