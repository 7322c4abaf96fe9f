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

#include "weir/base/duration.h"

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/json_list.h"
#include "cli/requests.h"
#include "control/control.h"
#include "metrics/metrics.h"
#include "model/parse.h"

#define AUDIT_WINDOW_NS (2 * WEIR_NS_PER_S)
#define AUDIT_WINDOW_MAX_NS (60 * WEIR_NS_PER_S)

enum {
	KEY_DECISION = 0x200,
	KEY_COUNT,
	KEY_FOR,
	KEY_FOLLOW,
	KEY_AUDIT_LOG,
	KEY_AUDIT_WINDOW,
	KEY_RECORDING,
};

const struct argp_option cli_trace_options[] = {
	{ "decision", KEY_DECISION, "D", 0,
	  "only requests with this decision: passed, shed, exempt, dry_run_shed, rejected or dry_run_rejected. Repeatable",
	  0 },
	{ "count", KEY_COUNT, "N", 0, "stop after this many requests", 0 },
	{ "for", KEY_FOR, "TIME", 0, "stop after this time, as 30s or 5m; a plain number is seconds", 0 },
	{ 0 },
};

const struct argp_option cli_events_options[] = {
	{ "follow", KEY_FOLLOW, NULL, 0, "then show new ones as they come, until interrupted", 0 },
	{ "audit-log", KEY_AUDIT_LOG, "FILE", 0,
	  "for refusals inside a Kubernetes API server: show the ID of the entry in this audit log of the server; - for standard input",
	  0 },
	{ "audit-window", KEY_AUDIT_WINDOW, "TIME", 0,
	  "the longest time between the arrival of a request at the server and weir's decision (default: 2s)", 0 },
	{ "recording", KEY_RECORDING, "FILE", 0,
	  "show the refusals in a file that weir trace --json or weir events --json has written, also those of a dry run. Needs no agent",
	  0 },
	{ "count", KEY_COUNT, "N", 0, "the latest N; with --follow, stop after N", 0 },
	{ "for", KEY_FOR, "TIME", 0, "stop after this time, as 30s or 5m; a plain number is seconds", 0 },
	{ 0 },
};

struct trace_options {
	json_t *arguments; /* of the agent's command */
	__u64 count;	   /* 0: no end */
	__u64 for_ns;	   /* 0: no end */
	struct audited_words audited;
};

static void parse_for(struct argp_state *state, const char *arg, __u64 *ns)
{
	struct error err;

	cli_check(state, duration_parse_seconds(arg, ns, &err), "--for", &err);
	cli_check_duration(state, "--for", *ns, WEIR_NS_PER_MS, 0);
}

/* What is there is joined: of what comes the audit log has nothing yet. */
static void check_whole(const struct argp_state *state, const struct trace_options *trace)
{
	const struct audited_words *audited = &trace->audited;

	if (audited->window_ns && !audited->log)
		cli_refuse(state, "--audit-window needs --audit-log");
	if (!audited->log && !audited->recording)
		return;
	if (json_object_get(trace->arguments, "follow"))
		cli_refuse(state, "%s and --follow exclude each other", audited->log ? "--audit-log" : "--recording");
	if (audited->log && audited->recording && !strcmp(audited->log, "-") && !strcmp(audited->recording, "-"))
		cli_refuse(state, "only one of --audit-log and --recording can be standard input");
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
	case KEY_AUDIT_LOG:
		trace->audited.log = cli_path(state, "--audit-log", arg);
		return 0;
	case KEY_AUDIT_WINDOW:
		trace->audited.window_ns = cli_duration(state, "--audit-window", WEIR_NS_PER_MS, AUDIT_WINDOW_MAX_NS,
							arg);
		return 0;
	case KEY_RECORDING:
		trace->audited.recording = cli_path(state, "--recording", arg);
		return 0;
	case KEY_COUNT:
		cli_check(state, parse_count(arg, UINT64_MAX, &trace->count, &err), "--count", &err);
		return 0;
	case KEY_FOR:
		parse_for(state, arg, &trace->for_ns);
		return 0;
	case ARGP_KEY_ARG:
		if (json_object_get(trace->arguments, "name"))
			cli_too_many(state, arg);
		json_object_set_new(trace->arguments, "name", json_string(cli_server_word(state, arg)));
		trace->audited.server = arg;
		return 0;
	case ARGP_KEY_END:
		check_whole(state, trace);
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

static void prepare_end(FILE *stream, __u64 for_ns)
{
	const struct itimerval timer = { .it_value = { .tv_sec = for_ns / WEIR_NS_PER_S,
						       .tv_usec = for_ns % WEIR_NS_PER_S / 1000 } };

	connection = fileno(stream);
	end_on(SIGINT);
	end_on(SIGTERM);
	end_on(SIGALRM);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* --- what is read */

static void say_lost(const struct requests_view *view, json_t *lost)
{
	json_int_t n = json_integer_value(lost);

	if (n)
		fprintf(stderr, "weir: %lld %s%s lost because %s came too fast to show\n", n, view->what,
			n == 1 ? " was" : "s were", n == 1 ? "it" : "they");
}

/* Where what comes goes to. */
struct sink {
	const struct requests_view *view;
	struct table *table;
	json_t *kept; /* all of it, instead of being printed; NULL: it is printed */
	__u64 taken;
};

static int take_request(struct sink *sink, json_t *request, struct error *err)
{
	sink->taken++;
	if (sink->kept)
		return json_array_append(sink->kept, request) ? error_set(err, -ENOMEM, "out of memory") : 0;
	return requests_print(sink->view, sink->table, request, err);
}

/* 1: it was the last line; or a negative errno with err filled in. */
static int take_line(struct sink *sink, json_t *line, struct error *err)
{
	json_t *request = json_object_get(line, "request"), *end = json_object_get(line, "end");

	if (json_object_get(line, "error"))
		return error_set(err, -EREMOTEIO, "%s", cli_text(line, "error"));
	say_lost(sink->view, json_object_get(end ? end : line, "lost"));
	if (end)
		return 1;
	return request ? take_request(sink, request, err) : 0;
}

static int read_stream(FILE *stream, struct sink *sink, __u64 count, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t room = 0;
	int ret = 0;

	while (!ret && (!count || sink->taken < count)) {
		CLEANUP_JSON json_t *line = NULL;
		ssize_t length = getline(&text, &room, stream);

		if (length <= 0)
			return error_set(err, -EPIPE, "the agent has stopped");
		line = json_loadb(text, length, 0, NULL);
		if (!line)
			return error_set(err, -EPROTO, "the agent's answer is not JSON");
		ret = take_line(sink, line, err);
	}
	return ret < 0 ? ret : 0;
}

/* On stderr: from now on nothing is missed, and ^C ends it in good order. */
static void say_servers(const struct requests_view *view, json_t *servers)
{
	json_t *name;
	size_t i;

	fprintf(stderr, "weir: %s", view->following);
	json_array_foreach (servers, i, name)
		fprintf(stderr, "%s %s", i ? "," : "", json_string_value(name));
	fprintf(stderr, "%s; ^C ends\n", json_array_size(servers) ? "" : " (no server is attached yet)");
}

static int open_stream(const struct requests_view *view, const struct trace_options *trace, json_t **result,
		       FILE **stream, struct error *err)
{
	int ret = control_follow(cli.state_dir, view->command, trace->arguments, result, cli_say_waiting, stream, err);

	if (!ret)
		prepare_end(*stream, trace->for_ns);
	return ret;
}

/* Nobody has to wonder whether an empty table means that nothing was looked at. */
static void say_none(const struct trace_options *trace)
{
	const char *server = trace->audited.server;

	if (cli.format == OUTPUT_TABLE)
		fprintf(stderr,
			"weir: nothing%s%s has been refused since the agent started (whoever waits instead: weir top --by refusal)\n",
			server ? " of " : "", server ?: "");
}

/* The latest of what the agent has kept. */
static int show_kept(const struct requests_view *view, const struct trace_options *trace, struct table *table,
		     FILE *stream, struct error *err)
{
	CLEANUP_JSON json_t *kept = json_array();
	struct sink sink = { .view = view, .kept = kept };
	int ret = read_stream(stream, &sink, 0, err) ?: requests_print_heads(table, err);
	size_t n = json_array_size(kept);

	for (size_t i = trace->count && trace->count < n ? n - trace->count : 0; i < n && !ret; i++)
		ret = requests_print(view, table, json_array_get(kept, i), err);
	if (!ret && !n)
		say_none(trace);
	return ret;
}

static int follow(const struct requests_view *view, const struct trace_options *trace, struct error *err)
{
	CLEANUP_TABLE struct table *table = requests_table(view);
	bool once = view == &requests_refused && !json_object_get(trace->arguments, "follow");
	struct sink sink = { .view = view, .table = table };
	CLEANUP_FCLOSE FILE *stream = NULL;
	CLEANUP_JSON json_t *result = NULL;
	int ret;

	if (!table)
		return error_set(err, -ENOMEM, "out of memory");
	ret = open_stream(view, trace, &result, &stream, err);
	if (ret)
		return ret;
	if (once)
		return show_kept(view, trace, table, stream, err);
	say_servers(view, json_object_get(result, "servers"));
	return requests_print_heads(table, err) ?: read_stream(stream, &sink, trace->count, err);
}

/*
 * A log that cannot be opened is told before anybody is asked. What the agent has kept is read to its end before the log is: an entry comes
 * there when its request has ended.
 */
static int show_audited(const struct trace_options *trace, struct error *err)
{
	struct sink sink = { .view = &requests_refused };
	CLEANUP_JSON json_t *kept = json_array(), *result = NULL;
	CLEANUP_FCLOSE FILE *stream = NULL, *log = NULL;
	int ret = 0;

	sink.kept = kept;
	if (trace->audited.log) {
		log = audited_open(&trace->audited, err);
		if (!log)
			return -ENOENT;
	}
	if (!trace->audited.recording)
		ret = open_stream(sink.view, trace, &result, &stream, err) ?: read_stream(stream, &sink, 0, err);
	ret = ret ?: audited_print(&trace->audited, log, kept, trace->count, err);
	if (!ret && !trace->audited.recording && !sink.taken)
		say_none(trace);
	return ret;
}

static int run(const struct requests_view *view, const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *arguments = json_object();
	struct trace_options trace = { .arguments = arguments };
	struct error err;
	int ret;

	cli_parse(command, parse, &trace, argc, argv);
	if (!trace.audited.window_ns)
		trace.audited.window_ns = AUDIT_WINDOW_NS;
	ret = trace.audited.log || trace.audited.recording ? show_audited(&trace, &err) : follow(view, &trace, &err);
	return ret ? cli_fail(&err) : 0;
}

int cli_trace(const struct command *command, int argc, char **argv)
{
	return run(&requests_traced, command, argc, argv);
}

int cli_events(const struct command *command, int argc, char **argv)
{
	return run(&requests_refused, command, argc, argv);
}
