/* SPDX-License-Identifier: GPL-2.0 */
#include "commands/history.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "commands/commands.h"
#include "commands/history_sample.h"
#include "commands/top.h"
#include "history/files.h"
#include "history/sum.h"

#define MINUTE_S 60
#define SAMPLE_BYTES 16384 /* of one sample's lines: so a day takes 24 MB at most */

struct history {
	char dir[PATH_MAX];
	struct history_base base;
	struct history_clock clock;
	time_t minute; /* the event loop's: the one that history_is_due() has seen last */
	bool failing;  /* to write; that is said once */
	bool crowded;  /* rows had no room */
};

/* The next server of this name begins with nothing. */
static void forget(struct agent *agent, const char *name)
{
	if (agent->history->base.servers)
		json_object_del(agent->history->base.servers, name);
}

int history_open(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	struct history *history = calloc(1, sizeof(*history));
	CLEANUP_JSON json_t *last = NULL;

	if (!history)
		return error_set(err, -ENOMEM, "out of memory");
	snprintf(history->dir, sizeof(history->dir), "%s/%s", options->persist_dir ?: options->state_dir, HISTORY_DIR);
	history->minute = time(NULL) / MINUTE_S;
	last = history_load_last(history->dir);
	if (last)
		history_base_from_json(&history->base, last);
	agent->history = history;
	agent->ended = forget;
	agent->top.places = options->metrics_top;
	return 0;
}

void history_close(struct agent *agent)
{
	if (!agent->history)
		return;
	history_base_clear(&agent->history->base);
	metrics_top_clear(&agent->top);
	free(agent->history);
	agent->history = NULL;
	agent->ended = NULL;
}

bool history_is_due(struct agent *agent)
{
	time_t minute = time(NULL) / MINUTE_S, before = agent->history->minute;

	agent->history->minute = minute;
	return minute != before;
}

/* --- writing */

/* As many lines as there is room for; the caller frees *out. Returns how many rows are left out, or -ENOMEM. */
static int lines_of(json_t *rows, char **out, size_t *length)
{
	FILE *file = open_memstream(out, length);
	size_t room = SAMPLE_BYTES, i;
	int left_out = 0;
	json_t *row;

	if (!file)
		return -ENOMEM;
	json_array_foreach (rows, i, row) {
		CLEANUP_FREE char *line = json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(15));
		size_t n = line ? strlen(line) + 1 : 0;

		if (!n || n > room) {
			left_out++;
			continue;
		}
		fprintf(file, "%s\n", line);
		room -= n;
	}
	return fclose(file) ? -ENOMEM : left_out;
}

static int write_lines(struct history *history, const struct history_sample *sample, struct error *err)
{
	CLEANUP_FREE char *lines = NULL;
	size_t length = 0;
	bool steady = history_clock_is_steady(&history->clock, sample->now.time,
					      clock_ns(CLOCK_BOOTTIME) / WEIR_NS_PER_S);
	int left_out = lines_of(sample->rows, &lines, &length);

	if (left_out < 0)
		return error_set(err, -ENOMEM, "out of memory");
	if (left_out && !history->crowded)
		log_warning(
			"history: of a minute that began at %lld, %d row%s had no room in %d bytes; this is said once",
			(long long)sample->now.time, left_out, left_out == 1 ? "" : "s", SAMPLE_BYTES);
	history->crowded |= left_out;
	return length ? history_append(history->dir, sample->now.time, steady, lines, length, err) : 0;
}

static int save_base(const struct history *history, struct error *err)
{
	CLEANUP_JSON json_t *last = history_base_to_json(&history->base);

	return last ? history_save_last(history->dir, last, err) : error_set(err, -ENOMEM, "out of memory");
}

/* What cannot be written down stays to be: the next sample is of more than a minute. */
static int write_sample(struct agent *agent, struct history_sample *sample, bool counts, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	struct history *history = agent->history;
	int ret = counts ? write_lines(history, sample, err) : 0;

	if (ret)
		return ret;
	history_base_clear(&history->base);
	history->base = sample->now;
	sample->now = (struct history_base){ 0 };
	return counts ? save_base(history, err) : 0;
}

static void tell(struct history *history, int ret, const struct error *err)
{
	if (ret && !history->failing)
		log_warning("history: %s; what is counted meanwhile is written when it can be", err->text);
	if (!ret && history->failing)
		log_info("history: it can be written again");
	history->failing = ret;
}

/* counts false: only remembers where the counters stand, and writes nothing. */
static void take_down(struct agent *agent, bool counts)
{
	CLEANUP_HISTORY_SAMPLE struct history_sample sample = { 0 };
	__u64 before_ns = agent->history->base.time_ns;
	struct error err;
	int ret = history_sample(agent, &agent->history->base, &sample, &err) ?:
			  write_sample(agent, &sample, counts, &err);

	/* It has been taken down, although what it began with may not be saved. */
	if (counts && agent->history->base.time_ns != before_ns)
		metrics_top_add(&agent->top, sample.rows);
	tell(agent->history, ret, &err);
}

void history_begin(struct agent *agent)
{
	agent_work_begin(agent);
	if (!agent->history->base.time_ns)
		take_down(agent, false);
	agent_work_end(agent);
}

void history_write(struct agent *agent)
{
	agent_work_begin(agent);
	take_down(agent, true);
	agent_work_end(agent);
}

/* --- asking */

static bool is_kind(const char *by)
{
	for (int kind = 0; kind < WEIR_HEAVY_BYS; kind++)
		if (strcmp(by, top_bys[kind]) == 0)
			return true;
	return strcmp(by, "limit") == 0 || strcmp(by, "server") == 0;
}

static int read_files(struct agent *agent, json_int_t since_s, const char *by, struct history_sum *sum,
		      struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	const time_t now = time(NULL);

	return history_read(agent->history->dir, now - since_s, now, by, history_sum_take, sum, err);
}

/* Since the last sample: nobody waits for a minute to end. */
static int add_latest(struct agent *agent, const char *by, struct history_sum *sum, struct error *err)
{
	CLEANUP_HISTORY_SAMPLE struct history_sample sample = { 0 };
	int ret = history_sample(agent, &agent->history->base, &sample, err);
	json_t *row;
	size_t i;

	json_array_foreach (sample.rows, i, row)
		if (!ret && strcmp(json_string_value(json_object_get(row, "by")), by) == 0)
			history_sum_take(sum, row);
	return ret;
}

int agent_history(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_HISTORY_SUM struct history_sum *sum = NULL;
	const char *name = NULL, *by = "user", *filter = NULL;
	json_int_t since_s = HISTORY_HOURS * 3600;
	struct history_limit limit = { .qps = -1 };
	int added_up = 0, ret;
	json_error_t why;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s?s, s?s, s?I, s?b, s?{s:F, s:F !} !}", "name", &name, "by", &by,
			   "filter", &filter, "since", &since_s, "sum", &added_up, "limit", "qps", &limit.qps, "burst",
			   &limit.burst))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	if (!is_kind(by))
		return error_set(err, -EINVAL, "bad arguments: there are no rows by \"%s\"", by);
	if (since_s < 1)
		return error_set(err, -EINVAL, "bad arguments: since must be at least 1");
	sum = history_sum_new(name, filter, added_up);
	if (!sum)
		return error_set(err, -ENOMEM, "out of memory");
	sum->limit = limit.qps >= 0 ? &limit : NULL;
	ret = read_files(agent, since_s, by, sum, err) ?: add_latest(agent, by, sum, err);
	/* One that is gone may be asked for: what is known of it stays. */
	if (!ret && name && !sum->taken && state_find(&agent->state, name) < 0)
		ret = state_unknown(&agent->state, name, err);
	if (!ret)
		*result = json_pack("{s:s, s:o, s:I}", "by", by, "rows", history_sum_rows(sum), "left_out",
				    (json_int_t)history_sum_left_out(sum));
	return ret;
}
