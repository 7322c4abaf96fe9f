/* SPDX-License-Identifier: GPL-2.0 */
/* Who makes the load: the rows that the kernel counts (weir/top/heavy.h), by name. */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/inside.h"
#include "agent/limit_counts.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "commands/commands.h"
#include "commands/top.h"

#define ROWS_MAX 1000 /* of a server: the heaviest */

/* What a limit refuses is counted for all limits; `limit` alone is no kind of row. */
#define BY_LIMIT WEIR_HEAVY_BYS

struct top {
	struct agent *agent;
	const struct server *server;
	struct net *net;
	int slot;
	int by; /* enum weir_heavy_by, or BY_LIMIT */
	json_t *rows;
	struct limits_taken taken;
};

static void top_clear(struct top *top)
{
	limits_taken_clear(&top->taken);
}
#define CLEANUP_TOP __attribute__((cleanup(top_clear)))

/* --- what a server has counted */

__u64 top_records(const __u64 *counters)
{
	return counters[WEIR_RECORDS_PASSED] + counters[WEIR_RECORDS_DRY_RUN_HELD];
}

struct weir_heavy_counts top_total(const __u64 *counters)
{
	const __u64 refused = counters[WEIR_SHED] + counters[WEIR_REJECTED];
	const __u64 dry_run = counters[WEIR_DRY_RUN_SHED] + counters[WEIR_DRY_RUN_REJECTED] +
			      counters[WEIR_RECORDS_DRY_RUN_HELD];

	return (struct weir_heavy_counts){
		.requests = counters[WEIR_PASSED] + counters[WEIR_EXEMPT] + refused + dry_run + top_records(counters),
		.refused = refused,
		.dry_run = dry_run,
		.held = counters[WEIR_RECORDS_HELD] + counters[WEIR_INSIDE_OWED],
	};
}

/* Of one all of whose connections are TLS nothing is known. */
static bool reads_some(const __u64 *counters)
{
	return !top_records(counters) || top_total(counters).requests > top_records(counters);
}

/* --- what is in flight */

/* Limits count, too: one that counts for each subject of this kind of row. */
static bool knows_in_flight(const struct limit *limit, int by)
{
	static const __u8 keys[WEIR_HEAVY_BYS + 1] = {
		[WEIR_HEAVY_USER] = WEIR_KEY_USER,
		[WEIR_HEAVY_NAMESPACE] = WEIR_KEY_NAMESPACE,
	};

	return limit->kind == WEIR_LIMIT_IN_FLIGHT && keys[by] && limit->key == keys[by];
}

static bool is_inside(const struct top *top)
{
	return inside_explained(top->agent, top->slot);
}

/* A connection does not keep what its request asks for: those stand nowhere, in their server's count alone. */
static bool have_no_row(const struct top *top)
{
	const struct weir_heavy_what nothing = { .server = top->slot, .by = WEIR_HEAVY_BYS };

	return open_requests_of(&top->net->open.requests, &nothing).n;
}

/* Those that packets show are known by user, namespace and source; inside, all is known. */
static bool tables_show(const struct top *top)
{
	switch (top->by) {
	case WEIR_HEAVY_USER:
	case WEIR_HEAVY_NAMESPACE:
	case WEIR_HEAVY_SOURCE:
		return !is_inside(top) || inside_shows_open(top->agent, top->slot);
	case WEIR_HEAVY_VERB:
	case WEIR_HEAVY_RESOURCE:
	case WEIR_HEAVY_REQUEST:
		return is_inside(top) && inside_shows_open(top->agent, top->slot) && !have_no_row(top);
	default:
		return false;
	}
}

/*
 * Of several limits each may be for some of the requests, and two for the same; and so it is with what the tables show. The one
 * that knows of the most says the least wrong. A request that may have ended is in no limit's count, if it began before that limit.
 * -1: it is not known.
 */
static json_int_t row_in_flight(const struct top *top, const struct weir_heavy_what *what)
{
	json_int_t most = -1;

	if (tables_show(top)) {
		const struct open_count open = open_requests_of(&top->net->open.requests, what);

		if (open.doubtful)
			return -1;
		most = (json_int_t)open.n;
	}
	for (size_t i = 0; i < top->server->n_limits; i++) {
		const struct limit *limit = &top->server->limits[i];
		json_int_t seats;

		if (!knows_in_flight(limit, top->by))
			continue;
		seats = datapath_in_flight_of(top->net->dp, top->slot, limit_slot(limit), limit->number,
					      what->subjects[0]);
		most = seats > most ? seats : most;
	}
	return most;
}

static json_int_t server_in_flight(const struct top *top, const __u64 *counters)
{
	struct open_count open = open_requests_of_server(&top->net->open.requests, top->slot);
	bool known = is_inside(top) ? inside_shows_open(top->agent, top->slot) && !open.doubtful : reads_some(counters);

	return known ? (json_int_t)open.n : -1;
}

/* What is not known is left out. */
static void set_in_flight(json_t *object, json_int_t n)
{
	if (n >= 0)
		json_object_set_new(object, "in_flight", json_integer(n));
}

/* In a large table they are as of a while ago. */
static void set_total_in_flight(const struct top *top, json_t *json, const __u64 *counters)
{
	const json_int_t n = server_in_flight(top, counters);
	const __u64 ago_ns = clock_ns(CLOCK_MONOTONIC) - top->net->open.read_ns;

	set_in_flight(json, n);
	if (n >= 0)
		json_object_set_new(json, "in_flight_seconds_ago", json_real((double)ago_ns / WEIR_NS_PER_S));
}

/* --- rows */

/* Names are cut, and may be gone: this tells rows apart that look the same. */
static json_t *id_of(const struct weir_heavy_what *what)
{
	return json_sprintf("%016llx%016llx%016llx", what->subjects[0], what->subjects[1], what->subjects[2]);
}

static void add_row(struct top *top, const struct weir_heavy_row *row)
{
	json_t *object = top_row_json(top->net, top->server, row);

	json_object_set_new(object, "id", id_of(&row->what));
	json_object_set_new(object, "first_ns", json_integer(row->first_ns));
	json_object_set_new(object, "last_ns", json_integer(row->last_ns));
	set_in_flight(object, row_in_flight(top, &row->what));
	json_array_append_new(top->rows, object);
}

/* The tables of all CPUs are a megabyte each. The namespace stays meanwhile: only jobs end one. */
static int read_rows(const struct top *top, struct weir_heavy_row **rows, struct error *err)
{
	const struct datapath_heavy_query query = { .slot = top->slot, .by = 1U << top->by };
	CLEANUP_RETAKE struct agent *released = agent_release(top->agent);

	return datapath_heavy(top->net->dp, &query, rows, err);
}

static int add_rows(struct top *top, struct error *err)
{
	CLEANUP_FREE struct weir_heavy_row *rows = NULL;
	int n = read_rows(top, &rows, err);

	for (int i = 0; i < n && i < ROWS_MAX; i++)
		add_row(top, &rows[i]);
	return n < 0 ? n : 0;
}

/* Of limits everything is counted by themselves. */
struct weir_heavy_counts top_limit_counts(const struct weir_limit_counts *c)
{
	return (struct weir_heavy_counts){
		.requests = c->admitted + c->refused + c->dry_run_refused,
		.refused = c->refused,
		.dry_run = c->dry_run_refused,
	};
}

static int add_limits(struct top *top, struct error *err)
{
	struct metrics_limit *limits = NULL;
	int n = limits_measure(top->agent, top->slot, &top->taken, &limits, err);

	for (int i = 0; i < n; i++) {
		const struct weir_heavy_counts counts = top_limit_counts(&limits[i].counts);
		json_t *row = top_counts_json(&counts);

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

static struct weir_heavy_counts total_connections(const __u64 *counters)
{
	const __u64 refused = counters[WEIR_ADMISSION_DROPPED] + counters[WEIR_ADMISSION_RESET];

	return (struct weir_heavy_counts){
		.requests = counters[WEIR_ADMITTED] + counters[WEIR_ADMISSION_EXEMPT] + refused +
			    counters[WEIR_ADMISSION_DRY_RUN],
		.refused = refused,
		.dry_run = counters[WEIR_ADMISSION_DRY_RUN],
	};
}

/*
 * Of a server that is looked into, records are the requests once more that are counted inside: they are said, and left out of its
 * requests. By source they have rows.
 */
static json_t *total_json(const struct top *top, const __u64 *counters)
{
	bool connections = top->by == WEIR_HEAVY_CONNECTION;
	bool inside = !connections && top->by != WEIR_HEAVY_SOURCE && inside_explained(top->agent, top->slot);
	struct weir_heavy_counts total = connections ? total_connections(counters) : top_total(counters);
	json_t *json;

	if (inside)
		total.requests -= top_records(counters);
	json = top_counts_json(&total);
	json_object_set_new(json, "server", json_string(top->server->name));
	json_object_set_new(json, "records", json_integer(connections ? 0 : top_records(counters)));
	json_object_set_new(json, "inside", json_boolean(inside));
	if (!connections)
		set_total_in_flight(top, json, counters);
	return json;
}

static int add_server(struct top *top, json_t *servers, struct error *err)
{
	__u64 counters[WEIR_REASON_COUNT];
	int ret;

	if (!top->agent->servers[top->slot].in_force)
		return 0;
	top->server = top->agent->state.servers[top->slot];
	top->net = server_net(top->agent, top->server);
	ret = net_read_in_flight(top->net, top->by, err) ?: datapath_counters(top->net->dp, top->slot, counters, err);
	if (ret)
		return ret;
	json_array_append_new(servers, total_json(top, counters));
	return top->by == BY_LIMIT ? add_limits(top, err) : add_rows(top, err);
}

static int kind_parse(const char *text, int *by, struct error *err)
{
	for (int kind = 0; kind < WEIR_HEAVY_BYS; kind++) {
		if (strcmp(text, top_bys[kind]) == 0) {
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
	CLEANUP_TOP struct top top = { .agent = agent, .rows = rows };
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
		return state_unknown(&agent->state, name, err);
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
