/* SPDX-License-Identifier: GPL-2.0 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/rate.h"
#include "cli/cli.h"
#include "cli/slow.h"
#include "control/control.h"
#include "model/parse.h"
#include "saved/owner.h"

struct cli cli;

static const char *from_environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

void cli_defaults(void)
{
	cli.state_dir = from_environment("WEIR_STATE_DIR", STATE_DIR_DEFAULT);
	cli.pin_dir = from_environment("WEIR_PIN_DIR", "/sys/fs/bpf/weir");
}

const char *cli_persist_dir(void)
{
	return from_environment("WEIR_PERSIST_DIR", "/var/lib/weir");
}

void cli_refuse(const struct argp_state *state, const char *format, ...)
{
	CLEANUP_FREE char *visible = NULL;
	va_list words;

	va_start(words, format);
	visible = output_visible_format(format, words);
	va_end(words);
	argp_failure(state, CLI_USAGE, 0, "%s", visible ?: "out of memory");
}

void cli_check(const struct argp_state *state, int wrong, const char *what, const struct error *err)
{
	if (wrong)
		cli_refuse(state, "%s: %s", what, err->text);
}

const char *cli_server_name(const struct argp_state *state, const char *arg)
{
	struct error err;

	cli_check(state, parse_server_name(arg, &err), "--server", &err);
	return arg;
}

const char *cli_server_word(const struct argp_state *state, const char *arg)
{
	struct error err;

	cli_check(state, parse_server_name(arg, &err), "NAME", &err);
	return arg;
}

void cli_set_count(const struct argp_state *state, json_t *object, const char *key, const char *option, __u64 max,
		   const char *arg)
{
	struct error err;
	__u64 value = 0;

	cli_check(state, parse_count(arg, max, &value, &err), option, &err);
	json_object_set_new(object, key, json_integer(value));
}

__u64 cli_seconds(const struct argp_state *state, const char *option, __u64 max, const char *arg)
{
	char longest[DURATION_TEXT];
	struct error err;
	__u64 ns = 0;

	cli_check(state, duration_parse_seconds(arg, &ns, &err), option, &err);
	duration_format(max * WEIR_NS_PER_S, longest);
	if (!ns || ns > max * WEIR_NS_PER_S || ns % WEIR_NS_PER_S)
		cli_refuse(state, "%s: \"%s\" is not whole seconds from 1s to %s", option, arg, longest);
	return ns / WEIR_NS_PER_S;
}

void cli_check_duration(const struct argp_state *state, const char *option, __u64 ns, __u64 least_ns, __u64 most_ns)
{
	char least[DURATION_TEXT], most[DURATION_TEXT];

	duration_format(least_ns, least);
	duration_format(most_ns, most);
	if (ns < least_ns && !most_ns)
		cli_refuse(state, "%s: must be at least %s", option, least);
	if (ns < least_ns || (most_ns && ns > most_ns))
		cli_refuse(state, "%s: must be from %s to %s", option, least, most);
}

__u64 cli_duration(const struct argp_state *state, const char *option, __u64 least_ns, __u64 most_ns, const char *arg)
{
	struct error err;
	__u64 ns = 0;

	cli_check(state, duration_parse(arg, &ns, &err), option, &err);
	cli_check_duration(state, option, ns, least_ns, most_ns);
	return ns;
}

void cli_set_whole(const struct argp_state *state, json_t *object, const char *key, const char *option, const char *arg)
{
	__u64 number = 0;

	if (weir_burst_parse(arg, &number))
		cli_refuse(state, "%s: \"%s\" is not a whole number from 0 to %u, like 100 or 2k", option, arg,
			   WEIR_BURST_MAX);
	json_object_set_new(object, key, json_integer(number));
}

char *cli_path(const struct argp_state *state, const char *option, char *arg)
{
	if (!*arg)
		cli_refuse(state, "%s: the path is empty", option);
	return arg;
}

void cli_too_many(const struct argp_state *state, const char *word)
{
	cli_word_for(state, word, NULL);
}

void cli_word_for(const struct argp_state *state, const char *word, const char *advice)
{
	cli_refuse(state, "\"%s\" is an unexpected argument%s%s", word, advice ? ": " : "", advice ?: "");
}

enum {
	KEY_JSON = 0x100,
	KEY_STATE_DIR,
	KEY_PIN_DIR,
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct error err;

	switch (key) {
	case 'o':
		cli_check(state, output_format_parse(arg, &cli.format, &err), "--output", &err);
		return 0;
	case KEY_JSON:
		cli.format = OUTPUT_JSON;
		return 0;
	case KEY_STATE_DIR:
		cli.state_dir = cli_path(state, "--state-dir", arg);
		return 0;
	case KEY_PIN_DIR:
		cli.pin_dir = cli_path(state, "--pin-dir", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option common_options[] = {
	{ NULL, 0, NULL, 0, "Common options:", 10 },
	{ "output", 'o', "FORMAT", 0, "output format: table (the default), json or yaml", 10 },
	{ "json", KEY_JSON, NULL, 0, "short for -o json", 10 },
	{ "state-dir", KEY_STATE_DIR, "DIR", 0, "state directory of the agent (WEIR_STATE_DIR, default: /run/weir)",
	  10 },
	{ "pin-dir", KEY_PIN_DIR, "DIR", 0,
	  "pin directory of the agent, on a bpffs (WEIR_PIN_DIR, default: /sys/fs/bpf/weir)", 10 },
	{ 0 },
};

const struct argp cli_common = { .options = common_options, .parser = parse_common };

/* The summary, and behind the options what else there is, with the examples indented. NULL without memory. */
static char *help_text(const struct command *command)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%s\v%s%sExamples:\n  ", command->summary, command->details ?: "", command->details ? "\n\n" : "");
	for (const char *at = command->examples; *at; at++)
		fputs(*at == '\n' ? "\n  " : (char[]){ *at, 0 }, out);
	fclose(out);
	return text;
}

void cli_parse(const struct command *command, argp_parser_t parser, void *input, int argc, char **argv)
{
	const struct argp_child children[] = { { .argp = command->more ?: &cli_common },
					       { .argp = command->more ? &cli_common : NULL },
					       { 0 } };
	CLEANUP_FREE char *doc = help_text(command);
	const struct argp argp = {
		.options = command->options,
		.parser = parser,
		.args_doc = command->arguments,
		.doc = doc,
		.children = children,
	};

	cli_find_misspelt(&argp, false, argc, argv);
	if (argp_parse(&argp, argc, argv, 0, NULL, input))
		exit(CLI_USAGE);
}

static error_t parse_argument(int key, char *arg, struct argp_state *state)
{
	const char **argument = state->input;

	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	if (argument && !*argument)
		*argument = cli_server_word(state, arg);
	else
		cli_too_many(state, arg);
	return 0;
}

void cli_parse_plain(const struct command *command, const char **argument, int argc, char **argv)
{
	cli_parse(command, parse_argument, argument, argc, argv);
}

bool cli_is_not_in_force(json_t *result, const char *server)
{
	json_t *name;
	size_t i;

	json_array_foreach (json_object_get(result, "not_in_force"), i, name)
		if (!strcmp(json_string_value(name) ?: "", server))
			return true;
	return false;
}

void cli_print_refuses_not(json_t *result)
{
	CLEANUP_FREE char *why = output_visible(cli_text(result, "refuses_not"));

	if (why && *why)
		printf("; what is over a limit is counted, and passes: requests are only seen inside the server (%s)",
		       why);
	putchar('\n');
}

void cli_print_inside(json_t *result)
{
	CLEANUP_FREE char *inside = output_visible(cli_text(result, "inside"));

	if (inside && *inside)
		printf("server \"%s\": inside: %s\n", cli_text(result, "server"), inside);
}

void cli_warn(json_t *result, const char *about)
{
	json_t *warning;
	size_t i;

	json_array_foreach (json_object_get(result, "warnings"), i, warning) {
		CLEANUP_FREE char *visible = output_visible(json_string_value(warning));

		fprintf(stderr, "weir: warning: %s%s\n", about, visible ?: "");
	}
}

void cli_say(FILE *out, const char *format, ...)
{
	CLEANUP_FREE char *visible = NULL;
	va_list words;

	va_start(words, format);
	visible = output_visible_format(format, words);
	va_end(words);
	fputs(visible ?: "out of memory", out);
}

int cli_fail(const struct error *err)
{
	CLEANUP_FREE char *visible = output_visible(err->text);

	fprintf(stderr, "weir: %s\n", visible ? visible : "out of memory");
	return 1;
}

void cli_progress(const char *text)
{
	fprintf(stderr, "weir: %s ...\n", text);
}

void cli_say_waiting(void)
{
	cli_progress("waiting for the agent");
}

void cli_wait(__u64 ns)
{
	const struct timespec pause = { .tv_sec = ns / WEIR_NS_PER_S, .tv_nsec = ns % WEIR_NS_PER_S };

	nanosleep(&pause, NULL);
}

void cli_await_input(const char *file)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	if (!strcmp(file, "-") && !poll(&input, 1, SLOW_MS))
		cli_progress("waiting for what comes on standard input");
}

json_t *cli_call_saying(const char *command, json_t *arguments, void (*waiting)(void))
{
	struct error err;
	json_t *result = NULL;

	if (control_call(cli.state_dir, command, arguments, &result, waiting, &err))
		cli_fail(&err);
	json_decref(arguments);
	return result;
}

json_t *cli_call(const char *command, json_t *arguments)
{
	return cli_call_saying(command, arguments, cli_say_waiting);
}

int cli_printed(int ret)
{
	struct error err;

	ret = ret < 0 ? ret : output_flush(stdout);
	if (!ret)
		return 0;
	output_error(ret, &err);
	return cli_fail(&err);
}

int cli_print(json_t *value, int (*table)(json_t *value))
{
	int ret;

	if (cli.format == OUTPUT_JSON)
		ret = output_json(stdout, value);
	else if (cli.format == OUTPUT_YAML)
		ret = output_yaml(stdout, value);
	else
		ret = table(value);
	return cli_printed(ret);
}

struct table *cli_rows(json_t *list, const char *const *heads, size_t columns, cli_row *row)
{
	struct table *table = table_new(heads, columns);
	json_t *element;
	size_t i;

	if (table)
		json_array_foreach (list, i, element)
			row(table, element);
	return table;
}

void cli_cell_number(struct table *table, json_t *number)
{
	if (number)
		table_cell(table, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
	else
		table_cell(table, "-");
}

int cli_print_first(struct table *table)
{
	return table ? table_print(table, stdout) : -ENOMEM;
}

int cli_print_more(struct table *table)
{
	if (!table)
		return -ENOMEM;
	if (!table_rows(table))
		return 0;
	putchar('\n');
	return table_print(table, stdout);
}

const char *cli_text(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key)) ?: "";
}

json_int_t cli_number(json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}
