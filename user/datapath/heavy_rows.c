/* SPDX-License-Identifier: GPL-2.0 */
#include "datapath/heavy_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

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

size_t heavy_rows_merge(struct weir_heavy_row *rows, size_t n)
{
	size_t kept = 0;

	if (!n)
		return 0;
	qsort(rows, n, sizeof(*rows), compare_what);
	for (size_t i = 1; i < n; i++) {
		if (compare_what(&rows[kept], &rows[i]) == 0)
			add_row(&rows[kept], &rows[i]);
		else
			rows[++kept] = rows[i];
	}
	qsort(rows, kept + 1, sizeof(*rows), compare_weight);
	return kept + 1;
}

int heavy_places_add(struct heavy_places *places, __u32 at, const struct weir_heavy_row *row)
{
	struct heavy_place *grown = array_grow(places->list, places->n, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	places->list = grown;
	places->list[places->n++] = (struct heavy_place){ .at = at, .row = *row };
	return 0;
}

void heavy_places_clear(struct heavy_places *places)
{
	free(places->list);
	*places = (struct heavy_places){ 0 };
}
