/* SPDX-License-Identifier: GPL-2.0 */
/* What a Throttle's limits and their rules may say: limits as limit.h has them, rules as rule.h has them. */
#include <string.h>

#include "base/cleanup.h"
#include "model/backoff_text.h"
#include "model/key.h"
#include "model/limit.h"
#include "policy/kinds.h"
#include "policy/names.h"

/* --- rules */

/* A text of a rule's list is right when the rule that has nothing else is. */
static int check_condition(const struct field *field, const char *text, struct error *err)
{
	CLEANUP_JSON json_t *yaml = json_pack("{s:[s]}", field->name, text), *own = policy_own_names(yaml);
	CLEANUP_RULE struct rule rule = { 0 };
	struct error why;
	const char *said;
	int ret = rule_from_json(own, &rule, &why);

	if (!ret)
		return 0;
	said = strstr(why.text, ": "); /* behind the list's name, which the path has already */
	return error_set(err, ret, "%s", said && said < strchrnul(why.text, '"') ? said + 2 : why.text);
}

static int check_rule(json_t *json, struct error *err)
{
	CLEANUP_RULE struct rule rule = { 0 };

	return rule_from_json(json, &rule, err);
}

#define CONDITION(field, text_help)                                                                              \
	{                                                                                                        \
		.name = (field), .type = FIELD_TEXT, .list = true, .check = check_condition, .help = (text_help) \
	}

static const struct field rule_fields[] = {
	CONDITION("users", "Users. A user or a group must match. * is any."),
	CONDITION("groups", "Groups. A user or a group must match. * is any."),
	CONDITION("verbs", "Verbs: get, list, watch, create, update, patch, delete, deletecollection, ..."),
	{ .name = "longRunning",
	  .type = FIELD_FLAG,
	  .help = "true: only long-running requests (watch, exec, logs). false: only the others." },
	CONDITION("apiGroups", "API groups of the resources. \"\" is the core group, * is any."),
	CONDITION("resources", "Resources, like pods or pods/log. * is any."),
	CONDITION("subresources", "Subresources of any resource. \"\" is none."),
	CONDITION("namespaces", "Namespaces. * is any, but not cluster scope."),
	{ .name = "clusterScope", .type = FIELD_FLAG, .help = "true: requests without a namespace match, too." },
	CONDITION("paths", "Paths. /healthz is itself, /healthz/* everything below it, * is any."),
	{ .name = "nonResource", .type = FIELD_FLAG, .help = "true: only requests for non-resource paths." },
	CONDITION("sources", "Networks of the peer's address, as CIDR."),
	FIELDS_END,
};
const struct shape policy_own_rule_shape = { .fields = rule_fields, .check = check_rule };

/* --- limits */

static int check_limit_name(const struct field *field, const char *text, struct error *err)
{
	(void)field;
	return parse_limit_name(text, err);
}

static int check_key(const struct field *field, const char *text, struct error *err)
{
	__u8 key;

	(void)field;
	return key_parse(text, &key, err);
}

static int check_penalty(const struct field *field, const char *text, struct error *err)
{
	struct weir_backoff penalty;

	(void)field;
	return backoff_parse(text, &penalty, err);
}

static int check_limit(json_t *json, struct error *err)
{
	CLEANUP_LIMIT struct limit limit = { 0 };

	return limit_from_json(json, &limit, err) ?: limit_check_amounts(&limit, err);
}

#define AMOUNT                                                                                                   \
	{ .name = "qps", .type = FIELD_RATE, .help = "Tokens a second." },                                       \
		{ .name = "burst", .type = FIELD_NUMBER, .max = WEIR_BURST_MAX, .help = "Size of the bucket." }, \
		{ .name = "inFlight",                                                                            \
		  .type = FIELD_NUMBER,                                                                          \
		  .max = WEIR_BURST_MAX,                                                                         \
		  .help = "Instead of qps and burst: the most requests in flight." },                            \
		{ .name = "open",                                                                                \
		  .type = FIELD_NUMBER,                                                                          \
		  .max = WEIR_BURST_MAX,                                                                         \
		  .help = "Instead of qps and burst: the most connections that are open." },                     \
	{                                                                                                        \
		.name = "deny", .type = FIELD_FLAG,                                                              \
		.help = "true: instead of an amount: every request is refused for good, with a 403."             \
	}

static const char *const modes[] = { "enforce", "dry-run", NULL };
static const char *const overs[] = { "drop", "reset", NULL };

static const struct field override_fields[] = {
	{ .name = "subject",
	  .type = FIELD_TEXT,
	  .required = true,
	  .help = "Subject. For a combined key in the order namespace, user, group, source: ns1/alice." },
	AMOUNT,
	FIELDS_END,
};
static const struct shape override_shape = { .fields = override_fields };

static const struct field limit_fields[] = {
	{ .name = "name",
	  .type = FIELD_TEXT,
	  .required = true,
	  .check = check_limit_name,
	  .help = "Name. total, namespace and user are for all requests, source-and-object is for Events. Other names need a key." },
	{ .name = "key",
	  .type = FIELD_TEXT,
	  .check = check_key,
	  .help = "total, or namespace, user, group, source, object, or a combination with commas." },
	AMOUNT,
	{ .name = "connections",
	  .type = FIELD_FLAG,
	  .help = "true: qps and burst are of new connections, not of requests." },
	{ .name = "over",
	  .type = FIELD_TEXT,
	  .words = overs,
	  .help = "Connections over the limit: drop (the client tries again), or reset. Default: drop." },
	{ .name = "rules",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .most = WEIR_RULES_MAX,
	  .shape = &policy_own_rule_shape,
	  .help = "Requests that the limit applies to: one rule must match. Without rules: all." },
	{ .name = "overrides",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .distinct = "subject",
	  .shape = &override_shape,
	  .help = "Limits for single subjects." },
	{ .name = "mode",
	  .type = FIELD_TEXT,
	  .words = modes,
	  .help = "dry-run: count, but refuse nothing. Default: enforce." },
	{ .name = "penalty",
	  .type = FIELD_TEXT,
	  .check = check_penalty,
	  .help = "Back-off for clients that retry while refused: exponential:1s..60s, fast-slow:1s,30s,3, bucket:10/100, max-wait:60s, joined by +; or off." },
	{ .name = "keys",
	  .type = FIELD_NUMBER,
	  .max = PARSE_KEYS_MAX,
	  .help = "Number of buckets. 0: that of the server." },
	FIELDS_END,
};
const struct shape policy_own_limit_shape = {
	.fields = limit_fields,
	.check = check_limit,
	.late = true,
};
