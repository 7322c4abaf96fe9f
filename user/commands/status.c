/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/inside.h"
#include "agent/leftovers.h"
#include "agent/limit_counts.h"
#include "agent/net.h"
#include "agent/reconcile.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/json_list.h"
#include "base/output.h"
#include "base/version.h"
#include "commands/commands.h"
#include "follow/follow.h"
#include "rules/identity.h"

#define TOP_SUBJECTS 10

const char *server_mode(const struct agent *agent, int slot)
{
	const struct server *server = agent->state.servers[slot];

	if (!agent->servers[slot].in_force)
		return agent->servers[slot].tried ? "failed" : "starting";
	if (agent->servers[slot].incomplete)
		return "starting";
	if (server->draining)
		return "draining";
	if (server->paused)
		return "paused";
	return server->dry_run ? "dry-run" : "limiting";
}

static json_t *describe_loopback(const struct server *server, const struct net *net)
{
	const char *why = "asked for";
	bool closing = net && (server_flags(server, net) & WEIR_SERVER_CLOSING_LOOPBACK);

	if (server->loopback == LOOPBACK_AUTO)
		why = !closing		  ? "conntrack does not track loopback" :
		      net->loopback_known ? "conntrack tracks loopback" :
					    "it is not known whether conntrack tracks loopback";
	return json_pack("{s:s, s:s, s:s}", "asked", loopback_modes.words[server->loopback], "mode",
			 closing ? "close" : "translate", "why", why);
}

/*
 * Is what cannot be read held, and how? TLS is not where its requests are decided inside the server. A server that is not in force has no
 * namespace, and no reason of its own.
 */
static json_t *describe_hold(const struct agent *agent, int slot, const struct net *net)
{
	const struct server *server = agent->state.servers[slot];
	const char *why = net && net->hold_err.text[0] ? net->hold_err.text : NULL;
	const char *no_pace = net && net->pace_err.text[0] ? net->pace_err.text : NULL;

	if (server->hold == HOLD_DROP)
		no_pace = "asked for";
	return json_pack("{s:b, s:b, s:s?, s:s?, s:s, s:s, s:s?}", "on", net && (!why || net->hold_runs), "tls",
			 !inside_decides(agent, server), "why", why, "elsewhere", agent->servers[slot].held_elsewhere,
			 "asked", hold_modes.words[server->hold], "mode",
			 net && net->paced && !no_pace ? "pace" : "drop", "no_pace", no_pace);
}

static json_t *list_ports(const struct server *server)
{
	json_t *ports = json_array();

	for (size_t i = 0; i < server->n_listens; i++) {
		bool seen = false;

		for (size_t j = 0; j < i; j++)
			seen |= server->listens[j].port == server->listens[i].port;
		if (!seen)
			json_array_append_new(ports, json_integer(server->listens[i].port));
	}
	return ports;
}

static json_t *list_links(struct net *net)
{
	CLEANUP_FREE struct datapath_link *links = NULL;
	json_t *list = json_array();
	int n = net ? datapath_links(net->dp, &links, NULL) : 0;

	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s, s:s, s:s?}", "name", links[i].name, "how",
						      links[i].how, "attached", links[i].attached, "xdp",
						      xdp_mode_name(links[i].xdp), "xdp_why", links[i].xdp_why,
						      "no_syn_cookies", links[i].no_cookies));
	return list;
}

/* Of groups the kernel keeps no names: rules have named them. */
static char *subject_name(struct net *net, const struct server *server, __u64 subject)
{
	const char *group = identity_group_name(&server->identity, net->dp, subject);

	return group ? output_visible(group) : net_name(net, subject);
}

static json_t *list_top(struct net *net, int slot, const struct server *server)
{
	struct datapath_subject_use top[TOP_SUBJECTS];
	json_t *list = json_array();
	int n = datapath_top(net->dp, slot, top, TOP_SUBJECTS, NULL);

	for (int i = 0; i < n; i++) {
		CLEANUP_FREE char *subject = NULL;
		char limit[SLOT_NAME_SIZE];

		if (!top[i].shed && !top[i].dry_run_shed)
			continue;
		server_slot_name(server, top[i].slot, limit);
		/* A limit that is the same for all has but one. */
		subject = top[i].subject ? subject_name(net, server, top[i].subject) : NULL;
		json_array_append_new(list,
				      json_pack("{s:s, s:s?, s:I, s:I, s:I}", "limit", limit, "subject", subject,
						"passed", (json_int_t)top[i].passed, "shed", (json_int_t)top[i].shed,
						"dry_run_shed", (json_int_t)top[i].dry_run_shed));
	}
	return list;
}

/* The counters of a group that are not zero. */
static json_t *list_counters(const __u64 *counters, enum metrics_group group)
{
	json_t *object = json_object();

	for (int reason = 0; reason < WEIR_REASON_COUNT; reason++)
		if (metrics_reasons[reason].group == group && counters[reason])
			json_object_set_new(object, metrics_reasons[reason].label, json_integer(counters[reason]));
	return object;
}

static void add_counters(json_t *object, const __u64 *counters)
{
	const struct {
		const char *key;
		__u64 value;
	} numbers[] = {
		{ "connections", metrics_connections(counters) },
		{ "passed", counters[WEIR_PASSED] },
		{ "shed", counters[WEIR_SHED] },
		{ "exempt", counters[WEIR_EXEMPT] },
		{ "dry_run_shed", counters[WEIR_DRY_RUN_SHED] },
		{ "rejected", counters[WEIR_REJECTED] },
		{ "dry_run_rejected", counters[WEIR_DRY_RUN_REJECTED] },
		{ "translated", metrics_translated(counters) },
		{ "records_passed", counters[WEIR_RECORDS_PASSED] },
		{ "records_held", counters[WEIR_RECORDS_HELD] },
		{ "records_dry_run_held", counters[WEIR_RECORDS_DRY_RUN_HELD] },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		json_object_set_new(object, numbers[i].key, json_integer(numbers[i].value));
	json_object_set_new(object, "held_seconds", json_real(metrics_held_s(counters)));
	json_object_set_new(object, "unread", list_counters(counters, METRICS_UNREAD));
	json_object_set_new(object, "unanswered", list_counters(counters, METRICS_UNANSWERED));
	json_object_set_new(object, "identified", list_counters(counters, METRICS_IDENTIFIED));
	json_object_set_new(object, "notes", list_counters(counters, METRICS_IDENTITY));
	json_object_set_new(object, "seen_inside", list_counters(counters, METRICS_INSIDE));
	json_object_set_new(object, "connection_attempts", list_counters(counters, METRICS_ADMISSION));
	json_object_set_new(object, "packets", list_counters(counters, METRICS_PACKET));
}

/* net: NULL when the server is not in force */
static const char *server_problem(const struct agent *agent, int slot, const struct net *net)
{
	if (!net)
		return agent->servers[slot].problem.text;
	if (net->links_err.text[0])
		return net->links_err.text;
	if (agent->servers[slot].problem.text[0])
		return agent->servers[slot].problem.text;
	return agent->servers[slot].identity_err.text[0] ? agent->servers[slot].identity_err.text : NULL;
}

#define MANY "more than one request in 10,000 "

/* What is counted inside the server is then not all there is. */
static const char *blind_warning(const __u64 *counters)
{
	static const struct {
		enum weir_reason reason;
		const char *text;
	} blind[] = {
		{ WEIR_INSIDE_UNREADABLE, MANY "could not be read inside the server: its memory was not present" },
		{ WEIR_INSIDE_OTHER_USER, MANY "has a user inside the server that is of an unknown type" },
		{ WEIR_INSIDE_NOT_TEXT, MANY "has a name inside the server that is no text" },
		{ WEIR_INSIDE_NO_ROOM, MANY "could not be followed inside the server: there was no room" },
	};
	__u64 all = counters[WEIR_INSIDE_SEEN];

	for (size_t i = 0; i < sizeof(blind) / sizeof(*blind); i++)
		all += counters[blind[i].reason];
	for (size_t i = 0; i < sizeof(blind) / sizeof(*blind); i++)
		if (counters[blind[i].reason] * 10000 > all)
			return blind[i].text;
	return NULL;
}

/* Of requests, by something that TLS hides. */
static bool limits_what_is_read(const struct server *server)
{
	for (size_t i = 0; i < server->n_limits; i++)
		if (!weir_limit_is_of_connections(server->limits[i].kind) &&
		    (server->limits[i].key & ~WEIR_KEY_SOURCE || server->limits[i].n_rules))
			return true;
	return server->priorities.n_levels;
}

static const char *server_warning(const struct agent *agent, int slot, const struct net *net, const __u64 *counters)
{
	const struct server *server = agent->state.servers[slot];

	if (net && agent->servers[slot].warning.text[0])
		return agent->servers[slot].warning.text;
	if (blind_warning(counters))
		return blind_warning(counters);
	if (net && !server->draining && !server->n_limits && !server->priorities.n_levels)
		return "it has no limits: nothing is refused";
	/* Who has said `inside: off` knows it. */
	if (net && server->inside != INSIDE_OFF && all_is_unread(counters) && limits_what_is_read(server) &&
	    !inside_explained(agent, slot))
		return "all that has come so far is TLS, which weir does not read: users are known by their addresses alone";
	return NULL;
}

static json_t *list_limits(const struct metrics_limit *limits, size_t n)
{
	json_t *list = json_array(), *limit;

	for (size_t i = 0; i < n; i++) {
		limit = json_pack("{s:s, s:b, s:I, s:I, s:I}", "limit", limits[i].name, "dry_run", limits[i].dry_run,
				  "admitted", (json_int_t)limits[i].counts.admitted, "refused",
				  (json_int_t)limits[i].counts.refused, "dry_run_refused",
				  (json_int_t)limits[i].counts.dry_run_refused);
		if (limits[i].in_flight) {
			json_object_set_new(limit, "in_flight", json_integer(limits[i].taken));
			json_object_set_new(limit, "highest", json_integer(limits[i].counts.highest));
		}
		json_array_append_new(list, limit);
	}
	return list;
}

/*
 * What was chosen for the server, as the state has it, and beside it what is in force. Overrides and policy objects are left to `limit list` and
 * `export`: there may be very many, and the event loop answers nobody else meanwhile.
 */
static int describe_server(const struct agent *agent, int slot, struct limits_taken *taken, json_t **out,
			   struct error *err)
{
	static const char *const not_told[] = { "last_number", "groups" };
	const struct server *server = agent->state.servers[slot];
	struct net *net = net_in_force(agent, slot);
	CLEANUP_FREE char *other_weir = net ? net_other_weir(net) : NULL, *idle = inside_idle_limit(agent, slot);
	__u64 counters[WEIR_REASON_COUNT] = { 0 };
	struct metrics_limit *limits = NULL;
	bool serves_bodies = false;
	json_t *object;
	int ret = 0, n_limits;

	if (net)
		ret = datapath_counters(net->dp, slot, counters, err) ?:
			      datapath_serves_bodies(net->dp, slot, &serves_bodies, err);
	n_limits = ret ?: limits_measure(agent, slot, taken, &limits, err);
	if (n_limits < 0)
		return n_limits;
	object = server_settings_to_json(server);
	/* "exempt" is how many requests were: a counter, as "passed" is. */
	json_object_set(object, "exempt_rules", json_object_get(object, "exempt"));
	for (size_t i = 0; i < sizeof(not_told) / sizeof(*not_told); i++)
		json_object_del(object, not_told[i]);
	json_object_set_new(object, "limits", list_limits(limits, n_limits));
	json_object_set_new(object, "keys", json_integer(server->keys ?: WEIR_DEFAULT_KEYS));
	json_object_set_new(object, "ports", list_ports(server));
	json_object_set_new(object, "mode", json_string(server_mode(agent, slot)));
	json_object_set_new(object, "problem", json_pack("s?", server_problem(agent, slot, net)));
	json_object_set_new(object, "warning", json_pack("s?", server_warning(agent, slot, net, counters) ?: idle));
	json_object_set_new(object, "nobody_listens", json_pack("s?", agent->servers[slot].listening.nobody));
	json_object_set_new(object, "takes_udp", json_pack("s?", agent->servers[slot].listening.udp));
	json_object_set_new(object, "other_weir", json_pack("s?", other_weir));
	json_object_set_new(object, "serves_bodies", json_boolean(serves_bodies));
	json_object_set_new(object, "loopback", describe_loopback(server, net));
	json_object_set_new(object, "hold", describe_hold(agent, slot, net));
	json_object_set_new(object, "inside", inside_status(agent, slot));
	json_object_set_new(object, "rates", rates_json(&agent->servers[slot].rates, counters));
	json_object_set_new(object, "links", list_links(net));
	json_object_set_new(object, "connections_max", net ? json_integer(datapath_conns_max(net->dp)) : json_null());
	json_object_set_new(object, "top", net ? list_top(net, slot, server) : json_array());
	add_counters(object, counters);
	limits_measured_free(limits, n_limits);
	*out = object;
	return 0;
}

/* One server, or all by name: slots are taken again, so their order would tell nothing. */
static int describe_servers(const struct agent *agent, const char *name, json_t *servers, struct error *err)
{
	CLEANUP_LIMITS_TAKEN struct limits_taken taken = { 0 };
	int only = name ? state_find(&agent->state, name) : -1, ret = 0;

	if (name && only < 0)
		return state_unknown(&agent->state, name, err);
	for (int slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++) {
		json_t *server = NULL;

		if (!agent->state.servers[slot] || (name && slot != only))
			continue;
		ret = describe_server(agent, slot, &taken, &server, err);
		if (!ret)
			list_insert_named(servers, server);
	}
	return ret;
}

int agent_status(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_JSON json_t *servers = json_array();
	CLEANUP_FREE char *sockmap = NULL;
	const char *name = NULL;
	json_error_t why;
	int ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s !}", "name", &name))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	ret = describe_servers(agent, name, servers, err);
	if (ret)
		return ret;
	sockmap = sockmap_warning();
	*result = json_pack("{s:{s:s, s:i, s:s, s:s, s:s?, s:s?, s:o, s:o}, s:O, s:o}", "agent", "version",
			    weir_version, "pid", (int)getpid(), "state_dir", agent->options->state_dir, "pin_dir",
			    agent->options->pin_dir, "metrics", agent->options->metrics, "sockmap", sockmap,
			    "reconcile", reconcile_status(agent), "leftovers", leftovers_to_json(agent), "servers",
			    servers, "policies", follow_to_json(agent->followed));
	return 0;
}
