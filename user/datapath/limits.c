/* SPDX-License-Identifier: GPL-2.0 */
/* Limits of servers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weir/limit/penalty.h"

#include "datapath/map_cursor.h"
#include "datapath/private.h"

struct weir_amount datapath_amount_pushed(const struct weir_amount *before, const struct datapath_amount *wanted,
					  enum datapath_generations whose)
{
	struct weir_amount amount = *before;
	struct weir_rate *newest = &amount.history.rates[0];

	if (!wanted->set) {
		amount.flags &= ~WEIR_LIMIT_SET;
		return amount;
	}
	amount.flags = WEIR_LIMIT_SET | (wanted->deny ? WEIR_LIMIT_DENY : 0);
	amount.seats = wanted->seats;
	weir_rate_history_push(&amount.history, wanted->per_ns, wanted->burst, datapath_now_ns());
	if (memcmp(newest, before->history.rates, sizeof(*newest)))
		newest->generation = (newest->generation % DATAPATH_OF_OVERRIDE ?: 1) | whose;
	return amount;
}

static struct weir_limit limit_changed(__u32 index, const struct weir_limit *before,
				       const struct datapath_limit *wanted)
{
	struct weir_limit limit = {
		.terms = {
			.groups = wanted->groups,
			.flags = wanted->flags | (wanted->penalty.parts ? WEIR_LIMIT_PENALISES : 0) |
				 (before->terms.flags & WEIR_LIMIT_OVERRIDDEN),
			.epoch = wanted->epoch,
			.reason = wanted->reason,
			.kind = wanted->kind,
			.key = wanted->key,
			.amount = datapath_amount_pushed(&before->terms.amount, &wanted->amount, DATAPATH_OF_LIMIT),
		},
		.penalty = wanted->penalty,
	};

	limit.terms.amount.seal = weir_terms_seal(&limit.terms, index);
	limit.penalty_seal = weir_backoff_seal(&limit.penalty, index);
	return limit;
}

static __u32 limit_traits(const struct weir_limit *limit)
{
	const struct weir_terms *terms = &limit->terms;

	return (terms->kind == WEIR_LIMIT_IN_FLIGHT ? WEIR_SERVER_IN_FLIGHT : 0) |
	       (weir_limit_is_of_connections(terms->kind) ? WEIR_SERVER_CONNECTIONS : 0) |
	       (terms->key & WEIR_KEY_OBJECT ? WEIR_SERVER_OBJECTS : 0) |
	       (terms->key & WEIR_KEY_SOURCE ? WEIR_SERVER_SOURCES : 0) |
	       (limit->penalty.parts ? WEIR_SERVER_PENALTIES : 0);
}

/* The limits of a server, by slot; those that it does not have are all 0. Few are there to be read. */
struct limits {
	bool there[WEIR_SERVER_LIMITS];
	__u32 traits; /* enum weir_server_traits: of all of them */
};

static int limits_read(struct datapath *dp, __u32 server, struct limits *out)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	struct limits limits = {};
	int ret = map_cursor_open(&cursor, dp->maps.limits, sizeof(__u32), sizeof(struct weir_limit));

	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_limit *values = cursor.values;
		const __u32 *indices = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n; i++) {
			__u32 slot = indices[i] - weir_limit_index(server, 0);

			if (slot >= WEIR_SERVER_LIMITS)
				continue;
			limits.there[slot] = true;
			limits.traits |= limit_traits(&values[i]);
			limits.traits |= slot < WEIR_BUILTIN_LIMITS ? WEIR_SERVER_LIMITED << slot : 0;
		}
	}
	if (!ret)
		*out = limits;
	return ret;
}

/* What the limits that a server has ask for. */
static int traits_refresh(struct datapath *dp, __u32 server, struct error *err)
{
	struct weir_server value;
	struct limits limits;
	int ret = datapath_server_read(dp, server, &value, err);

	if (ret)
		return ret;
	ret = limits_read(dp, server, &limits);
	if (ret)
		return datapath_map_failed(err, ret, "limits");
	if (value.traits == limits.traits)
		return 0;
	value.traits = limits.traits;
	return datapath_server_write(dp, server, &value, err);
}

int datapath_limits_changed(struct datapath *dp, struct error *err)
{
	__u64 changes = 0;
	__u32 zero = 0;

	if (bpf_map_lookup_elem(dp->maps.limit_changes, &zero, &changes))
		return datapath_map_failed(err, -errno, "limit_changes");
	changes++;
	if (bpf_map_update_elem(dp->maps.limit_changes, &zero, &changes, BPF_ANY))
		return datapath_map_failed(err, -errno, "limit_changes");
	return 0;
}

static int limit_write(struct datapath *dp, __u32 index, const struct datapath_limit *wanted, struct error *err)
{
	struct datapath_changes *written = &dp->written.of[DATAPATH_limits];
	struct weir_limit old = {}, limit;
	bool there = !bpf_map_lookup_elem(dp->maps.limits, &index, &old);
	int ret;

	limit = limit_changed(index, &old, wanted);
	if (there && !memcmp(&limit, &old, sizeof(limit)))
		return 0;
	*(there ? &written->changed : &written->added) += 1;
	if (bpf_map_update_elem(dp->maps.limits, &index, &limit, BPF_ANY))
		return datapath_map_failed(err, -errno, "limits");
	ret = datapath_limits_changed(dp, err);
	if (ret)
		return ret;
	ret = datapath_buckets_tidy(dp, index);
	return ret ? datapath_map_failed(err, ret, "buckets") : 0;
}

int datapath_limit_set(struct datapath *dp, __u32 server, __u32 slot, const struct datapath_limit *limit,
		       struct error *err)
{
	__u32 index = weir_limit_index(server, slot);
	int ret = datapath_buckets_ensure(dp, index, limit->keys, err)	    ?:
			  datapath_refusal_set(dp, index, limit->name, err) ?:
									      limit_write(dp, index, limit, err);

	if (ret)
		return ret;
	if (limit->penalty.parts & WEIR_BACKOFF_BUCKET)
		ret = datapath_penalty_bucket_make(dp, index);
	return ret ? datapath_map_failed(err, ret, "buckets") : traits_refresh(dp, server, err);
}

static int counts_clear(struct datapath *dp, __u32 limit)
{
	CLEANUP_FREE struct weir_limit_counts *none = calloc(dp->cpus, sizeof(*none));

	if (!none)
		return -ENOMEM;
	return bpf_map_update_elem(dp->maps.limit_counts, &limit, none, BPF_ANY);
}

int datapath_limit_counts(struct datapath *dp, __u32 server, __u32 slot, struct weir_limit_counts *counts,
			  struct error *err)
{
	CLEANUP_FREE struct weir_limit_counts *of_cpus = calloc(dp->cpus, sizeof(*of_cpus));
	__u32 index = weir_limit_index(server, slot);
	struct weir_limit_counts sum = {};

	if (!of_cpus)
		return error_set(err, -ENOMEM, "out of memory");
	if (bpf_map_lookup_elem(dp->maps.limit_counts, &index, of_cpus))
		return datapath_map_failed(err, -errno, "limit_counts");
	for (int i = 0; i < dp->cpus; i++) {
		sum.admitted += of_cpus[i].admitted;
		sum.refused += of_cpus[i].refused;
		sum.dry_run_refused += of_cpus[i].dry_run_refused;
		if (of_cpus[i].highest > sum.highest)
			sum.highest = of_cpus[i].highest;
	}
	*counts = sum;
	return 0;
}

/* Requests that the limit has admitted keep seats that nobody counts any more. */
static int limit_drop(struct datapath *dp, __u32 index, struct error *err)
{
	int ret = bpf_map_delete_elem(dp->maps.limits, &index);

	if (ret && ret != -ENOENT)
		return datapath_map_failed(err, ret, "limits");
	dp->written.of[DATAPATH_limits].dropped += !ret;
	ret = datapath_limits_changed(dp, err);
	if (ret)
		return ret;
	ret = datapath_overrides_drop(dp, index);
	if (ret)
		return datapath_map_failed(err, ret, "overrides");
	ret = datapath_refusal_set(dp, index, "", err);
	if (ret)
		return ret;
	ret = datapath_buckets_remove(dp, index);
	if (ret)
		return datapath_map_failed(err, ret, "buckets");
	ret = datapath_in_flight_clear(dp, index);
	if (ret)
		return datapath_map_failed(err, ret, "in_flight");
	ret = bpf_map_update_elem(dp->maps.newcomers, &index, &(struct weir_bucket){}, BPF_ANY);
	if (ret)
		return datapath_map_failed(err, ret, "newcomers");
	ret = counts_clear(dp, index);
	return ret ? datapath_map_failed(err, ret, "limit_counts") : 0;
}

int datapath_limit_delete(struct datapath *dp, __u32 server, __u32 slot, struct error *err)
{
	return limit_drop(dp, weir_limit_index(server, slot), err) ?: traits_refresh(dp, server, err);
}

int datapath_limits_keep(struct datapath *dp, __u32 server, const struct datapath_slots *slots, struct error *err)
{
	struct limits limits;
	int ret = limits_read(dp, server, &limits);

	if (ret)
		return datapath_map_failed(err, ret, "limits");
	for (__u32 slot = 0; slot < WEIR_SERVER_LIMITS && !ret; slot++) {
		if (limits.there[slot] && !datapath_slots_have(slots, slot))
			ret = limit_drop(dp, weir_limit_index(server, slot), err);
	}
	return ret ?: traits_refresh(dp, server, err);
}

int datapath_limits_clear(struct datapath *dp, __u32 server, struct error *err)
{
	struct limits limits;
	int ret = limits_read(dp, server, &limits);

	if (ret)
		return datapath_map_failed(err, ret, "limits");
	for (__u32 slot = 0; slot < WEIR_SERVER_LIMITS && !ret; slot++) {
		if (limits.there[slot])
			ret = limit_drop(dp, weir_limit_index(server, slot), err);
	}
	return ret;
}
