/* SPDX-License-Identifier: GPL-2.0 */
/* Limits, their overrides for single subjects, and the maps of their buckets. */
#include <bpf/btf.h>
#include <errno.h>
#include <string.h>

#include "datapath_private.h"
#include "weir.skel.h"

#define LRU_SPARE_PER_CPU 128 /* entries that each CPU keeps for itself, out of the others' reach */

/* --- the map of a limit's buckets */

/* A descriptor that the caller closes, or -ENOENT. */
static int buckets_open(struct datapath *dp, __u32 limit)
{
	__u32 id;

	if (bpf_map_lookup_elem(dp->maps.buckets, &limit, &id))
		return -errno;
	return bpf_map_get_fd_by_id(id);
}

/* With types, as the prototype in the object has them: Linux 6.1 takes no map that differs in what they led it to find. */
static int buckets_make(struct datapath *dp, __u32 limit, __u32 keys)
{
	const struct btf *btf = bpf_object__btf(dp->skeleton->obj);
	DECLARE_LIBBPF_OPTS(bpf_map_create_opts, types, .btf_fd = btf__fd(btf),
			    .btf_key_type_id = btf__find_by_name_kind(btf, "__u64", BTF_KIND_TYPEDEF),
			    .btf_value_type_id = btf__find_by_name_kind(btf, "weir_bucket", BTF_KIND_STRUCT));
	__u32 room = keys + keys / 4 + LRU_SPARE_PER_CPU * dp->cpus;
	CLEANUP_CLOSE int fd = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "weir_buckets", sizeof(__u64),
					      sizeof(struct weir_bucket), room, &types);

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

static bool limit_exists(struct datapath *dp, __u32 limit)
{
	struct weir_limit value;

	return !bpf_map_lookup_elem(dp->maps.limits, &limit, &value) && (value.flags & WEIR_LIMIT_SET);
}

static struct weir_override_key override_key(__u32 limit, __u64 subject)
{
	return (struct weir_override_key){ .limit = limit, .subject = subject };
}

static bool override_exists(struct datapath *dp, __u32 limit, __u64 subject)
{
	struct weir_override_key key = override_key(limit, subject);
	struct weir_limit value;

	return !bpf_map_lookup_elem(dp->maps.overrides, &key, &value);
}

/* Calls each(dp, key) for the overrides of one limit; until one returns other than 0, which is returned. */
static int overrides_each(struct datapath *dp, __u32 limit,
			  int (*each)(struct datapath *dp, const struct weir_override_key *key))
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret = map_cursor_open(&cursor, dp->maps.overrides, sizeof(struct weir_override_key),
				  sizeof(struct weir_limit));

	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_override_key *keys = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n && !ret; i++) {
			if (keys[i].limit == limit)
				ret = each(dp, &keys[i]);
		}
	}
	return ret;
}

static int override_found(struct datapath *dp, const struct weir_override_key *key)
{
	(void)dp;
	(void)key;
	return 1;
}

static int override_drop(struct datapath *dp, const struct weir_override_key *key)
{
	int ret = bpf_map_delete_elem(dp->maps.overrides, key);

	return ret == -ENOENT ? 0 : ret;
}

/* After a limit is gone: its subjects start full should it come back; those with an override keep what they have. */
static int buckets_prune(struct datapath *dp, __u32 limit)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	CLEANUP_CLOSE int fd = buckets_open(dp, limit);
	int ret;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	ret = map_cursor_open(&cursor, fd, sizeof(__u64), sizeof(struct weir_bucket));
	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const __u64 *subjects = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n; i++) {
			if (!override_exists(dp, limit, subjects[i]))
				bpf_map_delete_elem(fd, &subjects[i]);
		}
	}
	return ret;
}

/* Drops the buckets that nothing limits any more. */
static int buckets_tidy(struct datapath *dp, __u32 limit)
{
	int ret;

	if (limit_exists(dp, limit))
		return 0;
	ret = overrides_each(dp, limit, override_found);
	if (ret < 0)
		return ret;
	return ret ? buckets_prune(dp, limit) : buckets_remove(dp, limit);
}

static struct weir_limit limit_pushed(const struct weir_limit *before, __u64 per_ns, __u64 burst)
{
	struct weir_limit limit = *before;

	limit.flags |= WEIR_LIMIT_SET;
	weir_rate_history_push(&limit.history, per_ns, burst, datapath_now_ns());
	return limit;
}

int datapath_limit_set(struct datapath *dp, __u32 slot, enum weir_limit_type type, __u64 per_ns, __u64 burst,
		       __u32 keys, struct error *err)
{
	__u32 index = weir_limit_index(slot, type);
	struct weir_limit old = {}, limit;
	int ret = buckets_ensure(dp, index, keys, err);

	if (ret)
		return ret;
	bpf_map_lookup_elem(dp->maps.limits, &index, &old);
	limit = limit_pushed(&old, per_ns, burst);
	if (memcmp(&limit, &old, sizeof(limit)) && bpf_map_update_elem(dp->maps.limits, &index, &limit, BPF_ANY))
		return datapath_map_failed(err, -errno, "limits");
	return 0;
}

int datapath_limit_delete(struct datapath *dp, __u32 slot, enum weir_limit_type type, struct error *err)
{
	__u32 index = weir_limit_index(slot, type);
	int ret = bpf_map_delete_elem(dp->maps.limits, &index);

	if (ret && ret != -ENOENT)
		return datapath_map_failed(err, ret, "limits");
	ret = buckets_tidy(dp, index);
	return ret ? datapath_map_failed(err, ret, "buckets") : 0;
}

/* A new override goes on from the rates that the subject had until now. */
int datapath_override_set(struct datapath *dp, __u32 slot, enum weir_limit_type type, __u64 subject, __u64 per_ns,
			  __u64 burst, struct error *err)
{
	__u32 index = weir_limit_index(slot, type);
	struct weir_override_key key = override_key(index, subject);
	struct weir_limit old = {}, limit;
	bool there = !bpf_map_lookup_elem(dp->maps.overrides, &key, &old);
	int ret = buckets_ensure(dp, index, 0, err);

	if (ret)
		return ret;
	if (!there)
		bpf_map_lookup_elem(dp->maps.limits, &index, &old);
	limit = limit_pushed(&old, per_ns, burst);
	if (there && !memcmp(&limit, &old, sizeof(limit)))
		return 0;
	if (bpf_map_update_elem(dp->maps.overrides, &key, &limit, BPF_ANY))
		return datapath_map_failed(err, -errno, "overrides");
	return 0;
}

/* The bucket gets what it gained at the override's rate before the default's takes its place. */
int datapath_override_delete(struct datapath *dp, __u32 slot, enum weir_limit_type type, __u64 subject,
			     struct error *err)
{
	__u32 index = weir_limit_index(slot, type);
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

int datapath_limit_clear(struct datapath *dp, __u32 limit, struct error *err)
{
	int ret = bpf_map_delete_elem(dp->maps.limits, &limit);

	if (ret && ret != -ENOENT)
		return datapath_map_failed(err, ret, "limits");
	ret = overrides_each(dp, limit, override_drop);
	if (ret)
		return datapath_map_failed(err, ret, "overrides");
	ret = buckets_remove(dp, limit);
	if (ret)
		return datapath_map_failed(err, ret, "buckets");
	ret = bpf_map_update_elem(dp->maps.newcomers, &limit, &(struct weir_bucket){}, BPF_ANY);
	return ret ? datapath_map_failed(err, ret, "newcomers") : 0;
}
