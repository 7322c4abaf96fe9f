/* SPDX-License-Identifier: GPL-2.0 */
/* Who makes the load: the rows of all CPUs, added up. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "datapath/heavy_rows.h"
#include "datapath/map_cursor.h"
#include "datapath/private.h"
#include "weir/top/recent.h"

/* What the caches still have (weir/top/recent.h) comes to the rows. */
static int collect(struct datapath *dp, struct error *err)
{
	int ret = 0;

	for (struct weir_collect from = { 0 }; from.cpu < (__u32)dp->cpus && !ret; from.cpu++) {
		for (from.first = 0; from.first < WEIR_RECENT_SETS && !ret; from.first += WEIR_COLLECT_SETS)
			ret = datapath_run(dp->collect_fd, &from, sizeof(from));
	}
	return ret ? error_set(err, ret, "running weir_collect: %s", strerror(-ret)) : 0;
}

struct gathering {
	struct datapath *dp;
	const struct datapath_heavy_query *query;
	__u32 epoch;
	struct weir_heavy_row *rows;
	size_t n;
};

static bool is_wanted(const struct gathering *g, const struct weir_heavy_row *row)
{
	return row->what.server == g->query->slot && (g->query->by >> row->what.by & 1);
}

static int gather_row(struct gathering *g, const struct weir_heavy_row *row, const struct weir_heavy_weight *weight)
{
	struct weir_heavy_row *grown = array_grow(g->rows, g->n, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	g->rows = grown;
	g->rows[g->n] = *row;
	g->rows[g->n++].weight = weir_heavy_weight(weight, g->epoch);
	return 0;
}

static bool is_row(const struct weir_heavy_set *set, __u32 way)
{
	return set->keys[way] != WEIR_HEAVY_FREE && set->keys[way] != WEIR_HEAVY_BUSY;
}

static int gather_set(struct gathering *g, const struct weir_heavy_set *set)
{
	int ret = 0;

	for (__u32 i = 0; i < WEIR_HEAVY_WAYS && !ret; i++) {
		if (is_row(set, i) && is_wanted(g, &set->rows[i]))
			ret = gather_row(g, &set->rows[i], &set->weights[i]);
	}
	return ret;
}

static int gather(struct gathering *g)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	const struct weir_heavy_set *sets;
	int ret;

	ret = map_cursor_open(&cursor, g->dp->maps.heavy, sizeof(__u32), g->dp->cpus * sizeof(*sets));
	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		sets = cursor.values;
		ret = 0;
		for (size_t i = 0; i < (size_t)cursor.n * g->dp->cpus && !ret; i++)
			ret = gather_set(g, &sets[i]);
	}
	return ret;
}

int datapath_heavy(struct datapath *dp, const struct datapath_heavy_query *query, struct weir_heavy_row **out,
		   struct error *err)
{
	struct gathering g = { .dp = dp, .query = query, .epoch = weir_heavy_epoch(datapath_now_ns()) };
	int ret = collect(dp, err);

	if (ret)
		return ret;
	ret = gather(&g);
	if (ret) {
		free(g.rows);
		return datapath_map_failed(err, ret, "heavy");
	}
	*out = g.rows;
	return heavy_rows_merge(g.rows, g.n);
}

/* --- each row for itself */

/* What the cursor has read, in the order of the rows' places. */
static int gather_places(struct datapath *dp, const struct map_cursor *cursor, struct heavy_places *places)
{
	const struct weir_heavy_set *sets = cursor->values;
	const __u32 first = places->read, n = cursor->n * dp->cpus * WEIR_HEAVY_WAYS;

	for (__u32 i = 0; i < n; i++) {
		const struct weir_heavy_set *set = &sets[i / WEIR_HEAVY_WAYS];
		const __u32 way = i % WEIR_HEAVY_WAYS;

		if (is_row(set, way) && heavy_places_add(places, first + i, &set->rows[way]))
			return -ENOMEM;
	}
	places->read += n;
	return 0;
}

int datapath_heavy_places(struct datapath *dp, struct heavy_places *out, struct error *err)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	struct heavy_places places = { 0 };
	int ret = collect(dp, err);

	if (ret)
		return ret;
	ret = map_cursor_open(&cursor, dp->maps.heavy, sizeof(__u32), dp->cpus * sizeof(struct weir_heavy_set));
	while (!ret && (ret = map_cursor_next(&cursor)) > 0)
		ret = gather_places(dp, &cursor, &places);
	if (ret) {
		heavy_places_clear(&places);
		return datapath_map_failed(err, ret, "heavy");
	}
	*out = places;
	return 0;
}

/* --- forgetting a server */

static bool is_of(const struct weir_heavy_set *set, __u32 way, __u32 slot)
{
	return set->keys[way] != WEIR_HEAVY_FREE && set->rows[way].what.server == slot;
}

static bool has_any_of(const struct weir_heavy_set *sets, __u32 cpus, __u32 slot)
{
	for (__u32 i = 0; i < cpus * WEIR_HEAVY_WAYS; i++)
		if (is_of(&sets[i / WEIR_HEAVY_WAYS], i % WEIR_HEAVY_WAYS, slot))
			return true;
	return false;
}

/* Reads the set again: others have been counted since. What other servers' requests add to it in this moment may be lost. */
static int forget_in(struct datapath *dp, __u32 index, __u32 slot, struct weir_heavy_set *sets)
{
	if (bpf_map_lookup_elem(dp->maps.heavy, &index, sets))
		return -errno;
	for (__u32 i = 0; i < dp->cpus * WEIR_HEAVY_WAYS; i++)
		if (is_of(&sets[i / WEIR_HEAVY_WAYS], i % WEIR_HEAVY_WAYS, slot))
			sets[i / WEIR_HEAVY_WAYS].keys[i % WEIR_HEAVY_WAYS] = WEIR_HEAVY_FREE;
	return bpf_map_update_elem(dp->maps.heavy, &index, sets, BPF_ANY) ? -errno : 0;
}

static int forget(struct datapath *dp, __u32 slot)
{
	CLEANUP_FREE struct weir_heavy_set *place = calloc(dp->cpus, sizeof(*place));
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret;

	if (!place)
		return -ENOMEM;
	ret = map_cursor_open(&cursor, dp->maps.heavy, sizeof(__u32), dp->cpus * sizeof(*place));
	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_heavy_set *sets = cursor.values;
		const __u32 *indexes = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n && !ret; i++)
			if (has_any_of(&sets[i * dp->cpus], dp->cpus, slot))
				ret = forget_in(dp, indexes[i], slot, place);
	}
	return ret;
}

int datapath_heavy_clear(struct datapath *dp, __u32 slot, struct error *err)
{
	int ret = collect(dp, err); /* what it has got to the rows is forgotten all the same */
	int failed = forget(dp, slot);

	return failed ? datapath_map_failed(err, failed, "heavy") : ret;
}
