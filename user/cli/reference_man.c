/* SPDX-License-Identifier: GPL-2.0 */
/* The man page, in the macros of man(7). */
#include <string.h>

#include "cli/reference.h"

/* A text: - is a hyphen unless it is escaped, and a . or ' at the start of a line would be a request. */
static void print_text(FILE *out, const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && strchr(".'", *text))
			fputs("\\&", out);
		if (*text == '\n')
			fputs("\n.IP\n", out);
		else if (*text == '\\')
			fputs("\\e", out);
		else
			fprintf(out, *text == '-' ? "\\-" : "%c", *text);
		start = *text == '\n';
	}
	fputc('\n', out);
}

/* Words that are typed as they are: each - is no hyphen. */
static void print_typed(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, *text == '-' ? "\\-" : "%c", *text);
}

static void print_option(FILE *out, const struct argp_option *option)
{
	if (!option->name) {
		fputs(".PP\n", out);
		print_text(out, option->doc);
		return;
	}
	fputs(".TP\n\\fB", out);
	if (reference_has_key(option))
		fprintf(out, "\\-%c\\fR, \\fB", option->key);
	fputs("\\-\\-", out);
	print_typed(out, option->name);
	fputs("\\fR", out);
	if (option->arg) {
		bool optional = option->flags & OPTION_ARG_OPTIONAL;

		fputs(optional ? "[=\\fI" : " \\fI", out);
		print_typed(out, option->arg);
		fputs(optional ? "\\fR]" : "\\fR", out);
	}
	fputc('\n', out);
	print_text(out, option->doc);
}

static void print_usage(FILE *out, const struct command *command)
{
	fputs("\\fBweir ", out);
	print_typed(out, command->name);
	fputs("\\fR", out);
	if (command->options)
		fputs(" [\\fIOPTION\\fR...]", out);
	if (*command->arguments)
		fputc(' ', out);
	print_text(out, command->arguments);
}

static void print_command(FILE *out, const struct command *command)
{
	fputs(".TP\n", out);
	print_usage(out, command);
	print_text(out, command->summary);
	if (command->details) {
		fputs(".IP\n", out);
		print_text(out, command->details);
	}
	fputs(".IP\n.nf\n", out);
	print_typed(out, command->examples);
	fputs("\n.fi\n", out);
}

static void print_options(FILE *out, const struct command *command)
{
	if (!command->options)
		return;
	fputs(".SS ", out);
	print_text(out, command->name);
	reference_options(out, command, print_option);
}

static void print_entries(FILE *out, const char *title, const struct reference_entry *entries)
{
	fprintf(out, ".SH %s\n", title);
	for (; entries->name; entries++) {
		fputs(".TP\n", out);
		print_text(out, entries->name);
		print_text(out, entries->text);
	}
}

void reference_man(FILE *out)
{
	fputs(".\\\" SPDX-License-Identifier: GPL-2.0\n.\\\" Made by `make docs` from the tables in the code. Do not edit.\n"
	      ".TH WEIR 8\n.SH NAME\nweir \\- limit HTTP requests to API servers in the kernel\n.SH SYNOPSIS\n.nf\n",
	      out);
	for (const struct command *command = commands; command->name; command++)
		print_usage(out, command);
	fputs(".fi\n.SH DESCRIPTION\nweir limits HTTP requests to API servers. BPF programs on the network interfaces read "
	      "each request.\nThey answer a request over its limit with\n.B 429 Too Many Requests\nbefore the server sees "
	      "it.\n.PP\nOne agent loads and pins the programs, applies limits and serves metrics.\nThe other commands talk "
	      "to it.\nLimits stay in force when the agent stops or is killed.\n.SH COMMANDS\n",
	      out);
	for (const struct command *command = commands; command->name; command++)
		print_command(out, command);
	fputs(".SH OPTIONS\n.SS All commands\n", out);
	for (const struct argp_option *option = cli_common.options; option->name || option->doc; option++)
		if (option->name)
			print_option(out, option);
	for (const struct command *command = commands; command->name; command++)
		print_options(out, command);
	print_entries(out, "EXIT STATUS", reference_statuses);
	print_entries(out, "ENVIRONMENT", reference_variables);
	print_entries(out, "FILES", reference_files);
	fputs(".SH EXAMPLES\n.nf\nweir agent &\nweir attach api \\-\\-port 8080 \\-\\-trusted\\-proxy 127.0.0.1\n"
	      "weir limit set user \\-\\-qps 50 \\-\\-burst 100\nweir limit set user noisy \\-\\-qps 5 \\-\\-burst 10\n"
	      "weir status\nweir detach api\n.fi\n"
	      ".SH SEE ALSO\nThe guides are installed with weir, in share/doc/weir beside its bin: how to do what, policy files,\n"
	      "metrics, and what each reason means (docs/reference/reasons.md).\n",
	      out);
}
