/* SPDX-License-Identifier: GPL-2.0 */
#include "metrics/top.h"

#include <string.h>

#include "metrics/metrics.h"

static const struct {
	const char *count, *name, *help;
} families_of[] = {
	{ "requests", "weir_top_requests_total",
	  "Requests of the users with the most requests (weir agent --metrics-top). Only minutes count in which the user was among "
	  "the first ten of the server. Updated each minute." },
	{ "refused", "weir_top_refused_total", "Those of them that were refused." },
	{ "dry_run", "weir_top_dry_run_refused_total", "Those of them that only a dry run has let pass." },
	{ "held", "weir_top_held_total",
	  "Records and packets of these users that were held; with --inside hold, requests that passed over a limit." },
};

#define FAMILIES (sizeof(families_of) / sizeof(*families_of))

void metrics_top_clear(struct metrics_top *top)
{
	json_decref(top->servers);
	*top = (struct metrics_top){ 0 };
}

/* --- a server's table */

static json_int_t number(json_t *of, const char *key)
{
	return json_integer_value(json_object_get(of, key));
}

/* Whoever was among those with the most requests longest ago. */
static const char *last_of(json_t *users)
{
	const char *name, *last = NULL;
	json_int_t minute = 0;
	json_t *user;

	json_object_foreach (users, name, user) {
		if (last && number(user, "minute") >= minute)
			continue;
		last = name;
		minute = number(user, "minute");
	}
	return last;
}

static json_t *place_of(const struct metrics_top *top, json_t *users, const char *name)
{
	if (!json_object_get(users, name)) {
		if (json_object_size(users) >= top->places)
			json_object_del(users, last_of(users));
		json_object_set_new(users, name, json_object());
	}
	return json_object_get(users, name);
}

static void add_row(struct metrics_top *top, json_t *row)
{
	const char *server = json_string_value(json_object_get(row, "server"));
	const char *name = json_string_value(json_object_get(row, "user"));
	json_t *user;

	if (!server || !name || strcmp(json_string_value(json_object_get(row, "by")) ?: "", "user") != 0)
		return;
	if (!json_object_get(top->servers, server))
		json_object_set_new(top->servers, server, json_object());
	user = place_of(top, json_object_get(top->servers, server), name);
	json_object_set_new(user, "minute", json_integer(top->minute));
	for (size_t i = 0; i < FAMILIES; i++) {
		const char *count = families_of[i].count;

		json_object_set_new(user, count, json_integer(number(user, count) + number(row, count)));
	}
}

void metrics_top_add(struct metrics_top *top, json_t *rows)
{
	json_t *row;
	size_t i;

	if (!top->places)
		return;
	if (!top->servers)
		top->servers = json_object();
	top->minute++;
	json_array_foreach (rows, i, row)
		add_row(top, row);
}

void metrics_top_forget(struct metrics_top *top, const char *server)
{
	json_object_del(top->servers, server);
}

/* --- as metrics */

void metrics_top_families(const struct metrics_top *top, json_t *families)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		json_t *samples = metrics_add_family(families, families_of[i].name, "counter", families_of[i].help);
		const char *server, *name;
		json_t *users, *user;

		json_object_foreach (top->servers, server, users)
			json_object_foreach (users, name, user)
				metrics_add_sample(samples, json_pack("{s:s, s:s}", "server", server, "user", name),
						   json_integer(number(user, families_of[i].count)));
	}
}
