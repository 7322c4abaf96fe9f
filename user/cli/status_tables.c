/* SPDX-License-Identifier: GPL-2.0 */
/* `weir status NAME` and `--wide`: all there is. */
#include "cli/status.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

static void server_row(struct table *table, json_t *server)
{
	static const char *const numbers[] = {
		"connections", "passed", "shed", "dry_run_shed", "exempt", "translated"
	};

	table_cell(table, "%s", cli_text(server, "name"));
	status_cell_ports(table, json_object_get(server, "ports"));
	table_cell(table, "%s", cli_text(server, "mode"));
	table_cell(table, "%s", cli_text(json_object_get(server, "loopback"), "mode"));
	for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers); n++)
		table_cell(table, "%lld", cli_number(server, numbers[n]));
	/* As in top and history: records that waited, and requests whose connection waits instead. */
	table_cell(table, "%lld",
		   cli_number(server, "records_held") + cli_number(json_object_get(server, "seen_inside"), "owed"));
}

int status_print_counts(json_t *servers)
{
	static const char *const heads[] = { "SERVER", "PORTS",	  "MODE",   "LOOPBACK",	  "CONNECTIONS", "PASSED",
					     "SHED",   "DRY-RUN", "EXEMPT", "TRANSLATED", "HELD" };
	CLEANUP_TABLE struct table *table = cli_rows(servers, heads, CLI_COLUMNS(heads), server_row);

	return cli_print_first(table);
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

static void print_limit(struct table *table, json_t *server, json_t *limit)
{
	static const char *const numbers[] = { "admitted", "refused", "dry_run_refused", "in_flight", "highest" };

	table_cell(table, "%s", cli_text(server, "name"));
	table_cell(table, "%s", cli_text(limit, "limit"));
	table_cell(table, "%s", json_is_true(json_object_get(limit, "dry_run")) ? "dry-run" : "enforce");
	for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers); n++)
		cli_cell_number(table, json_object_get(limit, numbers[n]));
}

/* What limits and priority levels have said. */
static int print_limits(json_t *servers)
{
	static const char *const heads[] = { "SERVER",	"LIMIT",   "MODE",	"ADMITTED",
					     "REFUSED", "DRY-RUN", "IN-FLIGHT", "HIGHEST" };

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

int status_print_tables(json_t *result)
{
	json_t *servers = json_object_get(result, "servers");

	return print_links(servers)	      ?:
		       print_top(servers)     ?:
		       print_limits(servers)  ?:
		       print_counted(servers) ?:
						print_policies(json_object_get(result, "policies"));
}
