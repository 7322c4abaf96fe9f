/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace and events: the agent's stream of requests, line by line. Closing our side of the connection asks for its end: the agent
 * then sends what was decided up to that moment. So ^C and --for lose nothing.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/cleanup.h"
#include "base/json_list.h"
#include "cli/cli.h"
#include "control/control.h"
#include "metrics/metrics.h"
#include "model/parse.h"

#define SECONDS_MAX 1000000000

enum {
	KEY_DECISION = 0x200,
	KEY_COUNT,
	KEY_FOR,
	KEY_FOLLOW,
};

const struct argp_option cli_trace_options[] = {
	{ "decision", KEY_DECISION, "D", 0,
	  "only requests with this decision: passed, shed, exempt, dry_run_shed, rejected or dry_run_rejected. Repeatable",
	  0 },
	{ "count", KEY_COUNT, "N", 0, "stop after this many requests", 0 },
	{ "for", KEY_FOR, "SECONDS", 0, "stop after this time", 0 },
	{ 0 },
};

const struct argp_option cli_events_options[] = {
	{ "follow", KEY_FOLLOW, NULL, 0, "go on with those that come, until interrupted", 0 },
	{ "count", KEY_COUNT, "N", 0, "stop after this many refusals", 0 },
	{ "for", KEY_FOR, "SECONDS", 0, "stop after this time", 0 },
	{ 0 },
};

struct trace_options {
	json_t *arguments; /* of the agent's command */
	__u64 count;	   /* 0: no end */
	__u64 seconds;	   /* 0: no end */
};

/* An end that comes: at 0 there would be none. */
static int parse_end(const char *text, __u64 max, __u64 *out, struct error *err)
{
	__u64 value;
	int ret = parse_number(text, max, &value, err);

	if (!ret && !value)
		ret = error_set(err, -EINVAL, "must be at least 1");
	if (!ret)
		*out = value;
	return ret;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct trace_options *trace = state->input;
	enum weir_reason decision;
	struct error err;

	switch (key) {
	case KEY_DECISION:
		cli_check(state, metrics_decision_parse(arg, &decision, &err), "--decision", &err);
		list_append(trace->arguments, "decisions", json_string(arg));
		return 0;
	case KEY_FOLLOW:
		json_object_set_new(trace->arguments, "follow", json_true());
		return 0;
	case KEY_COUNT:
		cli_check(state, parse_end(arg, UINT64_MAX, &trace->count, &err), "--count", &err);
		return 0;
	case KEY_FOR:
		cli_check(state, parse_end(arg, SECONDS_MAX, &trace->seconds, &err), "--for", &err);
		return 0;
	case ARGP_KEY_ARG:
		if (json_object_get(trace->arguments, "name"))
			cli_too_many(state, arg);
		json_object_set_new(trace->arguments, "name", json_string(arg));
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- the end */

static int connection;

static void ask_for_the_end(int signal)
{
	(void)signal;
	shutdown(connection, SHUT_WR);
}

/* A second ^C ends the command at once. */
static void end_on(int signal)
{
	const struct sigaction action = { .sa_handler = ask_for_the_end, .sa_flags = SA_RESTART | SA_RESETHAND };

	sigaction(signal, &action, NULL);
}

static void prepare_end(FILE *stream, __u64 seconds)
{
	connection = fileno(stream);
	end_on(SIGINT);
	end_on(SIGTERM);
	end_on(SIGALRM);
	alarm(seconds);
}

/* --- what is printed */

/* What is shown, and how. */
struct view {
	const char *command, *what;
	const char *const *heads;
	const size_t *widths;
	size_t columns;
	void (*row)(struct table *table, json_t *request);
};

/* "-" where there is none */
static void cell_text(struct table *table, json_t *request, const char *key)
{
	table_cell(table, "%s", json_string_value(json_object_get(request, key)) ?: "-");
}

/* The time of the day, of 2026-11-20T13:14:15.123456Z */
static void cell_time(struct table *table, json_t *request)
{
	const char *time = strchr(cli_text(request, "time"), 'T');

	table_cell(table, "%.15s", time ? time + 1 : "-");
}

static void cell_client(struct table *table, json_t *request)
{
	const char *address = cli_text(request, "client");
	bool ipv6 = strchr(address, ':');

	table_cell(table, "%s%s%s:%lld", ipv6 ? "[" : "", address, ipv6 ? "]" : "", cli_number(request, "port"));
}

/* deployments.apps/scale web; or the target, where that is no resource */
static void cell_what(struct table *table, json_t *request)
{
	const char *group = cli_text(request, "group"), *subresource = cli_text(request, "subresource");
	const char *resource = cli_text(request, "resource"), *name = cli_text(request, "name");

	if (!*resource) {
		cell_text(table, request, "target");
		return;
	}
	table_cell(table, "%s%s%s%s%s%s%s", resource, *group ? "." : "", group, *subresource ? "/" : "", subresource,
		   *name ? " " : "", name);
}

static void cell_retry(struct table *table, json_t *request)
{
	json_t *retry = json_object_get(request, "retry_after");

	if (retry)
		table_cell(table, "%lld", json_integer_value(retry));
	else
		table_cell(table, "-");
}

static void trace_row(struct table *table, json_t *request)
{
	cell_time(table, request);
	cell_text(table, request, "server");
	cell_client(table, request);
	cell_text(table, request, "user");
	cell_text(table, request, "source");
	cell_text(table, request, "decision");
	cell_retry(table, request);
	cell_text(table, request, "verb");
	cell_text(table, request, "namespace");
	cell_what(table, request);
}

static void event_row(struct table *table, json_t *request)
{
	cell_time(table, request);
	cell_text(table, request, "server");
	cell_client(table, request);
	cell_text(table, request, "user");
	cell_text(table, request, "limit");
	table_cell(table, "%lld", cli_number(request, "status"));
	cell_retry(table, request);
	cell_text(table, request, "verb");
	cell_text(table, request, "namespace");
	cell_what(table, request);
}

static const char *const trace_heads[] = { "TIME",     "SERVER", "CLIENT", "USER",	"SOURCE",
					   "DECISION", "RETRY",	 "VERB",   "NAMESPACE", "WHAT" };
static const size_t trace_widths[] = { 15, 6, 21, 16, 14, 8, 5, 6, 9, 0 };
static const struct view trace_view = { .command = "trace",
					.what = "requests",
					.heads = trace_heads,
					.widths = trace_widths,
					.columns = CLI_COLUMNS(trace_heads),
					.row = trace_row };

static const char *const event_heads[] = { "TIME",   "SERVER", "CLIENT", "USER",      "LIMIT",
					   "STATUS", "RETRY",  "VERB",	 "NAMESPACE", "WHAT" };
static const size_t event_widths[] = { 15, 6, 21, 16, 14, 6, 5, 6, 9, 0 };
static const struct view event_view = { .command = "events",
					.what = "refusals",
					.heads = event_heads,
					.widths = event_widths,
					.columns = CLI_COLUMNS(event_heads),
					.row = event_row };

static int print_row(const struct view *view, struct table *table, json_t *request)
{
	view->row(table, request);
	return table_print(table, stdout);
}

static int print_request(const struct view *view, struct table *table, json_t *request)
{
	int ret;

	if (cli.format == OUTPUT_JSON)
		return output_json_line(stdout, request);
	if (cli.format == OUTPUT_TABLE)
		ret = print_row(view, table, request);
	else
		ret = fputs("---\n", stdout) == EOF ? -EIO : output_yaml(stdout, request);
	return ret || fflush(stdout) ? -EIO : 0;
}

static void say_lost(const struct view *view, json_t *lost)
{
	if (json_integer_value(lost))
		fprintf(stderr, "weir: %lld %s were lost because they came too fast to show\n",
			json_integer_value(lost), view->what);
}

/* --- what is read */

/* 1: it was the last line; or a negative errno with err filled in. */
static int take_line(const struct view *view, struct table *table, json_t *line, __u64 *shown, struct error *err)
{
	json_t *request = json_object_get(line, "request"), *end = json_object_get(line, "end");

	if (json_object_get(line, "error"))
		return error_set(err, -EREMOTEIO, "%s", cli_text(line, "error"));
	say_lost(view, json_object_get(end ? end : line, "lost"));
	if (end)
		return 1;
	if (!request)
		return 0;
	++*shown;
	return print_request(view, table, request) ? error_set(err, -EIO, "cannot write the output") : 0;
}

static int read_stream(FILE *stream, const struct view *view, struct table *table, __u64 count, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t room = 0;
	__u64 shown = 0;
	int ret = 0;

	while (!ret && (!count || shown < count)) {
		CLEANUP_JSON json_t *line = NULL;
		ssize_t length = getline(&text, &room, stream);

		if (length <= 0)
			return error_set(err, -EPIPE, "the agent has stopped");
		line = json_loadb(text, length, 0, NULL);
		if (!line)
			return error_set(err, -EPROTO, "the agent's answer is not JSON");
		ret = take_line(view, table, line, &shown, err);
	}
	return ret < 0 ? ret : 0;
}

/* On stderr, so that who has it run knows from when on nothing is missed, and that ^C ends it in good order. */
static void say_servers(json_t *servers)
{
	json_t *name;
	size_t i;

	fprintf(stderr, "weir: tracing");
	json_array_foreach (servers, i, name)
		fprintf(stderr, "%s %s", i ? "," : "", json_string_value(name));
	fprintf(stderr, "%s; ^C ends\n", json_array_size(servers) ? "" : " (no server is attached yet)");
}

static int print_heads(struct table *table, struct error *err)
{
	if (cli.format != OUTPUT_TABLE || (table_print(table, stdout) == 0 && fflush(stdout) == 0))
		return 0;
	return error_set(err, -EIO, "cannot write the output");
}

static int follow(const struct view *view, const struct trace_options *trace, struct error *err)
{
	CLEANUP_TABLE struct table *table = table_new(view->heads, view->columns);
	bool once = view == &event_view && !json_object_get(trace->arguments, "follow");
	CLEANUP_FCLOSE FILE *stream = NULL;
	CLEANUP_JSON json_t *result = NULL;
	int ret;

	if (!table)
		return error_set(err, -ENOMEM, "out of memory");
	table_widen(table, view->widths);
	ret = control_follow(cli.state_dir, view->command, trace->arguments, &result, &stream, err);
	if (ret)
		return ret;
	prepare_end(stream, trace->seconds);
	if (!once)
		say_servers(json_object_get(result, "servers"));
	return print_heads(table, err) ?: read_stream(stream, view, table, trace->count, err);
}

static int run(const struct view *view, const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *arguments = json_object();
	struct trace_options trace = { .arguments = arguments };
	struct error err;

	cli_parse(command, parse, &trace, argc, argv);
	return follow(view, &trace, &err) ? cli_fail(&err) : 0;
}

int cli_trace(const struct command *command, int argc, char **argv)
{
	return run(&trace_view, command, argc, argv);
}

int cli_events(const struct command *command, int argc, char **argv)
{
	return run(&event_view, command, argc, argv);
}
