/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "model/limit.h"

#define KEY_SERVER 0x200
#define MATCH_WIDTH 60

const struct argp_option cli_limit_list_options[] = { CLI_ANY_SERVER_OPTION(KEY_SERVER), { 0 } };

/* "list,watch" */
static void print_values(FILE *out, json_t *value)
{
	json_t *item;
	size_t i;

	if (!json_is_array(value)) {
		fputs(json_is_true(value) ? "yes" : "no", out);
		return;
	}
	json_array_foreach (value, i, item)
		fprintf(out, "%s%s", i ? "," : "", *json_string_value(item) ? json_string_value(item) : "''");
}

/* "verbs=list resources=secrets"; the caller frees it. */
static char *describe_rule(json_t *rule)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const char *key, *separator = "";
	json_t *value;

	if (!out)
		return NULL;
	json_object_foreach (rule, key, value) {
		fprintf(out, "%s%s=", separator, key);
		print_values(out, value);
		separator = " ";
	}
	fclose(out);
	return text;
}

/* The limit's rules in words, cut to the width of the column. */
static void cell_match(struct table *table, json_t *limit)
{
	bool events = limit_builtin(cli_text(limit, "name")) == WEIR_BUILTIN_SOURCE_AND_OBJECT;
	json_t *rules = json_object_get(limit, "rules");
	CLEANUP_FREE char *text = NULL;

	if (json_array_size(rules) == 0) {
		table_cell(table, events					      ? "Events" :
				  json_is_true(json_object_get(limit, "connections")) ? "connections" :
											"all");
		return;
	}
	if (json_array_size(rules) > 1) {
		table_cell(table, "%zu rules", json_array_size(rules));
		return;
	}
	text = describe_rule(json_array_get(rules, 0));
	if (text && strlen(text) > MATCH_WIDTH)
		table_cell(table, "%.*s...", MATCH_WIDTH - 3, text);
	else
		table_cell(table, "%s", text ?: "");
}

static void cell_number(struct table *table, json_t *number)
{
	if (number)
		table_cell(table, "%.15g", json_number_value(number));
	else
		table_cell(table, "-");
}

/* amount: the limit itself, for its default, or an override. */
static void print_row(struct table *table, json_t *limit, const char *subject, json_t *amount)
{
	const char *key = cli_text(limit, "key"), *penalty = cli_text(limit, "penalty");

	table_cell(table, "%s", cli_text(limit, "server"));
	table_cell(table, "%s", cli_text(limit, "name"));
	table_cell(table, "%s", *key ? key : "-");
	table_cell(table, "%s", subject);
	if (json_is_true(json_object_get(amount, "deny")))
		table_cell(table, "denied");
	else
		cell_number(table, json_object_get(amount, "qps"));
	cell_number(table, json_object_get(amount, "burst"));
	cell_number(table, json_object_get(amount, "in_flight") ?: json_object_get(amount, "open"));
	cell_match(table, limit);
	table_cell(table, "%s", cli_text(limit, "mode"));
	table_cell(table, "%s", *penalty ? penalty : "-");
	table_cell(table, "%s", cli_text(limit, "file"));
}

/* The default, and each override. */
static void limit_rows(struct table *table, json_t *limit)
{
	json_t *override;
	size_t i;

	if (json_object_get(limit, "qps") || json_object_get(limit, "in_flight") || json_object_get(limit, "open") ||
	    json_object_get(limit, "deny"))
		print_row(table, limit, "-", limit);
	json_array_foreach (json_object_get(limit, "overrides"), i, override)
		print_row(table, limit, cli_text(override, "subject"), override);
}

static int print_list(json_t *result)
{
	static const char *const heads[] = { "SERVER",	  "LIMIT", "KEY",  "SUBJECT", "QPS", "BURST",
					     "IN-FLIGHT", "MATCH", "MODE", "PENALTY", "FILE" };
	CLEANUP_TABLE struct table *table = cli_rows(json_object_get(result, "limits"), heads, CLI_COLUMNS(heads),
						     limit_rows);

	return cli_print_first(table);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **server = state->input;

	if (key == ARGP_KEY_ARG)
		cli_word_for(state, arg, CLI_SERVER_NAMED);
	if (key != KEY_SERVER)
		return ARGP_ERR_UNKNOWN;
	*server = cli_server_name(state, arg);
	return 0;
}

int cli_limit_list(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;
	const char *server = NULL;

	cli_parse(command, parse, &server, argc, argv);
	result = cli_call("limit list", json_pack("{s:s*}", "server", server));
	return result ? cli_print(result, print_list) : 1;
}
