/* SPDX-License-Identifier: GPL-2.0 */
#include "replay/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(__u64 a, __u64 b)
{
	return a < b ? -1 : a > b;
}

static int compare_keys(const struct tally_key *x, const struct tally_key *y)
{
	return compare(x->server, y->server) ?: compare(x->slot, y->slot) ?: compare(x->subject, y->subject);
}

void tally_clear(struct tally *tally)
{
	for (size_t i = 0; i < tally->room; i++) {
		if (tally->rows[i])
			free(tally->rows[i]->name);
		free(tally->rows[i]);
	}
	free(tally->rows);
	*tally = (struct tally){ 0 };
}

/* Where the row is, or would be. Subjects are hashes already; a half of the places is free. */
static struct tally_row **place_of(struct tally_row **rows, size_t room, const struct tally_key *key)
{
	size_t i = (key->subject ^ ((__u64)key->server << 8 | key->slot) * 0x9e3779b97f4a7c15) & (room - 1);

	while (rows[i] && compare_keys(&rows[i]->key, key))
		i = (i + 1) & (room - 1);
	return &rows[i];
}

static int grow(struct tally *tally)
{
	size_t room = tally->room ? tally->room * 2 : 64;
	struct tally_row **rows = calloc(room, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < tally->room; i++)
		if (tally->rows[i])
			*place_of(rows, room, &tally->rows[i]->key) = tally->rows[i];
	free(tally->rows);
	tally->rows = rows;
	tally->room = room;
	return 0;
}

struct tally_row *tally_row(struct tally *tally, const struct tally_key *key)
{
	struct tally_row **place, *row;

	if (tally->n * 2 >= tally->room && grow(tally))
		return NULL;
	place = place_of(tally->rows, tally->room, key);
	row = *place;
	if (row)
		return row;
	row = calloc(1, sizeof(*row));
	if (!row)
		return NULL;
	row->key = *key;
	*place = row;
	tally->n++;
	return row;
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
	struct tally_row **rows = calloc(tally->n + 1, sizeof(*rows));
	size_t n = 0;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < tally->room; i++)
		if (tally->rows[i])
			rows[n++] = tally->rows[i];
	qsort(rows, n, sizeof(*rows), compare_rows);
	*out = rows;
	return n;
}
