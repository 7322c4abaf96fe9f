/* SPDX-License-Identifier: GPL-2.0 */
/* weir: the agent and its command line. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/version.h"
#include "cli/cli.h"
#include "cli/reference.h"

const char *argp_program_version = weir_version_line;

/* The command that the first words name, and how many they are. */
static const struct command *find_command(int argc, char **argv, int *words)
{
	for (const struct command *command = commands; command->name; command++) {
		const char *space = strchr(command->name, ' ');
		size_t length = space ? (size_t)(space - command->name) : strlen(command->name);

		if (strlen(argv[0]) != length || strncmp(argv[0], command->name, length) != 0)
			continue;
		if (space && (argc < 2 || strcmp(argv[1], space + 1) != 0))
			continue;
		*words = space ? 2 : 1;
		return command;
	}
	return NULL;
}

/* The command that is spelled like this, of as many words. NULL: none. */
static const char *nearest_command(const char *typed)
{
	struct nearest nearest = nearest_to(typed);

	for (const struct command *command = commands; command->name; command++)
		nearest_try(&nearest, command->name);
	return nearest.found;
}

/* The first word of commands of two words that is spelled like this: until the next call. NULL: none. */
static const char *nearest_group(const char *typed)
{
	static char word[16];

	for (const struct command *command = commands; command->name; command++) {
		struct nearest nearest = nearest_to(typed);
		size_t length = strcspn(command->name, " ");

		if (!command->name[length] || length >= sizeof(word))
			continue;
		*(char *)mempcpy(word, command->name, length) = '\0';
		nearest_try(&nearest, word);
		if (nearest.found)
			return word;
	}
	return NULL;
}

static int unknown(int argc, char **argv)
{
	bool limit = strcmp(argv[0], "limit") == 0;
	CLEANUP_FREE char *both = NULL, *visible = NULL;
	const char *meant = nearest_command(argv[0]);

	if (!meant && argc > 1 && asprintf(&both, "%s %s", argv[0], argv[1]) >= 0)
		meant = nearest_command(both);
	if (!meant && !limit)
		meant = nearest_group(argv[0]);
	visible = output_visible((limit || (meant && strchr(meant, ' '))) && both ? both : argv[0]);
	if (meant)
		fprintf(stderr, "weir: there is no command \"%s\": is \"%s\" meant?\n", visible ?: "", meant);
	else
		fprintf(stderr, "weir: there is no command \"%s\", \"weir help%s\" lists them\n", visible ?: "",
			limit ? " limit" : "");
	return CLI_USAGE;
}

/* The commands of two words that begin with this one, if there are any. */
static bool list_group(FILE *out, const char *word)
{
	size_t length = strlen(word);
	bool any = false;

	for (const struct command *command = commands; command->name; command++) {
		if (strncmp(command->name, word, length) != 0 || command->name[length] != ' ')
			continue;
		fprintf(out, "  %-14s %s\n", command->name, command->summary);
		any = true;
	}
	return any;
}

/* The first word of commands of two words, alone or asked about. */
static bool names_group(int argc, char **argv)
{
	return argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0;
}

/* argv[0] of a command is its whole name, for its messages and its usage line. */
static int run(int argc, char **argv)
{
	CLEANUP_FREE char *name = NULL;
	const struct command *command;
	int words;

	command = find_command(argc, argv, &words);
	if (!command && names_group(argc, argv) && list_group(argc < 2 ? stderr : stdout, argv[0]))
		return argc < 2 ? CLI_USAGE : 0;
	if (!command)
		return unknown(argc, argv);
	if (asprintf(&name, "weir %s", command->name) < 0)
		return 1;
	argv[words - 1] = name;
	return command->run(command, argc - words + 1, argv + words - 1);
}

static int print_version(json_t *version)
{
	return printf("weir %s\n", cli_text(version, "version")) < 0;
}

int cli_version(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *version = json_pack("{s:s}", "version", weir_version);

	cli_parse_plain(command, NULL, argc, argv);
	return cli_print(version, print_version);
}

/* Headings of the list of commands, each above the first of its group. */
static const struct {
	const char *first, *heading;
} groups[] = {
	{ "agent", "Servers" },	 { "limit set", "Limits" }, { "apply", "Policy files" },
	{ "status", "Observe" }, { "probe", "Other" },
};

static void print_heading(FILE *out, const struct command *command)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		if (strcmp(command->name, groups[i].first) == 0)
			fprintf(out, "\n%s:\n", groups[i].heading);
}

static void list_commands(FILE *out)
{
	fprintf(out, "Usage: weir COMMAND [ARGUMENT...]\n");
	for (const struct command *command = commands; command->name; command++) {
		print_heading(out, command);
		fprintf(out, "  %-14s %s\n", command->name, command->summary);
	}
	fprintf(out,
		"\n\"weir help COMMAND\" shows its options. All take -o table|json|yaml, --json, --state-dir DIR and --pin-dir DIR.\n");
}

/* Help is text, whatever was asked for. */
static const char *wrong_option(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (argv[i][0] == '-' && strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-?") != 0)
			return argv[i];
	return cli.format == OUTPUT_TABLE ? NULL : "-o";
}

static int refuse_option(const char *option)
{
	CLEANUP_FREE char *visible = output_visible(option);

	fprintf(stderr, "weir help: it prints text and takes no options: leave \"%s\" out\n", visible ?: "");
	return CLI_USAGE;
}

/* The words after "help" are a command's name; argp explains it. `help --reference PAGE` is for `make docs`. */
int cli_help(const struct command *command, int argc, char **argv)
{
	const struct command *about;
	const char *wrong;
	char *explain[3];
	int words;

	(void)command;
	if (argc == 3 && strcmp(argv[1], "--reference") == 0)
		return reference_print(argv[2]);
	wrong = wrong_option(argc, argv);
	if (wrong)
		return refuse_option(wrong);
	if (argc < 2 || argv[1][0] == '-') {
		list_commands(stdout);
		return 0;
	}
	about = find_command(argc - 1, argv + 1, &words);
	if (!about && argc == 2 && list_group(stdout, argv[1]))
		return 0;
	if (!about)
		return unknown(argc - 1, argv + 1);
	if (asprintf(&explain[0], "weir %s", about->name) < 0)
		return 1;
	explain[1] = "--help";
	explain[2] = NULL;
	return about->run(about, 2, explain); /* argp exits */
}

enum {
	KEY_HELP = 'h',
	KEY_VERSION = 'V',
};

static const struct argp_option options[] = {
	{ "help", KEY_HELP, NULL, 0, "list the commands", 0 },
	{ "version", KEY_VERSION, NULL, 0, "print the version", 0 },
	{ 0 },
};

/* Stops at the first word, which is the command. */
static error_t parse_before(int key, char *arg, struct argp_state *state)
{
	int *first = state->input;

	(void)arg;
	switch (key) {
	case KEY_HELP:
		list_commands(stdout);
		exit(0);
	case KEY_VERSION:
		puts(argp_program_version);
		exit(0);
	case ARGP_KEY_ARG:
		*first = state->next - 1;
		state->next = state->argc;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int first_word(int argc, char **argv)
{
	const struct argp_child children[] = { { .argp = &cli_common }, { 0 } };
	const struct argp argp = { .options = options, .parser = parse_before, .children = children };
	int first = argc;

	argv[0] = "weir"; /* as in all other messages, wherever it was called from */
	cli_find_misspelt(&argp, true, argc, argv);
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, &first))
		exit(CLI_USAGE);
	return first;
}

/* Words travel as JSON, which is UTF-8. */
static bool all_utf8(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		CLEANUP_JSON json_t *valid = json_string(argv[i]);

		if (!valid)
			return false;
	}
	return true;
}

/*
 * What is opened in the place of one that is closed, a socket or the agent's lock, would get what is printed. Reading and writing there
 * fails, as if it were closed.
 */
static void occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Whatever ends the program, argp's --help too: it has succeeded if what it printed was written. */
static void succeed_if_written(int code, void *context)
{
	(void)context;
	if (!code && cli_printed(0))
		_exit(1);
}

int main(int argc, char **argv)
{
	int first;

	on_exit(succeed_if_written, NULL);
	occupy_standard_descriptors();
	argp_err_exit_status = CLI_USAGE;
	cli_defaults();
	if (!all_utf8(argc, argv)) {
		fprintf(stderr, "weir: an argument is not UTF-8\n");
		return CLI_USAGE;
	}
	first = first_word(argc, argv);
	if (first >= argc) {
		list_commands(stderr);
		return CLI_USAGE;
	}
	return run(argc - first, argv + first);
}
