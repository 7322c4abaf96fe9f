/* SPDX-License-Identifier: GPL-2.0 */
/* The buckets of limits: a map for each. */
#include <bpf/btf.h>
#include <errno.h>

#include "weir/limit/penalty.h"

#include "datapath/map_cursor.h"
#include "datapath/private.h"
#include "sys/privilege.h"
#include "weir.skel.h"

#define LRU_SPARE_PER_CPU 128 /* entries that each CPU keeps for itself, out of the others' reach */

int datapath_map_by_id(__u32 id)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_MAP);

	return bpf_map_get_fd_by_id(id);
}

int datapath_buckets_open(struct datapath *dp, __u32 limit)
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
	LIBBPF_OPTS(bpf_map_create_opts, types, .btf_fd = btf__fd(btf),
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

int datapath_buckets_ensure(struct datapath *dp, __u32 limit, __u32 keys, struct error *err)
{
	CLEANUP_CLOSE int fd = datapath_buckets_open(dp, limit);
	int ret = fd < 0 ? fd : 0;

	if (ret == -ENOENT) {
		dp->written.of[DATAPATH_buckets].added++;
		ret = buckets_make(dp, limit, keys ?: WEIR_DEFAULT_KEYS);
	}
	return ret ? datapath_map_failed(err, ret, "buckets") : 0;
}

int datapath_buckets_remove(struct datapath *dp, __u32 limit)
{
	int ret = bpf_map_delete_elem(dp->maps.buckets, &limit);

	return ret == -ENOENT ? 0 : ret;
}

/* Is the limit there for subjects without an override? */
static bool has_default(struct datapath *dp, __u32 limit)
{
	struct weir_limit value;

	return !bpf_map_lookup_elem(dp->maps.limits, &limit, &value) && (value.terms.amount.flags & WEIR_LIMIT_SET);
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
	return *subject != WEIR_SUBJECT_PENALTY && !datapath_override_exists(gone->dp, gone->limit, *subject);
}

/* After a limit is gone: its subjects start full should it come back; those with an override keep what they have. */
static int buckets_prune(struct datapath *dp, __u32 limit)
{
	CLEANUP_CLOSE int fd = datapath_buckets_open(dp, limit);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	return map_drop_if(fd, sizeof(__u64), sizeof(struct weir_kept), has_no_override, &(struct gone){ dp, limit });
}

int datapath_buckets_tidy(struct datapath *dp, __u32 limit)
{
	return has_default(dp, limit) ? 0 : buckets_prune(dp, limit);
}

int datapath_penalty_bucket_make(struct datapath *dp, __u32 limit)
{
	CLEANUP_CLOSE int fd = datapath_buckets_open(dp, limit);
	const __u64 subject = WEIR_SUBJECT_PENALTY;
	const struct weir_kept none = weir_kept_new(subject);

	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(fd, &subject, &none, BPF_NOEXIST) && errno != EEXIST)
		return -errno;
	return 0;
}
