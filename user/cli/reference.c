/* SPDX-License-Identifier: GPL-2.0 */
#include <string.h>

#include "cli/reference.h"

/* clang-format off: a text is a line */
const struct reference_entry reference_statuses[] = {
	{ "0", "Success." },
	{ "1",
	  "Failure. A line on stderr says what went wrong; nothing was changed. diff: something would change. probe: something works less well than it could." },
	{ "2", "Wrong usage. diff: an error." },
	{ 0 },
};

const struct reference_entry reference_variables[] = {
	{ "WEIR_STATE_DIR", "Default of --state-dir, otherwise /run/weir." },
	{ "WEIR_PIN_DIR", "Default of --pin-dir, otherwise /sys/fs/bpf/weir." },
	{ "WEIR_PERSIST_DIR", "Directory of the file that agent --persist keeps, otherwise /var/lib/weir." },
	{ "WEIR_DEBUG", "If set, the agent prints what libbpf and the verifier say." },
	{ 0 },
};

const struct reference_entry reference_files[] = {
	{ "STATE_DIR/state.json",
	  "Desired state: servers and limits, until the machine is rebooted. It is written before a command is answered." },
	{ "/var/lib/weir/state.json", "With --persist: what commands have set, over a reboot." },
	{ "STATE_DIR/history/",
	  "What weir history shows; with --persist in /var/lib/weir instead. Removed with the rest by uninstall." },
	{ "STATE_DIR/audit.jsonl",
	  "What weir audit shows, and audit.jsonl.1 before it; with --persist in /var/lib/weir instead. Removed with the rest by uninstall." },
	{ "STATE_DIR/weir.sock",
	  "The agent's socket. One JSON object a line each way: {\"command\": NAME, \"arguments\": {...}} and {\"result\": ...} or {\"error\": TEXT}. A stream of objects follows the reply to trace." },
	{ "STATE_DIR/lock", "Locked by the agent. It contains the agent's pid." },
	{ "PIN_DIR/net-COOKIE/",
	  "Maps, programs and links of one network namespace. They are in force with or without an agent." },
	{ 0 },
};
/* clang-format on */

void reference_title(FILE *out, const char *title)
{
	fprintf(out, "<!-- Made by `make docs` from the tables in the code. Do not edit. -->\n\n# %s\n\n", title);
}

void reference_cell(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("|<*", *text))
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void each_option(FILE *out, const struct argp_option *options, reference_option *print)
{
	for (; options && (options->name || options->doc); options++)
		print(out, options);
}

void reference_options(FILE *out, const struct command *command, reference_option *print)
{
	each_option(out, command->options, print);
	if (command->more)
		each_option(out, command->more->options, print);
}

/* --- commands.md */

bool reference_has_key(const struct argp_option *option)
{
	return option->key > ' ' && option->key < 0x7f;
}

static void print_option(FILE *out, const struct argp_option *option)
{
	if (!option->name) {
		fprintf(out, "| | **%s** |\n", option->doc);
		return;
	}
	fputs("| `", out);
	if (reference_has_key(option))
		fprintf(out, "-%c, ", option->key);
	fprintf(out, "--%s", option->name);
	if (option->arg) {
		bool optional = option->flags & OPTION_ARG_OPTIONAL;

		fputs(optional ? "[=" : " ", out);
		for (const char *at = option->arg; *at; at++)
			fprintf(out, *at == '|' ? "\\|" : "%c", *at);
		fputs(optional ? "]" : "", out);
	}
	fputs("` | ", out);
	reference_cell(out, option->doc);
	fputs(" |\n", out);
}

static void print_command(FILE *out, const struct command *command)
{
	fprintf(out, "## weir %s\n\n", command->name);
	fprintf(out, "```\nweir %s%s%s%s\n```\n\n%s\n\n", command->name, command->options ? " [OPTION...]" : "",
		*command->arguments ? " " : "", command->arguments, command->summary);
	if (command->options) {
		fputs("| Option | |\n| --- | --- |\n", out);
		reference_options(out, command, print_option);
		fputc('\n', out);
	}
	if (command->details)
		fprintf(out, "%s\n\n", command->details);
	fprintf(out, "```sh\n%s\n```\n\n", command->examples);
}

static void print_entries(FILE *out, const char *title, const struct reference_entry *entries)
{
	fprintf(out, "## %s\n\n| | |\n| --- | --- |\n", title);
	for (; entries->name; entries++) {
		fprintf(out, "| `%s` | ", entries->name);
		reference_cell(out, entries->text);
		fputs(" |\n", out);
	}
	fputc('\n', out);
}

static void reference_commands(FILE *out)
{
	reference_title(out, "Commands");
	fputs("`weir help COMMAND` prints the same. What commands print is in [output](output.md).\n\n"
	      "| Command | |\n| --- | --- |\n",
	      out);
	for (const struct command *command = commands; command->name; command++) {
		fprintf(out, "| [%s](#weir-", command->name);
		for (const char *at = command->name; *at; at++)
			fputc(*at == ' ' ? '-' : *at, out);
		fprintf(out, ") | %s |\n", command->summary);
	}
	fputs("\nAll commands take these options:\n\n| Option | |\n| --- | --- |\n", out);
	for (const struct argp_option *option = cli_common.options; option->name || option->doc; option++)
		if (option->name)
			print_option(out, option);
	fputc('\n', out);
	for (const struct command *command = commands; command->name; command++)
		print_command(out, command);
	print_entries(out, "Exit status", reference_statuses);
	print_entries(out, "Environment", reference_variables);
	print_entries(out, "Files", reference_files);
}

int reference_print(const char *page)
{
	static const struct {
		const char *name;
		void (*print)(FILE *out);
	} pages[] = {
		{ "commands", reference_commands }, { "policy", reference_policy }, { "metrics", reference_metrics },
		{ "reasons", reference_reasons },   { "man", reference_man },
	};

	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
		if (strcmp(pages[i].name, page) != 0)
			continue;
		pages[i].print(stdout);
		return cli_printed(0);
	}
	cli_say(stderr, "weir help: there is no reference page \"%s\": commands, policy, metrics, reasons, man", page);
	fputc('\n', stderr);
	return CLI_USAGE;
}
