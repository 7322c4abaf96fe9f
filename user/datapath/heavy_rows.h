/* SPDX-License-Identifier: GPL-2.0 */
/* Rows of who makes the load (weir/top/heavy.h), as they were read. Nothing here asks the kernel. */
#ifndef WEIR_USER_DATAPATH_HEAVY_ROWS_H
#define WEIR_USER_DATAPATH_HEAVY_ROWS_H

#include <stddef.h>

#include "weir/top/heavy.h"

/* Adds up the rows of the same `what`, of which all bytes are compared, and puts the heaviest first. Returns how many rows are left. */
size_t heavy_rows_merge(struct weir_heavy_row *rows, size_t n);

/* A row and its place in the kernel's table: that of one CPU. A row that was taken over has another first_ns. */
struct heavy_place {
	__u32 at;
	struct weir_heavy_row row;
};

/* In the order of their places. */
struct heavy_places {
	struct heavy_place *list;
	size_t n;
	__u32 read; /* places that were looked at */
};

/* -ENOMEM. */
int heavy_places_add(struct heavy_places *places, __u32 at, const struct weir_heavy_row *row);
void heavy_places_clear(struct heavy_places *places);
#define CLEANUP_HEAVY_PLACES __attribute__((cleanup(heavy_places_clear)))

#endif
