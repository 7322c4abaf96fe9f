/* SPDX-License-Identifier: GPL-2.0 */
#include "datapath/map_sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* What is wanted, by key: places in the arrays. */
struct index {
	const struct map_range *range;
	const struct map_entries *wanted;
	size_t *places;
	bool *seen; /* by place */
	size_t n;
};

static const char *key_at(const struct index *index, size_t place)
{
	return (const char *)index->wanted->keys + place * index->range->key_size;
}

static const char *value_at(const struct index *index, size_t place)
{
	return (const char *)index->wanted->values + place * index->range->value_size;
}

static int compare_places(const void *a, const void *b, void *arg)
{
	size_t left = *(const size_t *)a, right = *(const size_t *)b;
	const struct index *index = arg;
	int order = memcmp(key_at(index, left), key_at(index, right), index->range->key_size);

	return order ? order : left < right ? -1 : left > right;
}

static int index_make(struct index *index)
{
	size_t n = index->wanted->n, unique = 0;

	index->places = calloc(n + 1, sizeof(*index->places));
	index->seen = calloc(n + 1, sizeof(*index->seen));
	if (!index->places || !index->seen)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		index->places[i] = i;
	qsort_r(index->places, n, sizeof(*index->places), compare_places, index);
	for (size_t i = 0; i < n; i++) {
		bool again = unique && !memcmp(key_at(index, index->places[unique - 1]),
					       key_at(index, index->places[i]), index->range->key_size);

		index->places[again ? unique - 1 : unique++] = index->places[i];
	}
	index->n = unique;
	return 0;
}

static void index_clear(struct index *index)
{
	free(index->places);
	free(index->seen);
}
#define CLEANUP_INDEX __attribute__((cleanup(index_clear)))

/* Its place, or -1. */
static ssize_t index_find(const struct index *index, const void *key)
{
	size_t low = 0, high = index->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = memcmp(key, key_at(index, index->places[middle]), index->range->key_size);

		if (!order)
			return index->places[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

/* --- differences */

void map_diff_clear(struct map_diff *diff)
{
	free(diff->put_keys);
	free(diff->put_values);
	free(diff->gone);
	*diff = (struct map_diff){};
}

static void note_put(const struct map_range *range, struct map_diff *diff, const void *key, const void *value)
{
	memcpy(diff->put_keys + diff->n_put * range->key_size, key, range->key_size);
	memcpy(diff->put_values + diff->n_put * range->value_size, value, range->value_size);
	diff->n_put++;
}

static int note_gone(const struct map_range *range, struct map_diff *diff, const void *key)
{
	char *grown = array_grow(diff->gone, diff->n_gone, range->key_size);

	if (!grown)
		return -ENOMEM;
	diff->gone = grown;
	memcpy(diff->gone + diff->n_gone++ * range->key_size, key, range->key_size);
	diff->changes.dropped++;
	return 0;
}

/* value: room for one */
static int look_at(const struct index *index, const void *key, const void *there, void *value, struct map_diff *diff)
{
	const struct map_range *range = index->range;
	ssize_t place = index_find(index, key);

	if (place < 0)
		return note_gone(range, diff, key);
	if (index->seen[place])
		return 0;
	index->seen[place] = true;
	if (range->become)
		range->become(key, there, value_at(index, place), value);
	else
		memcpy(value, value_at(index, place), range->value_size);
	if (!memcmp(value, there, range->value_size))
		return 0;
	diff->changes.changed++;
	note_put(range, diff, key, value);
	return 0;
}

static int look_at_all(const struct index *index, struct map_diff *diff)
{
	const struct map_range *range = index->range;
	CLEANUP_CURSOR struct map_cursor cursor = {};
	CLEANUP_FREE void *value = malloc(range->value_size);
	int ret = value ? map_cursor_open(&cursor, range->fd, range->key_size, range->value_size) : -ENOMEM;

	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		ret = 0;
		for (__u32 i = 0; i < cursor.n && !ret; i++) {
			const char *key = (char *)cursor.keys + i * range->key_size;
			const char *there = (char *)cursor.values + i * range->value_size;

			if (!range->ours || range->ours(key, there, range->arg))
				ret = look_at(index, key, there, value, diff);
		}
	}
	return ret;
}

int map_compare(const struct map_range *range, const struct map_entries *wanted, struct map_diff *out)
{
	CLEANUP_INDEX struct index index = { .range = range, .wanted = wanted };
	struct map_diff diff = { .put_keys = calloc(wanted->n + 1, range->key_size),
				 .put_values = calloc(wanted->n + 1, range->value_size) };
	int ret = diff.put_keys && diff.put_values ? index_make(&index) : -ENOMEM;

	if (!ret)
		ret = look_at_all(&index, &diff);
	for (size_t i = 0; i < index.n && !ret; i++) {
		size_t place = index.places[i];

		if (index.seen[place])
			continue;
		diff.changes.added++;
		note_put(range, &diff, key_at(&index, place), value_at(&index, place));
	}
	if (ret) {
		map_diff_clear(&diff);
		return ret;
	}
	*out = diff;
	return 0;
}

/* --- writing */

void map_count(struct datapath *dp, const struct map_range *range, const struct map_diff *diff)
{
	struct datapath_changes *written = &dp->written.of[range->part];

	written->added += diff->changes.added;
	written->changed += diff->changes.changed;
	written->dropped += diff->changes.dropped;
}

int map_put_all(const struct map_range *range, const struct map_diff *diff)
{
	int ret = 0;

	for (size_t i = 0; i < diff->n_put && !ret; i++)
		ret = bpf_map_update_elem(range->fd, diff->put_keys + i * range->key_size,
					  diff->put_values + i * range->value_size, BPF_ANY);
	return ret;
}

int map_put(struct datapath *dp, const struct map_range *range, const struct map_diff *diff)
{
	map_count(dp, range, diff);
	return map_put_all(range, diff);
}

int map_sync(struct datapath *dp, const struct map_range *range, const struct map_entries *wanted)
{
	CLEANUP_DIFF struct map_diff diff = {};
	int ret = map_compare(range, wanted, &diff) ?: map_put(dp, range, &diff);
	bool full = ret == -E2BIG || ret == -ENOSPC; /* a hash; a trie */

	if (ret && !full)
		return ret;
	ret = map_drop_keys(range->fd, diff.gone, diff.n_gone, range->key_size);
	return ret || !full ? ret : map_put_all(range, &diff);
}
