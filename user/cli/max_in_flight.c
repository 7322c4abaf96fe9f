/* SPDX-License-Identifier: GPL-2.0 */
#include "weir/limit/rate.h"

#include "base/cleanup.h"
#include "cli/cli.h"

enum {
	KEY_READ_ONLY = 0x200,
	KEY_MUTATING,
	KEY_SERVER,
};

const struct argp_option cli_max_in_flight_options[] = {
	{ "read-only", KEY_READ_ONLY, "N", 0,
	  "get, list and watch requests (kube-apiserver's default is 400); 0: no limit", 0 },
	{ "mutating", KEY_MUTATING, "N", 0, "all other requests (kube-apiserver's default is 200); 0: no limit", 0 },
	CLI_SERVER_OPTION(KEY_SERVER),
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	json_t *arguments = state->input;

	switch (key) {
	case KEY_READ_ONLY:
		cli_set_whole(state, arguments, "read_only", "--read-only", arg);
		return 0;
	case KEY_MUTATING:
		cli_set_whole(state, arguments, "mutating", "--mutating", arg);
		return 0;
	case KEY_SERVER:
		json_object_set_new(arguments, "server", json_string(cli_server_name(state, arg)));
		return 0;
	case ARGP_KEY_ARG:
		cli_word_for(state, arg, CLI_SERVER_NAMED);
		return 0;
	case ARGP_KEY_END:
		if (!json_object_get(arguments, "read_only") && !json_object_get(arguments, "mutating"))
			cli_refuse(state, "--read-only or --mutating is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_number(json_int_t n)
{
	if (n)
		printf("%" JSON_INTEGER_FORMAT, n);
	else
		fputs("any number of", stdout);
}

static int print_set(json_t *result)
{
	bool waits = cli_is_not_in_force(result, cli_text(result, "server"));

	printf("server \"%s\": ", cli_text(result, "server"));
	print_number(cli_number(result, "read_only"));
	fputs(" read-only and ", stdout);
	print_number(cli_number(result, "mutating"));
	printf(" mutating requests may be in flight%s\n", waits ? ", once it is in force" : "");
	cli_warn(result, "");
	return ferror(stdout);
}

int cli_max_in_flight(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *arguments = json_object(), *result = NULL;

	cli_parse(command, parse, arguments, argc, argv);
	result = cli_call("max-in-flight", json_incref(arguments));
	return result ? cli_print(result, print_set) : 1;
}
