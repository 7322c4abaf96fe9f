/* SPDX-License-Identifier: GPL-2.0 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "queue/item.h"

static int compare_keys(const void *a, const void *b)
{
	return strcmp(a, b);
}

static struct item *item_of_key(char *key)
{
	return (struct item *)(key - offsetof(struct item, key));
}

struct item *item_of_entry(struct workqueue_entry *entry)
{
	return (struct item *)((char *)entry - offsetof(struct item, entry));
}

struct item *item_find(void *const *keys, const char *key)
{
	char **found = tfind(key, keys, compare_keys);

	return found ? item_of_key(*found) : NULL;
}

struct item *item_make(void **keys, const char *key)
{
	struct item *item = item_find(keys, key);
	size_t size = strlen(key) + 1;

	if (item)
		return item;
	item = calloc(1, sizeof(*item) + size);
	if (!item)
		return NULL;
	memcpy(item->key, key, size);
	if (!tsearch(item->key, keys, compare_keys)) {
		free(item);
		return NULL;
	}
	return item;
}

void item_settle(void **keys, struct item *item)
{
	if (item->dirty || item->processing || item->state.failures || workqueue_heap_has(&item->entry))
		return;
	tdelete(item->key, keys, compare_keys);
	free(item);
}

static void free_key(void *key)
{
	free(item_of_key(key));
}

void items_free(void *keys)
{
	tdestroy(keys, free_key);
}
