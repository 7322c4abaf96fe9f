/* SPDX-License-Identifier: GPL-2.0 */
/* FlowSchemas and PriorityLevelConfigurations of Kubernetes as those of weir (priority.h). */
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_list.h"
#include "model/rule.h"
#include "policy/policy.h"

#define SHARES 30	/* Kubernetes' own, where none are given */
#define PRECEDENCE 1000 /* the same */

static json_t *member(json_t *object, const char *a, const char *b)
{
	return json_object_get(json_object_get(object, a), b);
}

static const char *text(json_t *json)
{
	return json_string_value(json) ?: "";
}

/* --- priority levels */

/* The shares of a level that is not exempt. */
static json_int_t shares_of(json_t *limited)
{
	json_t *shares = json_object_get(limited, "nominalConcurrencyShares") ?:
				 json_object_get(limited, "assuredConcurrencyShares");

	return shares ? json_integer_value(shares) : SHARES;
}

json_t *policy_level(json_t *document)
{
	const char *name = text(member(document, "metadata", "name"));
	json_t *spec = json_object_get(document, "spec");

	if (strcmp(text(json_object_get(spec, "type")), "Exempt") == 0)
		return json_pack("{s:s, s:b}", "name", name, "exempt", 1);
	return json_pack("{s:s, s:I}", "name", name, "shares", shares_of(json_object_get(spec, "limited")));
}

/* --- flow schemas */

static void add_account(json_t *rule, json_t *account)
{
	const char *namespace = text(json_object_get(account, "namespace"));
	const char *name = text(json_object_get(account, "name"));

	if (strcmp(name, RULE_ANY) == 0)
		list_append(rule, "groups", json_sprintf("system:serviceaccounts:%s", namespace));
	else
		list_append(rule, "users", json_sprintf("system:serviceaccount:%s:%s", namespace, name));
}

static void add_subjects(json_t *rule, json_t *subjects)
{
	json_t *subject;
	size_t i;

	json_array_foreach (subjects, i, subject) {
		const char *kind = text(json_object_get(subject, "kind"));

		if (strcmp(kind, "User") == 0)
			list_append(rule, "users", json_incref(member(subject, "user", "name")));
		else if (strcmp(kind, "Group") == 0)
			list_append(rule, "groups", json_incref(member(subject, "group", "name")));
		else
			add_account(rule, json_object_get(subject, "serviceAccount"));
	}
}

static bool is_verb(const char *word)
{
	enum weir_verb verb;

	return strcmp(word, RULE_ANY) == 0 || !rule_verb_parse(word, &verb, NULL);
}

/* Words that are no request's verb (like "escalate") match nothing. False when no other one is left. */
static bool add_verbs(json_t *rule, json_t *verbs)
{
	json_t *verb;
	size_t i;

	json_array_foreach (verbs, i, verb)
		if (is_verb(text(verb)))
			list_append(rule, "verbs", json_incref(verb));
	return json_object_get(rule, "verbs");
}

static void add_members(json_t *rule, json_t *given)
{
	static const char *const names[][2] = {
		{ "apiGroups", "api_groups" },
		{ "resources", "resources" },
		{ "namespaces", "namespaces" },
		{ "nonResourceURLs", "paths" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (json_array_size(json_object_get(given, names[i][0])))
			json_object_set(rule, names[i][1], json_object_get(given, names[i][0]));
	if (json_is_true(json_object_get(given, "clusterScope")))
		json_object_set_new(rule, "cluster_scope", json_true());
	if (json_object_get(given, "nonResourceURLs"))
		json_object_set_new(rule, "non_resource", json_true());
}

/* Long-running requests take no seats: to Kubernetes they are of no schema. */
static void add_rules(json_t *rules, json_t *subjects, json_t *given)
{
	json_t *one;
	size_t i;

	json_array_foreach (given, i, one) {
		CLEANUP_JSON json_t *rule = json_pack("{s:b}", "long_running", 0);

		add_subjects(rule, subjects);
		add_members(rule, one);
		if (add_verbs(rule, json_object_get(one, "verbs")))
			json_array_append(rules, rule);
	}
}

json_t *policy_flow_schema(json_t *document)
{
	json_t *spec = json_object_get(document, "spec"), *rules = json_array(), *given;
	json_t *precedence = json_object_get(spec, "matchingPrecedence");
	json_t *distinguisher = member(spec, "distinguisherMethod", "type");
	json_t *schema = json_pack("{s:s, s:s, s:I, s:o}", "name", text(member(document, "metadata", "name")), "level",
				   text(member(spec, "priorityLevelConfiguration", "name")), "precedence",
				   precedence ? json_integer_value(precedence) : (json_int_t)PRECEDENCE, "rules",
				   rules);
	size_t i;

	if (distinguisher)
		json_object_set(schema, "distinguisher", distinguisher);
	json_array_foreach (json_object_get(spec, "rules"), i, given) {
		json_t *subjects = json_object_get(given, "subjects");

		add_rules(rules, subjects, json_object_get(given, "resourceRules"));
		add_rules(rules, subjects, json_object_get(given, "nonResourceRules"));
	}
	return schema;
}

/* --- what Kubernetes always has */

/* Everything that these groups ask for: one rule for resources, one for paths. */
static json_t *everything(json_t *groups)
{
	json_t *rules = json_pack("[{s:O, s:b, s:[s], s:[s], s:[s], s:[s], s:b}, {s:O, s:b, s:[s], s:[s], s:b}]",
				  "groups", groups, "long_running", 0, "verbs", RULE_ANY, "api_groups", RULE_ANY,
				  "resources", RULE_ANY, "namespaces", RULE_ANY, "cluster_scope", 1, "groups", groups,
				  "long_running", 0, "verbs", RULE_ANY, "paths", RULE_ANY, "non_resource", 1);

	json_decref(groups);
	return rules;
}

/* Health checks of all users. */
static json_t *probes(void)
{
	return json_pack("{s:[s, s], s:[s], s:b, s:[s, s, s]}", "groups", "system:unauthenticated",
			 "system:authenticated", "verbs", "get", "non_resource", 1, "paths", "/healthz", "/livez",
			 "/readyz");
}

void policy_add_mandatory(json_t *levels, json_t *schemas)
{
	if (!list_named(levels, "exempt"))
		json_array_append_new(levels, json_pack("{s:s, s:b}", "name", "exempt", "exempt", 1));
	if (!list_named(levels, "catch-all"))
		json_array_append_new(levels, json_pack("{s:s, s:i}", "name", "catch-all", "shares", 5));
	if (!list_named(schemas, "exempt"))
		json_array_append_new(schemas, json_pack("{s:s, s:s, s:i, s:o}", "name", "exempt", "level", "exempt",
							 "precedence", 1, "rules",
							 everything(json_pack("[s]", "system:masters"))));
	if (!list_named(schemas, "probes"))
		json_array_append_new(schemas, json_pack("{s:s, s:s, s:i, s:[o]}", "name", "probes", "level", "exempt",
							 "precedence", 2, "rules", probes()));
	if (!list_named(schemas, "catch-all"))
		json_array_append_new(
			schemas,
			json_pack("{s:s, s:s, s:i, s:s, s:o}", "name", "catch-all", "level", "catch-all", "precedence",
				  10000, "distinguisher", "ByUser", "rules",
				  everything(json_pack("[s, s]", "system:unauthenticated", "system:authenticated"))));
}

/* --- warnings */

/* Something that levels ask for and do not get: said once, at the first of those that do. */
struct missing {
	const struct node *first;
	size_t levels;
};

static void miss(struct missing *missing, const struct node *node)
{
	if (!missing->levels++)
		missing->first = node;
}

static void warn_missing(const struct missing *missing, const char *what, struct problems *problems)
{
	if (missing->levels == 1)
		warn_node(problems, missing->first, "%s", what);
	else if (missing->levels)
		warn_node(problems, missing->first, "%s (of %zu priority levels)", what, missing->levels);
}

static void miss_queues(const struct policy_object *level, struct missing *missing)
{
	const struct node *type = node_find(level->node, "spec.limited.limitResponse.type");

	if (strcmp(node_text(type), "Queue") == 0)
		miss(missing, type);
}

static void miss_loans(const struct policy_object *level, struct missing *missing)
{
	static const char *const ignored[] = { "spec.limited.lendablePercent", "spec.limited.borrowingLimitPercent",
					       "spec.exempt.lendablePercent", "spec.exempt.nominalConcurrencyShares" };

	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++) {
		const struct node *node = node_find(level->node, ignored[i]);

		if (!node || strcmp(node_text(node), "0") == 0)
			continue;
		miss(missing, node);
		return;
	}
}

static void warn_verbs(const struct node *rules, struct problems *problems)
{
	for (size_t i = 0; rules && i < rules->n; i++) {
		const struct node *verbs = node_member(rules->items[i], "verbs");

		for (size_t j = 0; verbs && j < verbs->n; j++)
			if (!is_verb(node_text(verbs->items[j])))
				warn_node(problems, verbs->items[j], "no request has the verb \"%s\"",
					  node_text(verbs->items[j]));
	}
}

static void warn_schema(const struct policy_object *schema, struct problems *problems)
{
	const struct node *rules = node_find(schema->node, "spec.rules");

	for (size_t i = 0; rules && i < rules->n; i++) {
		warn_verbs(node_member(rules->items[i], "resourceRules"), problems);
		warn_verbs(node_member(rules->items[i], "nonResourceRules"), problems);
	}
}

void policy_flow_warn(const struct policy_object *objects, size_t n, struct problems *problems)
{
	struct missing queues = { 0 }, loans = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (objects[i].kind->id == POLICY_FLOW_SCHEMA)
			warn_schema(&objects[i], problems);
		if (objects[i].kind->id != POLICY_PRIORITY_LEVEL)
			continue;
		miss_queues(&objects[i], &queues);
		miss_loans(&objects[i], &loans);
	}
	warn_missing(&queues, "queues are not honoured yet: what finds no seat is rejected", problems);
	warn_missing(&loans, "not honoured yet: levels do not lend seats", problems);
}
