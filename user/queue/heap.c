/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "queue/heap.h"

static bool before(const struct workqueue_entry *a, const struct workqueue_entry *b)
{
	return a->ready_ns == b->ready_ns ? a->order < b->order : a->ready_ns < b->ready_ns;
}

static struct workqueue_entry *at(const struct workqueue_heap *heap, size_t place)
{
	return heap->entries[place - 1];
}

static void put(struct workqueue_heap *heap, struct workqueue_entry *entry, size_t place)
{
	heap->entries[place - 1] = entry;
	entry->place = place;
}

static void rise(struct workqueue_heap *heap, struct workqueue_entry *entry, size_t place)
{
	for (; place > 1 && before(entry, at(heap, place / 2)); place /= 2)
		put(heap, at(heap, place / 2), place);
	put(heap, entry, place);
}

static void sink(struct workqueue_heap *heap, struct workqueue_entry *entry, size_t place)
{
	for (size_t child; (child = 2 * place) <= heap->n; place = child) {
		if (child < heap->n && before(at(heap, child + 1), at(heap, child)))
			child++;
		if (!before(at(heap, child), entry))
			break;
		put(heap, at(heap, child), place);
	}
	put(heap, entry, place);
}

static int make_room(struct workqueue_heap *heap)
{
	size_t room = heap->room ? 2 * heap->room : 16;
	void *entries;

	if (heap->n < heap->room)
		return 0;
	entries = reallocarray(heap->entries, room, sizeof(*heap->entries));
	if (!entries)
		return -ENOMEM;
	heap->entries = entries;
	heap->room = room;
	return 0;
}

int workqueue_heap_add(struct workqueue_heap *heap, struct workqueue_entry *entry, __u64 ready_ns)
{
	if (entry->place) {
		if (ready_ns < entry->ready_ns) {
			entry->ready_ns = ready_ns;
			rise(heap, entry, entry->place);
		}
		return 0;
	}
	if (make_room(heap))
		return -ENOMEM;
	entry->ready_ns = ready_ns;
	entry->order = heap->added++;
	rise(heap, entry, ++heap->n);
	return 0;
}

void workqueue_heap_remove(struct workqueue_heap *heap, struct workqueue_entry *entry)
{
	struct workqueue_entry *last = at(heap, heap->n--);
	size_t place = entry->place;

	entry->place = 0;
	if (last == entry)
		return;
	if (before(last, entry))
		rise(heap, last, place);
	else
		sink(heap, last, place);
}

struct workqueue_entry *workqueue_heap_first(const struct workqueue_heap *heap)
{
	return heap->n ? at(heap, 1) : NULL;
}

bool workqueue_heap_has(const struct workqueue_entry *entry)
{
	return entry->place;
}

void workqueue_heap_free(struct workqueue_heap *heap)
{
	free(heap->entries);
	*heap = (struct workqueue_heap){};
}
