/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "metrics/metrics.h"
#include "model/limit.h"

/* "80,443" */
static void cell_list(struct table *table, json_t *numbers)
{
	CLEANUP_FREE char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);
	json_t *number;

	if (!out)
		return;
	json_array_foreach (numbers, i, number)
		fprintf(out, "%s%" JSON_INTEGER_FORMAT, i ? "," : "", json_integer_value(number));
	fclose(out);
	table_cell(table, "%s", text);
}

static void server_row(struct table *table, json_t *server)
{
	static const char *const numbers[] = {
		"connections", "passed", "shed", "exempt", "translated", "records_held"
	};

	table_cell(table, "%s", cli_text(server, "name"));
	cell_list(table, json_object_get(server, "ports"));
	table_cell(table, "%s", cli_text(server, "mode"));
	table_cell(table, "%s", cli_text(json_object_get(server, "loopback"), "mode"));
	for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers); n++)
		table_cell(table, "%lld", cli_number(server, numbers[n]));
}

static int print_servers(json_t *servers)
{
	static const char *const heads[] = { "SERVER", "PORTS", "MODE",	  "LOOPBACK",	"CONNECTIONS",
					     "PASSED", "SHED",	"EXEMPT", "TRANSLATED", "HELD" };
	CLEANUP_TABLE struct table *table = cli_rows(servers, heads, CLI_COLUMNS(heads), server_row);

	return cli_print_first(table);
}

/* Nothing for what is as it should be: what cannot be read waits, or is dropped because that was asked for. */
static void print_hold(const char *server, json_t *hold)
{
	CLEANUP_FREE char *not_held = output_visible(cli_text(hold, "why"));
	CLEANUP_FREE char *no_pace = output_visible(cli_text(hold, "no_pace"));

	if (not_held && *not_held)
		printf("\n%s: %s is not limited: %s\n", server,
		       strcmp(cli_text(hold, "mode"), "pace") ? "TLS and other unreadable traffic" :
								"TLS on connections that were open before attach",
		       not_held);
	else if (no_pace && *no_pace && strcmp(cli_text(hold, "asked"), "drop"))
		printf("\n%s: TLS and other unreadable traffic is held by dropping: %s\n", server, no_pace);
}

static void print_inside(const char *server, json_t *inside)
{
	CLEANUP_FREE char *why = output_visible(cli_text(inside, "why"));
	CLEANUP_FREE char *text = output_visible(cli_text(inside, "text"));

	if (text && *text)
		printf("\n%s: inside: %s%s%s\n", server, text, why && *why ? ": " : "", why ? why : "");
	else if (why && *why)
		printf("\n%s: inside: off: %s\n", server, why);
}

/* What passed only because of a dry run stands in no column. */
static void print_dry_run(json_t *server)
{
	json_int_t shed = cli_number(server, "dry_run_shed"), rejected = cli_number(server, "dry_run_rejected");

	if (shed || rejected)
		printf("\n%s: let pass by a dry run: %lld requests that would have been shed, %lld rejected\n",
		       cli_text(server, "name"), shed, rejected);
}

/* What needs a sentence: a server that is not in force, loopback that is closed. */
static void print_remarks(json_t *servers)
{
	json_t *server;
	size_t i;

	json_array_foreach (servers, i, server) {
		CLEANUP_FREE char *problem = output_visible(cli_text(server, "problem"));
		CLEANUP_FREE char *warning = output_visible(cli_text(server, "warning"));
		json_t *loopback = json_object_get(server, "loopback");

		if (problem && *problem)
			printf("\n%s: %s\n", cli_text(server, "name"), problem);
		if (warning && *warning)
			printf("\n%s: warning: %s\n", cli_text(server, "name"), warning);
		print_dry_run(server);
		print_hold(cli_text(server, "name"), json_object_get(server, "hold"));
		print_inside(cli_text(server, "name"), json_object_get(server, "inside"));
		if (strcmp(cli_text(loopback, "mode"), "close") == 0)
			printf("\n%s: a 429 on loopback closes its connection: %s\n", cli_text(server, "name"),
			       cli_text(loopback, "why"));
	}
}

/* What a row says of an item of a server. */
typedef void print_item(struct table *table, json_t *server, json_t *item);

/* A table of the items that each server has in the list of this name. */
static int print_items(json_t *servers, const char *list, const char *const *heads, size_t columns, print_item *print)
{
	CLEANUP_TABLE struct table *table = table_new(heads, columns);
	json_t *server, *item;
	size_t i, j;

	if (!table)
		return -ENOMEM;
	json_array_foreach (servers, i, server)
		json_array_foreach (json_object_get(server, list), j, item)
			print(table, server, item);
	return cli_print_more(table);
}

/* "native", or "no: it is up, ...". Nothing is to be explained where it was not asked for. */
static void cell_xdp(struct table *table, json_t *link)
{
	const char *mode = cli_text(link, "xdp"), *why = cli_text(link, "xdp_why");

	if (strcmp(mode, "none"))
		table_cell(table, "%s", mode);
	else
		table_cell(table, "%s%s", *why ? "no: " : "no", why);
}

static void print_link(struct table *table, json_t *server, json_t *link)
{
	bool attached = json_is_true(json_object_get(link, "attached"));

	table_cell(table, "%s", cli_text(server, "name"));
	table_cell(table, "%s", cli_text(link, "name"));
	table_cell(table, "%s%s", attached ? "" : "no: ", cli_text(link, "how"));
	cell_xdp(table, link);
}

static int print_links(json_t *servers)
{
	static const char *const heads[] = { "SERVER", "INTERFACE", "ATTACHED", "XDP" };

	return print_items(servers, "links", heads, CLI_COLUMNS(heads), print_link);
}

static void print_use(struct table *table, json_t *server, json_t *use)
{
	json_t *subject = json_object_get(use, "subject");

	table_cell(table, "%s", cli_text(server, "name"));
	table_cell(table, "%s", cli_text(use, "limit"));
	table_cell(table, "%s", json_string_value(subject) ?: "-");
	table_cell(table, "%lld", cli_number(use, "shed"));
	table_cell(table, "%lld", cli_number(use, "dry_run_shed"));
	table_cell(table, "%lld", cli_number(use, "passed"));
}

static int print_top(json_t *servers)
{
	static const char *const heads[] = { "SERVER", "LIMIT", "SUBJECT", "SHED", "DRY-RUN", "PASSED" };

	return print_items(servers, "top", heads, CLI_COLUMNS(heads), print_use);
}

/* A number that there is, or "-". */
static void cell_if_there(struct table *table, json_t *number)
{
	if (number)
		table_cell(table, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
	else
		table_cell(table, "-");
}

static void print_limit(struct table *table, json_t *server, json_t *limit)
{
	static const char *const numbers[] = { "admitted", "refused", "dry_run_refused", "in_flight", "highest" };

	if (limit_builtin(cli_text(limit, "limit")) >= 0)
		return;
	table_cell(table, "%s", cli_text(server, "name"));
	table_cell(table, "%s", cli_text(limit, "limit"));
	for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers); n++)
		cell_if_there(table, json_object_get(limit, numbers[n]));
}

/* What limits with names of their own, and priority levels, have said. */
static int print_limits(json_t *servers)
{
	static const char *const heads[] = {
		"SERVER", "LIMIT", "ADMITTED", "REFUSED", "DRY-RUN", "IN-FLIGHT", "HIGHEST"
	};

	return print_items(servers, "limits", heads, CLI_COLUMNS(heads), print_limit);
}

static int print_counted(json_t *servers)
{
	static const char *const heads[] = { "SERVER", "COUNTED", "REASON", "TIMES" };
	static const char *const groups[] = { "unread", "unanswered", "notes", "seen_inside", "connection_attempts" };
	CLEANUP_TABLE struct table *table = table_new(heads, CLI_COLUMNS(heads));
	const char *reason;
	json_t *server, *count;
	size_t i;

	if (!table)
		return -ENOMEM;
	json_array_foreach (servers, i, server) {
		for (size_t group = 0; group < sizeof(groups) / sizeof(*groups); group++) {
			json_object_foreach (json_object_get(server, groups[group]), reason, count) {
				table_cell(table, "%s", cli_text(server, "name"));
				table_cell(table, "%s", groups[group]);
				table_cell(table, "%s", reason);
				table_cell(table, "%lld", json_integer_value(count));
			}
		}
	}
	return cli_print_more(table);
}

static void policy_row(struct table *table, json_t *policy)
{
	table_cell(table, "%s", cli_text(policy, "path"));
	table_cell(table, "%lld", cli_number(policy, "files"));
	table_cell(table, "%lld", cli_number(policy, "objects"));
	table_cell(table, "%s", json_is_true(json_object_get(policy, "in_force")) ? "yes" : "no");
	table_cell(table, "%s", cli_text(policy, "since"));
}

/* The policy files that the agent follows. */
static int print_policies(json_t *policies)
{
	static const char *const heads[] = { "POLICY", "FILES", "OBJECTS", "IN FORCE", "SINCE" };
	CLEANUP_TABLE struct table *table = cli_rows(policies, heads, CLI_COLUMNS(heads), policy_row);

	return cli_print_more(table);
}

/* The first error of each. */
static void print_policy_errors(json_t *policies)
{
	json_t *policy;
	size_t i;

	json_array_foreach (policies, i, policy) {
		json_t *errors = json_object_get(policy, "errors");
		CLEANUP_FREE char *first = output_visible(json_string_value(json_array_get(errors, 0)) ?: "");
		bool never = json_is_null(json_object_get(policy, "last_success"));
		size_t n = json_array_size(errors);

		if (!n)
			continue;
		printf("\npolicy %s: %s, because of %s", cli_text(policy, "path"),
		       never ? "it has not been in force since the agent started" : "its earlier content is in force",
		       first ?: "");
		if (n > 1)
			printf(" (and %zu more)", n - 1);
		putchar('\n');
	}
}

/* What the agent has given up bringing in line, until it looks at everything again. */
static void print_given_up(json_t *reconcile)
{
	const char *key;
	json_t *entry;

	json_object_foreach (json_object_get(reconcile, "given_up"), key, entry) {
		CLEANUP_FREE char *why = output_visible(cli_text(entry, "error"));

		printf("\n%s: given up after %lld tries until the next resync (every %lld s): %s\n", key,
		       cli_number(entry, "tries"), cli_number(reconcile, "resync_seconds"), why ?: "");
	}
}

static int print_status(json_t *result)
{
	json_t *servers = json_object_get(result, "servers"), *policies = json_object_get(result, "policies");
	int ret = print_servers(servers);

	print_remarks(servers);
	print_given_up(json_object_get(json_object_get(result, "agent"), "reconcile"));
	print_policy_errors(policies);
	return ret			      ?:
		       print_links(servers)   ?:
		       print_top(servers)     ?:
		       print_limits(servers)  ?:
		       print_counted(servers) ?:
						print_policies(policies);
}

int cli_status(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;

	cli_parse_plain(command, NULL, argc, argv);
	result = cli_call("status", json_object());
	return result ? cli_print(result, print_status) : 1;
}

static int print_metrics(json_t *result)
{
	CLEANUP_FREE char *text = metrics_text(json_object_get(result, "metrics"));

	if (!text)
		return -ENOMEM;
	return fputs(text, stdout) < 0 ? -EIO : 0;
}

int cli_metrics(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;

	cli_parse_plain(command, NULL, argc, argv);
	result = cli_call("metrics", json_object());
	return result ? cli_print(result, print_metrics) : 1;
}
