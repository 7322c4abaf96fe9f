/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel's rows of who makes the load (weir/top/heavy.h) had when they were last read: what came since is the rest. */
#ifndef WEIR_USER_HISTORY_MARK_H
#define WEIR_USER_HISTORY_MARK_H

#include <jansson.h>

#include "datapath/heavy_rows.h"

struct history_mark {
	struct history_marked {
		__u32 at;
		__u64 first_ns;
		struct weir_heavy_counts counts;
	} * rows; /* in the order of their places */
	size_t n;
};

/* -ENOMEM, and the mark is as it was. */
int history_mark_set(struct history_mark *mark, const struct heavy_places *places);
void history_mark_clear(struct history_mark *mark);

/*
 * The rows with what came since the mark in place of what they had, those of several CPUs added up, the most requests first;
 * without those to which nothing came. NULL: from the beginning. The caller frees *out. Returns how many, or -ENOMEM.
 */
int history_added(const struct history_mark *mark, const struct heavy_places *places, struct weir_heavy_row **out);

/* NULL without memory. A new reference. */
json_t *history_mark_to_json(const struct history_mark *mark);
/* -EINVAL, -ENOMEM, and the mark is as it was. */
int history_mark_from_json(struct history_mark *mark, json_t *json);

#endif
