/* SPDX-License-Identifier: GPL-2.0 */
/* top: who makes the load, on the screen; or, where there is none, line by line. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "weir/base/duration.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/duration.h"
#include "cli/cli.h"
#include "cli/top.h"
#include "control/control.h"
#include "model/parse.h"

#define ROWS 20 /* without a screen */
#define ROWS_MAX 1000
#define INTERVAL_MS 1000
#define INTERVAL_MIN_NS (100 * WEIR_NS_PER_MS)
#define INTERVAL_MAX_NS (3600 * WEIR_NS_PER_S)

enum {
	KEY_BY = 0x200,
	KEY_SORT,
	KEY_INTERVAL,
	KEY_ONCE,
	KEY_ROWS,
	KEY_FILTER,
};

const struct argp_option cli_top_options[] = {
	{ "by", KEY_BY, "WHAT", 0,
	  "user (the default), namespace, verb, resource, source, connection (by address), limit, request (user, verb and resource) or refusal (user and limit)",
	  0 },
	{ "sort", KEY_SORT, "RATE", 0, "by requests (the default), refused, dry_run or held", 0 },
	{ "interval", KEY_INTERVAL, "TIME", 0, "time between two tables, as 500ms or 10s (default: 1s)", 0 },
	{ "once", KEY_ONCE, NULL, 0, "print one interval, and end", 0 },
	{ "rows", KEY_ROWS, "N", 0, "the most rows (default: 20, or as many as the screen holds)", 0 },
	{ "filter", KEY_FILTER, "TEXT", 0, "only rows with this text in a name", 0 },
	{ 0 },
};

struct top_options {
	struct top_look look;
	bool once;
};

static void parse_rows(struct argp_state *state, const char *arg, size_t *rows)
{
	struct error err;
	__u64 n = 0;

	cli_check(state, parse_count(arg, ROWS_MAX, &n, &err), "--rows", &err);
	*rows = n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct top_options *options = state->input;
	struct error err;

	switch (key) {
	case KEY_BY:
		error_set(
			&err, -EINVAL,
			"\"%s\" is not one of user, namespace, verb, resource, source, connection, limit, request, refusal",
			arg);
		options->look.by = top_kind_of(arg);
		cli_check(state, !options->look.by, "--by", &err);
		return 0;
	case KEY_SORT:
		cli_check(state, top_number_parse(arg, &options->look.sort, &err), "--sort", &err);
		return 0;
	case KEY_INTERVAL:
		options->look.interval_ms = cli_duration(state, "--interval", INTERVAL_MIN_NS, INTERVAL_MAX_NS, arg) /
					    WEIR_NS_PER_MS;
		return 0;
	case KEY_ONCE:
		options->once = true;
		return 0;
	case KEY_ROWS:
		parse_rows(state, arg, &options->look.rows);
		return 0;
	case KEY_FILTER:
		free(options->look.filter);
		options->look.filter = strdup(arg);
		return 0;
	case ARGP_KEY_ARG:
		if (options->look.server)
			cli_too_many(state, arg);
		options->look.server = cli_server_word(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int top_ask(const struct top_look *look, struct top *top, void (*waiting)(void), struct error *err)
{
	CLEANUP_JSON json_t *arguments = json_pack("{s:s*, s:s}", "name", look->server, "by", look->by->name);
	CLEANUP_JSON json_t *answer = NULL;
	int ret = control_call(cli.state_dir, "top", arguments, &answer, waiting, err);

	if (!ret)
		ret = top_update(top, answer, err);
	if (!ret)
		top_sort(top, look->sort);
	return ret;
}

/* --- lines */

static json_t *ago_json(__u64 now_ns, __u64 then_ns)
{
	return then_ns ? json_real((double)(now_ns > then_ns ? now_ns - then_ns : 0) / WEIR_NS_PER_S) : json_null();
}

/* The agent's row, with what was measured of it in place of what it is measured by. */
static json_t *subject_json(const struct top *top, const struct top_subject *subject)
{
	json_t *object = json_copy(subject->row);

	json_object_del(object, "id");
	json_object_del(object, "first_ns");
	json_object_del(object, "last_ns");
	for (int i = 0; i < TOP_NUMBERS; i++) {
		char key[32];

		snprintf(key, sizeof(key), "%s_per_second", top_numbers[i]);
		json_object_set_new(object, key, json_real(subject->rates.of[i]));
	}
	json_object_set_new(object, "share", json_real(subject->share));
	json_object_set_new(object, "first_seen_seconds_ago", ago_json(top->now_ns, subject->first_ns));
	json_object_set_new(object, "last_seen_seconds_ago", ago_json(top->now_ns, subject->last_ns));
	return object;
}

static json_t *top_to_json(const struct top_look *look, const struct top *top)
{
	json_t *rows = json_array();
	const struct top_subject *subject;

	for (size_t i = 0; i < look->rows && (subject = top_shown(look, top, i)); i++)
		json_array_append_new(rows, subject_json(top, subject));
	return json_pack("{s:s, s:O, s:o}", "by", look->by->name, "servers", top->totals, "rows", rows);
}

static int print_json(const struct top_look *look, const struct top *top, bool once)
{
	CLEANUP_JSON json_t *json = top_to_json(look, top);

	if (cli.format == OUTPUT_JSON)
		return once ? output_json(stdout, json) : output_json_line(stdout, json);
	return once ? output_yaml(stdout, json) : output_yaml_more(stdout, json);
}

/* *table: as it was for the sample before; NULL: this is the first. */
static int print_table(const struct top_look *look, struct top *top, struct table **table, bool once)
{
	if (!*table)
		*table = top_table(look, top, !once);
	return top_table_fill(*table, look, top, !once) ?: table_print(*table, stdout);
}

static int print_sample(const struct top_look *look, struct top *top, struct table **table, bool once)
{
	int ret = cli.format == OUTPUT_TABLE ? print_table(look, top, table, once) : print_json(look, top, once);

	return ret ?: output_flush(stdout);
}

/* Said once: of a stream it may be otherwise later. */
static void say_why_empty(const struct top_look *look, const struct top *top, bool *said)
{
	const char *why = *said || cli.format != OUTPUT_TABLE ? NULL : top_why_empty(look, top);

	*said = true;
	if (why)
		fprintf(stderr, "weir: no rows: %s\n", why);
}

/* The first answer only says from where on to count. */
static int print_lines(const struct top_look *look, bool once, struct error *err)
{
	CLEANUP_TABLE struct table *table = NULL;
	CLEANUP_TOP struct top top = { 0 };
	int ret = top_ask(look, &top, cli_say_waiting, err);
	bool said = false;

	while (!ret) {
		int printed = 0;

		cli_wait(look->interval_ms * WEIR_NS_PER_MS);
		ret = top_ask(look, &top, cli_say_waiting, err);
		if (!ret)
			printed = print_sample(look, &top, &table, once);
		if (printed)
			ret = output_error(printed, err);
		if (!ret)
			say_why_empty(look, &top, &said);
		if (once)
			break;
	}
	return ret;
}

int cli_top(const struct command *command, int argc, char **argv)
{
	struct top_options options = { .look = { .by = top_kind_of("user"), .interval_ms = INTERVAL_MS } };
	struct error err;
	bool lines;
	int ret;

	cli_parse(command, parse, &options, argc, argv);
	lines = options.once || cli.format != OUTPUT_TABLE || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
	if (lines && !options.look.rows)
		options.look.rows = ROWS;
	ret = lines ? print_lines(&options.look, options.once, &err) : top_screen(&options.look, &err);
	free(options.look.filter);
	return ret ? cli_fail(&err) : 0;
}
