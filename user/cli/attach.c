/* SPDX-License-Identifier: GPL-2.0 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/attach.h"
#include "cli/cli.h"
#include "control/control.h"
#include "state/state.h"

const struct argp_option cli_attach_options[] = {
	{ "port", 'p', "PORT[,PORT]", 0, "ports on which the server listens, on all addresses. Repeatable", 0 },
	{ "listen", 'l', "ADDR:PORT", 0, "one address and port on which the server listens. Repeatable", 0 },
	{ "netns", 'n', "PATH", 0,
	  "the server's network namespace: a path, or a name below /run/netns (default: the current one)", 0 },
	{ "interface", 'i', "IF", 0, "interface to watch. Repeatable (default: all, also those that come later)", 0 },
	{ "cgroup", ATTACH_CGROUP, "DIR", 0,
	  "hold what cannot be read at the sockets of this cgroup2 directory (default: the root). While one of the server's listening sockets was made outside, it is the root, with a warning",
	  0 },
	{ "trusted-proxy", 't', "CIDR", 0, "peers whose identity headers are believed. Repeatable", 0 },
	{ "proxy-protocol", ATTACH_PROXY_PROTOCOL, "CIDR", 0,
	  "every connection begins with a PROXY protocol preamble, version 1 or 2. Preambles from these peers are believed. Repeatable",
	  0 },
	{ "dry-run", ATTACH_DRY_RUN, NULL, 0, "decide and count, but refuse nothing", 0 },
	{ "framing", ATTACH_FRAMING, "MODE", 0,
	  "ambiguous requests: reject (answer 400, the default) or pass (to the server; the connection is held)", 0 },
	{ "bodies", ATTACH_BODIES, "MODE", 0,
	  "requests' bodies: unread (the server may leave them unread and take them for requests: connections are held from the first body on), read (it does not, whatever it answers) or auto (weir believes bodies until an answer shows that the server serves them, the default)",
	  0 },
	{ "keys", ATTACH_KEYS, "N", 0,
	  "number of buckets for each limit (default: 65536). The least recently used one makes room", 0 },
	{ "loopback", ATTACH_LOOPBACK, "MODE", 0,
	  "connections on loopback after a 429: auto (close if conntrack tracks loopback, the default), translate (keep open) or close",
	  0 },
	{ "paths", ATTACH_PATHS, "HOW", 0,
	  "how the server reads paths: kubernetes (decode percent-encoding, the default), nginx (also merge slashes and resolve dot segments) or raw",
	  0 },
	{ "namespace-from", ATTACH_NAMESPACE_FROM, "WHAT", 0,
	  "what names a request's namespace: path (Kubernetes API paths, the default), segment=N (of the path, from 1), prefix=/A/B/ (the segment after it) or header=NAME",
	  0 },
	{ "hold", ATTACH_HOLD, "MODE", 0,
	  "how traffic that weir cannot read (TLS, HTTP/2) is held over a limit: auto (pace where the kernel can, the default), pace (queue it) or drop (let TCP resend it)",
	  0 },
	{ "when-full", ATTACH_WHEN_FULL, "MODE", 0,
	  "connections and requests for which weir's tables have no room: known (new ones wait or are refused; connections of known sources pass, the default), open (all pass) or closed (all wait or are refused)",
	  0 },
	{ "inside", ATTACH_INSIDE, "MODE", 0,
	  "limit requests inside the server, behind TLS and HTTP/2 (Go servers): auto (answer where that is possible; else see while no limit is enforced, and off as soon as one is; the default), answer (the server refuses with 429), hold (connections of users over a limit wait), see (count and trace them, as in a dry run) or off (TLS is held by the client's address)",
	  0 },
	{ "inside-share", ATTACH_INSIDE_SHARE, "PERCENT", 0,
	  "with --inside answer: the share of connections on which the server refuses requests, 1% to 100% (the default). On the others requests pass and are counted as in a dry run",
	  0 },
	{ "write-memory", ATTACH_WRITE_MEMORY, NULL, 0,
	  "with --inside answer or auto: where the kernel lets weir write no registers (before Linux 6.18), weir writes one word of a Kubernetes API server's memory to have it refuse a request",
	  0 },
	{ "hold-max", ATTACH_HOLD_MAX, "TIME", 0,
	  "with --inside hold: the longest that a connection is held, whole seconds from 1s to 25s (default: 10s)", 0 },
	{ "refusals", ATTACH_REFUSALS, "MODE", 0,
	  "answers to refused requests: named (they say that weir refused, and by which limit, the default) or plain",
	  0 },
	{ "xdp", ATTACH_XDP, "MODE", 0,
	  "refuse connections at XDP, before tc: auto (the default: native on hardware that is down when weir attaches, otherwise at tc), native (also on hardware that is up: the driver then resets its rings), generic or off",
	  0 },
	{ "syn-cookies", ATTACH_SYN_COOKIES, "WHERE", 0,
	  "what answers a flood of SYNs with SYN cookies: kernel (the default) or xdp (weir, on interfaces with its XDP program: cheaper, but without window scaling and SACK)",
	  0 },
	{ "max-retry-after", ATTACH_MAX_RETRY_AFTER, "TIME", 0,
	  "the longest Retry-After that is sent, whole seconds from 1s to 1h (default: 1h)", 0 },
	{ "exempt-source", ATTACH_EXEMPT_SOURCE, "CIDR", 0, "peers that are exempt from all limits. Repeatable", 0 },
	{ "exempt-path", ATTACH_EXEMPT_PATH, "PATH", 0,
	  "path that is exempt from all limits; /PATH/* is everything below it. Repeatable", 0 },
	{ 0 },
};

static bool inside_is(json_t *server, enum inside_mode mode)
{
	const char *text = cli_text(server, "inside");

	return !strcmp(*text ? text : inside_modes.words[INSIDE_AUTO], inside_modes.words[mode]);
}

/* All options are read: do they fit each other? */
static void check(const struct argp_state *state, json_t *server)
{
	if (!json_object_get(server, "name"))
		cli_refuse(state, "NAME is missing");
	if (!json_object_get(server, "listen"))
		cli_refuse(state, "--port or --listen is missing");
	if (json_object_get(server, "inside_share") &&
	    (inside_is(server, INSIDE_OFF) || inside_is(server, INSIDE_HOLD)))
		cli_refuse(state, "--inside-share needs --inside answer, auto or see");
	if (json_object_get(server, "write_memory") &&
	    (inside_is(server, INSIDE_OFF) || inside_is(server, INSIDE_HOLD)))
		cli_refuse(state, "--write-memory needs --inside answer, auto or see");
	if (json_object_get(server, "hold_max") && !inside_is(server, INSIDE_HOLD))
		cli_refuse(state, "--hold-max needs --inside hold");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	json_t *server = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = server;
		return 0;
	case ARGP_KEY_END:
		check(state, server);
		return 0;
	default:
		return attach_set(state, server, key, arg);
	}
}

static int print_attached(json_t *result)
{
	CLEANUP_FREE char *inside = output_visible(cli_text(result, "inside"));

	cli_warn(result, "");
	printf("server \"%s\" is attached", cli_text(result, "name"));
	if (inside && *inside)
		printf("; inside: %s", inside);
	cli_print_refuses_not(result);
	return ferror(stdout);
}

/* It is waited for no longer than two seconds: only who looks on is told. */
static void say_no_agent_yet(void)
{
	if (isatty(STDERR_FILENO))
		cli_progress("no agent answers yet: waiting whether one starts");
}

/* The kernel checks each instruction of the programs of a new namespace, and a server's binary may be large. */
static void say_attaching(void)
{
	cli_progress(
		"waiting for the agent: it loads programs into the kernel and looks into the server, which takes seconds");
}

/* netns_inode: which namespace "this one" is, for the agent to compare with its own. */
int cli_attach(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *server = json_object();
	CLEANUP_JSON json_t *result = NULL;
	struct stat self = { 0 };

	cli_parse(command, parse, server, argc, argv);
	stat("/proc/self/ns/net", &self);
	control_wait(cli.state_dir, say_no_agent_yet);
	result = cli_call_saying("attach",
				 json_pack("{s:O, s:I}", "server", server, "netns_inode", (json_int_t)self.st_ino),
				 say_attaching);
	return result ? cli_print(result, print_attached) : 1;
}
