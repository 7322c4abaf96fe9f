/* SPDX-License-Identifier: GPL-2.0 */
/* Which of the server's limits are for a request: include/weir/limit/match.h on the maps. */
#ifndef WEIR_BPF_MATCH_H
#define WEIR_BPF_MATCH_H

#include "weir/http/match_path.h"

#include "identify.h"
#include "work.h"

static __always_inline bool dimension_matters(const struct weir_rules *r, enum weir_dimension dimension)
{
	return r->dimensions >> dimension & 1;
}

/* The rules that a value meets, where some rule names it. w is work_of() a hook: the key stands in it. */
static __always_inline struct weir_vector *vector_of(struct work *w, __u32 dimension, __u64 value)
{
	w->vector_key.generation = w->generation;
	w->vector_key.server = w->server;
	w->vector_key.dimension = dimension;
	w->vector_key.value = value;
	return bpf_map_lookup_elem(&vectors, &w->vector_key);
}

static __always_inline void meet_value(struct work *w, const struct weir_rules *r, enum weir_dimension dimension,
				       __u64 value)
{
	const struct weir_vector *v;

	if (!dimension_matters(r, dimension))
		return;
	v = vector_of(w, dimension, value);
	weir_vector_meet(&w->matched, v ?: &r->any[dimension]);
}

/* What nothing is known of meets only what every value does. */
static __always_inline void meet_any(struct work *w, const struct weir_rules *r, enum weir_dimension dimension)
{
	if (dimension_matters(r, dimension))
		weir_vector_meet(&w->matched, &r->any[dimension]);
}

static __always_inline void join_value(struct work *w, __u32 dimension, __u64 value)
{
	const struct weir_vector *v = vector_of(w, dimension, value);

	if (v)
		weir_vector_join(&w->either, v);
}

/* The user, or one of the groups. */
__noinline int meet_subject(__u32 hook)
{
	struct work *w = work_of(hook);
	__u64 groups;

	if (!w)
		return 0;
	join_value(w, WEIR_DIMENSION_SUBJECT, w->identity.user);
	for (__u32 word = 0; word < 2; word++) {
		groups = w->identity.groups.bits[word];
		for (__u32 i = 0; i < 64; i++) {
			if (!groups)
				break;
			join_value(w, WEIR_DIMENSION_GROUP, word * 64 + weir_lowest_bit(groups));
			groups &= groups - 1;
		}
	}
	weir_vector_meet(&w->matched, &w->either);
	return 0;
}

/* The whole path, or one of its prefixes. prefixes: of which lengths there are some */
__noinline int meet_path(__u32 hook, __u32 prefixes)
{
	struct work *w = work_of(hook);
	const struct weir_path *p;
	struct weir_server *server;
	__u64 path = 0;
	__u32 depth;

	if (!w)
		return 0;
	server = server_of(w);
	if (!server)
		return 0;
	p = &w->request.request.path;
	depth = weir_path_depth(p, server->reading.paths);
	for (__u32 n = 0; n <= WEIR_PATH_SEGMENTS; n++) {
		if (prefixes >> n & 1 && weir_path_is_below(p, depth, n))
			join_value(w, WEIR_DIMENSION_PATH, weir_path_below(path));
		if (n >= depth)
			break;
		path = weir_path_further(path, weir_path_subject(p, n));
	}
	if (depth <= WEIR_PATH_SEGMENTS)
		join_value(w, WEIR_DIMENSION_PATH, weir_path_exact(path, weir_path_is_open(p, depth)));
	weir_vector_meet(&w->matched, &w->either);
	return 0;
}

static __always_inline void meet_call(struct work *w, const struct weir_rules *r)
{
	const struct weir_attributes *a = &w->attributes;

	if (w->unreadable) {
		meet_any(w, r, WEIR_DIMENSION_CALL);
		meet_any(w, r, WEIR_DIMENSION_API_GROUP);
		meet_any(w, r, WEIR_DIMENSION_RESOURCE);
		meet_any(w, r, WEIR_DIMENSION_SUBRESOURCE);
		meet_any(w, r, WEIR_DIMENSION_PATH);
		return;
	}
	meet_value(w, r, WEIR_DIMENSION_CALL,
		   weir_call(a->verb, a->flags & WEIR_ATTRIBUTE_LONG_RUNNING, a->flags & WEIR_ATTRIBUTE_RESOURCE));
	meet_value(w, r, WEIR_DIMENSION_API_GROUP, a->group);
	meet_value(w, r, WEIR_DIMENSION_RESOURCE, weir_pair(a->resource, a->subresource));
	meet_value(w, r, WEIR_DIMENSION_SUBRESOURCE, a->subresource);
	if (dimension_matters(r, WEIR_DIMENSION_PATH)) {
		w->either = r->any[WEIR_DIMENSION_PATH];
		meet_path(w->hook, r->prefixes);
	}
}

static __always_inline void meet_source(struct work *w, const struct weir_rules *r)
{
	const struct weir_vector *v;

	if (!dimension_matters(r, WEIR_DIMENSION_SOURCE))
		return;
	w->source_key.prefixlen = 64 + 128;
	w->source_key.generation = w->generation;
	w->source_key.server = w->server;
	__builtin_memcpy(w->source_key.address, w->peer.address, sizeof(w->source_key.address));
	v = bpf_map_lookup_elem(&sources, &w->source_key);
	weir_vector_meet(&w->matched, v ?: &r->any[WEIR_DIMENSION_SOURCE]);
}

static __always_inline void match_rules(struct work *w, const struct weir_rules *r)
{
	w->matched = w->request.request.path.odd ? r->odd : r->all;
	meet_call(w, r);
	if (dimension_matters(r, WEIR_DIMENSION_SUBJECT)) {
		w->either = r->any[WEIR_DIMENSION_SUBJECT];
		meet_subject(w->hook);
	}
	meet_value(w, r, WEIR_DIMENSION_NAMESPACE, w->identity.namespace);
	meet_source(w, r);
}

static __always_inline struct weir_rules *rules_of(const struct work *w)
{
	struct weir_rules_key key = { .server = w->server, .generation = w->generation };

	return w->generation ? bpf_map_lookup_elem(&rules, &key) : NULL;
}

/* Adds the limits whose rules match to w->limits. True: the request is exempt from all. */
__noinline int match_limits(__u32 hook)
{
	struct work *w = work_of(hook);
	const struct weir_rules *r;
	__u32 at = 0, limit;

	if (!w)
		return 0;
	r = rules_of(w);
	if (!r)
		return 0;
	match_rules(w, r);
	for (__u32 i = 0; i < WEIR_MATCH_STEPS; i++) {
		limit = weir_match_step(&w->matched, r->rules, &at);
		if (limit == WEIR_RULE_EXEMPT)
			return 1;
		if (limit < WEIR_SERVER_LIMITS)
			w->limits[w->n_limits++ & (WEIR_MATCHES_MAX - 1)] = limit;
		if (at >= WEIR_RULES_MAX)
			break;
	}
	return 0;
}

#endif
