/* SPDX-License-Identifier: GPL-2.0 */
/* Limits, their overrides for single subjects, and the maps of their buckets. */
#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath_private.h"
#include "privilege.h"
#include "weir.skel.h"

#define LRU_SPARE_PER_CPU 128 /* entries that each CPU keeps for itself, out of the others' reach */

/* --- the map of a limit's buckets */

int datapath_map_by_id(__u32 id)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_MAP);

	return bpf_map_get_fd_by_id(id);
}

/* A descriptor that the caller closes, or -ENOENT. */
static int buckets_open(struct datapath *dp, __u32 limit)
{
	__u32 id;

	if (bpf_map_lookup_elem(dp->maps.buckets, &limit, &id))
		return -errno;
	return datapath_map_by_id(id);
}

/* With types, as the prototype in the object has them: Linux 6.1 takes no map that differs in what they led it to find. */
static int buckets_make(struct datapath *dp, __u32 limit, __u32 keys)
{
	const struct btf *btf = bpf_object__btf(dp->skeleton->obj);
	DECLARE_LIBBPF_OPTS(bpf_map_create_opts, types, .btf_fd = btf__fd(btf),
			    .btf_key_type_id = btf__find_by_name_kind(btf, "__u64", BTF_KIND_TYPEDEF),
			    .btf_value_type_id = btf__find_by_name_kind(btf, "weir_kept", BTF_KIND_STRUCT));
	__u32 room = keys + keys / 4 + LRU_SPARE_PER_CPU * dp->cpus;
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_LOAD);
	CLEANUP_CLOSE int fd = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "weir_buckets", sizeof(__u64),
					      sizeof(struct weir_kept), room, &types);

	if (fd < 0)
		return fd;
	return bpf_map_update_elem(dp->maps.buckets, &limit, &fd, BPF_ANY);
}

/* keys counts only when the map is made. */
static int buckets_ensure(struct datapath *dp, __u32 limit, __u32 keys, struct error *err)
{
	CLEANUP_CLOSE int fd = buckets_open(dp, limit);
	int ret = fd < 0 ? fd : 0;

	if (ret == -ENOENT)
		ret = buckets_make(dp, limit, keys ?: WEIR_DEFAULT_KEYS);
	return ret ? datapath_map_failed(err, ret, "buckets") : 0;
}

static int buckets_remove(struct datapath *dp, __u32 limit)
{
	int ret = bpf_map_delete_elem(dp->maps.buckets, &limit);

	return ret == -ENOENT ? 0 : ret;
}

/* --- limits and overrides */

/* Is the limit there for subjects without an override? */
static bool has_default(struct datapath *dp, __u32 limit)
{
	struct weir_limit value;

	return !bpf_map_lookup_elem(dp->maps.limits, &limit, &value) && (value.amount.flags & WEIR_LIMIT_SET);
}

static struct weir_override_key override_key(__u32 limit, __u64 subject)
{
	return (struct weir_override_key){ .limit = limit, .subject = subject };
}

static bool override_exists(struct datapath *dp, __u32 limit, __u64 subject)
{
	struct weir_override_key key = override_key(limit, subject);
	struct weir_amount value;

	return !bpf_map_lookup_elem(dp->maps.overrides, &key, &value);
}

static bool is_of_limit(const void *key, const void *value, const void *arg)
{
	const struct weir_override_key *override = key;

	(void)value;
	return override->limit == *(const __u32 *)arg;
}

static int overrides_drop(struct datapath *dp, __u32 limit)
{
	return map_drop_if(dp->maps.overrides, sizeof(struct weir_override_key), sizeof(struct weir_amount),
			   is_of_limit, &limit);
}

static int override_drop(struct datapath *dp, const struct weir_override_key *key)
{
	int ret = bpf_map_delete_elem(dp->maps.overrides, key);

	return ret == -ENOENT ? 0 : ret;
}

/* A limit that is gone. */
struct gone {
	struct datapath *dp;
	__u32 limit;
};

static bool has_no_override(const void *key, const void *value, const void *arg)
{
	const __u64 *subject = key;
	const struct gone *gone = arg;

	(void)value;
	return *subject != WEIR_SUBJECT_PENALTY && !override_exists(gone->dp, gone->limit, *subject);
}

/* After a limit is gone: its subjects start full should it come back; those with an override keep what they have. */
static int buckets_prune(struct datapath *dp, __u32 limit)
{
	CLEANUP_CLOSE int fd = buckets_open(dp, limit);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	return map_drop_if(fd, sizeof(__u64), sizeof(struct weir_kept), has_no_override, &(struct gone){ dp, limit });
}

/* Drops the buckets of subjects that nothing limits any more. */
static int buckets_tidy(struct datapath *dp, __u32 limit)
{
	return has_default(dp, limit) ? 0 : buckets_prune(dp, limit);
}

static struct weir_amount amount_pushed(const struct weir_amount *before, const struct datapath_amount *wanted)
{
	struct weir_amount amount = *before;

	if (!wanted->set) {
		amount.flags &= ~WEIR_LIMIT_SET;
		return amount;
	}
	amount.flags |= WEIR_LIMIT_SET;
	amount.places = wanted->places;
	weir_rate_history_push(&amount.history, wanted->per_ns, wanted->burst, datapath_now_ns());
	return amount;
}

static struct weir_limit limit_changed(const struct weir_limit *before, const struct datapath_limit *wanted)
{
	struct weir_limit limit = *before;

	limit.amount = amount_pushed(&before->amount, &wanted->amount);
	limit.groups = wanted->groups;
	limit.flags = wanted->flags;
	limit.epoch = wanted->epoch;
	limit.reason = wanted->reason;
	limit.kind = wanted->kind;
	limit.key = wanted->key;
	limit.penalty = wanted->penalty;
	return limit;
}

static __u32 limit_traits(const struct weir_limit *limit)
{
	return (limit->kind == WEIR_LIMIT_IN_FLIGHT ? WEIR_SERVER_IN_FLIGHT : 0) |
	       (limit->key & WEIR_KEY_OBJECT ? WEIR_SERVER_OBJECTS : 0) |
	       (limit->key & WEIR_KEY_SOURCE ? WEIR_SERVER_SOURCES : 0) |
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
			limits.traits |= slot < WEIR_LIMIT_TYPES ? WEIR_SERVER_LIMITED << slot : 0;
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

/* The shared bucket of the limit's penalties. */
static int penalty_bucket_make(struct datapath *dp, __u32 index)
{
	CLEANUP_CLOSE int fd = buckets_open(dp, index);
	const struct weir_kept none = {};
	const __u64 subject = WEIR_SUBJECT_PENALTY;

	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(fd, &subject, &none, BPF_NOEXIST) && errno != EEXIST)
		return -errno;
	return 0;
}

int datapath_limit_set(struct datapath *dp, __u32 server, __u32 slot, const struct datapath_limit *wanted,
		       struct error *err)
{
	__u32 index = weir_limit_index(server, slot);
	struct weir_limit old = {}, limit;
	int ret = buckets_ensure(dp, index, wanted->keys, err);

	if (ret)
		return ret;
	bpf_map_lookup_elem(dp->maps.limits, &index, &old);
	limit = limit_changed(&old, wanted);
	if (memcmp(&limit, &old, sizeof(limit)) && bpf_map_update_elem(dp->maps.limits, &index, &limit, BPF_ANY))
		return datapath_map_failed(err, -errno, "limits");
	ret = buckets_tidy(dp, index);
	if (!ret && (wanted->penalty.parts & WEIR_BACKOFF_BUCKET))
		ret = penalty_bucket_make(dp, index);
	return ret ? datapath_map_failed(err, ret, "buckets") : traits_refresh(dp, server, err);
}

/* A new override goes on from the rates that the subject had until now. */
int datapath_override_set(struct datapath *dp, __u32 server, __u32 slot, __u64 subject,
			  const struct datapath_amount *wanted, struct error *err)
{
	__u32 index = weir_limit_index(server, slot);
	struct weir_override_key key = override_key(index, subject);
	struct weir_amount old = {}, amount;
	bool there = !bpf_map_lookup_elem(dp->maps.overrides, &key, &old);
	struct weir_limit limit;

	if (bpf_map_lookup_elem(dp->maps.limits, &index, &limit))
		return error_set(err, -ENOENT, "the limit of an override is not there");
	if (!there)
		old = limit.amount;
	amount = amount_pushed(&old, wanted);
	if (there && !memcmp(&amount, &old, sizeof(amount)))
		return 0;
	if (bpf_map_update_elem(dp->maps.overrides, &key, &amount, BPF_ANY))
		return datapath_map_failed(err, -errno, "overrides");
	return 0;
}

/* The bucket gets what it gained at the override's rate before the default's takes its place. */
int datapath_override_delete(struct datapath *dp, __u32 server, __u32 slot, __u64 subject, struct error *err)
{
	__u32 index = weir_limit_index(server, slot);
	struct weir_override_key key = override_key(index, subject);
	struct weir_settle settle = { .limit = index, .subject = subject, .now_ns = datapath_now_ns() };
	int ret = datapath_run(dp->settle_fd, &settle, sizeof(settle));

	if (ret)
		return error_set(err, ret, "settling a bucket: %s", strerror(-ret));
	ret = override_drop(dp, &key);
	if (ret)
		return datapath_map_failed(err, ret, "overrides");
	ret = buckets_tidy(dp, index);
	return ret ? datapath_map_failed(err, ret, "buckets") : 0;
}

static int counts_clear(struct datapath *dp, __u32 limit)
{
	CLEANUP_FREE struct weir_limit_counts *none = calloc(dp->cpus, sizeof(*none));

	if (!none)
		return -ENOMEM;
	return bpf_map_update_elem(dp->maps.limit_counts, &limit, none, BPF_ANY);
}

int datapath_limit_counts(struct datapath *dp, __u32 server, __u32 slot, struct weir_limit_counts *out,
			  struct error *err)
{
	CLEANUP_FREE struct weir_limit_counts *counts = calloc(dp->cpus, sizeof(*counts));
	__u32 index = weir_limit_index(server, slot);
	struct weir_limit_counts sum = {};

	if (!counts)
		return error_set(err, -ENOMEM, "out of memory");
	if (bpf_map_lookup_elem(dp->maps.limit_counts, &index, counts))
		return datapath_map_failed(err, -errno, "limit_counts");
	for (int i = 0; i < dp->cpus; i++) {
		sum.admitted += counts[i].admitted;
		sum.refused += counts[i].refused;
		sum.dry_run_refused += counts[i].dry_run_refused;
		if (counts[i].highest > sum.highest)
			sum.highest = counts[i].highest;
	}
	*out = sum;
	return 0;
}

/* Requests that the limit has admitted go on holding places that nobody counts any more. */
static int limit_drop(struct datapath *dp, __u32 index, struct error *err)
{
	int ret = bpf_map_delete_elem(dp->maps.limits, &index);

	if (ret && ret != -ENOENT)
		return datapath_map_failed(err, ret, "limits");
	ret = overrides_drop(dp, index);
	if (ret)
		return datapath_map_failed(err, ret, "overrides");
	ret = buckets_remove(dp, index);
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
