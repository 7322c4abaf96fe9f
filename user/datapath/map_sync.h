/* SPDX-License-Identifier: GPL-2.0 */
/* A map against what it should hold: what differs is found in one reading, and nothing else is written. */
#ifndef WEIR_USER_DATAPATH_MAP_SYNC_H
#define WEIR_USER_DATAPATH_MAP_SYNC_H

#include "datapath/map_cursor.h"
#include "datapath/private.h"

/* The entries of a map that are to be brought in line: those of one server, or all. */
struct map_range {
	enum datapath_part part;
	int fd;
	__u32 key_size, value_size;
	map_test *ours; /* is this entry one of the range? NULL: each is */
	const void *arg;
	/* The value to write over `there`; NULL: `wanted`. An entry is right when it has that value already. */
	void (*become)(const void *key, const void *there, const void *wanted, void *out);
};

/* Arrays, one behind the other as the map has them. Of equal keys the last counts. */
struct map_entries {
	const void *keys, *values;
	size_t n;
};

/* What differs. All zero: nothing; map_diff_clear() lets it go. */
struct map_diff {
	char *put_keys, *put_values;
	size_t n_put;
	char *gone; /* keys */
	size_t n_gone;
	struct datapath_changes changes;
};

/* 0 or a negative errno. The caller clears *out. */
int map_compare(const struct map_range *range, const struct map_entries *wanted, struct map_diff *out);
void map_diff_clear(struct map_diff *diff);
#define CLEANUP_DIFF __attribute__((cleanup(map_diff_clear)))

/* Counts all that differs as written. */
void map_count(struct datapath *dp, const struct map_range *range, const struct map_diff *diff);
/* Writes the entries that are new or differ, and counts them. */
int map_put(struct datapath *dp, const struct map_range *range, const struct map_diff *diff);
/* Likewise, once more: it is counted already. */
int map_put_all(const struct map_range *range, const struct map_diff *diff);

/*
 * Makes the entries of the range these and no others: new ones are there before others go. Where the map has no room for both,
 * the others go first.
 */
int map_sync(struct datapath *dp, const struct map_range *range, const struct map_entries *wanted);

#endif
