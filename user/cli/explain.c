/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_list.h"
#include "cli/cli.h"
#include "model/parse.h"
#include "show/explain_request.h"

enum {
	KEY_SERVER = 0x200,
	KEY_USER,
	KEY_GROUP,
	KEY_SOURCE,
	KEY_HEADER,
	KEY_BODY,
	KEY_CONNECTION,
};

const struct argp_option cli_explain_options[] = {
	CLI_SERVER_OPTION(KEY_SERVER),
	{ "user", KEY_USER, "NAME", 0, "user of the request, as a trusted proxy would name it", 0 },
	{ "group", KEY_GROUP, "NAME", 0, "group of the user. Repeatable", 0 },
	{ "source", KEY_SOURCE, "ADDR", 0, "the peer's address (default: 127.0.0.1)", 0 },
	{ "header", KEY_HEADER, "NAME: VALUE", 0, "header of the request. Repeatable", 0 },
	{ "connection", KEY_CONNECTION, NULL, 0, "a new connection of --source, instead of a request", 0 },
	{ "body", KEY_BODY, "TEXT", 0, "body of the request; only matters for Kubernetes Events", 0 },
	{ 0 },
};

struct question {
	const char *server;
	json_t *request;
};

static void take_word(json_t *request, const char *word, const struct argp_state *state)
{
	struct error err;

	if (json_object_get(request, "path"))
		cli_too_many(state, word);
	if (json_object_get(request, "method")) {
		cli_check(state, explain_check_path(word, &err), "PATH", &err);
		json_object_set_new(request, "path", json_string(word));
		return;
	}
	cli_check(state, explain_check_method(word, &err), "METHOD", &err);
	json_object_set_new(request, "method", json_string(word));
}

/* Before its first byte there is nothing but where it comes from. */
static void check_connection(json_t *request, const struct argp_state *state)
{
	if (!json_object_get(request, "source"))
		cli_refuse(state, "--source is missing, like in: weir explain --connection --source 10.1.2.3");
	if (json_object_size(request) > 2)
		cli_refuse(state, "--connection takes --source and --server, and no request");
}

static void check_whole(json_t *request, const struct argp_state *state)
{
	const char *method = cli_text(request, "method");
	bool whole = json_object_get(request, "path");

	if (json_object_get(request, "connection")) {
		check_connection(request, state);
		return;
	}
	if (!whole && !*method)
		cli_refuse(state, "METHOD and PATH are missing, like in: weir explain GET /api/v1/pods");
	else if (!whole && *method == '/')
		cli_refuse(state, "METHOD is missing before %s, like in: weir explain GET %s", method, method);
	else if (!whole)
		cli_refuse(state, "PATH is missing behind %s, like in: weir explain %s /", method, method);
	if (json_object_get(request, "groups") && !json_object_get(request, "user"))
		cli_refuse(state, "--group needs --user");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct question *question = state->input;
	json_t *request = question->request;
	__u8 address[16];
	struct error err;

	switch (key) {
	case KEY_SERVER:
		question->server = cli_server_name(state, arg);
		return 0;
	case KEY_USER:
		cli_check(state, parse_subject_name(arg, &err), "--user", &err);
		json_object_set_new(request, "user", json_string(arg));
		return 0;
	case KEY_GROUP:
		cli_check(state, parse_subject_name(arg, &err), "--group", &err);
		list_append(request, "groups", json_string(arg));
		return 0;
	case KEY_SOURCE:
		cli_check(state, explain_check_source(arg, address, &err), "--source", &err);
		json_object_set_new(request, "source", json_string(arg));
		return 0;
	case KEY_HEADER:
		cli_check(state, explain_check_header(arg, &err), "--header", &err);
		list_append(request, "headers", json_string(arg));
		return 0;
	case KEY_CONNECTION:
		json_object_set_new(request, "connection", json_true());
		return 0;
	case KEY_BODY:
		json_object_set_new(request, "body", json_string(arg));
		return 0;
	case ARGP_KEY_ARG:
		take_word(request, arg, state);
		return 0;
	case ARGP_KEY_END:
		check_whole(request, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- what is printed */

static const char *or_dash(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key)) ?: "-";
}

static void print_text(const char *label, const char *text)
{
	CLEANUP_FREE char *visible = output_visible(text);

	printf("%-10s %s\n", label, visible ?: "");
}

/* "get, group apps, resource deployments, name web": as far as each is there */
static void print_what(json_t *request)
{
	static const char *const parts[] = { "group", "resource", "subresource", "name" };
	CLEANUP_FREE char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fprintf(out, "%s", or_dash(request, "verb"));
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		const char *part = json_string_value(json_object_get(request, parts[i]));

		if (part)
			fprintf(out, ", %s %s", parts[i], part);
	}
	if (json_is_true(json_object_get(request, "long_running")))
		fprintf(out, ", long-running");
	fclose(out);
	print_text("WHAT", text);
}

static void print_decision(json_t *result)
{
	const char *decision = cli_text(result, "decision"), *by = cli_text(result, "exempt_by");
	json_t *retry = json_object_get(result, "retry_after"), *owed = json_object_get(result, "owed");

	if (json_is_true(json_object_get(result, "paused")))
		printf("%-10s %s: the server is paused\n", "DECISION", decision);
	else if (owed)
		printf("%-10s %s: its connection waits until it has paid, in %.3f s\n", "DECISION", decision,
		       json_real_value(owed));
	else if (retry)
		printf("%-10s %s: Retry-After: %lld\n", "DECISION", decision, (long long)json_integer_value(retry));
	else if (!strcmp(decision, "shed"))
		printf("%-10s %s: %lld, for good\n", "DECISION", decision, (long long)cli_number(result, "status"));
	else if (*by)
		printf("%-10s %s: by %s\n", "DECISION", decision,
		       strcmp(by, "health_check") == 0 ? "its path, which is a health check's" :
		       strcmp(by, "group") == 0	       ? "its user, or a group of the user's" :
							 "the rule below");
	else
		printf("%-10s %s\n", "DECISION", decision);
}

/* Of a LIST: what it takes of its priority level. */
static void print_width(json_t *list)
{
	const char *why = cli_text(list, "why");
	long long seats = cli_number(list, "seats");

	printf("%-10s %lld seat%s: ", "LIST", seats, seats == 1 ? "" : "s");
	if (strcmp(why, "learned") == 0)
		printf("its latest answers had %lld bytes on average\n", (long long)cli_number(list, "bytes"));
	else
		printf("%s\n", strcmp(why, "policy") == 0 ? "the server's listWidth" :
			       strcmp(why, "page") == 0	  ? "its limit= is small" :
			       strcmp(why, "name") == 0	  ? "it asks for one object, by name" :
							    "its list is not known to be wide");
}

static void rule_row(struct table *table, json_t *rule)
{
	table_cell(table, "%s", cli_text(rule, "of"));
	table_cell(table, "%lld", (long long)cli_number(rule, "nth"));
	table_cell(table, "%s", cli_text(rule, "leads_to"));
	table_cell(table, json_is_true(json_object_get(rule, "counts")) ? "yes" : "no: one before it does");
}

static int print_rules(json_t *rules)
{
	static const char *const heads[] = { "RULE", "NTH", "LEADS TO", "COUNTS" };
	CLEANUP_TABLE struct table *table = cli_rows(rules, heads, CLI_COLUMNS(heads), rule_row);

	return cli_print_more(table);
}

/* "2.25 of 10, 5/s", or "3 of 4 taken" */
static void cell_left(struct table *table, json_t *limit)
{
	json_t *tokens = json_object_get(limit, "tokens");

	if (tokens)
		table_cell(table, "%.15g of %lld, %.15g/s", (double)(long long)(json_real_value(tokens) * 1000) / 1000,
			   (long long)cli_number(limit, "burst"), json_number_value(json_object_get(limit, "qps")));
	else if (json_object_get(limit, "in_flight"))
		table_cell(table, "%lld of %lld taken, %lld wanted", (long long)cli_number(limit, "taken"),
			   (long long)cli_number(limit, "in_flight"), (long long)cli_number(limit, "wants"));
	else
		table_cell(table, "-");
}

static void cell_wait(struct table *table, json_t *wait)
{
	if (json_is_real(wait))
		table_cell(table, "%.3f s", json_real_value(wait));
	else
		table_cell(table, wait ? "for ever" : "-");
}

static void limit_row(struct table *table, json_t *limit)
{
	table_cell(table, "%s", cli_text(limit, "limit"));
	table_cell(table, "%s", or_dash(limit, "subject"));
	table_cell(table, "%s", cli_text(limit, "says"));
	cell_left(table, limit);
	cell_wait(table, json_object_get(limit, "wait"));
}

static int print_limits(json_t *limits)
{
	static const char *const heads[] = { "LIMIT", "SUBJECT", "SAYS", "LEFT", "WAIT" };
	CLEANUP_TABLE struct table *table = cli_rows(limits, heads, CLI_COLUMNS(heads), limit_row);

	return cli_print_more(table);
}

static void print_lane(const char *lane)
{
	if (!strcmp(lane, "hold"))
		print_text("LANE", "hold: decided inside the server; over a limit it passes, and its connection waits");
	else if (strcmp(lane, "wire") != 0)
		printf("%-10s %s: decided inside the server, by what is known there\n", "LANE", lane);
}

static void print_flood(const char *answered_by)
{
	if (!strcmp(answered_by, "xdp"))
		print_text("IN A FLOOD",
			   "of SYNs, its SYN is answered by a cookie at XDP: no connection of its address is open");
	else if (*answered_by)
		print_text("IN A FLOOD", "of SYNs, its SYN is answered by the kernel");
}

static int print_explained(json_t *result)
{
	json_t *connection = json_object_get(result, "connection"), *request;
	int ret;

	request = connection ?: json_object_get(result, "request");
	cli_warn(result, "");
	print_text("USER", or_dash(request, "user"));
	print_text("BY", or_dash(request, "identified_by"));
	print_text("NAMESPACE", or_dash(request, "namespace"));
	if (!connection) {
		print_what(request);
		print_lane(cli_text(result, "lane"));
	}
	print_decision(result);
	if (connection)
		print_flood(cli_text(connection, "flood_answered_by"));
	if (json_object_get(result, "list"))
		print_width(json_object_get(result, "list"));
	ret = print_rules(json_object_get(result, "rules"));
	return ret ?: print_limits(json_object_get(result, "limits"));
}

int cli_explain(const struct command *command, int argc, char **argv)
{
	struct question question = { .request = json_object() };
	CLEANUP_JSON json_t *result = NULL;

	cli_parse(command, parse, &question, argc, argv);
	result = cli_call("explain", json_pack("{s:s*, s:o}", "server", question.server, "request", question.request));
	return result ? cli_print(result, print_explained) : 1;
}
