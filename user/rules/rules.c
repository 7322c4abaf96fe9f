/* SPDX-License-Identifier: GPL-2.0 */
/* Rules get their numbers; the values that meet them (conditions.c) are sorted, and become vectors. */
#include "rules/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rules/private.h"

/* Two generations are in the kernel while rules change. */
#define VECTORS_MAX (WEIR_MAX_VECTORS / 2)

/* --- the entries */

static bool is_for_all(const struct rules_entry *entry)
{
	return !entry->n && !entry->schema && entry->limit < WEIR_SERVER_LIMITS;
}

size_t rules_count(const struct rules_entry *entry)
{
	return is_for_all(entry) ? 1 : entry->n;
}

/* What exempts by something that the path says is for paths that are read in one way alone. */
static bool reads_odd_paths(const struct rules_entry *entry, const struct rule *rule)
{
	return entry->limit != WEIR_RULE_EXEMPT || rule_of_senders(rule);
}

static int add_entry(struct rules_compiler *c, const struct rules_entry *entry, __u32 number)
{
	static const struct rule everything;
	int ret;

	c->entry = entry;
	ret = is_for_all(entry) ? rules_add(c, &everything, number) : 0;
	for (size_t i = 0; i < entry->n && !ret; i++)
		ret = rules_add(c, &entry->rules[i], number + i);
	for (size_t i = 0; i < rules_count(entry); i++) {
		const struct rule *rule = entry->n ? &entry->rules[i] : &everything;

		c->rules->value.rules[number + i].limit = entry->limit;
		if (reads_odd_paths(entry, rule))
			weir_vector_add(&c->rules->value.odd, number + i);
	}
	return ret;
}

/* The number of the rule behind entry i, whose first rule has `number`, and behind the entries that are taken together with it. */
static __u32 number_behind(const struct rules_entry *entries, size_t n, size_t i, __u32 number)
{
	bool schema = entries[i].schema;

	number += rules_count(&entries[i++]);
	while (schema && i < n && entries[i].schema)
		number += rules_count(&entries[i++]);
	return number;
}

static int add_entries(struct rules_compiler *c, const struct rules_entry *entries, size_t n)
{
	__u32 number = 0;
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += rules_count(&entries[i]);
	if (total > WEIR_RULES_MAX)
		return error_set(c->err, -E2BIG, "%zu rules: a server can have at most %d", total, WEIR_RULES_MAX);
	for (size_t i = 0; i < n; i++) {
		__u32 next = number_behind(entries, n, i, number);
		int ret = add_entry(c, &entries[i], number);

		if (ret)
			return ret;
		for (size_t rule = 0; rule < rules_count(&entries[i]); rule++)
			c->rules->value.rules[number++].next = next;
	}
	return 0;
}

/* --- vectors */

static int compare_keys(__u16 dimension, __u64 value, __u16 other_dimension, __u64 other_value)
{
	if (dimension != other_dimension)
		return dimension < other_dimension ? -1 : 1;
	return (value > other_value) - (value < other_value);
}

static int compare_values(const void *a, const void *b)
{
	const struct rules_value *x = a, *y = b;

	return compare_keys(x->dimension, x->value, y->dimension, y->value);
}

static int compare_vectors(const void *a, const void *b)
{
	const struct datapath_vector *x = a, *y = b;

	return compare_keys(x->dimension, x->value, y->dimension, y->value);
}

/* What the vector of a value begins with: the rules that it meets unnamed. */
static struct weir_vector unnamed(const struct rules_compiler *c, __u16 dimension, __u64 value)
{
	if (dimension == WEIR_DIMENSION_NAMESPACE && value == 0)
		return c->no_namespace;
	if (dimension == WEIR_DIMENSION_CALL && value == WEIR_CALL_CONNECT)
		return c->of_connections;
	return c->rules->value.any[dimension == WEIR_DIMENSION_GROUP ? WEIR_DIMENSION_SUBJECT : dimension];
}

/* Requests of no namespace are told apart when some rule is for them alone, or is not for them. */
static int add_no_namespace(struct rules_compiler *c)
{
	const struct weir_vector *any = &c->rules->value.any[WEIR_DIMENSION_NAMESPACE];

	for (__u32 rule = 0; rule < WEIR_RULES_MAX; rule++)
		if (weir_vector_has(any, rule) != weir_vector_has(&c->no_namespace, rule))
			return rules_add_value(c, WEIR_DIMENSION_NAMESPACE, 0, WEIR_RULES_MAX);
	return 0;
}

static int make_vectors(struct rules_compiler *c)
{
	struct datapath_vector *v = NULL;
	int ret = add_no_namespace(c);

	if (ret || !c->n_values)
		return ret;
	qsort(c->values, c->n_values, sizeof(*c->values), compare_values);
	c->rules->vectors = calloc(c->n_values, sizeof(*c->rules->vectors));
	if (!c->rules->vectors)
		return error_set(c->err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < c->n_values; i++) {
		const struct rules_value *value = &c->values[i];

		if (!v || compare_values(value, value - 1)) {
			v = &c->rules->vectors[c->rules->n_vectors++];
			v->dimension = value->dimension;
			v->value = value->value;
			v->vector = unnamed(c, value->dimension, value->value);
		}
		weir_vector_add(&v->vector, value->rule);
	}
	if (c->rules->n_vectors > VECTORS_MAX)
		return error_set(c->err, -E2BIG,
				 "the rules of a server name %zu different values: at most %d can be kept",
				 c->rules->n_vectors, VECTORS_MAX);
	return 0;
}

const struct weir_vector *rules_find(const struct rules *rules, enum weir_dimension dimension, __u64 value)
{
	const struct datapath_vector key = { .dimension = dimension, .value = value };
	const struct datapath_vector *found = NULL;

	if (rules->n_vectors)
		found = bsearch(&key, rules->vectors, rules->n_vectors, sizeof(key), compare_vectors);
	if (!found)
		return dimension < WEIR_DIMENSIONS ? &rules->value.any[dimension] : NULL;
	return &found->vector;
}

/* --- all of it */

static int compile(struct rules_compiler *c, const struct rules_entry *entries, size_t n)
{
	int ret = add_entries(c, entries, n) ?: make_vectors(c);

	if (!ret)
		ret = rules_sources_make(&c->sources, &c->rules->value.any[WEIR_DIMENSION_SOURCE], c->rules, c->err);
	return ret ?: rules_check(c->rules, entries, n, c->names, c->err);
}

int rules_compile(const struct rules_entry *entries, size_t n, const struct rules_names *names, struct rules **out,
		  struct error *err)
{
	CLEANUP_RULES struct rules *rules = calloc(1, sizeof(*rules));
	struct rules_compiler c = { .names = names, .rules = rules, .err = err };
	int ret;

	if (!rules)
		return error_set(err, -ENOMEM, "out of memory");
	ret = compile(&c, entries, n);
	free(c.values);
	rules_sources_clear(&c.sources);
	if (ret)
		return ret;
	*out = rules;
	rules = NULL;
	return 0;
}

void rules_free(struct rules *rules)
{
	if (!rules)
		return;
	free(rules->vectors);
	free(rules->sources);
	free(rules);
}
