/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of servers. New ones are written beside the old ones, under a generation of their own, and come into force by
 * one write to the server's entry: no request meets a part of each.
 */
#include <errno.h>
#include <string.h>

#include "datapath_private.h"

static int vectors_write(struct datapath *dp, __u32 server, __u32 generation, const struct datapath_vector *vectors,
			 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct weir_vector_key key = {
			.generation = generation,
			.server = server,
			.dimension = vectors[i].dimension,
			.value = vectors[i].value,
		};

		if (bpf_map_update_elem(dp->maps.vectors, &key, &vectors[i].vector, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int sources_write(struct datapath *dp, __u32 server, __u32 generation, const struct datapath_source *sources,
			 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct weir_source_key key = {
			.prefixlen = 64 + sources[i].cidr.bits,
			.generation = generation,
			.server = server,
		};

		memcpy(key.address, sources[i].cidr.address, sizeof(key.address));
		if (bpf_map_update_elem(dp->maps.sources, &key, &sources[i].vector, BPF_ANY))
			return -errno;
	}
	return 0;
}

/* Drops a server's vectors of other generations than this one. */
static int vectors_prune(struct datapath *dp, __u32 server, __u32 generation)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret = map_cursor_open(&cursor, dp->maps.vectors, sizeof(struct weir_vector_key),
				  sizeof(struct weir_vector));

	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_vector_key *keys = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n; i++) {
			if (keys[i].server == server && keys[i].generation != generation)
				bpf_map_delete_elem(dp->maps.vectors, &keys[i]);
		}
	}
	return ret;
}

/* Keys of a trie are deleted when all have been read. */
static int sources_prune(struct datapath *dp, __u32 server, __u32 generation)
{
	CLEANUP_FREE struct weir_source_key *old = NULL;
	CLEANUP_CURSOR struct map_cursor cursor = {};
	size_t n = 0;
	int ret = map_cursor_open(&cursor, dp->maps.sources, sizeof(struct weir_source_key),
				  sizeof(struct weir_vector));

	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_source_key *keys = cursor.keys;
		struct weir_source_key *more = realloc(old, (n + cursor.n) * sizeof(*old) + 1);

		if (!more)
			return -ENOMEM;
		old = more;
		ret = 0;
		for (__u32 i = 0; i < cursor.n; i++) {
			if (keys[i].server == server && keys[i].generation != generation)
				old[n++] = keys[i];
		}
	}
	for (size_t i = 0; i < n && !ret; i++)
		bpf_map_delete_elem(dp->maps.sources, &old[i]);
	return ret;
}

static int rules_prune(struct datapath *dp, __u32 server, __u32 generation)
{
	struct weir_rules_key key, next, *at = NULL;

	while (!bpf_map_get_next_key(dp->maps.rules, at, &next)) {
		if (at && key.server == server && key.generation != generation)
			bpf_map_delete_elem(dp->maps.rules, &key);
		key = next;
		at = &key;
	}
	if (at && key.server == server && key.generation != generation)
		bpf_map_delete_elem(dp->maps.rules, &key);
	return 0;
}

/* Drops what is of no use to the generation in force; 0: everything. */
static int old_drop(struct datapath *dp, __u32 server, __u32 generation, struct error *err)
{
	int ret = vectors_prune(dp, server, generation);

	if (ret)
		return datapath_map_failed(err, ret, "vectors");
	ret = sources_prune(dp, server, generation);
	if (ret)
		return datapath_map_failed(err, ret, "sources");
	ret = rules_prune(dp, server, generation);
	return ret ? datapath_map_failed(err, ret, "rules") : 0;
}

static int new_write(struct datapath *dp, __u32 server, __u32 generation, const struct weir_rules *rules,
		     const struct datapath_vector *vectors, size_t n_vectors, const struct datapath_source *sources,
		     size_t n_sources, struct error *err)
{
	struct weir_rules_key key = { .server = server, .generation = generation };
	int ret = vectors_write(dp, server, generation, vectors, n_vectors);

	if (ret)
		return datapath_map_failed(err, ret, "vectors");
	ret = sources_write(dp, server, generation, sources, n_sources);
	if (ret)
		return datapath_map_failed(err, ret, "sources");
	if (bpf_map_update_elem(dp->maps.rules, &key, rules, BPF_ANY))
		return datapath_map_failed(err, -errno, "rules");
	return 0;
}

int datapath_rules_set(struct datapath *dp, __u32 server, const struct weir_rules *rules,
		       const struct datapath_vector *vectors, size_t n_vectors, const struct datapath_source *sources,
		       size_t n_sources, struct error *err)
{
	struct weir_server value;
	__u32 before, after = 0;
	int ret = datapath_server_read(dp, server, &value, err);

	if (ret)
		return ret;
	before = value.generation;
	if (rules) {
		after = before + 1 ?: 1;
		/* What is left of an attempt that failed would be taken for this generation's. */
		ret = old_drop(dp, server, before, err) ?:
			      new_write(dp, server, after, rules, vectors, n_vectors, sources, n_sources, err);
	}
	if (ret) {
		old_drop(dp, server, before, NULL);
		return ret;
	}
	value.generation = after;
	ret = datapath_server_write(dp, server, &value, err);
	if (ret)
		return ret;
	datapath_wait_for_programs();
	return old_drop(dp, server, after, err);
}
