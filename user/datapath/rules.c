/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of servers. New ones are written beside the old ones, under a generation of their own, and come into force by
 * one write to the server's entry: no request meets a part of each. What is in force already is left as it is.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/map_sync.h"

/* What the maps are to hold of a generation. */
struct wanted {
	struct weir_rules_key key;
	const struct weir_rules *rules;
	struct weir_vector_key *vector_keys;
	struct weir_vector *vectors;
	size_t n_vectors;
	struct weir_source_key *source_keys;
	struct weir_vector *sources;
	size_t n_sources;
};

static void wanted_clear(struct wanted *wanted)
{
	free(wanted->vector_keys);
	free(wanted->vectors);
	free(wanted->source_keys);
	free(wanted->sources);
}
#define CLEANUP_WANTED __attribute__((cleanup(wanted_clear)))

static void wanted_fill(struct wanted *w, const struct datapath_vector *vectors, const struct datapath_source *sources)
{
	for (size_t i = 0; i < w->n_vectors; i++) {
		w->vector_keys[i] = (struct weir_vector_key){
			.server = w->key.server,
			.dimension = vectors[i].dimension,
			.value = vectors[i].value,
		};
		w->vectors[i] = vectors[i].vector;
	}
	for (size_t i = 0; i < w->n_sources; i++) {
		w->source_keys[i] = (struct weir_source_key){
			.prefixlen = 64 + sources[i].cidr.bits,
			.server = w->key.server,
		};
		memcpy(w->source_keys[i].address, sources[i].cidr.address, sizeof(w->source_keys[i].address));
		w->sources[i] = sources[i].vector;
	}
}

static int wanted_make(struct wanted *w, const struct datapath_vector *vectors, const struct datapath_source *sources)
{
	w->vector_keys = calloc(w->n_vectors + 1, sizeof(*w->vector_keys));
	w->vectors = calloc(w->n_vectors + 1, sizeof(*w->vectors));
	w->source_keys = calloc(w->n_sources + 1, sizeof(*w->source_keys));
	w->sources = calloc(w->n_sources + 1, sizeof(*w->sources));
	if (!w->vector_keys || !w->vectors || !w->source_keys || !w->sources)
		return -ENOMEM;
	wanted_fill(w, vectors, sources);
	return 0;
}

static void wanted_of_generation(struct wanted *w, __u32 generation)
{
	w->key.generation = generation;
	for (size_t i = 0; i < w->n_vectors; i++)
		w->vector_keys[i].generation = generation;
	for (size_t i = 0; i < w->n_sources; i++)
		w->source_keys[i].generation = generation;
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

/* Those of another generation; how many they are. */
static __u64 rules_prune(struct datapath *dp, __u32 server, __u32 generation, bool drop)
{
	struct weir_rules_key key, next;
	bool more = !bpf_map_get_next_key(dp->maps.rules, NULL, &next);
	__u64 n = 0;

	while (more) {
		key = next;
		more = !bpf_map_get_next_key(dp->maps.rules, &key, &next);
		if (key.server != server || key.generation == generation)
			continue;
		n++;
		if (drop)
			bpf_map_delete_elem(dp->maps.rules, &key);
	}
	return n;
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
	rules_prune(dp, server, generation, true);
	return 0;
}

/* --- what there is, against what should be */

struct compared {
	struct map_diff vectors, sources;
	bool differ; /* what is in force is not what is wanted */
	bool left;   /* something is there of another generation */
};

static void compared_clear(struct compared *compared)
{
	map_diff_clear(&compared->vectors);
	map_diff_clear(&compared->sources);
}
#define CLEANUP_COMPARED __attribute__((cleanup(compared_clear)))

static bool is_vector_of(const void *key, const void *value, const void *server)
{
	(void)value;
	return ((const struct weir_vector_key *)key)->server == *(const __u32 *)server;
}

static bool is_source_of(const void *key, const void *value, const void *server)
{
	(void)value;
	return ((const struct weir_source_key *)key)->server == *(const __u32 *)server;
}

static struct map_range vectors_of(struct datapath *dp, const __u32 *server)
{
	return (struct map_range){ .part = DATAPATH_vectors,
				   .fd = dp->maps.vectors,
				   .key_size = sizeof(struct weir_vector_key),
				   .value_size = sizeof(struct weir_vector),
				   .ours = is_vector_of,
				   .arg = server };
}

static struct map_range sources_of(struct datapath *dp, const __u32 *server)
{
	return (struct map_range){ .part = DATAPATH_sources,
				   .fd = dp->maps.sources,
				   .key_size = sizeof(struct weir_source_key),
				   .value_size = sizeof(struct weir_vector),
				   .ours = is_source_of,
				   .arg = server };
}

/* Keys that go; those of the generation in force are missed, of others left. */
static void look_at_gone(struct compared *c, const struct map_diff *diff, size_t key_size, size_t offset,
			 __u32 in_force)
{
	for (size_t i = 0; i < diff->n_gone; i++) {
		__u32 generation;

		memcpy(&generation, diff->gone + i * key_size + offset, sizeof(generation));
		*(in_force && generation == in_force ? &c->differ : &c->left) = true;
	}
}

static void compare_rules(struct datapath *dp, const struct wanted *w, struct compared *c)
{
	struct datapath_changes *written = &dp->written.of[DATAPATH_rules];
	struct weir_rules there;
	bool is_there = !bpf_map_lookup_elem(dp->maps.rules, &w->key, &there);
	__u64 others = rules_prune(dp, w->key.server, w->key.generation, false);

	written->dropped += others;
	c->left = others;
	if (w->rules && !is_there)
		written->added++;
	else if (w->rules && memcmp(&there, w->rules, sizeof(there)))
		written->changed++;
	else if (!w->rules && is_there)
		written->dropped++;
	else
		return;
	c->differ = true;
}

static int compare(struct datapath *dp, const struct wanted *w, struct compared *c, struct error *err)
{
	const struct map_range vectors = vectors_of(dp, &w->key.server), sources = sources_of(dp, &w->key.server);
	const struct map_entries all_vectors = { w->vector_keys, w->vectors, w->n_vectors };
	const struct map_entries all_sources = { w->source_keys, w->sources, w->n_sources };
	int ret = map_compare(&vectors, &all_vectors, &c->vectors);

	if (ret)
		return datapath_map_failed(err, ret, "vectors");
	ret = map_compare(&sources, &all_sources, &c->sources);
	if (ret)
		return datapath_map_failed(err, ret, "sources");
	compare_rules(dp, w, c);
	look_at_gone(c, &c->vectors, vectors.key_size, offsetof(struct weir_vector_key, generation), w->key.generation);
	look_at_gone(c, &c->sources, sources.key_size, offsetof(struct weir_source_key, generation), w->key.generation);
	c->differ |= c->vectors.n_put || c->sources.n_put;
	map_count(dp, &vectors, &c->vectors);
	map_count(dp, &sources, &c->sources);
	return 0;
}

/* --- putting them in force */

static int entries_write(int fd, const char *keys, __u32 key_size, const struct weir_vector *values, size_t n)
{
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++)
		ret = bpf_map_update_elem(fd, keys + i * key_size, &values[i], BPF_ANY);
	return ret;
}

static int new_write(struct datapath *dp, const struct wanted *w, struct error *err)
{
	int ret = entries_write(dp->maps.vectors, (char *)w->vector_keys, sizeof(*w->vector_keys), w->vectors,
				w->n_vectors);

	if (ret)
		return datapath_map_failed(err, ret, "vectors");
	ret = entries_write(dp->maps.sources, (char *)w->source_keys, sizeof(*w->source_keys), w->sources,
			    w->n_sources);
	if (ret)
		return datapath_map_failed(err, ret, "sources");
	if (bpf_map_update_elem(dp->maps.rules, &w->key, w->rules, BPF_ANY))
		return datapath_map_failed(err, -errno, "rules");
	return 0;
}

static int replace(struct datapath *dp, struct weir_server *server, struct wanted *w, struct error *err)
{
	__u32 before = server->generation;
	int ret = 0;

	wanted_of_generation(w, w->rules ? before + 1 ?: 1 : 0);
	if (w->rules)
		/* What is left of an attempt that failed would be taken for this generation's. */
		ret = old_drop(dp, w->key.server, before, err) ?: new_write(dp, w, err);
	if (ret) {
		old_drop(dp, w->key.server, before, NULL);
		return ret;
	}
	server->generation = w->key.generation;
	ret = datapath_server_write(dp, w->key.server, server, err);
	if (ret)
		return ret;
	datapath_wait_for_programs();
	return old_drop(dp, w->key.server, w->key.generation, err);
}

int datapath_rules_set(struct datapath *dp, __u32 server, const struct weir_rules *rules,
		       const struct datapath_vector *vectors, size_t n_vectors, const struct datapath_source *sources,
		       size_t n_sources, struct error *err)
{
	CLEANUP_WANTED struct wanted wanted = {
		.key.server = server, .rules = rules, .n_vectors = n_vectors, .n_sources = n_sources
	};
	CLEANUP_COMPARED struct compared compared = {};
	struct weir_server value;
	int ret = datapath_server_read(dp, server, &value, err);

	if (ret)
		return ret;
	ret = wanted_make(&wanted, vectors, sources);
	if (ret)
		return datapath_map_failed(err, ret, "rules");
	wanted_of_generation(&wanted, value.generation);
	ret = compare(dp, &wanted, &compared, err);
	if (ret)
		return ret;
	if (compared.differ || !rules != !value.generation)
		return replace(dp, &value, &wanted, err);
	return compared.left ? old_drop(dp, server, value.generation, err) : 0;
}
