/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kubernetes' own objects, as `kubectl get -o yaml` prints them: FlowSchema and PriorityLevelConfiguration
 * (flowcontrol.apiserver.k8s.io).
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "weir/limit/rate.h"

#include "base/cleanup.h"
#include "model/parse.h"
#include "model/priority.h"
#include "model/rule.h"
#include "policy/kinds.h"

static int check_name(const struct field *field, const char *text, struct error *err)
{
	(void)field;
	if (*text && strlen(text) <= 253 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.:") == strlen(text))
		return 0;
	return error_set(err, -EINVAL, "\"%s\" is not a name (a-z, 0-9, -, . and :)", text);
}

/* --- what every object of a cluster has */

static const struct field metadata_fields[] = {
	{ .name = "name", .type = FIELD_TEXT, .required = true, .check = check_name },
	FIELDS_IGNORED("annotations"),
	FIELDS_IGNORED("creationTimestamp"),
	FIELDS_IGNORED("deletionGracePeriodSeconds"),
	FIELDS_IGNORED("deletionTimestamp"),
	FIELDS_IGNORED("finalizers"),
	FIELDS_IGNORED("generateName"),
	FIELDS_IGNORED("generation"),
	FIELDS_IGNORED("labels"),
	FIELDS_IGNORED("managedFields"),
	FIELDS_IGNORED("namespace"),
	FIELDS_IGNORED("ownerReferences"),
	FIELDS_IGNORED("resourceVersion"),
	FIELDS_IGNORED("selfLink"),
	FIELDS_IGNORED("uid"),
	FIELDS_END,
};
static const struct shape metadata_shape = { .fields = metadata_fields };

#define METADATA                                                                                     \
	{                                                                                            \
		.name = "metadata", .type = FIELD_OBJECT, .required = true, .shape = &metadata_shape \
	}

/* --- FlowSchema */

#define NAMES(field, help_text)                                                                          \
	{                                                                                                \
		.name = (field), .type = FIELD_TEXT, .list = true, .required = true, .help = (help_text) \
	}

/* As the rules of limits have it (rule.h); "*" is a word of every list. */
static int check_rule_word(const char *key, const char *text, struct error *err)
{
	CLEANUP_JSON json_t *json = json_pack("{s:[s]}", key, text);
	CLEANUP_RULE struct rule rule = { 0 };
	struct error why;
	int ret = rule_from_json(json, &rule, &why);

	return ret ? error_set(err, ret, "%s", why.text) : 0;
}

static int check_path(const struct field *field, const char *text, struct error *err)
{
	(void)field;
	return check_rule_word("paths", text, err);
}

static int check_resource(const struct field *field, const char *text, struct error *err)
{
	(void)field;
	return check_rule_word("resources", text, err);
}

static int check_namespace(const struct field *field, const char *text, struct error *err)
{
	(void)field;
	return check_rule_word("namespaces", text, err);
}

static const struct field named_fields[] = {
	{ .name = "name", .type = FIELD_TEXT, .required = true, .help = "* is any." },
	FIELDS_END,
};
static const struct shape named_shape = { .fields = named_fields };

static const struct field of_level_fields[] = {
	{ .name = "name", .type = FIELD_TEXT, .required = true, .help = "Priority level of its requests." },
	FIELDS_END,
};
static const struct shape of_level_shape = { .fields = of_level_fields };

static const struct field account_fields[] = {
	{ .name = "namespace", .type = FIELD_TEXT, .required = true },
	{ .name = "name", .type = FIELD_TEXT, .required = true, .help = "* is any service account of the namespace." },
	FIELDS_END,
};
static const struct shape account_shape = { .fields = account_fields };

static const char *const subject_kinds[] = { "User", "Group", "ServiceAccount", NULL };

/* A subject has the member of its kind, and no other one. */
static int check_subject(json_t *subject, struct error *err)
{
	static const char *const members[] = { "user", "group", "service_account" };
	const char *kind = json_string_value(json_object_get(subject, "kind"));

	for (size_t i = 0; i < 3; i++) {
		bool there = json_object_get(subject, members[i]) != NULL, wanted = !strcmp(kind, subject_kinds[i]);

		if (there != wanted)
			return error_set(err, -EINVAL, "a subject of kind %s has %s \"%s\"", kind,
					 wanted ? "a member" : "no member", i == 2 ? "serviceAccount" : members[i]);
	}
	return 0;
}

static const struct field subject_fields[] = {
	{ .name = "kind", .type = FIELD_TEXT, .required = true, .words = subject_kinds },
	{ .name = "user", .type = FIELD_OBJECT, .shape = &named_shape },
	{ .name = "group", .type = FIELD_OBJECT, .shape = &named_shape },
	{ .name = "serviceAccount", .type = FIELD_OBJECT, .shape = &account_shape },
	FIELDS_END,
};
static const struct shape subject_shape = { .fields = subject_fields, .check = check_subject };

static int check_scope(json_t *rule, struct error *err)
{
	if (json_is_true(json_object_get(rule, "cluster_scope")) ||
	    json_array_size(json_object_get(rule, "namespaces")))
		return 0;
	return error_set(err, -EINVAL, "no request could match: name namespaces (\"*\": all), or clusterScope: true");
}

static const struct field resource_fields[] = {
	NAMES("verbs", "* is any."),
	NAMES("apiGroups", "\"\" is the core group, * is any"),
	{ .name = "resources", .type = FIELD_TEXT, .list = true, .required = true, .check = check_resource },
	{ .name = "clusterScope", .type = FIELD_FLAG, .help = "true: requests without a namespace match, too." },
	{ .name = "namespaces", .type = FIELD_TEXT, .list = true, .check = check_namespace, .help = "* is any." },
	FIELDS_END,
};
static const struct shape resource_shape = { .fields = resource_fields, .check = check_scope };

static const struct field path_fields[] = {
	NAMES("verbs", "* is any."),
	{ .name = "nonResourceURLs", .type = FIELD_TEXT, .list = true, .required = true, .check = check_path },
	FIELDS_END,
};
static const struct shape path_shape = { .fields = path_fields };

static int check_some_rules(json_t *rule, struct error *err)
{
	if (json_array_size(json_object_get(rule, "resource_rules")) ||
	    json_array_size(json_object_get(rule, "non_resource_rules")))
		return 0;
	return error_set(err, -EINVAL, "resourceRules or nonResourceRules are missing: no request could match");
}

static const struct field policy_fields[] = {
	{ .name = "subjects", .type = FIELD_OBJECT, .list = true, .required = true, .shape = &subject_shape },
	{ .name = "resourceRules", .type = FIELD_OBJECT, .list = true, .shape = &resource_shape },
	{ .name = "nonResourceRules", .type = FIELD_OBJECT, .list = true, .shape = &path_shape },
	FIELDS_END,
};
static const struct shape policy_rule_shape = { .fields = policy_fields, .check = check_some_rules };

static const char *const distinguishers[] = { "ByUser", "ByNamespace", NULL };
static const struct field distinguisher_fields[] = {
	{ .name = "type", .type = FIELD_TEXT, .required = true, .words = distinguishers },
	FIELDS_END,
};
static const struct shape distinguisher_shape = { .fields = distinguisher_fields };

static const struct field schema_spec_fields[] = {
	{ .name = "priorityLevelConfiguration", .type = FIELD_OBJECT, .required = true, .shape = &of_level_shape },
	{ .name = "matchingPrecedence",
	  .type = FIELD_NUMBER,
	  .min = 1,
	  .max = PRIORITY_PRECEDENCE_MAX,
	  .help = "Of the schemas that match a request, the one with the lowest precedence counts. Default: 1000." },
	{ .name = "distinguisherMethod", .type = FIELD_OBJECT, .shape = &distinguisher_shape },
	{ .name = "rules", .type = FIELD_OBJECT, .list = true, .shape = &policy_rule_shape },
	FIELDS_END,
};
static const struct shape schema_spec_shape = { .fields = schema_spec_fields };

static const struct field schema_fields[] = {
	FIELDS_HEAD,
	METADATA,
	{ .name = "spec", .type = FIELD_OBJECT, .required = true, .shape = &schema_spec_shape },
	FIELDS_IGNORED("status"),
	FIELDS_END,
};
const struct shape policy_flow_schema_shape = { .fields = schema_fields };

/* --- PriorityLevelConfiguration */

#define SHARES_MAX PRIORITY_SHARES_MAX
#define SHARES(field)                                                                                             \
	{                                                                                                         \
		.name = (field), .type = FIELD_NUMBER, .max = SHARES_MAX, .help = "Shares of the server's seats." \
	}
#define PERCENT(field, most)                                                                                           \
	{                                                                                                              \
		.name = (field), .type = FIELD_NUMBER, .max = (most), .help = "Accepted with a warning, not honoured." \
	}

static const char *const responses[] = { "Reject", "Queue", NULL };

static const struct field queuing_fields[] = {
	{ .name = "queues", .type = FIELD_NUMBER, .max = INT32_MAX, .help = "Accepted with a warning, not honoured." },
	{ .name = "handSize",
	  .type = FIELD_NUMBER,
	  .max = INT32_MAX,
	  .help = "Accepted with a warning, not honoured." },
	{ .name = "queueLengthLimit",
	  .type = FIELD_NUMBER,
	  .max = INT32_MAX,
	  .help = "Accepted with a warning, not honoured." },
	FIELDS_END,
};
static const struct shape queuing_shape = { .fields = queuing_fields };

static const struct field response_fields[] = {
	{ .name = "type",
	  .type = FIELD_TEXT,
	  .required = true,
	  .words = responses,
	  .help = "Reject. Queue is accepted with a warning and rejects, too." },
	{ .name = "queuing", .type = FIELD_OBJECT, .shape = &queuing_shape },
	FIELDS_END,
};
static const struct shape response_shape = { .fields = response_fields };

static const struct field limited_fields[] = {
	SHARES("nominalConcurrencyShares"),
	SHARES("assuredConcurrencyShares"), /* what v1beta1 and v1beta2 call it */
	PERCENT("lendablePercent", 100),
	PERCENT("borrowingLimitPercent", INT32_MAX),
	{ .name = "limitResponse", .type = FIELD_OBJECT, .shape = &response_shape },
	FIELDS_END,
};
static const struct shape limited_shape = { .fields = limited_fields };

static const struct field exempt_fields[] = {
	SHARES("nominalConcurrencyShares"),
	PERCENT("lendablePercent", 100),
	FIELDS_END,
};
static const struct shape exempt_shape = { .fields = exempt_fields };

static const char *const level_types[] = { "Limited", "Exempt", NULL };

static int check_level(json_t *spec, struct error *err)
{
	bool exempt = strcmp(json_string_value(json_object_get(spec, "type")), "Exempt") == 0;

	if (exempt && json_object_get(spec, "limited"))
		return error_set(err, -EINVAL, "a level of type Exempt has no member \"limited\"");
	if (!exempt && json_object_get(spec, "exempt"))
		return error_set(err, -EINVAL, "a level of type Limited has no member \"exempt\"");
	if (!exempt && !json_object_get(spec, "limited"))
		return error_set(err, -EINVAL, "a level of type Limited has a member \"limited\"");
	return 0;
}

static const struct field level_spec_fields[] = {
	{ .name = "type", .type = FIELD_TEXT, .required = true, .words = level_types },
	{ .name = "limited", .type = FIELD_OBJECT, .shape = &limited_shape },
	{ .name = "exempt", .type = FIELD_OBJECT, .shape = &exempt_shape },
	FIELDS_END,
};
static const struct shape level_spec_shape = { .fields = level_spec_fields, .check = check_level };

static const struct field level_fields[] = {
	FIELDS_HEAD,
	METADATA,
	{ .name = "spec", .type = FIELD_OBJECT, .required = true, .shape = &level_spec_shape },
	FIELDS_IGNORED("status"),
	FIELDS_END,
};
const struct shape policy_priority_level_shape = { .fields = level_fields };
