/* SPDX-License-Identifier: GPL-2.0 */
/* A rule, dimension by dimension: the values that meet it, or that any value does. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "rules/private.h"

#define VALUES_MAX (1 << 20)

int rules_add_value(struct rules_compiler *c, enum weir_dimension dimension, __u64 value, __u32 rule)
{
	struct rules_value *grown;

	if (c->n_values == VALUES_MAX)
		return error_set(c->err, -E2BIG, "the rules of a server name more than %d values", VALUES_MAX);
	grown = array_grow(c->values, c->n_values, sizeof(*grown));
	if (!grown)
		return error_set(c->err, -ENOMEM, "out of memory");
	c->values = grown;
	grown[c->n_values++] = (struct rules_value){ .dimension = dimension, .value = value, .rule = rule };
	c->rules->value.dimensions |= 1U << dimension;
	return 0;
}

static void add_any(struct rules_compiler *c, enum weir_dimension dimension, __u32 rule)
{
	weir_vector_add(&c->rules->value.any[dimension], rule);
}

static bool is_any(const struct texts *texts)
{
	return texts->n == 0 || texts_have(texts, RULE_ANY);
}

/* --- the dimensions */

/* A rule that is being added. */
struct adding {
	struct rules_compiler *c;
	__u32 number;
};

static int add_group(void *arg, const char *group)
{
	const struct adding *adding = arg;
	struct rules_compiler *c = adding->c;
	int bit = c->names->group(c->names->context, group);

	if (bit < 0 || bit >= WEIR_GROUPS_MAX)
		return error_set(c->err, -E2BIG, "there is no room for the group \"%s\": at most %d can be known",
				 group, WEIR_GROUPS_MAX);
	c->rules->value.dimensions |= 1U << WEIR_DIMENSION_SUBJECT;
	c->rules->value.groups[bit] = c->names->subject(c->names->context, WEIR_NAME_GROUP, group, strlen(group));
	return rules_add_value(c, WEIR_DIMENSION_GROUP, bit, adding->number);
}

static int add_subjects(struct rules_compiler *c, const struct rule *rule, __u32 number)
{
	int ret = 0;

	if (!rule_of_subjects(rule)) {
		add_any(c, WEIR_DIMENSION_SUBJECT, number);
		return 0;
	}
	for (size_t i = 0; i < rule->users.n && !ret; i++)
		ret = rules_add_value(c, WEIR_DIMENSION_SUBJECT, rules_user_value(c->names, rule->users.items[i]),
				      number);
	return ret ?: rule_each_group(rule, add_group, &(struct adding){ c, number });
}

bool rules_call_meets(const struct rule *rule, __u64 call)
{
	bool runs_long = call & WEIR_CALL_LONG_RUNNING, resource = call & WEIR_CALL_RESOURCE;

	if ((rule->long_running == RULE_YES && !runs_long) || (rule->long_running == RULE_NO && runs_long))
		return false;
	if ((rule->non_resource && resource) || (rule_of_resource(rule) && !resource))
		return false;
	return is_any(&rule->verbs) || texts_have(&rule->verbs, rule_verb_name(call & (WEIR_CALL_LONG_RUNNING - 1)));
}

/* Limits are on requests, or on connections; who is exempt from one kind is from the other, too. */
static int add_calls(struct rules_compiler *c, const struct rule *rule, __u32 number)
{
	int ret = 0;

	if (c->entry->connections)
		return rules_add_value(c, WEIR_DIMENSION_CALL, WEIR_CALL_CONNECT, number);
	if (is_any(&rule->verbs) && !rule->long_running && !rule->non_resource && !rule_of_resource(rule)) {
		add_any(c, WEIR_DIMENSION_CALL, number);
		if (c->entry->limit == WEIR_RULE_EXEMPT)
			weir_vector_add(&c->of_connections, number);
		return 0;
	}
	for (__u64 call = 0; call < WEIR_CALLS && !ret; call++)
		if (rules_call_meets(rule, call))
			ret = rules_add_value(c, WEIR_DIMENSION_CALL, call, number);
	return ret;
}

static int add_names(struct rules_compiler *c, enum weir_dimension dimension, const struct texts *list, __u32 number)
{
	int ret = 0;

	if (is_any(list)) {
		add_any(c, dimension, number);
		return 0;
	}
	for (size_t i = 0; i < list->n && !ret; i++)
		ret = rules_add_value(c, dimension, rules_name_value(c->names, list->items[i]), number);
	return ret;
}

/* The resource itself, or each of the subresources that the rule names. */
static int add_resource(struct rules_compiler *c, const char *resource, const struct texts *subresources, __u32 number)
{
	int ret = 0;

	if (!subresources->n)
		return rules_add_value(c, WEIR_DIMENSION_RESOURCE, rules_resource_value(c->names, resource, ""),
				       number);
	for (size_t i = 0; i < subresources->n && !ret; i++)
		ret = rules_add_value(c, WEIR_DIMENSION_RESOURCE,
				      rules_resource_value(c->names, resource, subresources->items[i]), number);
	return ret;
}

static int add_resources(struct rules_compiler *c, const struct rule *rule, __u32 number)
{
	int ret = 0;

	if (is_any(&rule->resources)) {
		add_any(c, WEIR_DIMENSION_RESOURCE, number);
		return add_names(c, WEIR_DIMENSION_SUBRESOURCE, &rule->subresources, number);
	}
	add_any(c, WEIR_DIMENSION_SUBRESOURCE, number);
	for (size_t i = 0; i < rule->resources.n && !ret; i++)
		ret = add_resource(c, rule->resources.items[i], &rule->subresources, number);
	return ret;
}

static int add_namespaces(struct rules_compiler *c, const struct rule *rule, __u32 number)
{
	const struct texts *list = &rule->namespaces;

	if (rule->cluster_scope || !list->n)
		weir_vector_add(&c->no_namespace, number);
	if (rule->cluster_scope && !list->n)
		return 0;
	return add_names(c, WEIR_DIMENSION_NAMESPACE, list, number);
}

static int add_paths(struct rules_compiler *c, const struct rule *rule, __u32 number)
{
	int ret = 0, prefix;

	if (is_any(&rule->paths)) {
		add_any(c, WEIR_DIMENSION_PATH, number);
		return 0;
	}
	for (size_t i = 0; i < rule->paths.n && !ret; i++) {
		__u64 value = rules_path_value(c->names, rule->paths.items[i], &prefix);

		if (prefix >= 0)
			c->rules->value.prefixes |= 1U << prefix;
		ret = rules_add_value(c, WEIR_DIMENSION_PATH, value, number);
	}
	return ret;
}

static int add_sources(struct rules_compiler *c, const struct rule *rule, __u32 number)
{
	int ret = 0;

	if (!rule->sources.n) {
		add_any(c, WEIR_DIMENSION_SOURCE, number);
		return 0;
	}
	c->rules->value.dimensions |= 1U << WEIR_DIMENSION_SOURCE;
	for (size_t i = 0; i < rule->sources.n && !ret; i++)
		ret = rules_sources_add(&c->sources, rule->sources.items[i], number, c->err);
	return ret;
}

int rules_add(struct rules_compiler *c, const struct rule *rule, __u32 number)
{
	weir_vector_add(&c->rules->value.all, number);
	return add_subjects(c, rule, number)						 ?:
		       add_calls(c, rule, number)					 ?:
		       add_names(c, WEIR_DIMENSION_API_GROUP, &rule->api_groups, number) ?:
		       add_resources(c, rule, number)					 ?:
		       add_namespaces(c, rule, number)					 ?:
		       add_paths(c, rule, number)					 ?:
											   add_sources(c, rule, number);
}
