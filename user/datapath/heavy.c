/* SPDX-License-Identifier: GPL-2.0 */
/* Who makes the load: the rows of all CPUs, added up. */
#include <errno.h>
#include <string.h>

#include "datapath/private.h"

struct gathering {
	struct datapath *dp;
	const struct datapath_heavy_query *query;
	__u32 epoch;
	struct weir_heavy_row *rows;
	size_t n, room;
};

static bool is_wanted(const struct gathering *g, const struct weir_heavy_row *row)
{
	return row->what.server == g->query->slot && (g->query->by >> row->what.by & 1);
}

static int gather_row(struct gathering *g, const struct weir_heavy_row *row)
{
	if (g->n == g->room) {
		size_t room = g->room ? 2 * g->room : 256;
		struct weir_heavy_row *rows = reallocarray(g->rows, room, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		g->rows = rows;
		g->room = room;
	}
	g->rows[g->n] = *row;
	g->rows[g->n].weight = weir_heavy_weight(row, g->epoch);
	g->rows[g->n++].epoch = g->epoch;
	return 0;
}

static int gather_set(struct gathering *g, const struct weir_heavy_set *set)
{
	int ret = 0;

	for (__u32 i = 0; i < WEIR_HEAVY_WAYS && !ret; i++) {
		if (set->keys[i] != WEIR_HEAVY_FREE && set->keys[i] != WEIR_HEAVY_BUSY && is_wanted(g, &set->rows[i]))
			ret = gather_row(g, &set->rows[i]);
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

static int compare_what(const void *left, const void *right)
{
	const struct weir_heavy_row *a = left, *b = right;

	/* All its bytes are set, padding and union. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
	return memcmp(&a->what, &b->what, sizeof(a->what));
}

static int compare_weight(const void *left, const void *right)
{
	const struct weir_heavy_row *a = left, *b = right;

	return (a->weight < b->weight) - (a->weight > b->weight) ?: compare_what(left, right);
}

static void add_row(struct weir_heavy_row *sum, const struct weir_heavy_row *row)
{
	sum->counts.requests += row->counts.requests;
	sum->counts.refused += row->counts.refused;
	sum->counts.dry_run += row->counts.dry_run;
	sum->counts.held += row->counts.held;
	if (row->first_ns < sum->first_ns)
		sum->first_ns = row->first_ns;
	if (row->last_ns > sum->last_ns)
		sum->last_ns = row->last_ns;
	sum->weight = sum->weight + row->weight < sum->weight ? ~0U : sum->weight + row->weight;
}

/* One row for each of those that several CPUs have. */
static void merge(struct gathering *g)
{
	size_t kept = 0;

	if (!g->n)
		return;
	qsort(g->rows, g->n, sizeof(*g->rows), compare_what);
	for (size_t i = 1; i < g->n; i++) {
		if (compare_what(&g->rows[kept], &g->rows[i]) == 0)
			add_row(&g->rows[kept], &g->rows[i]);
		else
			g->rows[++kept] = g->rows[i];
	}
	g->n = kept + 1;
	qsort(g->rows, g->n, sizeof(*g->rows), compare_weight);
}

int datapath_heavy(struct datapath *dp, const struct datapath_heavy_query *query, struct weir_heavy_row **out,
		   struct error *err)
{
	struct gathering g = { .dp = dp, .query = query, .epoch = weir_heavy_epoch(datapath_now_ns()) };
	int ret = gather(&g);

	if (ret) {
		free(g.rows);
		return datapath_map_failed(err, ret, "heavy");
	}
	merge(&g);
	*out = g.rows;
	return g.n;
}

/* --- forgetting a server */

static bool forget_in(struct weir_heavy_set *set, __u32 slot)
{
	bool found = false;

	for (__u32 i = 0; i < WEIR_HEAVY_WAYS; i++) {
		if (set->keys[i] == WEIR_HEAVY_FREE || set->rows[i].what.server != slot)
			continue;
		set->keys[i] = WEIR_HEAVY_FREE;
		found = true;
	}
	return found;
}

/* What other servers' requests add to the same set in this moment may be lost. */
int datapath_heavy_clear(struct datapath *dp, __u32 slot, struct error *err)
{
	CLEANUP_FREE struct weir_heavy_set *sets = calloc(dp->cpus, sizeof(*sets));

	if (!sets)
		return error_set(err, -ENOMEM, "out of memory");
	for (__u32 index = 0; index < WEIR_HEAVY_SETS; index++) {
		bool found = false;

		if (bpf_map_lookup_elem(dp->maps.heavy, &index, sets))
			return datapath_map_failed(err, -errno, "heavy");
		for (int cpu = 0; cpu < dp->cpus; cpu++)
			found |= forget_in(&sets[cpu], slot);
		if (found && bpf_map_update_elem(dp->maps.heavy, &index, sets, BPF_ANY))
			return datapath_map_failed(err, -errno, "heavy");
	}
	return 0;
}
