/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs have counted. */
#include <errno.h>
#include <string.h>

#include "weir/limit/penalty.h"

#include "datapath/map_cursor.h"
#include "datapath/private.h"

/* Of each counter that stands for several: which. */
static const enum weir_reason together[][WEIR_TOGETHER_MAX] = {
#define X(name, first, second, third) [WEIR_##name - WEIR_REASON_COUNT] = { WEIR_##first, WEIR_##second, WEIR_##third },
	WEIR_TOGETHER(X)
#undef X
};

static void counter_add(__u64 sums[static WEIR_REASON_COUNT], __u32 counter, __u64 n)
{
	if (counter < WEIR_REASON_COUNT) {
		sums[counter] += n;
		return;
	}
	for (int i = 0; i < WEIR_TOGETHER_MAX; i++)
		sums[together[counter - WEIR_REASON_COUNT][i]] += n;
}

/* Those of a server stand one behind the other: all are read by one call. */
int datapath_counters(struct datapath *dp, __u32 slot, __u64 *counters, struct error *err)
{
	CLEANUP_FREE __u64 *each = calloc((size_t)dp->cpus * WEIR_COUNTER_COUNT, sizeof(*each));
	__u32 before = slot * WEIR_COUNTER_COUNT - 1, last, keys[WEIR_COUNTER_COUNT], n = WEIR_COUNTER_COUNT;
	__u64 sums[WEIR_REASON_COUNT] = {};

	if (!each)
		return error_set(err, -ENOMEM, "out of memory");
	if (bpf_map_lookup_batch(dp->maps.counters, slot ? &before : NULL, &last, keys, each, &n, NULL))
		return datapath_map_failed(err, -errno, "counters");
	for (__u32 counter = 0; counter < WEIR_COUNTER_COUNT; counter++)
		for (int cpu = 0; cpu < dp->cpus; cpu++)
			counter_add(sums, counter, each[(size_t)counter * dp->cpus + cpu]);
	memcpy(counters, sums, sizeof(sums));
	return 0;
}

int datapath_counters_clear(struct datapath *dp, __u32 slot, struct error *err)
{
	CLEANUP_FREE __u64 *zeros = calloc(dp->cpus, sizeof(*zeros));

	if (!zeros)
		return error_set(err, -ENOMEM, "out of memory");
	for (__u32 counter = 0; counter < WEIR_COUNTER_COUNT; counter++) {
		__u32 index = slot * WEIR_COUNTER_COUNT + counter;

		if (bpf_map_update_elem(dp->maps.counters, &index, zeros, BPF_ANY))
			return datapath_map_failed(err, -errno, "counters");
	}
	return 0;
}

static __u64 refusals(const struct datapath_subject_use *use)
{
	return use->shed + use->dry_run_shed;
}

/* Keeps the list sorted and at most n long; returns its new length. */
static size_t top_insert(struct datapath_subject_use *top, size_t used, size_t n,
			 const struct datapath_subject_use *use)
{
	size_t at = used;

	while (at && refusals(&top[at - 1]) < refusals(use))
		at--;
	if (at == n)
		return used;
	if (used < n)
		used++;
	memmove(&top[at + 1], &top[at], (used - at - 1) * sizeof(*top));
	top[at] = *use;
	return used;
}

static int top_of_limit(struct datapath *dp, __u32 server, __u32 slot, struct datapath_subject_use *top, size_t *used,
			size_t n)
{
	CLEANUP_CLOSE int fd = datapath_buckets_open(dp, weir_limit_index(server, slot));
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	ret = map_cursor_open(&cursor, fd, sizeof(__u64), sizeof(struct weir_kept));
	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_kept *kept = cursor.values;
		const __u64 *subjects = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n; i++) {
			struct datapath_subject_use use = {
				.slot = slot,
				.subject = subjects[i],
				.passed = kept[i].bucket.passed,
				.shed = kept[i].bucket.shed,
				.dry_run_shed = kept[i].bucket.watched,
			};

			if (refusals(&use))
				*used = top_insert(top, *used, n, &use);
		}
	}
	return ret;
}

/* `total` has no subjects to compare: its count is WEIR_SHED_TOTAL. */
int datapath_top(struct datapath *dp, __u32 server, struct datapath_subject_use *top, size_t n, struct error *err)
{
	size_t used = 0;
	int ret = 0;

	for (__u32 slot = WEIR_BUILTIN_TOTAL + 1; slot < WEIR_SERVER_LIMITS && !ret && n; slot++)
		ret = top_of_limit(dp, server, slot, top, &used, n);
	return ret ? datapath_map_failed(err, ret, "buckets") : (int)used;
}
