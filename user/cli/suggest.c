/* SPDX-License-Identifier: GPL-2.0 */
/* suggest: limits that fit what the history knows, as a policy file of servers as they are. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "cli/cli.h"
#include "history/files.h"
#include "model/parse.h"

#define HEADROOM_MAX 100000 /* per cent */
#define BURST_S 2	    /* seconds of the rate */

enum {
	KEY_SINCE = 0x200,
	KEY_HEADROOM,
};

const struct argp_option cli_suggest_options[] = {
	{ "since", KEY_SINCE, "TIME", 0, "how far back to look, as 10m or 24h (default: 24h)", 0 },
	{ "headroom", KEY_HEADROOM, "PERCENT", 0, "how far above the busiest minute (default: 50)", 0 },
	{ 0 },
};

struct suggesting {
	const char *server; /* NULL: all */
	__u64 since_s, headroom;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct suggesting *s = state->input;
	struct error err;

	switch (key) {
	case KEY_SINCE:
		s->since_s = cli_duration(state, "--since", WEIR_NS_PER_S, HISTORY_NS, arg) / WEIR_NS_PER_S;
		return 0;
	case KEY_HEADROOM:
		cli_check(state, parse_number(arg, HEADROOM_MAX, &s->headroom, &err), "--headroom", &err);
		return 0;
	case ARGP_KEY_ARG:
		if (s->server)
			cli_too_many(state, arg);
		s->server = cli_server_word(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- what the history says */

struct busiest {
	double peak; /* requests a second, in the busiest minute of the one who asked most */
	const char *name;
	size_t n; /* all names in the history */
	json_t *answer;
};

static void cleanup_busiest(struct busiest *busiest)
{
	json_decref(busiest->answer);
}
#define CLEANUP_BUSIEST __attribute__((cleanup(cleanup_busiest)))

/* False: the agent did not answer, which was said. */
static bool ask(const struct suggesting *s, const char *server, const char *by, struct busiest *out)
{
	json_t *row;
	size_t i;

	out->answer = cli_call("history", json_pack("{s:s, s:s, s:I, s:b}", "name", server, "by", by, "since",
						    (json_int_t)s->since_s, "sum", 1));
	json_array_foreach (json_object_get(out->answer, "rows"), i, row) {
		double peak = json_number_value(json_object_get(row, "peak"));

		if (!out->n++ || peak > out->peak) {
			out->peak = peak;
			out->name = json_string_value(json_object_get(row, by)) ?: "";
		}
	}
	return out->answer;
}

/* Up, to two digits: 1, 2.. 99, 110, 120... */
static json_int_t rounded(double rate)
{
	double unit = 1;

	while (rate / unit > 99)
		unit *= 10;
	return (json_int_t)(ceil(rate / unit) * unit) ?: 1;
}

/* --- what is suggested */

static bool is_limited(json_t *limits, const char *name)
{
	json_t *limit;
	size_t i;

	json_array_foreach (limits, i, limit)
		if (strcmp(cli_text(limit, "name"), name) == 0)
			return true;
	return false;
}

/* Text is a comment of the file: names in it are made visible by the agent. */
static void add_limit(const struct suggesting *s, const char *name, const char *of_whom, const struct busiest *busiest,
		      json_t *limits, FILE *notes)
{
	json_int_t qps = rounded(busiest->peak * (100 + s->headroom) / 100);

	if (is_limited(limits, name)) {
		fprintf(notes, "# %s: there is a limit; the busiest minute had %.1f a second.\n", name, busiest->peak);
		return;
	}
	if (!busiest->n) {
		fprintf(notes, "# %s: nobody has asked.\n", name);
		return;
	}
	fprintf(notes, "# %s: the busiest minute", name);
	if (*busiest->name && busiest->n == 1)
		fprintf(notes, " of %s, the only one,", busiest->name);
	else if (*busiest->name)
		fprintf(notes, " of %s, one of %zu %s,", busiest->name, busiest->n, of_whom);
	fprintf(notes, " had %.1f requests a second; the limit is %llu%% above, rounded up.\n", busiest->peak,
		s->headroom);
	json_array_append_new(limits, json_pack("{s:s, s:I, s:I, s:s}", "name", name, "qps", qps, "burst",
						BURST_S * qps, "mode", "dry-run"));
}

/* Whom no user is known of counts by address. */
static bool suggest_user(const struct suggesting *s, const char *server, json_t *limits, FILE *notes)
{
	CLEANUP_BUSIEST struct busiest user = { 0 }, source = { 0 };

	if (!ask(s, server, "user", &user) || (!user.n && !ask(s, server, "source", &source)))
		return false;
	if (user.n)
		add_limit(s, "user", "users", &user, limits, notes);
	else
		add_limit(s, "user", "addresses", &source, limits, notes);
	return true;
}

static bool suggest_for(const struct suggesting *s, const char *server, json_t *limits, FILE *notes)
{
	CLEANUP_BUSIEST struct busiest total = { 0 }, namespace = { 0 };

	if (!ask(s, server, "server", &total) || !ask(s, server, "namespace", &namespace))
		return false;
	total.name = "";
	add_limit(s, "total", "servers", &total, limits, notes);
	if (namespace.n)
		add_limit(s, "namespace", "namespaces", &namespace, limits, notes);
	return suggest_user(s, server, limits, notes);
}

static json_t *limits_of(json_t *document)
{
	json_t *spec = json_object_get(document, "spec"), *limits = json_object_get(spec, "limits");

	if (!limits) {
		limits = json_array();
		json_object_set_new(spec, "limits", limits);
	}
	return limits;
}

/* 0, a negative errno, or 1: it failed and the error is printed already. */
static int suggest(const struct suggesting *s, json_t *document)
{
	CLEANUP_FREE char *notes = NULL;
	size_t length;
	FILE *file = open_memstream(&notes, &length);
	bool throttle = strcmp(cli_text(document, "kind"), "Throttle") == 0, known = true;
	int ret = 0;

	if (!file)
		return -ENOMEM;
	if (throttle)
		known = suggest_for(s, cli_text(json_object_get(document, "metadata"), "name"), limits_of(document),
				    file);
	if (fclose(file))
		return -ENOMEM;
	if (!known)
		return 1;
	if (cli.format == OUTPUT_TABLE)
		ret = printf("---\n%s", notes) < 0 ? -EIO : output_yaml(stdout, document);
	return ret;
}

static int suggest_all(const struct suggesting *s, json_t *list)
{
	json_t *document;
	size_t i;
	int ret = 0;

	if (cli.format == OUTPUT_TABLE)
		printf("# Suggested by weir from its history: averages of minutes, in which shorter bursts do not show.\n"
		       "# So each new limit is a dry run: apply this, look at what it would refuse (weir history),\n"
		       "# and remove its mode to enforce it.\n");
	json_array_foreach (list, i, document)
		ret = ret ?: suggest(s, document);
	return ret;
}

int cli_suggest(const struct command *command, int argc, char **argv)
{
	struct suggesting s = { .since_s = HISTORY_HOURS * 3600, .headroom = 50 };
	CLEANUP_JSON json_t *result = NULL;
	struct error err;
	int ret;

	cli_parse(command, parse, &s, argc, argv);
	result = cli_call("export", json_pack("{s:s*}", "server", s.server));
	if (!result)
		return 1;
	if (!json_array_size(json_object_get(result, "items"))) {
		error_set(&err, -ENOENT, "no server is attached: there is nothing to suggest");
		return cli_fail(&err);
	}
	ret = suggest_all(&s, json_object_get(result, "items"));
	if (!ret && cli.format != OUTPUT_TABLE)
		ret = cli.format == OUTPUT_JSON ? output_json(stdout, result) : output_yaml(stdout, result);
	return ret > 0 ? ret : cli_printed(ret);
}
