/* SPDX-License-Identifier: GPL-2.0 */
#include "history/mark.h"

#include <errno.h>
#include <stdlib.h>

void history_mark_clear(struct history_mark *mark)
{
	free(mark->rows);
	*mark = (struct history_mark){ 0 };
}

int history_mark_set(struct history_mark *mark, const struct heavy_places *places)
{
	struct history_marked *rows = calloc(places->n + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < places->n; i++) {
		const struct heavy_place *place = &places->list[i];

		rows[i] = (struct history_marked){
			.at = place->at,
			.first_ns = place->row.first_ns,
			.counts = place->row.counts,
		};
	}
	history_mark_clear(mark);
	mark->rows = rows;
	mark->n = places->n;
	return 0;
}

/* --- what came since */

/* Both are read while they count: a count is never less than it was. */
static __u64 added(__u64 now, __u64 then)
{
	return now > then ? now - then : 0;
}

static void subtract(struct weir_heavy_counts *counts, const struct weir_heavy_counts *then)
{
	counts->requests = added(counts->requests, then->requests);
	counts->refused = added(counts->refused, then->refused);
	counts->dry_run = added(counts->dry_run, then->dry_run);
	counts->held = added(counts->held, then->held);
}

static bool is_nothing(const struct weir_heavy_counts *counts)
{
	return !counts->requests && !counts->refused && !counts->dry_run && !counts->held;
}

int history_added(const struct history_mark *mark, const struct heavy_places *places, struct weir_heavy_row **out)
{
	struct weir_heavy_row *rows = calloc(places->n + 1, sizeof(*rows));
	size_t n = 0, marked = 0;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < places->n; i++) {
		const struct heavy_place *place = &places->list[i];
		struct weir_heavy_row *row = &rows[n];
		const struct history_marked *then;

		*row = place->row;
		while (mark && marked < mark->n && mark->rows[marked].at < place->at)
			marked++;
		then = mark && marked < mark->n ? &mark->rows[marked] : NULL;
		/* A name that took over another's row began with 0. */
		if (then && then->at == place->at && then->first_ns == row->first_ns)
			subtract(&row->counts, &then->counts);
		row->weight = row->counts.requests < ~0U ? row->counts.requests : ~0U;
		n += !is_nothing(&row->counts);
	}
	*out = rows;
	return heavy_rows_merge(rows, n);
}

/* --- over restarts of the agent: [[at, first_ns, requests, refused, dry_run, held]...] */

json_t *history_mark_to_json(const struct history_mark *mark)
{
	json_t *list = json_array();

	for (size_t i = 0; i < mark->n; i++) {
		const struct history_marked *row = &mark->rows[i];

		json_array_append_new(list,
				      json_pack("[I, I, I, I, I, I]", (json_int_t)row->at, (json_int_t)row->first_ns,
						(json_int_t)row->counts.requests, (json_int_t)row->counts.refused,
						(json_int_t)row->counts.dry_run, (json_int_t)row->counts.held));
	}
	return list;
}

static int marked_from_json(struct history_marked *row, json_t *json)
{
	json_int_t at, first_ns, requests, refused, dry_run, held;

	if (json_unpack(json, "[I, I, I, I, I, I !]", &at, &first_ns, &requests, &refused, &dry_run, &held))
		return -EINVAL;
	*row = (struct history_marked){
		.at = at,
		.first_ns = first_ns,
		.counts = { .requests = requests, .refused = refused, .dry_run = dry_run, .held = held },
	};
	return 0;
}

int history_mark_from_json(struct history_mark *mark, json_t *json)
{
	struct history_marked *rows = calloc(json_array_size(json) + 1, sizeof(*rows));
	int ret = !rows ? -ENOMEM : json_is_array(json) ? 0 : -EINVAL;

	for (size_t i = 0; i < json_array_size(json) && !ret; i++)
		ret = marked_from_json(&rows[i], json_array_get(json, i));
	if (ret) {
		free(rows);
		return ret;
	}
	history_mark_clear(mark);
	mark->rows = rows;
	mark->n = json_array_size(json);
	return 0;
}
