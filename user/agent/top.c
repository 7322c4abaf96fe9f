/* SPDX-License-Identifier: GPL-2.0 */
/* Who makes the load: the rows that the kernel counts (weir/top/heavy.h), by name. */
#include <errno.h>
#include <string.h>

#include "agent/private.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "model/parse.h"
#include "show/verbs.h"

#define ROWS_MAX 1000 /* of a server: the heaviest */

static const char *const kinds[WEIR_HEAVY_BYS] = {
	[WEIR_HEAVY_USER] = "user",	    [WEIR_HEAVY_NAMESPACE] = "namespace", [WEIR_HEAVY_VERB] = "verb",
	[WEIR_HEAVY_RESOURCE] = "resource", [WEIR_HEAVY_SOURCE] = "source",	  [WEIR_HEAVY_LIMIT] = "refusal",
	[WEIR_HEAVY_REQUEST] = "request",
};

/* What a limit refuses is counted for all limits; `limit` alone is no kind of row. */
#define BY_LIMIT WEIR_HEAVY_BYS

struct top {
	struct agent *agent;
	const struct server *server;
	struct net *net;
	int slot;
	int by; /* enum weir_heavy_by, or BY_LIMIT */
	json_t *rows;
};

/* --- rows */

static void set_name(struct top *top, json_t *row, const char *key, __u64 subject)
{
	CLEANUP_FREE char *name = subject ? net_name(top->net, subject) : NULL;

	json_object_set_new(row, key, name ? json_string(name) : json_null());
}

static void set_resource(struct top *top, json_t *row, const struct weir_heavy_what *what, __u64 subject)
{
	CLEANUP_FREE char *name = subject ? net_name(top->net, subject) : NULL;

	json_object_set_new(row, "resource", what->is_path ? json_sprintf("/%s", name ?: "") : json_pack("s?", name));
}

static void set_verb(json_t *row, const struct weir_heavy_what *what)
{
	json_object_set_new(row, "verb", json_string(verb_name(what->verb)));
}

static void set_address(json_t *row, const struct weir_heavy_what *what)
{
	char address[PARSE_ADDRESS_TEXT];

	format_address(what->address, address);
	json_object_set_new(row, "source",
			    json_sprintf("%s%s", address, weir_address_is_ipv4(what->address) ? "" : "/64"));
}

static void set_limit(struct top *top, json_t *row, const struct weir_heavy_what *what)
{
	char name[SLOT_NAME_SIZE];

	server_numbered_name(top->server, what->slot, what->subjects[1], name);
	json_object_set_new(row, "limit", json_string(*name ? name : "(deleted)"));
}

/* The members that say of whom the row is: those that the kind has. */
static void set_what(struct top *top, json_t *row, const struct weir_heavy_what *what)
{
	switch (what->by) {
	case WEIR_HEAVY_USER:
		return set_name(top, row, "user", what->subjects[0]);
	case WEIR_HEAVY_NAMESPACE:
		return set_name(top, row, "namespace", what->subjects[0]);
	case WEIR_HEAVY_VERB:
		return set_verb(row, what);
	case WEIR_HEAVY_RESOURCE:
		return set_resource(top, row, what, what->subjects[0]);
	case WEIR_HEAVY_SOURCE:
		return set_address(row, what);
	case WEIR_HEAVY_LIMIT:
		set_limit(top, row, what);
		return set_name(top, row, "user", what->subjects[0]);
	default:
		set_name(top, row, "user", what->subjects[0]);
		set_verb(row, what);
		set_name(top, row, "namespace", what->subjects[1]);
		return set_resource(top, row, what, what->subjects[2]);
	}
}

static json_t *counts_json(const struct weir_heavy_counts *counts)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "requests", (json_int_t)counts->requests, "refused",
			 (json_int_t)counts->refused, "dry_run", (json_int_t)counts->dry_run, "held",
			 (json_int_t)counts->held);
}

static void add_row(struct top *top, const struct weir_heavy_row *row)
{
	json_t *object = counts_json(&row->counts);

	json_object_set_new(object, "server", json_string(top->server->name));
	json_object_set_new(object, "first_ns", json_integer(row->first_ns));
	json_object_set_new(object, "last_ns", json_integer(row->last_ns));
	set_what(top, object, &row->what);
	json_array_append_new(top->rows, object);
}

static int add_rows(struct top *top, struct error *err)
{
	const struct datapath_heavy_query query = { .slot = top->slot, .by = 1U << top->by };
	CLEANUP_FREE struct weir_heavy_row *rows = NULL;
	int n = datapath_heavy(top->net->dp, &query, &rows, err);

	for (int i = 0; i < n && i < ROWS_MAX; i++)
		add_row(top, &rows[i]);
	return n < 0 ? n : 0;
}

/* Of limits everything is counted by themselves. */
static int add_limits(struct top *top, struct error *err)
{
	struct metrics_limit *limits = NULL;
	int n = limits_measure(top->agent, top->slot, &limits, err);

	for (int i = 0; i < n; i++) {
		const struct weir_limit_counts *c = &limits[i].counts;
		const struct weir_heavy_counts counts = {
			.requests = c->admitted + c->refused + c->dry_run_refused,
			.refused = c->refused,
			.dry_run = c->dry_run_refused,
		};
		json_t *row = counts_json(&counts);

		json_object_set_new(row, "server", json_string(top->server->name));
		json_object_set_new(row, "limit", json_string(limits[i].name));
		if (limits[i].in_flight)
			json_object_set_new(row, "in_flight", json_integer(limits[i].taken));
		json_array_append_new(top->rows, row);
	}
	if (n >= 0)
		limits_measured_free(limits, n);
	return n < 0 ? n : 0;
}

/* --- servers */

/* What all rows together should come to. */
static json_t *totals_json(const __u64 *counters)
{
	const __u64 refused = counters[WEIR_SHED] + counters[WEIR_REJECTED];
	const __u64 dry_run = counters[WEIR_DRY_RUN_SHED] + counters[WEIR_DRY_RUN_REJECTED];
	const struct weir_heavy_counts counts = {
		.requests = counters[WEIR_PASSED] + counters[WEIR_EXEMPT] + refused + dry_run +
			    counters[WEIR_RECORDS_PASSED] + counters[WEIR_RECORDS_DRY_RUN_HELD],
		.refused = refused,
		.dry_run = dry_run,
		.held = counters[WEIR_RECORDS_HELD],
	};

	return counts_json(&counts);
}

static int add_server(struct top *top, json_t *servers, struct error *err)
{
	__u64 counters[WEIR_REASON_COUNT];
	json_t *totals;
	int ret;

	if (!top->agent->servers[top->slot].in_force)
		return 0;
	top->server = top->agent->state.servers[top->slot];
	top->net = server_net(top->agent, top->server);
	ret = datapath_counters(top->net->dp, top->slot, counters, err);
	if (ret)
		return ret;
	totals = totals_json(counters);
	json_object_set_new(totals, "server", json_string(top->server->name));
	json_array_append_new(servers, totals);
	return top->by == BY_LIMIT ? add_limits(top, err) : add_rows(top, err);
}

static int kind_parse(const char *text, int *by, struct error *err)
{
	for (int kind = 0; kind < WEIR_HEAVY_BYS; kind++) {
		if (strcmp(text, kinds[kind]) == 0) {
			*by = kind;
			return 0;
		}
	}
	if (strcmp(text, "limit"))
		return error_set(err, -EINVAL, "bad arguments: there are no rows by \"%s\"", text);
	*by = BY_LIMIT;
	return 0;
}

int agent_top(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_JSON json_t *servers = json_array(), *rows = json_array();
	struct top top = { .agent = agent, .rows = rows };
	const char *name = NULL, *by = "user";
	int only = -1, ret;
	json_error_t why;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s?s !}", "name", &name, "by", &by))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	ret = kind_parse(by, &top.by, err);
	if (ret)
		return ret;
	if (name)
		only = state_find(&agent->state, name);
	if (name && only < 0)
		return error_set(err, -ENOENT, "there is no server \"%s\"", name);
	for (top.slot = 0; top.slot < WEIR_MAX_SERVERS && !ret; top.slot++) {
		if (agent->state.servers[top.slot] && (!name || top.slot == only))
			ret = add_server(&top, servers, err);
	}
	if (ret)
		return ret;
	*result = json_pack("{s:I, s:O, s:O}", "now_ns", (json_int_t)clock_ns(CLOCK_MONOTONIC), "servers", servers,
			    "rows", rows);
	return 0;
}
