/* SPDX-License-Identifier: GPL-2.0 */
#include "rules/limit_idle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "weir/limit/match.h"

#include "rules/rules.h"

#define NUMBERED 32 /* room for "rule 12" */

/* Of Kubernetes' own: their requests have no namespace. */
static const char *const of_the_cluster[] = {
	"apiservices",
	"certificatesigningrequests",
	"clusterrolebindings",
	"clusterroles",
	"componentstatuses",
	"csidrivers",
	"csinodes",
	"customresourcedefinitions",
	"flowschemas",
	"ingressclasses",
	"mutatingwebhookconfigurations",
	"nodes",
	"persistentvolumes",
	"priorityclasses",
	"prioritylevelconfigurations",
	"runtimeclasses",
	"selfsubjectaccessreviews",
	"selfsubjectrulesreviews",
	"storageclasses",
	"subjectaccessreviews",
	"tokenreviews",
	"validatingwebhookconfigurations",
	"volumeattachments",
};

__attribute__((format(printf, 2, 3))) static void say(json_t *texts, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	json_array_append_new(texts, json_vsprintf(format, args));
	va_end(args);
}

/* --- what requests that meet a rule are like */

static bool is_of_cluster(const char *resource)
{
	size_t n = strcspn(resource, "/");

	for (size_t i = 0; i < sizeof(of_the_cluster) / sizeof(*of_the_cluster); i++)
		if (strlen(of_the_cluster[i]) == n && !strncmp(of_the_cluster[i], resource, n))
			return true;
	return false;
}

static bool all_of_cluster(const struct texts *resources)
{
	for (size_t i = 0; i < resources->n; i++)
		if (!is_of_cluster(resources->items[i]))
			return false;
	return resources->n;
}

/* Resources are below these. */
static bool path_is_of_api(const char *path)
{
	return *path != '/' || !strcmp(path, "/*") || !strncmp(path, "/api/", 5) || !strncmp(path, "/apis/", 6);
}

static bool paths_are_of_api(const struct texts *paths)
{
	for (size_t i = 0; i < paths->n; i++)
		if (path_is_of_api(paths->items[i]))
			return true;
	return !paths->n;
}

/* What has a name is got, listed, ...; the verbs of paths are left only to what is below /api and names no resource. */
static bool is_verb_of(const struct rule *rule, __u64 call)
{
	bool named = rule->resources.n && !texts_have(&rule->resources, RULE_ANY);

	return !named || (call & (WEIR_CALL_LONG_RUNNING - 1)) < WEIR_VERB_HEAD;
}

/* Does some request meet the rule's verbs and what else it says of the call? */
static bool has_call(const struct rule *rule, bool resource)
{
	if (resource && !paths_are_of_api(&rule->paths))
		return false;
	for (__u64 call = 0; call < WEIR_CALLS; call++)
		if (!(call & WEIR_CALL_RESOURCE) == !resource && rules_call_is_possible(call) &&
		    rules_call_meets(rule, call) && (!resource || is_verb_of(rule, call)))
			return true;
	return false;
}

static bool has_namespace(const struct rule *rule, bool by_path)
{
	if (!by_path)
		return true;
	return has_call(rule, true) && (rule->namespaces.n || !rule->cluster_scope) &&
	       !all_of_cluster(&rule->resources);
}

static bool says_namespaces_alone(const struct rule *rule)
{
	return rule->namespaces.n && !rule->cluster_scope;
}

static const char *why_no_call(const struct rule *rule)
{
	struct rule however_long = *rule;

	however_long.long_running = RULE_EITHER;
	if (has_call(&however_long, true) || has_call(&however_long, false))
		return rule->long_running == RULE_YES ? "such requests are never long-running" :
							"such requests are always long-running";
	if (rule_of_resource(rule) && !paths_are_of_api(&rule->paths))
		return "its paths are of no resource";
	if (rule_of_resource(rule))
		return "no request for a resource has these verbs";
	return "no request for a path that is of no resource has these verbs";
}

/* Why no request meets the rule; NULL: some may. */
static const char *why_never(const struct rule *rule, bool by_path)
{
	bool resource = has_call(rule, true);

	if (!resource && !has_call(rule, false))
		return why_no_call(rule);
	if (by_path && !resource && says_namespaces_alone(rule))
		return "what is for no resource has no namespace";
	if (by_path && says_namespaces_alone(rule) && all_of_cluster(&rule->resources))
		return "these resources are of the whole cluster, and have no namespace";
	return NULL;
}

/* --- the key, and its subjects */

static bool some_rule(const struct limit *limit, bool by_path, bool (*is)(const struct rule *rule, bool by_path))
{
	for (size_t i = 0; i < limit->n_rules; i++)
		if (is(&limit->rules[i], by_path))
			return true;
	return !limit->n_rules;
}

static bool has_groups(const struct rule *rule, bool by_path)
{
	(void)by_path;
	return rule->groups.n;
}

static void look_at_key(const struct limit *limit, bool by_path, json_t *texts)
{
	if (limit->key & WEIR_KEY_NAMESPACE && !some_rule(limit, by_path, has_namespace))
		say(texts, "it counts for each namespace, and what its rules are for has none");
	if (limit->key == WEIR_KEY_GROUP && limit->n_rules && !some_rule(limit, by_path, has_groups) &&
	    !limit->n_overrides)
		say(texts, "it counts for each group, and no rule names one");
}

/* Is the subject one that the rule asks for, of those of the limit's key? */
static bool rule_has(const struct rule *rule, __u8 key, const char *subject)
{
	switch (key) {
	case WEIR_KEY_USER:
		return !rule_of_subjects(rule) || rule->groups.n || texts_have(&rule->users, subject);
	case WEIR_KEY_GROUP:
		return !rule_of_subjects(rule) || texts_have(&rule->groups, subject);
	case WEIR_KEY_NAMESPACE:
		return !rule->namespaces.n || texts_have(&rule->namespaces, RULE_ANY) ||
		       texts_have(&rule->namespaces, subject);
	default:
		return true;
	}
}

static bool limit_has(const struct limit *limit, const char *subject)
{
	for (size_t i = 0; i < limit->n_rules; i++)
		if (rule_has(&limit->rules[i], limit->key, subject))
			return true;
	return !limit->n_rules;
}

static void look_at_overrides(const struct limit *limit, json_t *texts)
{
	for (size_t i = 0; i < limit->n_overrides; i++) {
		const char *subject = limit->overrides[i].subject;

		if (!limit_has(limit, subject))
			say(texts,
			    limit->key == WEIR_KEY_GROUP ?
				    "no rule is for the group \"%s\", of the override: only members of another one, too, are under it" :
				    "no rule is for \"%s\", of the override",
			    subject);
	}
}

/* --- names */

/* Kubernetes has "pods", not "pod" or "po": who writes these has a limit that is for nothing. */
static bool is_plural(const char *resource)
{
	size_t n = strcspn(resource, "/");

	return !strcmp(resource, RULE_ANY) || (n && resource[n - 1] == 's');
}

static void look_at_resources(const struct limit *limit, json_t *texts)
{
	for (size_t i = 0; i < limit->n_rules; i++) {
		const struct texts *resources = &limit->rules[i].resources;

		for (size_t j = 0; j < resources->n; j++)
			if (!is_plural(resources->items[j]))
				say(texts, "the resource \"%s\" is no plural: Kubernetes' resources are, like \"pods\"",
				    resources->items[j]);
	}
}

json_t *limit_idle(const struct limit *limit, bool by_path)
{
	json_t *texts = json_array();

	for (size_t i = 0; i < limit->n_rules; i++) {
		const char *why = why_never(&limit->rules[i], by_path);
		char which[NUMBERED] = "its rule";

		if (limit->n_rules > 1)
			snprintf(which, sizeof(which), "rule %zu", i + 1);
		if (why)
			say(texts, "%s matches nothing: %s", which, why);
	}
	if (!json_array_size(texts))
		look_at_key(limit, by_path, texts);
	look_at_overrides(limit, texts);
	if (by_path)
		look_at_resources(limit, texts);
	return texts;
}
