/* SPDX-License-Identifier: GPL-2.0 */
/* audit: who has changed what. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "cli/cli.h"

enum {
	KEY_SINCE = 0x200,
};

const struct argp_option cli_audit_options[] = {
	{ "since", KEY_SINCE, "TIME", 0, "how far back, as 10m or 24h (default: as far as there is something)", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	json_t *arguments = state->input;
	__u64 ns;

	switch (key) {
	case KEY_SINCE:
		ns = cli_duration(state, "--since", WEIR_NS_PER_S, 0, arg);
		json_object_set_new(arguments, "since", json_integer(ns / WEIR_NS_PER_S));
		return 0;
	case ARGP_KEY_ARG:
		if (json_object_get(arguments, "name"))
			cli_too_many(state, arg);
		json_object_set_new(arguments, "name", json_string(cli_server_word(state, arg)));
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- the table */

/* alice (uid 1000, pid 4711); alice as root; /etc/weir/policy.d */
static void cell_who(struct table *table, json_t *by)
{
	const char *user = cli_text(by, "user"), *login = cli_text(by, "login");
	const char *file = json_string_value(json_array_get(json_object_get(by, "files"), 0));
	size_t files = json_array_size(json_object_get(by, "files"));

	if (file && files > 1)
		table_cell(table, "%s and %zu more", file, files - 1);
	else if (file)
		table_cell(table, "%s", file);
	else if (!json_object_get(by, "uid"))
		table_cell(table, "the agent");
	else
		table_cell(table, "%s%s%s (uid %lld, pid %lld)", login, *login ? " as " : "", *user ? user : "?",
			   cli_number(by, "uid"), cli_number(by, "pid"));
}

static void print_value(FILE *out, json_t *value)
{
	CLEANUP_FREE char *text = NULL;

	if (json_is_string(value)) {
		fprintf(out, "%s", json_string_value(value));
		return;
	}
	text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	fprintf(out, "%s", text ?: "");
}

/* Of an object the members that the other one does not have alike. */
static void print_members(FILE *out, json_t *value, json_t *other)
{
	const char *key, *separator = "";
	json_t *member;

	json_object_foreach (value, key, member) {
		if (json_equal(member, json_object_get(other, key)))
			continue;
		fprintf(out, "%s%s ", separator, key);
		print_value(out, member);
		separator = ", ";
	}
	if (!*separator)
		fprintf(out, "-");
}

/* Is it as it would be without a word? */
static bool is_usual(json_t *setting)
{
	const char *text = json_string_value(setting);

	return !setting || json_is_null(setting) || json_is_false(setting) || (text && !strcmp(text, "auto"));
}

/* A server that is new, or gone, has many settings: the table says where it listens, and whether it limits at all. */
static json_t *shown(const char *what, json_t *value)
{
	static const char *const told[] = { "listen", "netns", "inside", "dry_run", "paused" };
	json_t *some;

	if (strcmp(what, "server") || !json_is_object(value))
		return json_incref(value);
	some = json_object();
	for (size_t i = 0; i < CLI_COLUMNS(told); i++)
		if (!is_usual(json_object_get(value, told[i])))
			json_object_set(some, told[i], json_object_get(value, told[i]));
	return some;
}

static void cell_value(struct table *table, json_t *value, json_t *other)
{
	CLEANUP_FREE char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	if (json_is_object(value))
		print_members(out, value, other);
	else if (json_is_null(value))
		fprintf(out, "-");
	else
		print_value(out, value);
	if (fclose(out) == 0)
		table_cell(table, "%s", text);
}

/* 2026-11-20 13:14:15 */
static void cell_time(struct table *table, json_t *change)
{
	const char *time = cli_text(change, "time");

	table_cell(table, "%.10s %.8s", time, strlen(time) > 11 ? time + 11 : "");
}

static void row(struct table *table, json_t *change)
{
	CLEANUP_JSON json_t *before = shown(cli_text(change, "what"), json_object_get(change, "before"));
	CLEANUP_JSON json_t *after = shown(cli_text(change, "what"), json_object_get(change, "after"));

	cell_time(table, change);
	cell_who(table, json_object_get(change, "by"));
	table_cell(table, "%s", cli_text(change, "command"));
	table_cell(table, "%s", cli_text(change, "server"));
	table_cell(table, "%s", cli_text(change, "what"));
	cell_value(table, before, after);
	cell_value(table, after, before);
}

static int print_changes(json_t *result)
{
	static const char *const heads[] = { "TIME", "WHO", "COMMAND", "SERVER", "WHAT", "BEFORE", "AFTER" };
	CLEANUP_TABLE struct table *table = cli_rows(json_object_get(result, "changes"), heads, CLI_COLUMNS(heads),
						     row);

	if (!json_array_size(json_object_get(result, "changes")))
		fprintf(stderr, "weir: no rows: no such change is written down; weir audit shows all\n");
	return cli_print_first(table);
}

int cli_audit(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *arguments = json_object(), *result = NULL;

	cli_parse(command, parse, arguments, argc, argv);
	result = cli_call("audit", json_incref(arguments));
	return result ? cli_print(result, print_changes) : 1;
}
