/* SPDX-License-Identifier: GPL-2.0 */
#include "history/sum.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "show/top.h"

struct history_sum *history_sum_new(const char *server, const char *filter, bool added_up)
{
	struct history_sum *sum = calloc(1, sizeof(*sum));

	if (!sum)
		return NULL;
	sum->server = server;
	sum->filter = filter;
	sum->added_up = added_up;
	sum->by_key = json_object();
	sum->tokens = json_object();
	return sum;
}

void history_sum_free(struct history_sum *sum)
{
	if (!sum)
		return;
	for (size_t i = 0; i < HISTORY_ROWS_MAX; i++)
		json_decref(sum->rows[i]);
	json_decref(sum->by_key);
	json_decref(sum->tokens);
	free(sum);
}

static bool is_wanted(struct history_sum *sum, json_t *row)
{
	const char *server = json_string_value(json_object_get(row, "server"));

	if (sum->server && (!server || strcmp(server, sum->server) != 0))
		return false;
	sum->taken = true;
	return !sum->filter || top_row_matches(row, sum->filter);
}

/* --- a limit that one has in mind */

static double bounded(double tokens, double burst)
{
	return tokens < 0 ? 0 : tokens > burst ? burst : tokens;
}

/* What the bucket has when the row begins: time without requests fills it. */
static double tokens_before(const struct history_limit *limit, json_t *left, json_int_t time)
{
	json_int_t idle = time - json_integer_value(json_object_get(left, "time"));

	if (!left)
		return limit->burst;
	return bounded(json_real_value(json_object_get(left, "tokens")) + (idle > 0 ? idle * limit->qps : 0),
		       limit->burst);
}

static double seconds_of(json_t *row)
{
	return json_number_value(json_object_get(row, "seconds"));
}

static void put_over(struct history_sum *sum, json_t *row)
{
	CLEANUP_FREE char *key = sum->limit ? top_row_key(row) : NULL;
	json_int_t time = json_integer_value(json_object_get(row, "time"));
	double seconds = seconds_of(row), tokens;

	if (!key)
		return;
	tokens = tokens_before(sum->limit, json_object_get(sum->tokens, key), time) + seconds * sum->limit->qps -
		 json_integer_value(json_object_get(row, "requests"));
	json_object_set_new(row, "over", json_real(tokens < 0 ? -tokens : 0));
	json_object_set_new(sum->tokens, key,
			    json_pack("{s:I, s:f}", "time", time + (json_int_t)(seconds + 0.5), "tokens",
				      bounded(tokens, sum->limit->burst)));
}

/* --- added up */

static void add_number(json_t *total, json_t *row, const char *key)
{
	json_int_t sum = json_integer_value(json_object_get(total, key));

	json_object_set_new(total, key, json_integer(sum + json_integer_value(json_object_get(row, key))));
}

/* Of less than a second, all count as one second's: of a few milliseconds a rate says nothing. */
static double per_second(json_t *row)
{
	double seconds = seconds_of(row);

	return (double)json_integer_value(json_object_get(row, "requests")) / (seconds > 1 ? seconds : 1);
}

/* Takes over row. */
static void begin_sum(struct history_sum *sum, const char *key, json_t *row)
{
	json_object_set_new(row, "peak", json_real(per_second(row)));
	json_object_set_new(row, "minutes", json_integer(1));
	json_object_del(row, "time");
	json_object_set_new(sum->by_key, key, row);
}

static void add_up(struct history_sum *sum, json_t *row)
{
	CLEANUP_FREE char *key = top_row_key(row);
	json_t *total = key ? json_object_get(sum->by_key, key) : NULL;
	double peak = json_real_value(json_object_get(total, "peak")), now = per_second(row);

	if (!key)
		return;
	if (!total) {
		begin_sum(sum, key, json_copy(row));
		return;
	}
	json_object_set_new(total, "seconds", json_real(seconds_of(total) + seconds_of(row)));
	if (sum->limit)
		json_object_set_new(total, "over",
				    json_real(json_real_value(json_object_get(total, "over")) +
					      json_real_value(json_object_get(row, "over"))));
	for (int i = 0; i < TOP_NUMBERS; i++)
		add_number(total, row, top_numbers[i]);
	json_object_set_new(total, "peak", json_real(now > peak ? now : peak));
	json_object_set_new(total, "minutes", json_integer(json_integer_value(json_object_get(total, "minutes")) + 1));
}

static int compare_requests(const void *left, const void *right)
{
	json_int_t a = json_integer_value(json_object_get(*(json_t *const *)left, "requests"));
	json_int_t b = json_integer_value(json_object_get(*(json_t *const *)right, "requests"));

	return (a < b) - (a > b);
}

static json_t *sorted_sums(const struct history_sum *sum)
{
	size_t n = 0, room = json_object_size(sum->by_key);
	CLEANUP_FREE json_t **totals = calloc(room + 1, sizeof(json_t *));
	json_t *list = json_array(), *total;
	const char *key;

	if (!totals)
		return list;
	json_object_foreach (sum->by_key, key, total)
		totals[n++] = total;
	qsort(totals, n, sizeof(json_t *), compare_requests);
	for (size_t i = 0; i < n; i++)
		json_array_append(list, totals[i]);
	return list;
}

/* --- one after the other */

static void keep(struct history_sum *sum, json_t *row)
{
	json_t **place = &sum->rows[sum->n++ % HISTORY_ROWS_MAX];

	json_decref(*place);
	*place = json_incref(row);
}

bool history_sum_take(void *arg, json_t *row)
{
	struct history_sum *sum = arg;

	if (!is_wanted(sum, row))
		return true;
	put_over(sum, row);
	if (sum->added_up)
		add_up(sum, row);
	else
		keep(sum, row);
	return true;
}

size_t history_sum_left_out(const struct history_sum *sum)
{
	return sum->n > HISTORY_ROWS_MAX ? sum->n - HISTORY_ROWS_MAX : 0;
}

json_t *history_sum_rows(struct history_sum *sum)
{
	json_t *list;

	if (sum->added_up)
		return sorted_sums(sum);
	list = json_array();
	for (size_t i = history_sum_left_out(sum); i < sum->n; i++)
		json_array_append(list, sum->rows[i % HISTORY_ROWS_MAX]);
	return list;
}
