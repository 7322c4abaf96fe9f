/* SPDX-License-Identifier: GPL-2.0 */
/* Which of the server's limits are for a request: include/weir/limit/match.h on the maps. */
#ifndef WEIR_BPF_MATCH_H
#define WEIR_BPF_MATCH_H

#include "weir/http/match_path.h"

#include "decision.h"

static __always_inline bool dimension_matters(const struct weir_rules *r, enum weir_dimension dimension)
{
	return r->dimensions >> dimension & 1;
}

/* The rules that a value meets, where some rule names it. d is of decision_of(): the key stands in it. */
static __always_inline struct weir_vector *vector_of(struct decision *d, __u32 dimension, __u64 value)
{
	d->vector_key.generation = d->generation;
	d->vector_key.server = d->server;
	d->vector_key.dimension = dimension;
	d->vector_key.value = value;
	return bpf_map_lookup_elem(&vectors, &d->vector_key);
}

static __always_inline void meet_value(struct decision *d, const struct weir_rules *r, enum weir_dimension dimension,
				       __u64 value)
{
	const struct weir_vector *v;

	if (!dimension_matters(r, dimension))
		return;
	v = vector_of(d, dimension, value);
	weir_vector_meet(&d->matched, v ?: &r->any[dimension]);
}

/* What nothing is known of meets only what every value does. */
static __always_inline void meet_any(struct decision *d, const struct weir_rules *r, enum weir_dimension dimension)
{
	if (dimension_matters(r, dimension))
		weir_vector_meet(&d->matched, &r->any[dimension]);
}

__noinline int join_value(__u32 memory, __u32 dimension, __u64 value)
{
	struct decision *d = decision_of(memory);
	const struct weir_vector *v;

	if (!d)
		return 0;
	v = vector_of(d, dimension, value);
	if (v)
		weir_vector_join(&d->either, v);
	return 0;
}

/* The lowest group of `bits` is joined. The others. The verifier reads it once, not once for each group. */
__noinline __u64 join_lowest_group(__u32 memory, __u64 bits, __u32 from)
{
	if (!bits)
		return 0;
	join_value(memory, WEIR_DIMENSION_GROUP, from + weir_lowest_bit(bits));
	return bits & (bits - 1);
}

static __always_inline void join_groups(__u32 memory, __u64 bits, __u32 from)
{
	for (__u32 i = 0; i < 64 && bits; i++)
		bits = join_lowest_group(memory, bits, from);
}

/* The user, or one of the groups. */
__noinline int meet_subject(__u32 memory)
{
	struct decision *d = decision_of(memory);

	if (!d)
		return 0;
	join_value(memory, WEIR_DIMENSION_SUBJECT, d->identity.user);
	join_groups(memory, d->identity.groups.bits[0], 0);
	join_groups(memory, d->identity.groups.bits[1], 64);
	weir_vector_meet(&d->matched, &d->either);
	return 0;
}

/* The whole path, or one of its prefixes. prefixes: of which lengths there are some */
__noinline int meet_path(__u32 memory, const struct weir_path *p, __u32 prefixes)
{
	struct decision *d = decision_of(memory);
	struct weir_server *server;
	__u64 path = 0;
	__u32 depth;

	if (!d || !p)
		return 0;
	server = server_of(d->server);
	if (!server)
		return 0;
	depth = weir_path_depth(p, server->reading.paths);
	for (__u32 n = 0; n <= WEIR_PATH_SEGMENTS; n++) {
		if (prefixes >> n & 1 && weir_path_is_below(p, depth, n))
			join_value(memory, WEIR_DIMENSION_PATH, weir_path_below(path));
		if (n >= depth)
			break;
		path = weir_path_further(path, weir_path_subject(p, n));
	}
	if (depth <= WEIR_PATH_SEGMENTS)
		join_value(memory, WEIR_DIMENSION_PATH, weir_path_exact(path, weir_path_is_open(p, depth)));
	weir_vector_meet(&d->matched, &d->either);
	return 0;
}

static __always_inline void meet_call(struct decision *d, const struct weir_path *path, const struct weir_rules *r)
{
	const struct weir_attributes *a = &d->attributes;

	if (d->unreadable || d->connects) {
		if (d->connects)
			meet_value(d, r, WEIR_DIMENSION_CALL, WEIR_CALL_CONNECT);
		else
			meet_any(d, r, WEIR_DIMENSION_CALL);
		meet_any(d, r, WEIR_DIMENSION_API_GROUP);
		meet_any(d, r, WEIR_DIMENSION_RESOURCE);
		meet_any(d, r, WEIR_DIMENSION_SUBRESOURCE);
		meet_any(d, r, WEIR_DIMENSION_PATH);
		return;
	}
	meet_value(d, r, WEIR_DIMENSION_CALL,
		   weir_call(a->verb, a->flags & WEIR_ATTRIBUTE_LONG_RUNNING, a->flags & WEIR_ATTRIBUTE_RESOURCE));
	meet_value(d, r, WEIR_DIMENSION_API_GROUP, a->group);
	meet_value(d, r, WEIR_DIMENSION_RESOURCE, weir_pair(a->resource, a->subresource));
	meet_value(d, r, WEIR_DIMENSION_SUBRESOURCE, a->subresource);
	if (dimension_matters(r, WEIR_DIMENSION_PATH)) {
		d->either = r->any[WEIR_DIMENSION_PATH];
		meet_path(d->memory, path, r->prefixes);
	}
}

static __always_inline void meet_source(struct decision *d, const struct weir_rules *r)
{
	const struct weir_vector *v;

	if (!dimension_matters(r, WEIR_DIMENSION_SOURCE))
		return;
	d->source_key.prefixlen = 64 + 128;
	d->source_key.generation = d->generation;
	d->source_key.server = d->server;
	__builtin_memcpy(d->source_key.address, d->address, sizeof(d->source_key.address));
	v = bpf_map_lookup_elem(&sources, &d->source_key);
	weir_vector_meet(&d->matched, v ?: &r->any[WEIR_DIMENSION_SOURCE]);
}

static __always_inline void match_rules(struct decision *d, const struct weir_path *path, const struct weir_rules *r)
{
	d->matched = path->odd ? r->odd : r->all;
	meet_call(d, path, r);
	if (dimension_matters(r, WEIR_DIMENSION_SUBJECT)) {
		d->either = r->any[WEIR_DIMENSION_SUBJECT];
		meet_subject(d->memory);
	}
	meet_value(d, r, WEIR_DIMENSION_NAMESPACE, d->identity.namespace);
	meet_source(d, r);
}

static __always_inline struct weir_rules *rules_of(const struct decision *d)
{
	struct weir_rules_key key = { .server = d->server, .generation = d->generation };

	return d->generation ? bpf_map_lookup_elem(&rules, &key) : NULL;
}

/* What a step along the rules that match has come to. */
enum match_step {
	MATCH_GOES_ON,
	MATCH_ENDS,
	MATCH_EXEMPT,
};

/* One step, from d->match_at on. The verifier reads it once, not once for each of them. */
__noinline int match_step(struct decision *d, const struct weir_rules *r)
{
	__u32 limit;

	if (!d || !r)
		return MATCH_ENDS;
	limit = weir_match_step(&d->matched, r->rules, &d->match_at);
	if (limit == WEIR_RULE_EXEMPT)
		return MATCH_EXEMPT;
	if (limit < WEIR_SERVER_LIMITS)
		d->limits[d->n_limits++ & (WEIR_MATCHES_MAX - 1)] = limit;
	return d->match_at < WEIR_RULES_MAX ? MATCH_GOES_ON : MATCH_ENDS;
}

/* Adds the limits whose rules match to d->limits. True: the request is exempt from all. */
__noinline int match_limits(__u32 memory, const struct weir_path *path)
{
	struct decision *d = decision_of(memory);
	const struct weir_rules *r;
	int came = MATCH_GOES_ON;

	if (!d || !path)
		return 0;
	r = rules_of(d);
	if (!r)
		return 0;
	match_rules(d, path, r);
	d->match_at = 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < WEIR_MATCH_STEPS && came == MATCH_GOES_ON; i++)
		came = match_step(d, r);
	return came == MATCH_EXEMPT;
}

#endif
