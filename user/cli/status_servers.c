/* SPDX-License-Identifier: GPL-2.0 */
/* `weir status`: a line for each server. */
#include "cli/status.h"

#include <errno.h>
#include <string.h>

static const char *lane_inside(json_t *server)
{
	return cli_text(json_object_get(server, "inside"), "lane");
}

/* Where its requests are decided. */
static void cell_lane(struct table *table, json_t *server)
{
	const char *inside = lane_inside(server);
	bool off = !*inside || !strcmp(inside, "off");

	table_cell(table, "wire%s%s", off ? "" : ", ", off ? "" : inside);
}

/* Requests that are only seen inside are not limited, whatever the mode: those on the wire are. */
static void cell_mode(struct table *table, json_t *server)
{
	const char *mode = cli_text(server, "mode");
	bool limits = !strcmp(mode, "limiting"), sees = limits && !strcmp(lane_inside(server), "see");

	table_cell(table, "%s%s", mode, sees ? " (wire)" : "");
	if (!strcmp(mode, "failed"))
		table_colour(table, OUTPUT_RED);
	else if (!limits || sees)
		table_colour(table, OUTPUT_YELLOW);
}

/* "-" until the agent has looked twice. */
static void cell_rate(struct table *table, json_t *rates, const char *key)
{
	json_t *rate = json_object_get(rates, key);

	if (rate)
		table_cell(table, "%.1f", json_number_value(rate));
	else
		table_cell(table, "-");
}

/* Which part of what was asked came in records that weir cannot read. What was read inside is not counted once more by its records. */
static void cell_unread(struct table *table, json_t *rates)
{
	double requests = json_number_value(json_object_get(rates, "requests"));
	double inside = json_number_value(json_object_get(rates, "inside"));
	double unread = inside > 0 ? inside : json_number_value(json_object_get(rates, "records"));
	double all = inside > 0 ? requests : requests + unread;

	if (all > 0)
		table_cell(table, "%.0f%%", unread < all ? 100 * unread / all : 100);
	else
		table_cell(table, "-");
}

static void cell_health(struct table *table, json_t *server, json_t *remarks)
{
	bool bad;
	size_t n = status_count_remarks(remarks, cli_text(server, "name"), &bad);

	if (!n)
		table_cell(table, "ok");
	else if (bad)
		table_cell(table, "failing");
	else
		table_cell(table, "%zu remark%s", n, n == 1 ? "" : "s");
	table_colour(table, !n ? OUTPUT_GREEN : bad ? OUTPUT_RED : OUTPUT_YELLOW);
}

/* "80,443" */
void status_cell_ports(struct table *table, json_t *ports)
{
	char text[256] = "";
	json_t *port;
	size_t i;

	json_array_foreach (ports, i, port) {
		size_t length = strlen(text);

		snprintf(text + length, sizeof(text) - length, "%s%" JSON_INTEGER_FORMAT, i ? "," : "",
			 json_integer_value(port));
	}
	table_cell(table, "%s", text);
}

static void add_server(struct table *table, json_t *server, json_t *remarks)
{
	json_t *rates = json_object_get(server, "rates");

	table_cell(table, "%s", cli_text(server, "name"));
	status_cell_ports(table, json_object_get(server, "ports"));
	cell_lane(table, server);
	cell_mode(table, server);
	cell_rate(table, rates, "requests");
	cell_rate(table, rates, "refused");
	cell_unread(table, rates);
	table_cell(table, "%lld", cli_number(server, "connections"));
	cell_health(table, server, remarks);
}

int status_print_servers(json_t *servers, json_t *remarks)
{
	static const char *const heads[] = { "SERVER", "PORTS", "LANE",	       "MODE",	"REQ/S",
					     "429/S",  "TLS",	"CONNECTIONS", "HEALTH" };
	CLEANUP_TABLE struct table *table = table_new(heads, CLI_COLUMNS(heads));
	json_t *server;
	size_t i;

	json_array_foreach (servers, i, server)
		if (table)
			add_server(table, server, remarks);
	return cli_print_first(table);
}
