/* SPDX-License-Identifier: GPL-2.0 */
#include "replay/tally.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(__u64 a, __u64 b)
{
	return a < b ? -1 : a > b;
}

static int compare_keys(const void *a, const void *b)
{
	const struct tally_key *x = a, *y = b;

	return compare(x->server, y->server) ?: compare(x->slot, y->slot) ?: compare(x->subject, y->subject);
}

static void row_free(void *row)
{
	free(((struct tally_row *)row)->name);
	free(row);
}

void tally_clear(struct tally *tally)
{
	tdestroy(tally->tree, row_free);
	*tally = (struct tally){ 0 };
}

/* A row begins with its key. */
struct tally_row *tally_row(struct tally *tally, const struct tally_key *key)
{
	struct tally_row **there = tfind(key, &tally->tree, compare_keys), *row;

	if (there)
		return *there;
	row = calloc(1, sizeof(*row));
	if (!row)
		return NULL;
	row->key = *key;
	if (!tsearch(row, &tally->tree, compare_keys)) {
		free(row);
		return NULL;
	}
	tally->n++;
	return row;
}

struct listing {
	struct tally_row **rows;
	size_t n;
};

static void list_row(const void *node, VISIT visit, void *context)
{
	struct listing *listing = context;

	if (visit == postorder || visit == leaf)
		listing->rows[listing->n++] = *(struct tally_row *const *)node;
}

static int compare_rows(const void *a, const void *b)
{
	const struct tally_row *x = *(struct tally_row *const *)a, *y = *(struct tally_row *const *)b;

	return compare(y->refused + y->would_refuse, x->refused + x->would_refuse) ?:
		       compare(y->asked, x->asked)				   ?:
		       strcmp(x->name ?: "", y->name ?: "") ?:
		       compare_keys(&x->key, &y->key);
}

int tally_list(const struct tally *tally, struct tally_row ***out)
{
	struct listing listing = { .rows = calloc(tally->n + 1, sizeof(*listing.rows)) };

	if (!listing.rows)
		return -ENOMEM;
	twalk_r(tally->tree, list_row, &listing);
	qsort(listing.rows, listing.n, sizeof(*listing.rows), compare_rows);
	*out = listing.rows;
	return listing.n;
}
