/* SPDX-License-Identifier: GPL-2.0 */
#include "rules/axes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/parse.h"

/* Each is compared with each of the others as long as there are no more. */
#define COMPARED_MAX 1024

struct maker {
	struct rules_axis *axis;
	const struct rules *rules;
	const struct rules_names *names;
	struct weir_vector special; /* rules that keep limits away */
	struct weir_vector groups;  /* rules that somebody in all groups meets by that */
	bool no_memory;
};

static void place(struct maker *m, const struct weir_vector *vector, const char *what)
{
	struct rules_axis *axis = m->axis;
	struct rules_place *grown = array_grow(axis->places, axis->n, sizeof(*grown));

	if (!grown) {
		m->no_memory = true;
		return;
	}
	axis->places = grown;
	grown[axis->n++] = (struct rules_place){ *vector, what };
}

/* --- a value of a rule, as a place */

static const struct weir_vector *found(const struct maker *m, enum weir_dimension dimension, __u64 value)
{
	return rules_find(m->rules, dimension, value);
}

static void place_subject(struct maker *m, const struct weir_vector *user, const char *what)
{
	struct weir_vector vector = *user;

	weir_vector_join(&vector, &m->groups);
	place(m, &vector, what);
}

static void place_resource(struct maker *m, const struct weir_vector *resource, const char *subresource,
			   const char *what)
{
	struct weir_vector vector = *resource;

	weir_vector_meet(&vector, found(m, WEIR_DIMENSION_SUBRESOURCE, rules_name_value(m->names, subresource)));
	place(m, &vector, what);
}

static void place_resources(struct maker *m, const struct rule *rule)
{
	const struct texts *resources = &rule->resources, *subresources = &rule->subresources;
	const struct weir_vector *any = &m->rules->value.any[WEIR_DIMENSION_RESOURCE];

	for (size_t i = 0; i < subresources->n; i++)
		place_resource(m, any, subresources->items[i], subresources->items[i]);
	for (size_t i = 0; i < resources->n; i++) {
		const char *resource = resources->items[i], *slash = strchr(resource, '/');

		for (size_t s = 0; s < subresources->n || s == 0; s++) {
			const char *subresource = subresources->n ? subresources->items[s] : slash ? slash + 1 : "";
			__u64 value = rules_resource_value(m->names, resource, subresource);

			place_resource(m, found(m, WEIR_DIMENSION_RESOURCE, value), subresource, resource);
		}
	}
}

/* What is met by a path, or by all that is below it: also what is met by all that is below what comes before it. */
static void place_path(struct maker *m, const char *path, const char *what)
{
	char before[PARSE_SUBJECT_MAX + 2];
	struct weir_vector vector;
	int prefix;

	vector = *found(m, WEIR_DIMENSION_PATH, rules_path_value(m->names, path, &prefix));
	for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
		snprintf(before, sizeof(before), "%.*s*", (int)(slash - path + 1), path);
		weir_vector_join(&vector, found(m, WEIR_DIMENSION_PATH, rules_path_value(m->names, before, &prefix)));
	}
	place(m, &vector, what);
}

static void place_texts(struct maker *m, enum weir_dimension dimension, const struct texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		place(m, found(m, dimension, rules_name_value(m->names, texts->items[i])), texts->items[i]);
}

static void place_rule(struct maker *m, const struct rule *rule)
{
	switch (m->axis->id) {
	case RULES_AXIS_SUBJECT:
		for (size_t i = 0; i < rule->users.n; i++)
			place_subject(
				m, found(m, WEIR_DIMENSION_SUBJECT, rules_user_value(m->names, rule->users.items[i])),
				rule->users.items[i]);
		break;
	case RULES_AXIS_API_GROUP:
		place_texts(m, WEIR_DIMENSION_API_GROUP, &rule->api_groups);
		break;
	case RULES_AXIS_RESOURCE:
		place_resources(m, rule);
		break;
	case RULES_AXIS_NAMESPACE:
		place_texts(m, WEIR_DIMENSION_NAMESPACE, &rule->namespaces);
		break;
	case RULES_AXIS_PATH:
		for (size_t i = 0; i < rule->paths.n; i++)
			if (rule->paths.items[i][0] == '/')
				place_path(m, rule->paths.items[i], rule->paths.items[i]);
		break;
	case RULES_AXIS_SOURCE:
		for (size_t i = 0; i < rule->sources.n; i++)
			place(m, rules_source_vector(m->rules, rule->sources.items[i]), rule->sources.items[i]);
		break;
	default:
		break;
	}
}

/* --- places that no word of a rule names */

bool rules_call_is_possible(__u64 call)
{
	bool runs_long = call & WEIR_CALL_LONG_RUNNING, resource = call & WEIR_CALL_RESOURCE;

	switch (call & (WEIR_CALL_LONG_RUNNING - 1)) {
	case WEIR_VERB_WATCH:
	case WEIR_VERB_PROXY:
		return resource && runs_long;
	case WEIR_VERB_LIST:
	case WEIR_VERB_DELETECOLLECTION:
		return resource && !runs_long;
	case WEIR_VERB_NONE:
	case WEIR_VERB_CREATE:
	case WEIR_VERB_UPDATE:
		return resource;
	default:
		return true;
	}
}

static void place_calls(struct maker *m)
{
	if (!(m->rules->value.dimensions >> WEIR_DIMENSION_CALL & 1)) {
		place(m, &m->rules->value.any[WEIR_DIMENSION_CALL], NULL);
		return;
	}
	for (__u64 call = 0; call < WEIR_CALLS; call++)
		if (rules_call_is_possible(call))
			place(m, found(m, WEIR_DIMENSION_CALL, call),
			      rule_verb_name(call & (WEIR_CALL_LONG_RUNNING - 1)));
	place(m, found(m, WEIR_DIMENSION_CALL, WEIR_CALL_CONNECT), "a new connection");
}

static void place_others(struct maker *m)
{
	const struct weir_vector *any = m->rules->value.any;

	switch (m->axis->id) {
	case RULES_AXIS_SUBJECT:
		place_subject(m, &any[WEIR_DIMENSION_SUBJECT], NULL);
		break;
	case RULES_AXIS_CALL:
		place_calls(m);
		break;
	case RULES_AXIS_API_GROUP:
		place(m, &any[WEIR_DIMENSION_API_GROUP], NULL);
		break;
	case RULES_AXIS_RESOURCE:
		place_resource(m, &any[WEIR_DIMENSION_RESOURCE], "", NULL);
		place_resource(m, &any[WEIR_DIMENSION_RESOURCE], RULE_ANY, NULL);
		break;
	case RULES_AXIS_NAMESPACE:
		place(m, &any[WEIR_DIMENSION_NAMESPACE], NULL);
		place(m, found(m, WEIR_DIMENSION_NAMESPACE, 0), NULL);
		break;
	case RULES_AXIS_PATH:
		place_path(m, "/" RULE_ANY, NULL);
		break;
	case RULES_AXIS_SOURCE:
		if (!m->rules->n_sources || m->rules->sources[0].cidr.bits) /* no network is all there are */
			place(m, &any[WEIR_DIMENSION_SOURCE], NULL);
		break;
	default:
		break;
	}
}

/* --- those that make a difference */

static int compare(const void *a, const void *b)
{
	const struct rules_place *x = a, *y = b;

	return memcmp(x->vector.words, y->vector.words, sizeof(x->vector.words));
}

/* Does a request at b meet at least the rules that it meets at a, and no further exemption? */
static bool is_less(const struct maker *m, const struct rules_place *a, const struct rules_place *b)
{
	for (size_t i = 0; i < WEIR_VECTOR_WORDS; i++) {
		__u64 x = a->vector.words[i], y = b->vector.words[i];

		if ((x & ~y) | (y & ~x & m->special.words[i]))
			return false;
	}
	return true;
}

static bool is_covered(const struct maker *m, size_t i, size_t n)
{
	const struct rules_place *places = m->axis->places;

	for (size_t other = 0; other < n; other++)
		if (other != i && is_less(m, &places[i], &places[other]))
			return true;
	return false;
}

static void reduce(struct maker *m)
{
	struct rules_place *places = m->axis->places;
	size_t n = 1, kept = 0;

	qsort(places, m->axis->n, sizeof(*places), compare);
	for (size_t i = 1; i < m->axis->n; i++)
		if (compare(&places[i], &places[n - 1]))
			places[n++] = places[i];
	for (size_t i = 0; i < n && n <= COMPARED_MAX; i++) {
		struct rules_place p = places[i];

		if (is_covered(m, i, n))
			continue;
		places[i] = places[kept];
		places[kept++] = p;
	}
	m->axis->n = n <= COMPARED_MAX ? kept : n;
}

/* --- all of it */

static size_t count_rules(const struct weir_vector *vector)
{
	size_t n = 0;

	for (size_t i = 0; i < WEIR_VECTOR_WORDS; i++)
		n += __builtin_popcountll(vector->words[i]);
	return n;
}

static void find_special(struct maker *m)
{
	for (__u32 rule = 0; rule < WEIR_RULES_MAX; rule++)
		if (m->rules->value.rules[rule].limit >= WEIR_RULE_NOTHING)
			weir_vector_add(&m->special, rule);
}

static void join_groups(struct maker *m)
{
	for (size_t i = 0; i < m->rules->n_vectors; i++)
		if (m->rules->vectors[i].dimension == WEIR_DIMENSION_GROUP)
			weir_vector_join(&m->groups, &m->rules->vectors[i].vector);
	for (size_t i = 0; i < WEIR_VECTOR_WORDS; i++)
		m->groups.words[i] &= ~m->special.words[i];
}

int rules_axis_make(struct rules_axis *axis, enum rules_axis_id id, const struct rules *rules,
		    const struct rules_entry *entries, size_t n, const struct rules_names *names)
{
	struct maker m = { .axis = axis, .rules = rules, .names = names };

	*axis = (struct rules_axis){ .id = id };
	find_special(&m);
	join_groups(&m);
	place_others(&m);
	for (size_t i = 0; i < n; i++)
		for (size_t rule = 0; rule < entries[i].n; rule++)
			place_rule(&m, &entries[i].rules[rule]);
	if (m.no_memory)
		return -ENOMEM;
	reduce(&m);
	for (size_t i = 0; i < axis->n; i++)
		if (count_rules(&axis->places[i].vector) > axis->most)
			axis->most = count_rules(&axis->places[i].vector);
	return 0;
}
