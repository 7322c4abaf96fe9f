/* SPDX-License-Identifier: GPL-2.0 */
/* Maps, read and cleared in batches. */
#ifndef WEIR_USER_DATAPATH_MAP_CURSOR_H
#define WEIR_USER_DATAPATH_MAP_CURSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "weir/base/types.h"

/*
 * Reads a hash, a trie or an array in batches. An entry that is there all the while is seen, and seen once; of the others some.
 * Deleting what was seen is fine (in a trie: after the last batch).
 */
struct map_cursor {
	int fd;
	__u32 key_size, value_size, room;
	__u32 n; /* entries in keys and values now */
	bool begun, ended;
	void *keys, *values, *token;
};

/* -ENOMEM; sizes are those of the map. Closing is by CLEANUP_CURSOR. */
int map_cursor_open(struct map_cursor *cursor, int fd, __u32 key_size, __u32 value_size);
/* 1: n entries (possibly 0); 0: there are no more; or a negative errno. */
int map_cursor_next(struct map_cursor *cursor);
void map_cursor_close(struct map_cursor *cursor);
#define CLEANUP_CURSOR __attribute__((cleanup(map_cursor_close)))

/* Does this entry go? */
typedef bool map_test(const void *key, const void *value, const void *arg);
/* Keys that are not there are as good as dropped. What deleting one failed with. */
int map_drop_keys(int fd, const void *keys, size_t n, __u32 key_size);
/* Drops what the test says of a hash, and of a trie, which takes a list of these. -ENOMEM, or what deleting one failed with. */
int map_drop_if(int fd, __u32 key_size, __u32 value_size, map_test *goes, const void *arg);
int map_drop_of_trie_if(int fd, __u32 key_size, __u32 value_size, map_test *goes, const void *arg);

#endif
