/* SPDX-License-Identifier: GPL-2.0 */
/* A heap of items that wait for a time, the earliest first. Items of the same time keep the order in which they were added. */
#ifndef WEIR_USER_QUEUE_HEAP_H
#define WEIR_USER_QUEUE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include "weir/base/types.h"

/* The owner's; all zero: in no heap. */
struct workqueue_entry {
	__u64 ready_ns;
	__u64 order;
	size_t place; /* in the heap, from 1 */
};

/* All zero: empty. */
struct workqueue_heap {
	struct workqueue_entry **entries; /* the one at place p is entries[p - 1] */
	size_t n, room;
	__u64 added;
};

/* One that is there already keeps the earlier time. -ENOMEM: as it was. */
int workqueue_heap_add(struct workqueue_heap *heap, struct workqueue_entry *entry, __u64 ready_ns);

/* The entry has to be there. */
void workqueue_heap_remove(struct workqueue_heap *heap, struct workqueue_entry *entry);

/* NULL: empty. */
struct workqueue_entry *workqueue_heap_first(const struct workqueue_heap *heap);

bool workqueue_heap_has(const struct workqueue_entry *entry);

/* Not the entries. */
void workqueue_heap_free(struct workqueue_heap *heap);

#endif
