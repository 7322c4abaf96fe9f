/* SPDX-License-Identifier: GPL-2.0 */
/* The reference pages and the man page, made from the tables that the program itself goes by (`make docs`). */
#ifndef WEIR_USER_CLI_REFERENCE_H
#define WEIR_USER_CLI_REFERENCE_H

#include <argp.h>
#include <stdio.h>

#include "cli/cli.h"

/* Prints a page: commands, policy, metrics, reasons or man. Returns the exit status. */
int reference_print(const char *page);

void reference_man(FILE *out);
void reference_policy(FILE *out);
void reference_metrics(FILE *out);
void reference_reasons(FILE *out);

/* The first line of a page. */
void reference_title(FILE *out, const char *title);
/* A text in a cell of a table: | would end it, and < might begin a tag. */
void reference_cell(FILE *out, const char *text);

/* Has it a letter, too? */
bool reference_has_key(const struct argp_option *option);
/* The options of a command, but those that all commands have. */
typedef void reference_option(FILE *out, const struct argp_option *option);
void reference_options(FILE *out, const struct command *command, reference_option *print);

/* What is read from the environment, and which files there are: name and text, a NULL name at the end. */
struct reference_entry {
	const char *name;
	const char *text;
};
extern const struct reference_entry reference_statuses[], reference_variables[], reference_files[];

#endif
