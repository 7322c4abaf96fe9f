/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "cli.h"
#include "parse.h"
#include "rate.h"

enum {
	KEY_QPS = 0x200,
	KEY_BURST,
	KEY_KEYS,
	KEY_SERVER,
};

#define SERVER_OPTION                                                                             \
	{                                                                                         \
		"server", KEY_SERVER, "NAME", 0, "the server (default: the only one there is)", 0 \
	}

static const struct argp_option set_options[] = {
	{ "qps", KEY_QPS, "Q", 0, "requests a second, a decimal; 0: the burst is there once and nothing comes back",
	  0 },
	{ "burst", KEY_BURST, "B", 0, "requests at once, a whole number; 0: every request is refused", 0 },
	{ "keys", KEY_KEYS, "N", 0, "buckets kept (default: what attach said)", 0 },
	SERVER_OPTION,
	{ 0 },
};

static const struct argp_option server_options[] = { SERVER_OPTION, { 0 } };

struct limit_words {
	const char *type, *subject, *server, *qps;
	enum weir_limit_type type_value;
	__u64 burst, keys;
	bool has_burst;
};

static void set_qps(const struct argp_state *state, struct limit_words *words, const char *arg)
{
	struct error err;
	__u64 per_ns;
	int ret = weir_qps_parse(arg, &per_ns);

	if (ret)
		error_set(&err, ret, "\"%s\" is not a rate (a decimal from 0 to %u, like 5 or 0.5)", arg, WEIR_QPS_MAX);
	cli_check(state, ret, "--qps", &err);
	words->qps = arg;
}

static void set_burst(const struct argp_state *state, struct limit_words *words, const char *arg)
{
	struct error err;
	int ret = weir_burst_parse(arg, &words->burst);

	if (ret)
		error_set(&err, ret, "\"%s\" is not a burst (a whole number from 0 to %u)", arg, WEIR_BURST_MAX);
	cli_check(state, ret, "--burst", &err);
	words->has_burst = true;
}

static void set_keys(const struct argp_state *state, struct limit_words *words, const char *arg)
{
	struct error err;

	cli_check(state, parse_number(arg, PARSE_KEYS_MAX, &words->keys, &err), "--keys", &err);
}

static void set_server(const struct argp_state *state, struct limit_words *words, const char *arg)
{
	struct error err;

	cli_check(state, parse_server_name(arg, &err), "--server", &err);
	words->server = arg;
}

static void set_word(const struct argp_state *state, struct limit_words *words, const char *arg)
{
	struct subject subject;
	struct error err;

	if (!words->type) {
		cli_check(state, parse_limit_type(arg, &words->type_value, &err), "limit", &err);
		words->type = arg;
	} else if (!words->subject) {
		cli_check(state, parse_subject(words->type_value, arg, &subject, &err), "SUBJECT", &err);
		words->subject = arg;
	} else {
		cli_too_many(state, arg);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct limit_words *words = state->input;

	switch (key) {
	case KEY_QPS:
		set_qps(state, words, arg);
		return 0;
	case KEY_BURST:
		set_burst(state, words, arg);
		return 0;
	case KEY_KEYS:
		set_keys(state, words, arg);
		return 0;
	case KEY_SERVER:
		set_server(state, words, arg);
		return 0;
	case ARGP_KEY_ARG:
		set_word(state, words, arg);
		return 0;
	case ARGP_KEY_END:
		if (!words->type)
			argp_failure(state, CLI_USAGE, 0,
				     "say which limit: total, namespace, user or source-and-object");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_set(int key, char *arg, struct argp_state *state)
{
	const struct limit_words *words = state->input;

	if (key == ARGP_KEY_END && words->type && (!words->qps || !words->has_burst))
		argp_failure(state, CLI_USAGE, 0, "--%s is missing", words->qps ? "burst" : "qps");
	return parse(key, arg, state);
}

/* "limit user alice of server \"api\"" */
static void print_limit(json_t *result, const char *became)
{
	CLEANUP_FREE char *subject = output_visible(cli_text(result, "subject"));

	printf("server \"%s\": limit %s%s%s is %s\n", cli_text(result, "server"), cli_text(result, "type"),
	       subject && *subject ? " " : "", subject ?: "", became);
}

static int print_set(json_t *result)
{
	print_limit(result, "set");
	return ferror(stdout);
}

static int print_deleted(json_t *result)
{
	print_limit(result, "deleted");
	return ferror(stdout);
}

int cli_limit_set(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;
	struct limit_words words = { 0 };
	json_t *limit;

	cli_parse(command, set_options, parse_set, &words, argc, argv);
	limit = json_pack("{s:s, s:s*, s:s, s:I}", "type", words.type, "subject", words.subject, "qps", words.qps,
			  "burst", (json_int_t)words.burst);
	if (words.keys)
		json_object_set_new(limit, "keys", json_integer(words.keys));
	result = cli_call("limit set", json_pack("{s:s*, s:o}", "server", words.server, "limit", limit));
	return result ? cli_print(result, print_set) : 1;
}

int cli_limit_delete(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;
	struct limit_words words = { 0 };

	cli_parse(command, server_options, parse, &words, argc, argv);
	result = cli_call("limit delete", json_pack("{s:s*, s:s, s:s*}", "server", words.server, "type", words.type,
						    "subject", words.subject));
	return result ? cli_print(result, print_deleted) : 1;
}

static int print_list(json_t *result)
{
	static const char *const heads[] = { "SERVER", "LIMIT", "SUBJECT", "QPS", "BURST", "SOURCE" };
	CLEANUP_TABLE struct table *table = table_new(heads, sizeof(heads) / sizeof(*heads));
	json_t *limit;
	size_t i;

	if (!table)
		return -ENOMEM;
	json_array_foreach (json_object_get(result, "limits"), i, limit) {
		json_t *subject = json_object_get(limit, "subject");

		table_cell(table, "%s", cli_text(limit, "server"));
		table_cell(table, "%s", cli_text(limit, "type"));
		table_cell(table, "%s", json_is_null(subject) ? "-" : json_string_value(subject));
		table_cell(table, "%.15g", json_number_value(json_object_get(limit, "qps")));
		table_cell(table, "%lld", cli_number(limit, "burst"));
		table_cell(table, "%s", cli_text(limit, "source"));
	}
	return table_print(table, stdout);
}

static error_t parse_list(int key, char *arg, struct argp_state *state)
{
	if (key == ARGP_KEY_ARG)
		cli_too_many(state, arg);
	return key == KEY_SERVER ? parse(key, arg, state) : ARGP_ERR_UNKNOWN;
}

int cli_limit_list(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;
	struct limit_words words = { 0 };

	cli_parse(command, server_options, parse_list, &words, argc, argv);
	result = cli_call("limit list", json_pack("{s:s*}", "server", words.server));
	return result ? cli_print(result, print_list) : 1;
}
