/* SPDX-License-Identifier: GPL-2.0 */
/* Limits that are set and deleted. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/rate.h"
#include "cli/cli.h"
#include "cli/setter.h"
#include "model/backoff_text.h"
#include "model/key.h"
#include "model/limit.h"

enum {
	KEY_QPS = 0x200,
	KEY_BURST,
	KEY_IN_FLIGHT,
	KEY_DENY,
	KEY_CONNECTIONS,
	KEY_OPEN,
	KEY_OVER,
	KEY_KEY,
	KEY_KEYS,
	KEY_DRY_RUN,
	KEY_ENFORCE,
	KEY_PENALTY,
	KEY_SERVER,
};

const struct argp_option cli_limit_set_options[] = {
	{ "qps", KEY_QPS, "Q", 0,
	  "tokens a second: a decimal with up to 9 places, like 50, 0.5 or 2k; 100/m and 20/h are a minute's and an hour's. 0: the burst is never refilled",
	  0 },
	{ "burst", KEY_BURST, "B", 0, "size of the bucket, a whole number like 100 or 2k. 0: every request is refused",
	  0 },
	{ "in-flight", KEY_IN_FLIGHT, "N", 0, "instead of a rate: the most requests in flight", 0 },
	{ "deny", KEY_DENY, NULL, 0, "instead of a rate: refuse every request with a 403", 0 },
	{ "connections", KEY_CONNECTIONS, NULL, 0, "the new limit is on connections: --qps and --burst count new ones",
	  0 },
	{ "open", KEY_OPEN, "N", 0, "instead of a rate: the most open connections", 0 },
	{ "over", KEY_OVER, "HOW", 0, "connections over the limit: drop (the client tries again), or reset", 0 },
	{ "key", KEY_KEY, "PART[,PART]", 0,
	  "key of a new limit: user, namespace, group, source, object, a combination of them, or total", 0 },
	{ "keys", KEY_KEYS, "N", 0, "number of buckets, when the limit is first set (default: that of attach)", 0 },
	{ "dry-run", KEY_DRY_RUN, NULL, 0, "count what the limit would refuse, and let it pass", 0 },
	{ "enforce", KEY_ENFORCE, NULL, 0, "end the dry run of the limit", 0 },
	{ "penalty", KEY_PENALTY, "HOW", 0,
	  "back-off for clients that retry while refused: exponential:BASE..MAX, fast-slow:FAST,SLOW,ATTEMPTS, bucket:QPS/BURST, max-wait:TIME, joined by +; or off",
	  0 },
	CLI_SERVER_OPTION(KEY_SERVER),
	{ 0 },
};

const struct argp_option cli_limit_delete_options[] = { CLI_SERVER_OPTION(KEY_SERVER), { 0 } };

struct limit_words {
	json_t *limit, *rule;
	const char *name, *subject, *server;
};

static void set_text(json_t *limit, const struct setter *o, const char *text)
{
	json_object_set_new(limit, o->member, json_string(text));
}

static void set_qps(const struct argp_state *state, json_t *limit, const struct setter *o, char *arg)
{
	struct error err;
	__u64 per_ns;
	int ret = weir_qps_parse(arg, &per_ns);

	if (ret)
		error_set(&err, ret, "\"%s\" is not a rate (" WEIR_QPS_FORM ")", arg, WEIR_QPS_MAX);
	cli_check(state, ret, o->option, &err);
	set_text(limit, o, arg);
}

static void set_key(const struct argp_state *state, json_t *limit, const struct setter *o, char *arg)
{
	struct error err;
	__u8 key;

	cli_check(state, key_parse(arg, &key, &err), o->option, &err);
	set_text(limit, o, arg);
}

static void set_penalty(const struct argp_state *state, json_t *limit, const struct setter *o, char *arg)
{
	struct weir_backoff penalty;
	struct error err;

	cli_check(state, backoff_parse(arg, &penalty, &err), o->option, &err);
	set_text(limit, o, arg);
}

static void set_over(const struct argp_state *state, json_t *limit, const struct setter *o, char *arg)
{
	if (strcmp(arg, "drop") != 0 && strcmp(arg, "reset") != 0)
		cli_refuse(state, "%s: \"%s\" is neither drop nor reset", o->option, arg);
	set_text(limit, o, arg);
}

/* --dry-run or --enforce: the mode is what the option is called. */
static void set_limit_mode(const struct argp_state *state, json_t *limit, const struct setter *o, char *arg)
{
	const char *mode = o->option + strlen("--");
	const char *before = json_string_value(json_object_get(limit, o->member));

	(void)arg;
	if (before && strcmp(before, mode) != 0)
		cli_refuse(state, "use either --dry-run or --enforce");
	set_text(limit, o, mode);
}

static const struct setter setters[] = {
	{ KEY_QPS, "--qps", "qps", set_qps, NULL, 0 },
	{ KEY_BURST, "--burst", "burst", setter_whole, NULL, 0 },
	{ KEY_IN_FLIGHT, "--in-flight", "in_flight", setter_whole, NULL, 0 },
	{ KEY_OPEN, "--open", "open", setter_whole, NULL, 0 },
	{ KEY_DENY, "--deny", "deny", setter_true, NULL, 0 },
	{ KEY_CONNECTIONS, "--connections", "connections", setter_true, NULL, 0 },
	{ KEY_OVER, "--over", "over", set_over, NULL, 0 },
	{ KEY_KEY, "--key", "key", set_key, NULL, 0 },
	{ KEY_KEYS, "--keys", "keys", setter_count, NULL, PARSE_KEYS_MAX },
	{ KEY_DRY_RUN, "--dry-run", "mode", set_limit_mode, NULL, 0 },
	{ KEY_ENFORCE, "--enforce", "mode", set_limit_mode, NULL, 0 },
	{ KEY_PENALTY, "--penalty", "penalty", set_penalty, NULL, 0 },
};

static void set_word(const struct argp_state *state, struct limit_words *words, const char *arg)
{
	char canonical[KEY_SUBJECT_TEXT];
	struct error err;
	__u8 key;

	if (!words->name) {
		cli_check(state, parse_limit_name(arg, &err), "LIMIT", &err);
		words->name = arg;
	} else if (!words->subject) {
		/* What subjects other limits have is the agent's to say. */
		if (!limit_builtin_key(words->name, &key))
			cli_check(state, key_subject_parse(key, arg, canonical, &err), "SUBJECT", &err);
		words->subject = arg;
	} else {
		cli_too_many(state, arg);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct limit_words *words = state->input;

	switch (key) {
	case KEY_SERVER:
		words->server = cli_server_name(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		set_word(state, words, arg);
		return 0;
	case ARGP_KEY_END:
		if (!words->name)
			cli_refuse(
				state,
				"the name of the limit is missing: total, namespace, user, source-and-object, or a name of your own");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static bool is_given(const struct limit_words *words, const char *key)
{
	return json_object_get(words->limit, key) != NULL;
}

/* Amounts of one kind; without any there must be something else to change. */
static void check_amounts(const struct argp_state *state, const struct limit_words *words)
{
	bool qps = is_given(words, "qps"), burst = is_given(words, "burst"), in_flight = is_given(words, "in_flight");
	bool deny = is_given(words, "deny"), open = is_given(words, "open");
	bool other = is_given(words, "mode") || is_given(words, "penalty") || is_given(words, "over");

	if (open && (qps || burst || in_flight))
		cli_refuse(state, "--open: use either --open, or --in-flight, or --qps and --burst");
	if (in_flight && is_given(words, "connections"))
		cli_refuse(state, "--in-flight: a limit on connections has --open, or --qps and --burst");
	if (in_flight && (qps || burst))
		cli_refuse(state, "--in-flight: use either --in-flight, or --qps and --burst");
	if (deny && (qps || burst || in_flight))
		cli_refuse(state, "--deny: use it without --qps, --burst and --in-flight");
	if (deny && open)
		cli_refuse(state, "--deny: use it without --open");
	if (other && words->subject)
		cli_refuse(state, "--dry-run, --enforce, --penalty and --over belong to the limit, not to a subject");
	if (!qps && !burst && !in_flight && !open && !deny && !other)
		cli_refuse(state, "--qps and --burst, --open, --in-flight or --deny are missing");
}

static error_t parse_set(int key, char *arg, struct argp_state *state)
{
	struct limit_words *words = state->input;
	error_t ret = setters_apply(setters, sizeof(setters) / sizeof(*setters), state, words->limit, key, arg);

	if (ret != ARGP_ERR_UNKNOWN)
		return ret;
	if (key == ARGP_KEY_INIT) {
		state->child_inputs[0] = words->rule;
		return 0;
	}
	if (key == ARGP_KEY_END && words->name)
		check_amounts(state, words);
	return parse(key, arg, state);
}

/* server "api": limit user alice is set */
static void print_limit(json_t *result, const char *became)
{
	CLEANUP_FREE char *subject = output_visible(cli_text(result, "subject"));

	printf("server \"%s\": limit %s%s%s is %s", cli_text(result, "server"), cli_text(result, "limit"),
	       subject && *subject ? " " : "", subject ?: "", became);
}

/* No command ends what it waits for. */
static bool waits_for_server(json_t *result)
{
	const char *mode = cli_text(result, "server_mode");

	return strcmp(mode, "failed") == 0 || strcmp(mode, "starting") == 0;
}

static bool is_in_dry_run(json_t *result)
{
	return strcmp(cli_text(result, "mode"), "dry-run") == 0;
}

/* Whoever sets a limit is told whether it refuses. */
static const char *became(json_t *result)
{
	const char *server_mode = cli_text(result, "server_mode");

	if (waits_for_server(result))
		return is_in_dry_run(result) ? "set, in a dry run; the server is not in force" :
					       "set; the server is not in force";
	if (is_in_dry_run(result))
		return "set, in a dry run: it refuses nothing";
	if (strcmp(server_mode, "dry-run") == 0)
		return "set; the server is in a dry run: nothing is refused";
	if (strcmp(server_mode, "paused") == 0)
		return "set; the server is paused: nothing is refused";
	if (strcmp(cli_text(result, "lane"), "hold") == 0)
		return "set; inside nobody is refused: the connections of who is over it wait";
	if (*cli_text(result, "refuses_not"))
		return "set";
	return json_is_true(json_object_get(result, "admits_nothing")) ?
		       "set, and enforced: it has room for none, so all that it counts is refused" :
		       "set, and enforced";
}

/* Why it refuses nothing is ended by a command each. */
static void print_what_ends(json_t *result)
{
	const char *server = cli_text(result, "server"), *server_mode = cli_text(result, "server_mode");

	if (waits_for_server(result))
		return;
	if (is_in_dry_run(result))
		printf("; \"weir limit set %s --enforce --server %s\" ends that", cli_text(result, "limit"), server);
	else if (strcmp(server_mode, "dry-run") == 0)
		printf("; \"weir dry-run %s off\" ends that", server);
	else if (strcmp(server_mode, "paused") == 0)
		printf("; \"weir resume %s\" ends that", server);
}

static int print_set(json_t *result)
{
	char about[PARSE_NAME_SIZE + 16];

	print_limit(result, became(result));
	print_what_ends(result);
	cli_print_refuses_not(result);
	cli_print_inside(result);
	snprintf(about, sizeof(about), "limit \"%s\": ", cli_text(result, "limit"));
	cli_warn(result, about);
	return ferror(stdout);
}

static int print_deleted(json_t *result)
{
	print_limit(result, "deleted");
	puts(cli_is_not_in_force(result, cli_text(result, "server")) ? "; the server is not in force" : "");
	cli_warn(result, "");
	return ferror(stdout);
}

int cli_limit_set(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *limit = json_object(), *rule = json_object(), *result = NULL;
	struct limit_words words = { .limit = limit, .rule = rule };

	cli_parse(command, parse_set, &words, argc, argv);
	json_object_set_new(limit, "name", json_string(words.name));
	if (json_object_size(rule))
		json_object_set_new(limit, "rules", json_pack("[O]", rule));
	result = cli_call("limit set", json_pack("{s:s*, s:O, s:s*}", "server", words.server, "limit", limit, "subject",
						 words.subject));
	return result ? cli_print(result, print_set) : 1;
}

int cli_limit_delete(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;
	struct limit_words words = { 0 };

	cli_parse(command, parse, &words, argc, argv);
	result = cli_call("limit delete", json_pack("{s:s*, s:s, s:s*}", "server", words.server, "limit", words.name,
						    "subject", words.subject));
	return result ? cli_print(result, print_deleted) : 1;
}
