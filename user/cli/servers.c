/* SPDX-License-Identifier: GPL-2.0 */
/* detach, pause, resume, dry-run and reload */
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"

enum {
	KEY_ALL = 0x200,
	KEY_FORCE,
};

const struct argp_option cli_detach_options[] = {
	{ "all", KEY_ALL, NULL, 0, "all servers", 0 },
	{ "force", KEY_FORCE, NULL, 0, "reset translated connections instead of waiting for them", 0 },
	{ 0 },
};

static error_t parse_detach(int key, char *arg, struct argp_state *state)
{
	json_t *arguments = state->input;
	bool named = json_object_get(arguments, "name");

	switch (key) {
	case KEY_ALL:
		json_object_set_new(arguments, "all", json_true());
		return 0;
	case KEY_FORCE:
		json_object_set_new(arguments, "force", json_true());
		return 0;
	case ARGP_KEY_ARG:
		if (named)
			cli_too_many(state, arg);
		json_object_set_new(arguments, "name", json_string(cli_server_word(state, arg)));
		return 0;
	case ARGP_KEY_END:
		if (named == (json_object_get(arguments, "all") != NULL))
			cli_refuse(state, named ? "use either NAME or --all" : "NAME or --all is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int print_detached(json_t *result)
{
	json_t *server;
	size_t i;

	if (!json_array_size(json_object_get(result, "servers")))
		printf("no server is attached\n");
	json_array_foreach (json_object_get(result, "servers"), i, server) {
		const char *name = cli_text(server, "name");
		long long draining = cli_number(server, "draining"), reset = cli_number(server, "reset");

		if (draining)
			printf("server \"%s\" is draining: %lld translated connection%s to end first (--force resets %s)\n",
			       name, draining, draining == 1 ? " has" : "s have", draining == 1 ? "it" : "them");
		else if (reset)
			printf("server \"%s\" is detached, %lld connection%s reset\n", name, reset,
			       reset == 1 ? " was" : "s were");
		else
			printf("server \"%s\" is detached\n", name);
	}
	cli_warn(result, "");
	return ferror(stdout);
}

int cli_detach(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *arguments = json_object();
	CLEANUP_JSON json_t *result = NULL;

	cli_parse(command, parse_detach, arguments, argc, argv);
	result = cli_call("detach", json_incref(arguments));
	return result ? cli_print(result, print_detached) : 1;
}

/* What became of a server, or of what is saved alone, because the kernel goes on as before. */
static const char *paused_or_resumed(bool paused, bool in_force)
{
	if (in_force)
		return paused ? "is paused" : "limits again";
	return paused ? "is not in force: its pause is saved, and changes nothing yet" :
			"is not in force: the end of its pause is saved, and changes nothing yet";
}

static int print_paused(json_t *result)
{
	bool paused = json_is_true(json_object_get(result, "paused"));
	json_t *server;
	size_t i;

	json_array_foreach (json_object_get(result, "servers"), i, server) {
		const char *name = json_string_value(server);

		printf("server \"%s\" %s\n", name, paused_or_resumed(paused, !cli_is_not_in_force(result, name)));
	}
	cli_warn(result, "");
	return ferror(stdout);
}

/* Both pause and resume: the agent knows them by the same names. */
int cli_pause(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;
	const char *name = NULL;

	cli_parse_plain(command, &name, argc, argv);
	result = cli_call(command->name, name ? json_pack("{s:s}", "name", name) : json_object());
	return result ? cli_print(result, print_paused) : 1;
}

static error_t parse_dry_run(int key, char *arg, struct argp_state *state)
{
	json_t *arguments = state->input;
	bool on;

	if (key == ARGP_KEY_NO_ARGS)
		cli_refuse(state, "the server's name, and on or off, are missing");
	if (key == ARGP_KEY_END && state->arg_num == 1)
		cli_refuse(state, "on or off is missing behind %s", cli_text(arguments, "name"));
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	if (state->arg_num > 1)
		cli_too_many(state, arg);
	if (!state->arg_num) {
		json_object_set_new(arguments, "name", json_string(cli_server_word(state, arg)));
		return 0;
	}
	on = strcmp(arg, "on") == 0;
	if (!on && strcmp(arg, "off") != 0)
		cli_refuse(state, "\"%s\" must be on or off", arg);
	json_object_set_new(arguments, "dry_run", json_boolean(on));
	return 0;
}

/* What ends it. */
static void print_still_dry(json_t *result, const char *limit)
{
	const char *file = cli_text(json_object_get(result, "files"), limit);

	printf("limit %s is still in a dry run of its own: ", limit);
	if (*file)
		cli_say(stdout, "remove its mode in %s", file);
	else
		printf("weir limit set %s --enforce --server %s", limit, cli_text(result, "server"));
	putchar('\n');
}

/* As paused_or_resumed() */
static const char *dry_or_not(json_t *result, bool on)
{
	if (cli_is_not_in_force(result, cli_text(result, "server")))
		return on ? "is not in force: its dry run is saved, and changes nothing yet" :
			    "is not in force: the end of its dry run is saved, and changes nothing yet";
	if (on)
		return "is in a dry run: nothing is refused";
	return *cli_text(result, "refuses_not") ? "is in no dry run" : "enforces its limits";
}

static int print_dry_run(json_t *result)
{
	bool on = json_is_true(json_object_get(result, "dry_run"));
	json_t *limit;
	size_t i;

	printf("server \"%s\" %s", cli_text(result, "server"), dry_or_not(result, on));
	cli_print_refuses_not(result);
	cli_print_inside(result);
	if (!on)
		json_array_foreach (json_object_get(result, "limits_in_dry_run"), i, limit)
			print_still_dry(result, json_string_value(limit));
	cli_warn(result, "");
	return ferror(stdout);
}

int cli_dry_run(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *arguments = json_object(), *result = NULL;

	cli_parse(command, parse_dry_run, arguments, argc, argv);
	result = cli_call("dry-run", json_incref(arguments));
	return result ? cli_print(result, print_dry_run) : 1;
}

static int print_reloaded(json_t *result)
{
	json_t *server;
	size_t i;

	json_array_foreach (json_object_get(result, "servers"), i, server) {
		long long tokens = cli_number(server, "tokens"), addresses = cli_number(server, "addresses");

		printf("server \"%s\" has %lld token%s and %lld address%s\n", cli_text(server, "name"), tokens,
		       tokens == 1 ? "" : "s", addresses, addresses == 1 ? "" : "es");
	}
	return ferror(stdout);
}

int cli_reload(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;
	const char *name = NULL;

	cli_parse_plain(command, &name, argc, argv);
	result = cli_call("reload", name ? json_pack("{s:s}", "name", name) : json_object());
	return result ? cli_print(result, print_reloaded) : 1;
}
