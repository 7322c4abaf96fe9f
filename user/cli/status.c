/* SPDX-License-Identifier: GPL-2.0 */
/* status: how each server is, in a line; what needs a sentence; and all of it, where that is asked for. */
#include "cli/status.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "control/control.h"
#include "metrics/metrics.h"

#define WATCH_NS (2 * WEIR_NS_PER_S)
#define WATCH_LEAST_NS (WEIR_NS_PER_S / 10)
#define CLEAR "\033[H\033[2J"

enum {
	KEY_WIDE = 0x200,
	KEY_WATCH,
};

const struct argp_option cli_status_options[] = {
	{ "wide", KEY_WIDE, NULL, 0, "all counts, interfaces, subjects, limits and reasons", 0 },
	{ "watch", KEY_WATCH, "TIME", OPTION_ARG_OPTIONAL,
	  "again and again, every TIME (default: 2s), until interrupted", 0 },
	{ 0 },
};

struct status_words {
	const char *name;
	bool wide;
	__u64 watch_ns; /* 0: once */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct status_words *words = state->input;

	switch (key) {
	case KEY_WIDE:
		words->wide = true;
		return 0;
	case KEY_WATCH:
		words->watch_ns = arg ? cli_duration(state, "--watch", WATCH_LEAST_NS, 0, arg) : WATCH_NS;
		return 0;
	case ARGP_KEY_ARG:
		if (words->name)
			cli_too_many(state, arg);
		words->name = cli_server_word(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static bool in_full;

/* A server that was named is shown in full. */
static int print_status(json_t *result)
{
	json_t *servers = json_object_get(result, "servers");
	CLEANUP_JSON json_t *remarks = status_remarks(result, in_full);
	int ret = in_full ? status_print_counts(servers) : status_print_servers(servers, remarks);

	status_print_remarks(remarks);
	return ret ? ret : in_full ? status_print_tables(result) : 0;
}

static int show(const struct status_words *words)
{
	CLEANUP_JSON json_t *result = cli_call("status", json_pack("{s:s*}", "name", words->name));

	return result ? cli_print(result, print_status) : 1;
}

/* --- again and again */

/* On a terminal, where there is something to be seen until the next answer has come: so nothing is cleared before. */
static int show_anew(const struct status_words *words, struct error *err)
{
	CLEANUP_JSON json_t *arguments = json_pack("{s:s*}", "name", words->name), *result = NULL;
	int ret = control_call(cli.state_dir, "status", arguments, &result, cli_say_waiting, err);

	if (ret)
		return ret;
	fputs(CLEAR, stdout);
	return cli_print(result, print_status);
}

static void show_away(const struct error *why)
{
	CLEANUP_FREE char *visible = output_visible(why->text);

	printf(CLEAR "weir: %s\n\nThe agent is asked again and again. ^C ends.\n", visible ?: "out of memory");
}

/* An agent that is away may come back, as one that is restarted does. If it is not there at first, something else is wrong. */
static int watch_on_terminal(const struct status_words *words)
{
	bool shown = false;

	for (;;) {
		struct error err;
		int ret = show_anew(words, &err);

		if (ret < 0 && !(shown && control_is_away(ret)))
			return cli_fail(&err);
		if (ret < 0)
			show_away(&err);
		shown = true;
		if (ret > 0 || fflush(stdout))
			return 1;
		cli_wait(words->watch_ns);
	}
}

/* Who reads that is told by the end that there is nothing more to read. */
static int watch_in_pipe(const struct status_words *words)
{
	for (;;) {
		int ret = show(words);

		if (cli.format == OUTPUT_TABLE)
			putchar('\n');
		if (ret || fflush(stdout))
			return 1;
		cli_wait(words->watch_ns);
	}
}

int cli_status(const struct command *command, int argc, char **argv)
{
	struct status_words words = { 0 };

	cli_parse(command, parse, &words, argc, argv);
	in_full = words.wide || words.name;
	if (!words.watch_ns)
		return show(&words);
	return isatty(STDOUT_FILENO) && cli.format == OUTPUT_TABLE ? watch_on_terminal(&words) : watch_in_pipe(&words);
}

static int print_metrics(json_t *result)
{
	CLEANUP_FREE char *text = metrics_text(json_object_get(result, "metrics"));

	if (!text)
		return -ENOMEM;
	errno = 0;
	return fputs(text, stdout) < 0 ? error_errno() : 0;
}

int cli_metrics(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;

	cli_parse_plain(command, NULL, argc, argv);
	result = cli_call("metrics", json_object());
	return result ? cli_print(result, print_metrics) : 1;
}
