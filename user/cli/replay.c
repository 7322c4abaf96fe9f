/* SPDX-License-Identifier: GPL-2.0 */
/* replay: what policy files would have done with recorded requests. Needs no agent, and changes nothing that is in force. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/policy.h"
#include "cli/slow.h"
#include "metrics/metrics.h"
#include "model/parse.h"
#include "replay/replay.h"

#define TOP 10
#define TOP_MAX 1000000

enum {
	KEY_POLICY = 0x200,
	KEY_TOP,
	KEY_EACH,
};

const struct argp_option cli_replay_options[] = {
	{ "policy", KEY_POLICY, "FILE", 0, "a policy file, or a directory of them. Repeatable", 0 },
	{ "top", KEY_TOP, "N", 0, "the most subjects to show for each limit (default: 10)", 0 },
	{ "each", KEY_EACH, NULL, 0,
	  "instead of a summary, print each request of the recording as a line of JSON, with the decision of the policy as \"replayed\"",
	  0 },
	{ 0 },
};

struct replay_words {
	struct policy_words policy;
	const char *recording;
	__u64 top;
	bool each;
};

static void check_whole(const struct argp_state *state, const struct replay_words *words)
{
	if (!json_array_size(words->policy.files))
		cli_refuse(state, "--policy FILE is missing");
	if (!words->recording)
		cli_refuse(
			state,
			"the recording is missing: a file that weir trace --json has written, or - for standard input");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct replay_words *words = state->input;
	struct error err;

	switch (key) {
	case KEY_POLICY:
		json_array_append_new(words->policy.files, json_string(cli_path(state, "--policy", arg)));
		return 0;
	case KEY_TOP:
		cli_check(state, parse_number(arg, TOP_MAX, &words->top, &err), "--top", &err);
		return 0;
	case KEY_EACH:
		words->each = true;
		return 0;
	case ARGP_KEY_ARG:
		if (words->recording)
			cli_too_many(state, arg);
		words->recording = cli_path(state, "RECORDING", arg);
		return 0;
	case ARGP_KEY_END:
		check_whole(state, words);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- the recording */

static int print_each(json_t *line, const struct replayed *replayed)
{
	json_t *said = json_null();

	if (replayed->decided)
		said = json_pack("{s:s}", "decision", metrics_reasons[replayed->decision].label);
	if (replayed->limit) {
		json_object_set_new(said, "limit", json_string(replayed->limit));
		if (replayed->retry_s)
			json_object_set_new(said, "retry_after", json_integer(replayed->retry_s));
	}
	json_object_set_new(line, "replayed", said);
	return output_json_line(stdout, line);
}

static int open_programs(struct replay **replay, const struct policy *policy, struct error *err)
{
	CLEANUP_SLOW struct slow slow;

	slow_begin(&slow, "loading programs into the kernel");
	return replay_open(replay, policy, err);
}

static int take_all(struct replay *replay, const struct replay_words *words, int fd, struct error *err)
{
	CLEANUP_SLOW struct slow slow;

	slow_begin(&slow, "replaying the recording");
	return replay_recording(replay, fd, words->recording, words->each ? print_each : NULL, err);
}

static int take_recording(struct replay *replay, const struct replay_words *words, struct error *err)
{
	CLEANUP_CLOSE int fd = -1;

	cli_await_input(words->recording);
	if (!strcmp(words->recording, "-"))
		return take_all(replay, words, STDIN_FILENO, err);
	fd = open(words->recording, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, -errno, "%s: %s", words->recording, strerror(errno));
	return take_all(replay, words, fd, err);
}

/* --- what is printed */

static void decision_row(struct table *table, json_t *result, const char *decision)
{
	table_cell(table, "%s", decision);
	table_cell(table, "%lld", cli_number(json_object_get(result, "recorded"), decision));
	table_cell(table, "%lld", cli_number(json_object_get(result, "replayed"), decision));
}

static int print_decisions(json_t *result)
{
	static const char *const heads[] = { "DECISION", "RECORDED", "REPLAYED" };
	CLEANUP_TABLE struct table *table = table_new(heads, CLI_COLUMNS(heads));
	const char *decision;
	json_t *count;

	json_object_foreach (json_object_get(result, "recorded"), decision, count)
		if (table)
			decision_row(table, result, decision);
	return cli_print_first(table);
}

static void limit_row(struct table *table, json_t *row)
{
	const char *subject = json_string_value(json_object_get(row, "subject"));

	table_cell(table, "%s", cli_text(row, "server"));
	table_cell(table, "%s", cli_text(row, "limit"));
	if (subject)
		table_cell(table, "%s", subject);
	table_cell(table, "%lld", cli_number(row, "requests"));
	table_cell(table, "%lld", cli_number(row, "refused"));
	table_cell(table, "%lld", cli_number(row, "would_refuse"));
}

static int print_tables(json_t *result)
{
	static const char *const limits[] = { "SERVER", "LIMIT", "REQUESTS", "REFUSED", "WOULD REFUSE" };
	static const char *const subjects[] = { "SERVER", "LIMIT", "SUBJECT", "REQUESTS", "REFUSED", "WOULD REFUSE" };
	CLEANUP_TABLE struct table *by_limit = cli_rows(json_object_get(result, "limits"), limits, CLI_COLUMNS(limits),
							limit_row);
	CLEANUP_TABLE struct table *by_subject = cli_rows(json_object_get(result, "subjects"), subjects,
							  CLI_COLUMNS(subjects), limit_row);

	return print_decisions(result) ?: cli_print_more(by_limit) ?: cli_print_more(by_subject);
}

/* one, several: what follows the number. */
static void say_number(FILE *out, json_t *of, const char *key, const char *one, const char *several)
{
	long long n = cli_number(of, key);

	if (n)
		fprintf(out, "%lld %s\n", n, n == 1 ? one : several);
}

static void say_counts(FILE *out, json_t *result)
{
	json_t *left_out = json_object_get(result, "left_out"), *missing = json_object_get(result, "missing");
	long long requests = cli_number(result, "requests"), changed = cli_number(result, "changed");

	fprintf(out, "%lld request%s in %.1f s, of which %lld %s\n", requests, requests == 1 ? "" : "s",
		json_number_value(json_object_get(result, "seconds")), changed,
		changed == 1 ? "is decided otherwise than it was" : "are decided otherwise than they were");
	say_number(out, left_out, "other_servers", "more is of a server that the policy does not name",
		   "more are of servers that the policy does not name");
	say_number(out, left_out, "rejected", "more was answered 400, and is no limit's",
		   "more were answered 400, and are no limit's");
	say_number(out, left_out, "unread", "more cannot be read", "more cannot be read");
	say_number(out, missing, "target", "has no target: it is taken for GET /",
		   "have no target: each is taken for GET /");
	say_number(out, missing, "rest_of_target", "has a target that was cut", "have a target that was cut");
	say_number(out, missing, "groups", "does not say the user's groups", "do not say the user's groups");
}

static void say_notes(json_t *result)
{
	json_t *text;
	size_t i;

	json_array_foreach (json_object_get(result, "notes"), i, text)
		fprintf(stderr, "weir: warning: %s\n", json_string_value(text));
}

static int print_all(json_t *result)
{
	say_counts(stdout, result);
	printf("\n");
	return print_tables(result);
}

static int run(const struct replay_words *words, struct error *err)
{
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_REPLAY struct replay *replay = NULL;
	CLEANUP_JSON json_t *result = NULL;
	int ret;

	if (policy_load(&words->policy, &policy))
		return 1;
	ret = open_programs(&replay, &policy, err) ?: take_recording(replay, words, err);
	if (ret)
		return cli_fail(err);
	result = replay_result(replay, words->top);
	if (!result) {
		error_set(err, -ENOMEM, "out of memory");
		return cli_fail(err);
	}
	say_notes(result);
	if (!words->each)
		return cli_print(result, print_all);
	say_counts(stderr, result);
	return 0;
}

int cli_replay(const struct command *command, int argc, char **argv)
{
	struct replay_words words = { .policy = policy_words(), .top = TOP };
	struct error err;
	int ret;

	cli_parse(command, parse, &words, argc, argv);
	ret = run(&words, &err);
	policy_words_clear(&words.policy);
	return ret;
}
