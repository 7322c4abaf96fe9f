/* SPDX-License-Identifier: GPL-2.0 */
/* `weir events --audit-log FILE`: refusals with the IDs under which the server's own audit log has them. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/next_line.h"
#include "cli/requests.h"
#include "cli/slow.h"
#include "join/join.h"
#include "replay/recording.h"

/* "-" is standard input. */
static FILE *open_input(const char *name, struct error *err)
{
	FILE *file = strcmp(name, "-") ? fopen(name, "re") : fdopen(STDIN_FILENO, "r");

	if (file)
		cli_await_input(name);
	else
		error_set(err, -errno, "%s: %s", name, strerror(errno));
	return file;
}

/* --- a recording */

#define NO_LINE "not a line of weir trace --json or weir events --json"

static bool is_refusal(json_t *request)
{
	const char *decision = cli_text(request, "decision");

	return strstr(decision, "shed") || strstr(decision, "rejected");
}

/* A request that passed is not shown: it only takes the entry that is its own. */
static int take_recorded(const struct audited_words *words, struct join *join, json_t *request, size_t number,
			 json_t *refusals, struct error *err)
{
	int ret;

	if (!json_is_object(request) || !*cli_text(request, "decision") || !*cli_text(request, "server"))
		return error_set(err, -EINVAL, NO_LINE);
	if (words->server && strcmp(cli_text(request, "server"), words->server) != 0)
		return 0;
	ret = join_add(join, request, number, err);
	if (ret || !is_refusal(request))
		return ret;
	json_object_set_new(request, "number", json_integer(number));
	return json_array_append(refusals, request) ? error_set(err, -ENOMEM, "out of memory") : 0;
}

static int unread(const char *name, size_t number, int why, struct error *err)
{
	if (why == -EFBIG)
		return error_set(err, why, "%s:%zu: " NO_LINE ": " RECORDED_TOO_LONG, name, number);
	return error_set(err, why, "%s: %s", name, strerror(-why));
}

static int read_recording(const struct audited_words *words, struct join *join, json_t *refusals, struct error *err)
{
	CLEANUP_FCLOSE FILE *file = open_input(words->recording, err);
	CLEANUP_FREE char *line = NULL;
	size_t room = 0, number = 0;
	ssize_t length = 0;
	int ret = file ? 0 : -ENOENT;

	while (!ret && (length = next_line(file, RECORDED_LINE_MAX, &line, &room)) > 0) {
		CLEANUP_JSON json_t *request = json_loadb(line, length, 0, NULL);
		struct error why;

		ret = take_recorded(words, join, request, ++number, refusals, &why);
		if (ret)
			error_set(err, ret, "%s:%zu: %s", words->recording, number, why.text);
	}
	return !ret && length < 0 ? unread(words->recording, number + 1, length, err) : ret;
}

static int take_kept(struct join *join, json_t *requests, struct error *err)
{
	json_t *request;
	size_t i;
	int ret;

	json_array_foreach (requests, i, request) {
		ret = join_add(join, request, i + 1, err);
		if (ret)
			return ret;
		json_object_set_new(request, "number", json_integer(i + 1));
	}
	return 0;
}

/* --- the log */

FILE *audited_open(const struct audited_words *words, struct error *err)
{
	return open_input(words->log, err);
}

static int read_log(struct join *join, FILE *log, const char *name, struct error *err)
{
	CLEANUP_SLOW struct slow slow;
	int ret;

	slow_begin(&slow, "reading the audit log");
	ret = join_read(join, log, name, err);
	if (!ret)
		join_match(join);
	return ret;
}

/* How many requests have an ID, and how many of these may have another one. */
struct summary {
	size_t inside, found, unsure;
};

static void set_id(const struct join *join, json_t *request, struct summary *summary)
{
	const struct join_request *found = join_find(join, cli_number(request, "number"));

	summary->inside += !!found;
	summary->found += found && found->id;
	summary->unsure += found && found->id && found->fits > 1;
	json_object_set_new(request, "audit_id", found && found->id ? json_string(found->id) : json_null());
	json_object_set_new(request, "audit_fits", json_integer(found ? found->fits : 0));
}

/* On stderr, as what trace has lost is. */
static void say_summary(const struct audited_words *words, const struct join *join, const struct summary *summary)
{
	if (summary->inside) {
		cli_say(stderr, "weir: %zu of %zu refusal%s inside a server %s an ID in %s", summary->found,
			summary->inside, summary->inside == 1 ? "" : "s", summary->found == 1 ? "has" : "have",
			words->log);
		fputc('\n', stderr);
	}
	if (summary->unsure)
		fprintf(stderr,
			"weir: %zu of these fit%s several entries (FITS): the one that was answered first is shown\n",
			summary->unsure, summary->unsure == 1 ? "s" : "");
	if (join->bad_lines) {
		cli_say(stderr, "weir: %s: %llu line%s passed over: no event of an audit log", words->log,
			join->bad_lines, join->bad_lines == 1 ? "" : "s");
		fputc('\n', stderr);
	}
}

/* --- both */

static int print_all(const struct audited_words *words, const struct join *join, json_t *requests, __u64 count,
		     struct error *err)
{
	const struct requests_view *view = words->log ? &requests_audited : &requests_refused;
	CLEANUP_TABLE struct table *table = requests_table(view);
	struct summary summary = { 0 };
	size_t n = json_array_size(requests), first = count && count < n ? n - count : 0;
	int ret = table ? requests_print_heads(table, err) : error_set(err, -ENOMEM, "out of memory");

	for (size_t i = first; i < n && !ret; i++) {
		json_t *request = json_array_get(requests, i);

		if (words->log)
			set_id(join, request, &summary);
		json_object_del(request, "number");
		ret = requests_print(view, table, request, err);
	}
	if (!ret && words->log)
		say_summary(words, join, &summary);
	return ret;
}

int audited_print(const struct audited_words *words, FILE *log, json_t *requests, __u64 count, struct error *err)
{
	CLEANUP_JOIN struct join join = { .window_ns = words->window_ns };
	int ret = words->recording ? read_recording(words, &join, requests, err) : take_kept(&join, requests, err);

	if (!ret && log)
		ret = read_log(&join, log, words->log, err);
	return ret ?: print_all(words, &join, requests, count, err);
}
