/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "cli/cli.h"
#include "commands/uninstall.h"

enum {
	KEY_FORCE_AFTER = 0x200,
};

const struct argp_option cli_uninstall_options[] = {
	{ "force", 'f', NULL, 0, "reset translated connections instead of waiting for them", 0 },
	{ "force-after", KEY_FORCE_AFTER, "TIME", 0, "wait this long at most, as 10s, and then do as --force", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct uninstall_options *uninstalling = state->input;
	struct error err;

	switch (key) {
	case 'f':
		uninstalling->force = true;
		return 0;
	case KEY_FORCE_AFTER:
		cli_check(state, duration_parse(arg, &uninstalling->patience_ns, &err), "--force-after", &err);
		uninstalling->force = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_too_many(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void say_waiting(const char *for_what, unsigned int seconds)
{
	fprintf(stderr, "weir: waiting until %s: %u s so far\n", for_what, seconds);
}

static int print_uninstalled(json_t *result)
{
	json_t *namespaces = json_object_get(result, "namespaces"), *place;
	long long agent = cli_number(result, "agent");
	size_t i;

	cli_warn(result, "");
	if (agent)
		printf("the agent (pid %lld) has ended\n", agent);
	json_array_foreach (namespaces, i, place) {
		long long reset = cli_number(place, "reset");

		cli_say(stdout, "%s is removed", cli_text(place, "pins"));
		if (reset)
			printf(", %lld connection%s reset", reset, reset == 1 ? " was" : "s were");
		if (!json_is_true(json_object_get(place, "entered")))
			printf("; its network namespace could not be found: filters of clsact end with it");
		putchar('\n');
	}
	printf("nothing of weir is in force%s\n", json_array_size(namespaces) ? " any more" : "");
	return ferror(stdout);
}

int cli_uninstall(const struct command *command, int argc, char **argv)
{
	struct uninstall_options uninstalling = { .waiting = say_waiting };
	CLEANUP_JSON json_t *result = NULL;
	struct error err;

	cli_parse(command, parse, &uninstalling, argc, argv);
	if (geteuid()) {
		error_set(&err, -EPERM, "uninstall needs root");
		return cli_fail(&err);
	}
	uninstalling.state_dir = cli.state_dir;
	uninstalling.pin_dir = cli.pin_dir;
	uninstalling.persist_dir = cli_persist_dir();
	return uninstall(&uninstalling, &result, &err) ? cli_fail(&err) : cli_print(result, print_uninstalled);
}
