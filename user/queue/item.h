/* SPDX-License-Identifier: GPL-2.0 */
/* A work queue's keys, and what is known of each. Not locked here. */
#ifndef WEIR_USER_QUEUE_ITEM_H
#define WEIR_USER_QUEUE_ITEM_H

#include <sys/queue.h>

#include "weir/limit/backoff.h"

#include "queue/heap.h"

struct item {
	struct workqueue_entry entry; /* where it waits for its time */
	TAILQ_ENTRY(item) link;	      /* in the queue (dirty and not processing), or with those in work (processing) */
	bool dirty, processing;
	__u64 added_ns, started_ns; /* while it is dirty, while it is processing */
	struct weir_backoff_state state;
	char key[];
};
TAILQ_HEAD(items, item);

struct item *item_of_entry(struct workqueue_entry *entry);

/* keys: the root of a tree (tsearch), NULL at first. NULL: it is not there. */
struct item *item_find(void *const *keys, const char *key);

/* The one that is there, or a new one; NULL without memory. */
struct item *item_make(void **keys, const char *key);

/* Frees it, if nothing is left to be known of it. */
void item_settle(void **keys, struct item *item);

void items_free(void *keys);

#endif
