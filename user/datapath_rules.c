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

/* A server's generation: others of the same server are old. */
struct in_force {
	__u32 server, generation;
};

static bool is_old_vector(const void *key, const void *value, const void *arg)
{
	const struct weir_vector_key *vector = key;
	const struct in_force *in_force = arg;

	(void)value;
	return vector->server == in_force->server && vector->generation != in_force->generation;
}

static bool is_old_source(const void *key, const void *value, const void *arg)
{
	const struct weir_source_key *source = key;
	const struct in_force *in_force = arg;

	(void)value;
	return source->server == in_force->server && source->generation != in_force->generation;
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
	const struct in_force in_force = { server, generation };
	int ret = map_drop_if(dp->maps.vectors, sizeof(struct weir_vector_key), sizeof(struct weir_vector),
			      is_old_vector, &in_force);

	if (ret)
		return datapath_map_failed(err, ret, "vectors");
	ret = map_drop_of_trie_if(dp->maps.sources, sizeof(struct weir_source_key), sizeof(struct weir_vector),
				  is_old_source, &in_force);
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
