/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the overrides of a limit before and after. There may be very many, of which few differ, and most of them stand where
 * they stood. So those at the beginning and at the end are compared one by one, and only those in between are sorted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/limit.h"

/* Overrides of a limit: from one to before another. */
struct stretch {
	const struct override *overrides;
	size_t begin, end;
};

void overrides_diff_clear(struct overrides_diff *diff)
{
	free(diff->put);
	free(diff->gone);
	*diff = (struct overrides_diff){ 0 };
}

static void put(struct overrides_diff *diff, const struct override *override)
{
	diff->put[diff->n_put++] = override;
}

/* Of the same subject. */
static void compare_amounts(struct overrides_diff *diff, const struct override *from, const struct override *to)
{
	if (!amount_equal(&from->amount, &to->amount))
		put(diff, to);
}

static bool same_subject(const struct override *a, const struct override *b)
{
	return a->subject == b->subject || strcmp(a->subject, b->subject) == 0;
}

static void compare_ends(struct overrides_diff *diff, struct stretch *from, struct stretch *to)
{
	while (from->begin < from->end && to->begin < to->end &&
	       same_subject(&from->overrides[from->begin], &to->overrides[to->begin]))
		compare_amounts(diff, &from->overrides[from->begin++], &to->overrides[to->begin++]);
	while (from->begin < from->end && to->begin < to->end &&
	       same_subject(&from->overrides[from->end - 1], &to->overrides[to->end - 1]))
		compare_amounts(diff, &from->overrides[--from->end], &to->overrides[--to->end]);
}

static int by_subject(const void *a, const void *b)
{
	const struct override *const *left = a, *const *right = b;

	return strcmp((*left)->subject, (*right)->subject);
}

/* By subject; the caller frees it, NULL without memory. */
static const struct override **sorted(const struct stretch *stretch)
{
	size_t n = stretch->end - stretch->begin;
	const struct override **places = calloc(n + 1, sizeof(*places));

	if (!places)
		return NULL;
	for (size_t i = 0; i < n; i++)
		places[i] = &stretch->overrides[stretch->begin + i];
	qsort(places, n, sizeof(*places), by_subject);
	return places;
}

static int compare_rest(struct overrides_diff *diff, const struct stretch *from, const struct stretch *to)
{
	CLEANUP_FREE const struct override **before = sorted(from), **after = sorted(to);
	size_t n_before = from->end - from->begin, n_after = to->end - to->begin, i = 0, j = 0;

	if (!before || !after)
		return -ENOMEM;
	while (i < n_before || j < n_after) {
		int order = i == n_before ? 1 : j == n_after ? -1 : by_subject(&before[i], &after[j]);

		if (order < 0)
			diff->gone[diff->n_gone++] = before[i++];
		else if (order > 0)
			put(diff, after[j++]);
		else
			compare_amounts(diff, before[i++], after[j++]);
	}
	return 0;
}

int limit_overrides_diff(const struct limit *from, const struct limit *to, struct overrides_diff *out)
{
	struct stretch before = { .end = from ? from->n_overrides : 0 }, after = { to->overrides, 0, to->n_overrides };

	before.overrides = from ? from->overrides : NULL;
	*out = (struct overrides_diff){ .put = calloc(after.end + 1, sizeof(*out->put)),
					.gone = calloc(before.end + 1, sizeof(*out->gone)) };
	if (!out->put || !out->gone)
		return -ENOMEM;
	compare_ends(out, &before, &after);
	return compare_rest(out, &before, &after);
}
