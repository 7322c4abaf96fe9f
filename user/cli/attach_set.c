/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weir/inside/share.h"
#include "weir/inside/turn.h"

#include "base/cleanup.h"
#include "base/json_list.h"
#include "cli/attach.h"
#include "cli/cli.h"
#include "cli/setter.h"
#include "state/state.h"

static void add_ports(const struct argp_state *state, json_t *server, const struct setter *o, char *list)
{
	struct datapath_listen listen = { .any = true };
	char text[PARSE_LISTEN_TEXT];
	struct error err;
	char *port;

	while ((port = strsep(&list, ","))) {
		cli_check(state, parse_port(port, &listen.port, &err), o->option, &err);
		format_listen(&listen, text);
		list_append(server, o->member, json_string(text));
	}
}

static void add_listen(const struct argp_state *state, json_t *server, const struct setter *o, char *arg)
{
	struct datapath_listen listen;
	struct error err;

	cli_check(state, parse_listen(arg, &listen, &err), o->option, &err);
	list_append(server, o->member, json_string(arg));
}

static void add_network(const struct argp_state *state, json_t *server, const struct setter *o, char *arg)
{
	struct datapath_cidr cidr;
	struct error err;

	cli_check(state, parse_cidr(arg, &cidr, &err), o->option, &err);
	list_append(server, o->member, json_string(arg));
}

static void add_interface(const struct argp_state *state, json_t *server, const struct setter *o, char *arg)
{
	struct error err;

	cli_check(state, parse_interface(arg, &err), o->option, &err);
	list_append(server, o->member, json_string(arg));
}

/* All that is exempt for one reason is one rule (rule.h), in which the reason is the option's member. */
static void add_exempt(const struct argp_state *state, json_t *server, const struct setter *o, char *arg)
{
	CLEANUP_JSON json_t *alone = json_pack("{s:[s]}", o->member, arg);
	json_t *rule;
	struct error err;
	size_t i;

	cli_check(state, rule_check_word(o->member, arg, &err), o->option, &err);
	json_array_foreach (json_object_get(server, "exempt"), i, rule) {
		if (json_object_get(rule, o->member)) {
			list_append(rule, o->member, json_string(arg));
			return;
		}
	}
	list_append(server, "exempt", json_incref(alone));
}

static void set_seconds(const struct argp_state *state, json_t *server, const struct setter *o, char *arg)
{
	json_object_set_new(server, o->member, json_integer(cli_seconds(state, o->option, o->most, arg)));
}

static void set_share(const struct argp_state *state, json_t *server, const struct setter *o, char *arg)
{
	size_t length = strlen(arg);
	struct error err;
	__u64 share = 0;
	int ret;

	if (length && arg[length - 1] == '%')
		arg[length - 1] = 0;
	ret = parse_number(arg, o->most, &share, &err);
	if (!ret && !share)
		ret = error_set(&err, -EINVAL, "must be at least 1%%");
	cli_check(state, ret, o->option, &err);
	json_object_set_new(server, o->member, json_integer(share));
}

static void set_namespace_from(const struct argp_state *state, json_t *server, const struct setter *o, char *arg)
{
	struct tenancy tenancy = { 0 };
	struct error err;

	cli_check(state, namespace_from_parse(arg, &tenancy, &err), o->option, &err);
	json_object_set_new(server, o->member, json_string(arg));
}

static void set_name(const struct argp_state *state, json_t *server, const struct setter *o, char *arg)
{
	struct error err;

	if (json_object_get(server, o->member))
		cli_too_many(state, arg);
	cli_check(state, parse_server_name(arg, &err), o->option, &err);
	json_object_set_new(server, o->member, json_string(arg));
}

/* The agent has another working directory. Names without a slash stay as they are: they may be names, not paths. */
static void set_path(const struct argp_state *state, json_t *server, const struct setter *o, char *arg)
{
	CLEANUP_FREE char *cwd = *arg != '/' && strchr(arg, '/') ? getcwd(NULL, 0) : NULL;

	cli_path(state, o->option, arg);
	json_object_set_new(server, o->member, cwd ? json_sprintf("%s/%s", cwd, arg) : json_string(arg));
}

static void set_cgroup(const struct argp_state *state, json_t *server, const struct setter *o, char *arg)
{
	CLEANUP_FREE char *path = realpath(arg, NULL);

	set_path(state, server, o, path ?: arg);
}

static const struct setter setters[] = {
	{ 'p', "--port", "listen", add_ports, NULL, 0 },
	{ 'l', "--listen", "listen", add_listen, NULL, 0 },
	{ 'n', "--netns", "netns", set_path, NULL, 0 },
	{ 'i', "--interface", "interfaces", add_interface, NULL, 0 },
	{ 't', "--trusted-proxy", "trusted_proxies", add_network, NULL, 0 },
	{ ATTACH_PROXY_PROTOCOL, "--proxy-protocol", "proxy_protocol", add_network, NULL, 0 },
	{ ATTACH_CGROUP, "--cgroup", "cgroup", set_cgroup, NULL, 0 },
	{ ATTACH_DRY_RUN, "--dry-run", "dry_run", setter_true, NULL, 0 },
	{ ATTACH_KEYS, "--keys", "keys", setter_count, NULL, PARSE_KEYS_MAX },
	{ ATTACH_NAMESPACE_FROM, "--namespace-from", "namespace_from", set_namespace_from, NULL, 0 },
	{ ATTACH_INSIDE_SHARE, "--inside-share", "inside_share", set_share, NULL, WEIR_INSIDE_ALL },
	{ ATTACH_WRITE_MEMORY, "--write-memory", "write_memory", setter_true, NULL, 0 },
	{ ATTACH_HOLD_MAX, "--hold-max", "hold_max", set_seconds, NULL, WEIR_TURN_HOLD_LIMIT_S },
	{ ATTACH_MAX_RETRY_AFTER, "--max-retry-after", "max_retry_after", set_seconds, NULL, WEIR_RETRY_MAX_S },
	{ ATTACH_EXEMPT_SOURCE, "--exempt-source", "sources", add_exempt, NULL, 0 },
	{ ATTACH_EXEMPT_PATH, "--exempt-path", "paths", add_exempt, NULL, 0 },
	{ ATTACH_FRAMING, "--framing", "framing", setter_mode, &framing_modes, 0 },
	{ ATTACH_BODIES, "--bodies", "bodies", setter_mode, &bodies_modes, 0 },
	{ ATTACH_LOOPBACK, "--loopback", "loopback", setter_mode, &loopback_modes, 0 },
	{ ATTACH_PATHS, "--paths", "paths", setter_mode, &paths_modes, 0 },
	{ ATTACH_HOLD, "--hold", "hold", setter_mode, &hold_modes, 0 },
	{ ATTACH_WHEN_FULL, "--when-full", "when_full", setter_mode, &full_modes, 0 },
	{ ATTACH_INSIDE, "--inside", "inside", setter_mode, &inside_modes, 0 },
	{ ATTACH_REFUSALS, "--refusals", "refusals", setter_mode, &refusals_modes, 0 },
	{ ATTACH_XDP, "--xdp", "xdp", setter_mode, &xdp_modes, 0 },
	{ ATTACH_SYN_COOKIES, "--syn-cookies", "syn_cookies", setter_mode, &syn_cookies_modes, 0 },
	{ ARGP_KEY_ARG, "NAME", "name", set_name, NULL, 0 },
};

error_t attach_set(const struct argp_state *state, json_t *server, int key, char *arg)
{
	return setters_apply(setters, sizeof(setters) / sizeof(*setters), state, server, key, arg);
}
