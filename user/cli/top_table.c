/* SPDX-License-Identifier: GPL-2.0 */
/* The rows of `weir top` as a table, on the screen and in a pipe. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "cli/cli.h"
#include "cli/top.h"

#define HEADS_MAX 16

/* What stands behind the names; the first are enum top_number. */
enum measured {
	MEASURED_REQUESTS = TOP_REQUESTS,
	MEASURED_REFUSED = TOP_REFUSED,
	MEASURED_DRY_RUN = TOP_DRY_RUN,
	MEASURED_HELD = TOP_HELD,
	MEASURED_IN_FLIGHT = TOP_NUMBERS,
	MEASURED_SHARE,
	MEASURED_TREND,
	MEASURED_TOTAL,
	MEASURED_FIRST,
	MEASURED_LAST,
	MEASURED,
};

const struct top_kind top_kinds[] = {
	{ "user", 'u', { "user" }, "request" },
	{ "namespace", 'n', { "namespace" }, "request" },
	{ "verb", 'v', { "verb" }, "request" },
	{ "resource", 'r', { "resource" }, "request" },
	{ "source", 's', { "source" }, NULL },
	{ "connection", 'c', { "source" }, NULL },
	{ "limit", 'l', { "limit" }, "refusal" },
	{ "request", 'a', { "user", "verb", "namespace", "resource" }, NULL },
	{ "refusal", 'x', { "limit", "user" }, NULL },
	{ 0 },
};

const struct top_kind *top_kind_of(const char *name)
{
	for (const struct top_kind *kind = top_kinds; kind->name; kind++)
		if (strcmp(kind->name, name) == 0)
			return kind;
	return NULL;
}

/* --- which */

static bool is_shown(const struct top_look *look, const struct top_subject *subject)
{
	return !look->filter || top_matches(subject, look->filter);
}

const struct top_subject *top_shown(const struct top_look *look, const struct top *top, size_t n)
{
	for (size_t i = 0; i < top->n; i++)
		if (is_shown(look, &top->subjects[i]) && n-- == 0)
			return &top->subjects[i];
	return NULL;
}

/* --- heads */

const char *top_head(const char *member)
{
	static const struct {
		const char *member, *head;
	} heads[] = {
		{ "user", "USER" },	    { "verb", "VERB" },	    { "namespace", "NAMESPACE" },
		{ "resource", "RESOURCE" }, { "source", "SOURCE" }, { "limit", "LIMIT" },
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		if (strcmp(heads[i].member, member) == 0)
			return heads[i].head;
	return "";
}

static const struct {
	const char *head;
	size_t spared; /* on a narrow screen: the how manieth that is left out; 0: never */
} measured[] = {
	[MEASURED_REQUESTS] = { "REQ/S", 0 },	   [MEASURED_REFUSED] = { "REFUSED/S", 0 },
	[MEASURED_DRY_RUN] = { "DRY-RUN/S", 0 },   [MEASURED_HELD] = { "HELD/S", 0 },
	[MEASURED_IN_FLIGHT] = { "IN-FLIGHT", 4 }, [MEASURED_SHARE] = { "SHARE", 6 },
	[MEASURED_TREND] = { "TREND", 5 },	   [MEASURED_TOTAL] = { "REQUESTS", 2 },
	[MEASURED_FIRST] = { "FIRST SEEN", 1 },	   [MEASURED_LAST] = { "LAST SEEN", 3 },
};

/* Where it is known of no row, there is no column. */
static bool knows_in_flight(const struct top *top)
{
	for (size_t i = 0; i < top->n; i++)
		if (json_object_get(top->subjects[i].row, "in_flight"))
			return true;
	return false;
}

static bool has_column(const struct top_look *look, const struct top *top, enum measured column)
{
	if (column == MEASURED_IN_FLIGHT && !knows_in_flight(top))
		return false;
	return !measured[column].spared || measured[column].spared > look->left_out;
}

struct table *top_table(const struct top_look *look, const struct top *top, bool with_time)
{
	static const char *heads[HEADS_MAX];
	size_t n = 0;

	if (with_time)
		heads[n++] = "TIME";
	if (!look->server)
		heads[n++] = "SERVER";
	for (const char *const *member = look->by->members; *member; member++)
		heads[n++] = top_head(*member);
	for (enum measured column = 0; column < MEASURED; column++)
		if (has_column(look, top, column))
			heads[n++] = measured[column].head;
	return table_new(heads, n);
}

/* --- rows */

/* Whole numbers, but for what would be 0. */
static void cell_rate(struct table *table, double rate)
{
	table_cell(table, rate > 0 && rate < 9.95 ? "%.1f" : "%.0f", rate);
}

/* "12s", "3m", "5h": the largest unit alone. */
static void cell_age(struct table *table, __u64 now_ns, __u64 then_ns)
{
	static const struct {
		__u64 seconds;
		char unit;
	} units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
	__u64 seconds = now_ns > then_ns ? (now_ns - then_ns) / WEIR_NS_PER_S : 0;

	if (!then_ns) {
		table_cell(table, "-");
		return;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (seconds >= units[i].seconds || units[i].unit == 's') {
			table_cell(table, "%llu%c ago", seconds / units[i].seconds, units[i].unit);
			return;
		}
	}
}

static void cell_now(struct table *table)
{
	time_t now = time(NULL);
	struct tm parts;
	char text[16];

	localtime_r(&now, &parts);
	strftime(text, sizeof(text), "%H:%M:%S", &parts);
	table_cell(table, "%s", text);
}

static void cell_trend(struct table *table, const struct top_subject *subject)
{
	CLEANUP_FREE char *trend = top_trend_text(subject);

	table_cell(table, "%s", trend ?: "");
}

static void cell_measured(struct table *table, enum measured column, const struct top *top,
			  const struct top_subject *subject)
{
	switch (column) {
	case MEASURED_IN_FLIGHT:
		return cli_cell_number(table, json_object_get(subject->row, "in_flight"));
	case MEASURED_SHARE:
		table_cell(table, "%.0f%%", subject->share * 100);
		return;
	case MEASURED_TREND:
		return cell_trend(table, subject);
	case MEASURED_TOTAL:
		table_cell(table, "%llu", subject->counts[TOP_REQUESTS]);
		return;
	case MEASURED_FIRST:
		return cell_age(table, top->now_ns, subject->first_ns);
	case MEASURED_LAST:
		return cell_age(table, top->now_ns, subject->last_ns);
	default:
		return cell_rate(table, subject->rates.of[column]);
	}
}

static void fill_row(struct table *table, const struct top_look *look, const struct top *top,
		     const struct top_subject *subject, bool with_time)
{
	if (with_time)
		cell_now(table);
	if (!look->server)
		table_cell(table, "%s", cli_text(subject->row, "server"));
	for (const char *const *member = look->by->members; *member; member++)
		table_cell(table, "%s", json_string_value(json_object_get(subject->row, *member)) ?: "-");
	for (enum measured column = 0; column < MEASURED; column++)
		if (has_column(look, top, column))
			cell_measured(table, column, top, subject);
}

int top_table_fill(struct table *table, const struct top_look *look, struct top *top, bool with_time)
{
	size_t shown = 0;

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < top->n && shown < look->rows; i++) {
		if (!is_shown(look, &top->subjects[i]))
			continue;
		fill_row(table, look, top, &top->subjects[i], with_time);
		shown++;
	}
	return 0;
}

/* --- no rows */

/* Did traffic come whose users could not be read? Not to a server that is looked into: they are read there. */
static bool is_unread(const struct top *top)
{
	json_t *server;
	size_t i;

	json_array_foreach (top->totals, i, server)
		if (cli_number(server, "records") && !json_is_true(json_object_get(server, "inside")))
			return true;
	return false;
}

const char *top_why_empty(const struct top_look *look, const struct top *top)
{
	if (top_shown(look, top, 0))
		return NULL;
	if (top->n)
		return "no name has the text of the filter";
	if (!strcmp(look->by->name, "connection"))
		return "connections are counted where there are limits on connections";
	if (!strcmp(look->by->name, "limit"))
		return "there is no limit";
	if (is_unread(top))
		return "what came is TLS, of which only addresses are known (--by source); in a Go server attach --inside "
		       "see reads users";
	return strcmp(look->by->name, "refusal") ? "no requests were seen" : "nothing was refused";
}
