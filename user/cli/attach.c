/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/inside/share.h"
#include "weir/inside/turn.h"

#include "base/cleanup.h"
#include "base/json_list.h"
#include "cli/cli.h"
#include "control/control.h"
#include "state/state.h"

enum {
	KEY_CGROUP = 0x200,
	KEY_DRY_RUN,
	KEY_FRAMING,
	KEY_KEYS,
	KEY_LOOPBACK,
	KEY_NAMESPACE_FROM,
	KEY_PATHS,
	KEY_PROXY_PROTOCOL,
	KEY_HOLD,
	KEY_WHEN_FULL,
	KEY_EXEMPT_SOURCE,
	KEY_EXEMPT_PATH,
	KEY_INSIDE,
	KEY_INSIDE_SHARE,
	KEY_HOLD_MAX,
	KEY_REFUSALS,
	KEY_XDP,
	KEY_SYN_COOKIES,
	KEY_MAX_RETRY_AFTER,
};

const struct argp_option cli_attach_options[] = {
	{ "port", 'p', "PORT[,PORT]", 0, "ports on which the server listens, on all addresses. Repeatable", 0 },
	{ "listen", 'l', "ADDR:PORT", 0, "one address and port on which the server listens. Repeatable", 0 },
	{ "netns", 'n', "PATH", 0,
	  "the server's network namespace: a path, or a name below /run/netns (default: the current one)", 0 },
	{ "interface", 'i', "IF", 0, "interface to watch. Repeatable (default: all, also those that come later)", 0 },
	{ "cgroup", KEY_CGROUP, "DIR", 0, "the server's cgroup2 directory (default: the root)", 0 },
	{ "trusted-proxy", 't', "CIDR", 0, "peers whose identity headers are believed. Repeatable", 0 },
	{ "proxy-protocol", KEY_PROXY_PROTOCOL, "CIDR", 0,
	  "every connection begins with a PROXY protocol preamble, version 1 or 2. Preambles from these peers are believed. Repeatable",
	  0 },
	{ "dry-run", KEY_DRY_RUN, NULL, 0, "decide and count, but refuse nothing", 0 },
	{ "framing", KEY_FRAMING, "MODE", 0,
	  "ambiguous requests: reject (answer 400, the default) or pass (to the server; the connection is held)", 0 },
	{ "keys", KEY_KEYS, "N", 0,
	  "number of buckets for each limit (default: 65536). The least recently used one makes room", 0 },
	{ "loopback", KEY_LOOPBACK, "MODE", 0,
	  "connections on loopback after a 429: auto (close if conntrack tracks loopback, the default), translate (keep open) or close",
	  0 },
	{ "paths", KEY_PATHS, "HOW", 0,
	  "how the server reads paths: kubernetes (decode percent-encoding, the default), nginx (also merge slashes and resolve dot segments) or raw",
	  0 },
	{ "namespace-from", KEY_NAMESPACE_FROM, "WHAT", 0,
	  "what names a request's namespace: path (Kubernetes API paths, the default), segment=N (of the path, from 1), prefix=/A/B/ (the segment after it) or header=NAME",
	  0 },
	{ "hold", KEY_HOLD, "MODE", 0,
	  "how unreadable traffic over a limit is held: auto (pace where the kernel can, the default), pace (queue it) or drop (let TCP resend it)",
	  0 },
	{ "when-full", KEY_WHEN_FULL, "MODE", 0,
	  "connections and requests for which weir's tables have no room: known (new ones wait or are refused; connections of known sources pass, the default), open (all pass) or closed (all wait or are refused)",
	  0 },
	{ "inside", KEY_INSIDE, "MODE", 0,
	  "limit requests inside the server, behind TLS and HTTP/2 (Go servers): off (the default), see (count and trace them, as in a dry run), answer (the server refuses with 429), hold (connections of users over a limit wait) or auto (answer where that is possible, else see)",
	  0 },
	{ "inside-share", KEY_INSIDE_SHARE, "PERCENT", 0,
	  "with --inside answer: the share of connections on which the server refuses requests, 1% to 100% (the default). On the others requests pass and are counted as in a dry run",
	  0 },
	{ "hold-max", KEY_HOLD_MAX, "SECONDS", 0,
	  "with --inside hold: the longest that a connection is held, 1 to 25 (default: 10)", 0 },
	{ "refusals", KEY_REFUSALS, "MODE", 0,
	  "answers to refused requests: named (they say that weir refused, and by which limit, the default) or plain",
	  0 },
	{ "xdp", KEY_XDP, "MODE", 0,
	  "refuse connections at XDP, before tc: auto (native on hardware that is down, the default), native (resets the rings of a device in use), generic or off",
	  0 },
	{ "syn-cookies", KEY_SYN_COOKIES, "WHERE", 0,
	  "what answers a flood of SYNs with SYN cookies: kernel (the default) or xdp (weir, on interfaces with its XDP program: cheaper, but without window scaling and SACK)",
	  0 },
	{ "max-retry-after", KEY_MAX_RETRY_AFTER, "SECONDS", 0,
	  "the longest Retry-After that is sent, 1 to 3600 (default: 3600)", 0 },
	{ "exempt-source", KEY_EXEMPT_SOURCE, "CIDR", 0, "peers that are exempt from all limits. Repeatable", 0 },
	{ "exempt-path", KEY_EXEMPT_PATH, "PATH", 0,
	  "path that is exempt from all limits; /PATH/* is everything below it. Repeatable", 0 },
	{ 0 },
};

static void add_ports(const struct argp_state *state, json_t *server, char *list)
{
	struct datapath_listen listen = { .any = true };
	char text[PARSE_LISTEN_TEXT];
	struct error err;
	char *port;

	while ((port = strsep(&list, ","))) {
		cli_check(state, parse_port(port, &listen.port, &err), "--port", &err);
		format_listen(&listen, text);
		list_append(server, "listen", json_string(text));
	}
}

static void add_listen(const struct argp_state *state, json_t *server, const char *arg)
{
	struct datapath_listen listen;
	struct error err;

	cli_check(state, parse_listen(arg, &listen, &err), "--listen", &err);
	list_append(server, "listen", json_string(arg));
}

static void add_network(const struct argp_state *state, json_t *server, const char *key, const char *option,
			const char *arg)
{
	struct datapath_cidr cidr;
	struct error err;

	cli_check(state, parse_cidr(arg, &cidr, &err), option, &err);
	list_append(server, key, json_string(arg));
}

static void add_interface(const struct argp_state *state, json_t *server, const char *arg)
{
	struct error err;

	cli_check(state, parse_interface(arg, &err), "--interface", &err);
	list_append(server, "interfaces", json_string(arg));
}

/* All that is exempt for one reason is one rule (rule.h), with the key that the reason has there. */
static void add_exempt(const struct argp_state *state, json_t *server, const char *key, const char *option,
		       const char *arg)
{
	CLEANUP_JSON json_t *alone = json_pack("{s:[s]}", key, arg);
	CLEANUP_RULE struct rule read = { 0 };
	json_t *rule;
	struct error err;
	size_t i;

	cli_check(state, rule_from_json(alone, &read, &err), option, &err);
	json_array_foreach (json_object_get(server, "exempt"), i, rule) {
		if (json_object_get(rule, key)) {
			list_append(rule, key, json_string(arg));
			return;
		}
	}
	list_append(server, "exempt", json_incref(alone));
}

/* An option that is one word of a few. */
static const struct mode_option {
	int key;
	const char *option, *member;
	const struct choice *choice;
} mode_options[] = {
	{ KEY_FRAMING, "--framing", "framing", &framing_modes },
	{ KEY_LOOPBACK, "--loopback", "loopback", &loopback_modes },
	{ KEY_PATHS, "--paths", "paths", &paths_modes },
	{ KEY_HOLD, "--hold", "hold", &hold_modes },
	{ KEY_WHEN_FULL, "--when-full", "when_full", &full_modes },
	{ KEY_INSIDE, "--inside", "inside", &inside_modes },
	{ KEY_REFUSALS, "--refusals", "refusals", &refusals_modes },
	{ KEY_XDP, "--xdp", "xdp", &xdp_modes },
	{ KEY_SYN_COOKIES, "--syn-cookies", "syn_cookies", &syn_cookies_modes },
};

static error_t set_mode(const struct argp_state *state, json_t *server, int key, const char *arg)
{
	for (size_t i = 0; i < sizeof(mode_options) / sizeof(*mode_options); i++) {
		const struct mode_option *mode = &mode_options[i];
		struct error err;
		int ret;

		if (mode->key != key)
			continue;
		ret = choice_parse(mode->choice, arg, &err);
		cli_check(state, ret < 0 ? ret : 0, mode->option, &err);
		json_object_set_new(server, mode->member, json_string(arg));
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void set_seconds(const struct argp_state *state, json_t *server, const char *key, const char *option, __u64 most,
			const char *arg)
{
	struct error err;
	__u64 seconds = 0;
	int ret = parse_number(arg, most, &seconds, &err);

	if (!ret && !seconds)
		ret = error_set(&err, -EINVAL, "must be at least 1");
	cli_check(state, ret, option, &err);
	json_object_set_new(server, key, json_integer(seconds));
}

static bool inside_is(json_t *server, enum inside_mode mode)
{
	const char *text = cli_text(server, "inside");

	return !strcmp(*text ? text : inside_modes.words[INSIDE_OFF], inside_modes.words[mode]);
}

static void set_inside_share(const struct argp_state *state, json_t *server, char *arg)
{
	size_t length = strlen(arg);
	struct error err;
	__u64 share = 0;
	int ret;

	if (length && arg[length - 1] == '%')
		arg[length - 1] = 0;
	ret = parse_number(arg, WEIR_INSIDE_ALL, &share, &err);
	if (!ret && !share)
		ret = error_set(&err, -EINVAL, "must be at least 1%%");
	cli_check(state, ret, "--inside-share", &err);
	json_object_set_new(server, "inside_share", json_integer(share));
}

static void set_namespace_from(const struct argp_state *state, json_t *server, const char *arg)
{
	struct tenancy tenancy = { 0 };
	struct error err;

	cli_check(state, namespace_from_parse(arg, &tenancy, &err), "--namespace-from", &err);
	json_object_set_new(server, "namespace_from", json_string(arg));
}

static void set_name(const struct argp_state *state, json_t *server, const char *arg)
{
	struct error err;

	if (json_object_get(server, "name"))
		cli_too_many(state, arg);
	cli_check(state, parse_server_name(arg, &err), "NAME", &err);
	json_object_set_new(server, "name", json_string(arg));
}

/* The agent has another working directory. Names without a slash stay as they are: they may be names, not paths. */
static void set_path(const struct argp_state *state, json_t *server, const char *key, const char *arg)
{
	CLEANUP_FREE char *cwd = *arg != '/' && strchr(arg, '/') ? getcwd(NULL, 0) : NULL;

	if (!*arg)
		argp_failure(state, CLI_USAGE, 0, "--%s: the path is empty", key);
	json_object_set_new(server, key, cwd ? json_sprintf("%s/%s", cwd, arg) : json_string(arg));
}

static void set_cgroup(const struct argp_state *state, json_t *server, const char *arg)
{
	CLEANUP_FREE char *path = realpath(arg, NULL);

	set_path(state, server, "cgroup", path ?: arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	json_t *server = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = server;
		break;
	case 'p':
		add_ports(state, server, arg);
		break;
	case 'l':
		add_listen(state, server, arg);
		break;
	case 'n':
		set_path(state, server, "netns", arg);
		break;
	case 'i':
		add_interface(state, server, arg);
		break;
	case 't':
		add_network(state, server, "trusted_proxies", "--trusted-proxy", arg);
		break;
	case KEY_PROXY_PROTOCOL:
		add_network(state, server, "proxy_protocol", "--proxy-protocol", arg);
		break;
	case KEY_CGROUP:
		set_cgroup(state, server, arg);
		break;
	case KEY_DRY_RUN:
		json_object_set_new(server, "dry_run", json_true());
		break;
	case KEY_KEYS:
		cli_set_number(state, server, "keys", "--keys", PARSE_KEYS_MAX, arg);
		break;
	case KEY_NAMESPACE_FROM:
		set_namespace_from(state, server, arg);
		break;
	case KEY_INSIDE_SHARE:
		set_inside_share(state, server, arg);
		break;
	case KEY_HOLD_MAX:
		set_seconds(state, server, "hold_max", "--hold-max", WEIR_TURN_HOLD_LIMIT_S, arg);
		break;
	case KEY_MAX_RETRY_AFTER:
		set_seconds(state, server, "max_retry_after", "--max-retry-after", WEIR_RETRY_MAX_S, arg);
		break;
	case KEY_EXEMPT_SOURCE:
		add_exempt(state, server, "sources", "--exempt-source", arg);
		break;
	case KEY_EXEMPT_PATH:
		add_exempt(state, server, "paths", "--exempt-path", arg);
		break;
	case ARGP_KEY_ARG:
		set_name(state, server, arg);
		break;
	case ARGP_KEY_END:
		if (!json_object_get(server, "name"))
			argp_failure(state, CLI_USAGE, 0, "NAME is missing");
		if (!json_object_get(server, "listen"))
			argp_failure(state, CLI_USAGE, 0, "--port or --listen is missing");
		if (json_object_get(server, "inside_share") &&
		    (inside_is(server, INSIDE_OFF) || inside_is(server, INSIDE_HOLD)))
			argp_failure(state, CLI_USAGE, 0, "--inside-share needs --inside answer, auto or see");
		if (json_object_get(server, "hold_max") && !inside_is(server, INSIDE_HOLD))
			argp_failure(state, CLI_USAGE, 0, "--hold-max needs --inside hold");
		break;
	default:
		return set_mode(state, server, key, arg);
	}
	return 0;
}

static int print_attached(json_t *result)
{
	cli_warn(result, "");
	printf("server \"%s\" is attached", cli_text(result, "name"));
	cli_print_refuses_not(result);
	return ferror(stdout);
}

/* netns_inode: which namespace "this one" is, for the agent to compare with its own. */
int cli_attach(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *server = json_object();
	CLEANUP_JSON json_t *result = NULL;
	struct stat self = { 0 };

	cli_parse(command, parse, server, argc, argv);
	stat("/proc/self/ns/net", &self);
	control_wait(cli.state_dir);
	result = cli_call("attach", json_pack("{s:O, s:I}", "server", server, "netns_inode", (json_int_t)self.st_ino));
	return result ? cli_print(result, print_attached) : 1;
}
