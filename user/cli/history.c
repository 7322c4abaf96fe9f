/* SPDX-License-Identifier: GPL-2.0 */
/* history: what was asked and refused, minute by minute. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/rate.h"
#include "cli/cli.h"
#include "cli/top.h"
#include "history/files.h"

#define HEADS_MAX 16

enum {
	KEY_BY = 0x200,
	KEY_SINCE,
	KEY_SUM,
	KEY_FILTER,
	KEY_OVER,
};

const struct argp_option cli_history_options[] = {
	{ "by", KEY_BY, "WHAT", 0,
	  "server, user (the default), namespace, verb, resource, source, connection (by address), limit, request (user, verb and resource) or refusal (user and limit)",
	  0 },
	{ "since", KEY_SINCE, "TIME", 0, "how far back, as 10m or 24h (default: 1h)", 0 },
	{ "sum", KEY_SUM, NULL, 0, "add up all minutes: one row for each name", 0 },
	{ "filter", KEY_FILTER, "TEXT", 0, "only rows with this text in a name", 0 },
	{ "over", KEY_OVER, "QPS[:BURST]", 0,
	  "show how many requests a limit of this rate for each name would have refused, at least (default BURST: twice the rate)",
	  0 },
	{ 0 },
};

static const struct top_kind server_kind = { .name = "server" };

struct history_look {
	const struct top_kind *kind;
	bool sum;
	bool with_server;
	bool over;
	json_t *arguments; /* of the agent's command */
};

static void parse_since(struct argp_state *state, const char *arg, json_t *arguments)
{
	__u64 ns = cli_duration(state, "--since", WEIR_NS_PER_S, HISTORY_NS, arg);

	json_object_set_new(arguments, "since", json_integer(ns / WEIR_NS_PER_S));
}

static void parse_by(struct argp_state *state, const char *arg, struct history_look *look)
{
	struct error err;

	look->kind = strcmp(arg, server_kind.name) == 0 ? &server_kind : top_kind_of(arg);
	error_set(
		&err, -EINVAL,
		"\"%s\" is not one of server, user, namespace, verb, resource, source, connection, limit, request, refusal",
		arg);
	cli_check(state, !look->kind, "--by", &err);
}

static void parse_over(struct argp_state *state, const char *arg, struct history_look *look)
{
	CLEANUP_FREE char *qps = strdup(arg);
	char *burst = qps ? strchr(qps, ':') : NULL;
	__u64 per_ns = 0, most = 0;
	struct error err;
	int ret;

	if (burst)
		*burst++ = 0;
	ret = !qps || weir_qps_parse(qps, &per_ns) || (burst && weir_burst_parse(burst, &most));
	error_set(&err, -EINVAL, "\"%s\" is not QPS or QPS:BURST, as 20 or 20:40", arg);
	cli_check(state, ret, "--over", &err);
	look->over = true;
	json_object_set_new(look->arguments, "limit",
			    json_pack("{s:f, s:f}", "qps", (double)per_ns / WEIR_QPS, "burst",
				      burst ? (double)most : 2.0 * per_ns / WEIR_QPS));
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct history_look *look = state->input;

	switch (key) {
	case KEY_BY:
		parse_by(state, arg, look);
		return 0;
	case KEY_SINCE:
		parse_since(state, arg, look->arguments);
		return 0;
	case KEY_SUM:
		look->sum = true;
		return 0;
	case KEY_OVER:
		parse_over(state, arg, look);
		return 0;
	case KEY_FILTER:
		json_object_set_new(look->arguments, "filter", json_string(arg));
		return 0;
	case ARGP_KEY_ARG:
		if (json_object_get(look->arguments, "name"))
			cli_too_many(state, arg);
		json_object_set_new(look->arguments, "name", json_string(cli_server_word(state, arg)));
		look->with_server = false;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- tables */

static struct table *new_table(const struct history_look *look)
{
	static const char *const counts[] = { "REQUESTS", "REFUSED", "DRY-RUN", "HELD" };
	static const char *heads[HEADS_MAX];
	size_t n = 0;

	if (!look->sum) {
		heads[n++] = "TIME";
		heads[n++] = "SECONDS";
	}
	if (look->with_server || look->kind == &server_kind)
		heads[n++] = "SERVER";
	for (const char *const *member = look->kind->members; *member; member++)
		heads[n++] = top_head(*member);
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		heads[n++] = counts[i];
	if (look->over)
		heads[n++] = "OVER";
	if (look->sum) {
		heads[n++] = "PEAK/S";
		heads[n++] = "MINUTES";
	}
	return table_new(heads, n);
}

static void cell_time(struct table *table, json_t *row)
{
	time_t time = cli_number(row, "time");
	struct tm parts;
	char text[16];

	localtime_r(&time, &parts);
	strftime(text, sizeof(text), "%H:%M:%S", &parts);
	table_cell(table, "%s", text);
	table_cell(table, "%.1f", json_number_value(json_object_get(row, "seconds")));
}

static void add_row(struct table *table, const struct history_look *look, json_t *row)
{
	if (!look->sum)
		cell_time(table, row);
	if (look->with_server || look->kind == &server_kind)
		table_cell(table, "%s", cli_text(row, "server"));
	for (const char *const *member = look->kind->members; *member; member++)
		table_cell(table, "%s", json_string_value(json_object_get(row, *member)) ?: "-");
	for (int i = 0; i < TOP_NUMBERS; i++)
		table_cell(table, "%lld", cli_number(row, top_numbers[i]));
	if (look->over)
		table_cell(table, "%.0f", json_real_value(json_object_get(row, "over")));
	if (look->sum) {
		table_cell(table, "%.1f", json_number_value(json_object_get(row, "peak")));
		table_cell(table, "%lld", cli_number(row, "minutes"));
	}
}

static int print_table(const struct history_look *look, json_t *rows)
{
	CLEANUP_TABLE struct table *table = new_table(look);
	json_t *row;
	size_t i;

	if (!table)
		return -ENOMEM;
	json_array_foreach (rows, i, row)
		add_row(table, look, row);
	return table_print(table, stdout);
}

/* --- JSON: times as other commands have them */

static void set_time(json_t *row)
{
	time_t time = cli_number(row, "time");
	struct tm parts;
	char text[32];

	if (!json_object_get(row, "time"))
		return;
	gmtime_r(&time, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	json_object_set_new(row, "time", json_string(text));
}

static int print(const struct history_look *look, json_t *result)
{
	json_t *rows = json_object_get(result, "rows"), *row;
	size_t i;

	if (cli.format == OUTPUT_TABLE)
		return print_table(look, rows);
	json_array_foreach (rows, i, row)
		set_time(row);
	return cli.format == OUTPUT_JSON ? output_json(stdout, result) : output_yaml(stdout, result);
}

int cli_history(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *arguments = json_pack("{s:i}", "since", 3600), *result = NULL;
	struct history_look look = { .kind = top_kind_of("user"), .with_server = true, .arguments = arguments };
	json_int_t left_out;

	cli_parse(command, parse, &look, argc, argv);
	json_object_set_new(arguments, "by", json_string(look.kind->name));
	json_object_set_new(arguments, "sum", json_boolean(look.sum));
	result = cli_call("history", json_incref(arguments));
	if (!result)
		return 1;
	left_out = cli_number(result, "left_out");
	if (left_out)
		fprintf(stderr, "weir: warning: %lld older row%s left out: use a shorter --since, a filter or --sum\n",
			left_out, left_out == 1 ? " is" : "s are");
	return cli_printed(print(&look, result));
}
