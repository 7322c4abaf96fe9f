/* SPDX-License-Identifier: GPL-2.0 */
/* How requests are shown, a line each. */
#include "cli/requests.h"

#include <errno.h>
#include <string.h>

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

static void trace_row(struct table *table, json_t *request)
{
	cell_time(table, request);
	cell_text(table, request, "server");
	cell_client(table, request);
	cell_text(table, request, "user");
	cell_text(table, request, "identified_by");
	cell_text(table, request, "decision");
	cli_cell_number(table, json_object_get(request, "retry_after"));
	cell_text(table, request, "verb");
	cell_text(table, request, "namespace");
	cell_what(table, request);
}

/* What a dry run has let pass was answered by the server. */
static void cell_status(struct table *table, json_t *request)
{
	if (cli_number(request, "status"))
		table_cell(table, "%lld", cli_number(request, "status"));
	else
		cell_text(table, request, "decision");
}

static void event_row(struct table *table, json_t *request)
{
	cell_time(table, request);
	cell_text(table, request, "server");
	cell_client(table, request);
	cell_text(table, request, "user");
	cell_text(table, request, "limit");
	cell_status(table, request);
	cli_cell_number(table, json_object_get(request, "retry_after"));
	cell_text(table, request, "verb");
	cell_text(table, request, "namespace");
	cell_what(table, request);
}

/* The entry of the server's audit log; of several that it may be, how many. */
static void audited_row(struct table *table, json_t *request)
{
	json_int_t fits = cli_number(request, "audit_fits");

	cell_time(table, request);
	cell_text(table, request, "server");
	cell_client(table, request);
	cell_text(table, request, "user");
	cell_text(table, request, "limit");
	cell_status(table, request);
	cell_text(table, request, "audit_id");
	if (fits)
		table_cell(table, "%lld", fits);
	else
		table_cell(table, "-");
	cell_text(table, request, "verb");
	cell_text(table, request, "namespace");
	cell_what(table, request);
}

static const char *const trace_heads[] = { "TIME",     "SERVER", "CLIENT", "USER",	"BY",
					   "DECISION", "RETRY",	 "VERB",   "NAMESPACE", "WHAT" };
static const size_t trace_widths[] = { 15, 6, 21, 16, 14, 12, 5, 6, 9, 0 };
const struct requests_view requests_traced = { .command = "trace",
					       .what = "request",
					       .following = "tracing",
					       .heads = trace_heads,
					       .widths = trace_widths,
					       .columns = CLI_COLUMNS(trace_heads),
					       .row = trace_row };

static const char *const event_heads[] = { "TIME",   "SERVER", "CLIENT", "USER",      "LIMIT",
					   "STATUS", "RETRY",  "VERB",	 "NAMESPACE", "WHAT" };
static const size_t event_widths[] = { 15, 6, 21, 16, 14, 6, 5, 6, 9, 0 };
const struct requests_view requests_refused = { .command = "events",
						.what = "refusal",
						.following = "following refusals of",
						.heads = event_heads,
						.widths = event_widths,
						.columns = CLI_COLUMNS(event_heads),
						.row = event_row };

static const char *const audited_heads[] = { "TIME",	 "SERVER", "CLIENT", "USER",	  "LIMIT", "STATUS",
					     "AUDIT-ID", "FITS",   "VERB",   "NAMESPACE", "WHAT" };
static const size_t audited_widths[] = { 15, 6, 21, 16, 14, 6, 36, 4, 6, 9, 0 };
const struct requests_view requests_audited = { .command = "events",
						.what = "refusal",
						.following = "following refusals of",
						.heads = audited_heads,
						.widths = audited_widths,
						.columns = CLI_COLUMNS(audited_heads),
						.row = audited_row };

struct table *requests_table(const struct requests_view *view)
{
	struct table *table = table_new(view->heads, view->columns);

	if (table)
		table_widen(table, view->widths);
	return table;
}

int requests_print_heads(struct table *table, struct error *err)
{
	int ret = cli.format == OUTPUT_TABLE ? table_print(table, stdout) : 0;

	return ret ? output_error(ret, err) : 0;
}

static int print_row(const struct requests_view *view, struct table *table, json_t *request)
{
	view->row(table, request);
	return table_print(table, stdout);
}

static int print_one(const struct requests_view *view, struct table *table, json_t *request)
{
	if (cli.format == OUTPUT_JSON)
		return output_json_line(stdout, request);
	if (cli.format == OUTPUT_TABLE)
		return print_row(view, table, request);
	return output_yaml_more(stdout, request);
}

int requests_print(const struct requests_view *view, struct table *table, json_t *request, struct error *err)
{
	int ret = print_one(view, table, request);

	return ret ? output_error(ret, err) : 0;
}
