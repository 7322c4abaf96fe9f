/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command line: what every command shares. Wrong usage ends the process with status 2 and a line on stderr;
 * commands return the exit status of everything else, 0 or 1.
 */
#ifndef WEIR_USER_CLI_CLI_H
#define WEIR_USER_CLI_CLI_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

#include "weir/base/types.h"

#include "base/error.h"
#include "base/output.h"

#define CLI_USAGE 2

/* What is given everywhere: by option, else by environment, else the default. */
struct cli {
	enum output_format format;
	const char *state_dir;
	const char *pin_dir;
};
extern struct cli cli;

/* What `weir help`, the reference pages and the man page are made of (commands.c). */
struct command {
	const char *name;      /* one or two words */
	const char *arguments; /* after the options, as in the usage line */
	const char *summary;   /* one sentence */
	int (*run)(const struct command *command, int argc, char **argv);
	const struct argp_option *options; /* NULL: only those of struct cli */
	const struct argp *more; /* options of a file of their own, whose input is the parser's child_inputs[0] */
	const char *details;	 /* what else there is to know, in paragraphs */
	const char *examples;	 /* as they are typed, a line each */
};
extern const struct command commands[]; /* ends with a NULL name */
extern const struct argp_option cli_audit_options[], cli_status_options[], cli_agent_options[], cli_attach_options[],
	cli_detach_options[], cli_limit_set_options[], cli_limit_delete_options[], cli_limit_list_options[],
	cli_max_in_flight_options[], cli_explain_options[], cli_history_options[], cli_suggest_options[],
	cli_apply_options[], cli_delete_options[], cli_diff_options[], cli_check_options[], cli_export_options[],
	cli_top_options[], cli_trace_options[], cli_events_options[], cli_replay_options[], cli_probe_options[],
	cli_uninstall_options[];

/* The options of struct cli. */
extern const struct argp cli_common;
void cli_defaults(void);
/* Where an agent keeps what outlives the machine's restart, if it was told to. */
const char *cli_persist_dir(void);

/* The options of `attach` that say how requests are identified; input: the server's JSON. */
extern const struct argp cli_attach_identity;

/* The options of `limit set` that say which requests it is for; input: the rule's JSON. */
extern const struct argp cli_limit_rule;

/* For commands about one server; and for those that may be about all of them. */
#define CLI_SERVER_OPTION(key)                                                             \
	{                                                                                  \
		"server", key, "NAME", 0, "the server (default: the only one attached)", 0 \
	}
#define CLI_ANY_SERVER_OPTION(key)                                             \
	{                                                                      \
		"server", key, "NAME", 0, "only this server (default: all)", 0 \
	}

/* What is said where a server is named by a word alone. */
#define CLI_SERVER_NAMED "a server is named by --server"

/* options.c: ends the process where one is misspelt, and says which was meant, if any is near enough. in_order: up to the first word. */
void cli_find_misspelt(const struct argp *argp, bool in_order, int argc, char **argv);
/* Parses a command's options and the common ones. */
void cli_parse(const struct command *command, argp_parser_t parser, void *input, int argc, char **argv);
/* For a command with no options of its own and at most one argument, a server's name, which becomes *argument. */
void cli_parse_plain(const struct command *command, const char **argument, int argc, char **argv);

/* Ends the process: "weir COMMAND: ...", where control characters of the user's words are made visible. */
void cli_refuse(const struct argp_state *state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As that, when `wrong`: "WHAT: ERR". */
void cli_check(const struct argp_state *state, int wrong, const char *what, const struct error *err);

/* The argument of these. */
const char *cli_server_name(const struct argp_state *state, const char *arg);
/* The word of a command that names a server. */
const char *cli_server_word(const struct argp_state *state, const char *arg);
/* The argument of an option, a whole number from 1 to max, becomes a member of the object. */
void cli_set_count(const struct argp_state *state, json_t *object, const char *key, const char *option, __u64 max,
		   const char *arg);
/* The argument of an option: whole seconds from 1 to max, like 30, 30s or 5m. */
__u64 cli_seconds(const struct argp_state *state, const char *option, __u64 max, const char *arg);
/* The argument of an option: a duration like 500ms or 10m, within bounds. most_ns 0: as long as one likes. */
__u64 cli_duration(const struct argp_state *state, const char *option, __u64 least_ns, __u64 most_ns, const char *arg);
/* As that, of one that was parsed already. */
void cli_check_duration(const struct argp_state *state, const char *option, __u64 ns, __u64 least_ns, __u64 most_ns);
/* As cli_set_count(): from 0 to WEIR_BURST_MAX, and like 100 or 2k. */
void cli_set_whole(const struct argp_state *state, json_t *object, const char *key, const char *option,
		   const char *arg);
/* The argument of an option that names a file or a directory. */
char *cli_path(const struct argp_state *state, const char *option, char *arg);

/* Ends the process: there is no place for this word. */
void cli_too_many(const struct argp_state *state, const char *word);
/* As that, and what is to be done: "a file is named by -f". */
void cli_word_for(const struct argp_state *state, const char *word, const char *advice);

/* Prints "weir: warning: ..." on stderr for each of a result's `warnings`; about: what they are about, or "". */
void cli_warn(json_t *result, const char *about);
/* Is this one of the servers that could not be put in force? What a command did is saved then, and changes nothing yet. */
bool cli_is_not_in_force(json_t *result, const char *server);
/* Ends a line that says what was done: limits may be in force, and refuse nobody inside the server. */
void cli_print_refuses_not(json_t *result);
/* A line of its own: what `auto` has chosen, if the result says it. */
void cli_print_inside(json_t *result);

/* Prints a text with names that others have chosen, of files and devices say, as a table's cell is printed: made visible (output.h). */
void cli_say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "weir: ..." on stderr; returns 1. */
int cli_fail(const struct error *err);

/* A line on stderr, for what takes longer than two seconds: "weir: TEXT ...". */
void cli_progress(const char *text);
/* The agent takes its time. */
void cli_say_waiting(void);
void cli_wait(__u64 ns);
/* Says that standard input is waited for, if the file is that ("-") and nothing comes for two seconds. */
void cli_await_input(const char *file);

/* Asks the agent; takes over arguments. Returns the reply, or NULL after saying what went wrong. */
json_t *cli_call(const char *command, json_t *arguments);
/* Likewise, with waiting() for a reply that takes its time. */
json_t *cli_call_saying(const char *command, json_t *arguments, void (*waiting)(void));

/* What was printed goes out; ret: of the function that has printed it. Returns an exit code: 0, or 1 with a message of why it could not. */
int cli_printed(int ret);
/* Prints a value in the format asked for, as a table with `table`. Returns the exit status. */
int cli_print(json_t *value, int (*table)(json_t *value));

/* A table with a row for each element of a list; NULL without memory. The caller frees it. */
typedef void cli_row(struct table *table, json_t *element);
struct table *cli_rows(json_t *list, const char *const *heads, size_t columns, cli_row *row);
#define CLI_COLUMNS(heads) (sizeof(heads) / sizeof(*(heads)))

/* The next cell: a whole number, or "-" where there is none. */
void cli_cell_number(struct table *table, json_t *number);

/* A report's first table; NULL: -ENOMEM, here and below. 0, or a negative errno. */
int cli_print_first(struct table *table);
/* A table below another one: behind a blank line, and nothing when it has no rows. */
int cli_print_more(struct table *table);

/* The members of what the agent sent; "" and 0 where there is none. */
const char *cli_text(json_t *object, const char *key);
json_int_t cli_number(json_t *object, const char *key);

int cli_audit(const struct command *command, int argc, char **argv);
int cli_agent(const struct command *command, int argc, char **argv);
int cli_attach(const struct command *command, int argc, char **argv);
int cli_detach(const struct command *command, int argc, char **argv);
int cli_dry_run(const struct command *command, int argc, char **argv);
int cli_pause(const struct command *command, int argc, char **argv);
int cli_reload(const struct command *command, int argc, char **argv);
int cli_limit_set(const struct command *command, int argc, char **argv);
int cli_limit_delete(const struct command *command, int argc, char **argv);
int cli_limit_list(const struct command *command, int argc, char **argv);
int cli_max_in_flight(const struct command *command, int argc, char **argv);
int cli_status(const struct command *command, int argc, char **argv);
int cli_metrics(const struct command *command, int argc, char **argv);
int cli_explain(const struct command *command, int argc, char **argv);
int cli_check_policy(const struct command *command, int argc, char **argv);
int cli_schema(const struct command *command, int argc, char **argv);
int cli_apply(const struct command *command, int argc, char **argv);
int cli_delete(const struct command *command, int argc, char **argv);
int cli_diff(const struct command *command, int argc, char **argv);
int cli_export(const struct command *command, int argc, char **argv);
int cli_history(const struct command *command, int argc, char **argv);
int cli_suggest(const struct command *command, int argc, char **argv);
int cli_top(const struct command *command, int argc, char **argv);
int cli_trace(const struct command *command, int argc, char **argv);
int cli_events(const struct command *command, int argc, char **argv);
int cli_replay(const struct command *command, int argc, char **argv);
int cli_probe(const struct command *command, int argc, char **argv);
/* Of `probe`, for a server's binary: returns the exit status. */
int cli_probe_binary(const char *path);
int cli_uninstall(const struct command *command, int argc, char **argv);
int cli_version(const struct command *command, int argc, char **argv);
int cli_help(const struct command *command, int argc, char **argv);

#endif
