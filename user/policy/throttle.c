/* SPDX-License-Identifier: GPL-2.0 */
/* What a Throttle may say: a server as `weir attach` has it, and its limits as limit.h has them. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/backoff_text.h"
#include "model/key.h"
#include "model/limit.h"
#include "model/parse.h"
#include "model/tenancy.h"
#include "policy/kinds.h"
#include "state/state.h"

#define TEXT(field, words_help)                                       \
	{                                                             \
		.name = field, .type = FIELD_TEXT, .help = words_help \
	}
#define END       \
	{         \
		0 \
	}

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

#define CONDITION(field, text_help)                                                                          \
	{                                                                                                    \
		.name = field, .type = FIELD_TEXT, .list = true, .check = check_condition, .help = text_help \
	}

static const struct field rule_fields[] = {
	CONDITION("users", "whose requests: one of these users, or one in one of the groups; * is any"),
	CONDITION("groups", "or of a member of one of these groups; * is any"),
	CONDITION("verbs", "get, list, watch, create, update, patch, delete, deletecollection, ..."),
	{ .name = "longRunning",
	  .type = FIELD_FLAG,
	  .help = "only requests that are (not) long-running: watches, ..." },
	CONDITION("apiGroups", "API groups of the resources; \"\" is the core group, * is any"),
	CONDITION("resources", "like pods, or pods/log; * is any"),
	CONDITION("subresources", "of the resources; \"\" is none"),
	CONDITION("namespaces", "* is any, but not none"),
	{ .name = "clusterScope", .type = FIELD_FLAG, .help = "requests of no namespace, too" },
	CONDITION("paths", "/healthz is itself, /healthz/* all below it, * is any"),
	{ .name = "nonResource", .type = FIELD_FLAG, .help = "only requests for no resource" },
	CONDITION("sources", "networks that the peer's address is in, as CIDR"),
	END,
};
const struct shape policy_own_rule_shape = { rule_fields, check_rule };

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

#define AMOUNT                                                                                                \
	{ .name = "qps", .type = FIELD_RATE, .help = "requests a second" },                                   \
		{ .name = "burst", .type = FIELD_NUMBER, .max = WEIR_BURST_MAX, .help = "requests at once" }, \
	{                                                                                                     \
		.name = "inFlight", .type = FIELD_NUMBER, .max = WEIR_BURST_MAX,                              \
		.help = "in place of qps and burst: requests being served at one time"                        \
	}

static const char *const modes[] = { "enforce", "dry-run", NULL };

static const struct field override_fields[] = {
	{ .name = "subject",
	  .type = FIELD_TEXT,
	  .required = true,
	  .help = "whom it is for; of a combined key in the order namespace, user, group, source: ns1/alice" },
	AMOUNT,
	END,
};
static const struct shape override_shape = { override_fields, NULL };

static const struct field limit_fields[] = {
	{ .name = "name",
	  .type = FIELD_TEXT,
	  .required = true,
	  .check = check_limit_name,
	  .help = "total, namespace and user are for all requests, source-and-object is for Events; others have a key" },
	{ .name = "key",
	  .type = FIELD_TEXT,
	  .check = check_key,
	  .help = "total, or namespace, user, group, source, object, or several with commas between" },
	AMOUNT,
	{ .name = "rules",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .most = WEIR_RULES_MAX,
	  .shape = &policy_own_rule_shape,
	  .help = "the requests that it is for: those that one of these matches; none: all" },
	{ .name = "overrides",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .shape = &override_shape,
	  .help = "what single subjects have instead" },
	{ .name = "mode", .type = FIELD_TEXT, .words = modes, .help = "dry-run: counted, and nothing is refused" },
	{ .name = "penalty",
	  .type = FIELD_TEXT,
	  .check = check_penalty,
	  .help = "for those who go on while they are refused: exponential:1s..60s, fast-slow:1s,30s,3, ..., off" },
	{ .name = "keys", .type = FIELD_NUMBER, .max = PARSE_KEYS_MAX, .help = "buckets kept; 0: as the server has" },
	END,
};
static const struct shape limit_shape = { limit_fields, check_limit };

/* --- the server */

static int check_listen(const struct field *field, const char *text, struct error *err)
{
	struct datapath_listen listen;

	(void)field;
	return parse_listen(text, &listen, err);
}

static int check_cidr(const struct field *field, const char *text, struct error *err)
{
	struct datapath_cidr cidr;

	(void)field;
	return parse_cidr(text, &cidr, err);
}

static int check_interface(const struct field *field, const char *text, struct error *err)
{
	(void)field;
	return parse_interface(text, err);
}

static int check_namespace_from(const struct field *field, const char *text, struct error *err)
{
	struct tenancy tenancy = { 0 };

	(void)field;
	return namespace_from_parse(text, &tenancy, err);
}

static int check_server_name(const struct field *field, const char *text, struct error *err)
{
	(void)field;
	return parse_server_name(text, err);
}

static int check_identity(json_t *json, struct error *err)
{
	struct identity_settings settings = { 0 };
	int ret = identity_settings_from_json(json, &settings, err);

	identity_settings_clear(&settings);
	return ret;
}

static const struct field identity_fields[] = {
	TEXT("userHeader", "the header of trusted proxies that names the user (x-remote-user)"),
	TEXT("groupHeader", "and the one that names groups (x-remote-group)"),
	{ .name = "exemptGroups",
	  .type = FIELD_TEXT,
	  .list = true,
	  .help = "groups that no limit is for (system:masters)" },
	{ .name = "exemptUsers", .type = FIELD_TEXT, .list = true, .help = "users that no limit is for" },
	TEXT("tokenFile", "tokens and whose they are: an absolute path"),
	TEXT("addressFile", "addresses and whose they are: an absolute path"),
	{ .name = "addresses", .type = FIELD_TEXT, .list = true, .help = "lines like those of such a file" },
	TEXT("newSubjects", "how many may be new to a limit: QPS or QPS:BURST"),
	END,
};
static const struct shape identity_shape = { identity_fields, check_identity };

static const char *const loopback_words[] = { "auto", "translate", "close", NULL };
static const char *const framing_words[] = { "reject", "pass", NULL };
static const char *const paths_words[] = { "kubernetes", "nginx", "raw", NULL };
static const char *const hold_words[] = { "auto", "pace", "drop", NULL };
static const char *const full_words[] = { "open", "closed", NULL };

static const struct field max_in_flight_fields[] = {
	{ .name = "readOnly",
	  .type = FIELD_NUMBER,
	  .max = WEIR_BURST_MAX,
	  .help = "requests that get, list or watch; 0: no limit" },
	{ .name = "mutating", .type = FIELD_NUMBER, .max = WEIR_BURST_MAX, .help = "all others; 0: no limit" },
	END,
};
static const struct shape max_in_flight_shape = { max_in_flight_fields, NULL };

static const struct field spec_fields[] = {
	{ .name = "listen",
	  .type = FIELD_TEXT,
	  .list = true,
	  .check = check_listen,
	  .help = "ADDR:PORT, *:PORT: where the server listens; applied, the server is attached" },
	TEXT("netns", "its network namespace: a path, or a name below /run/netns"),
	TEXT("cgroup", "its directory of the cgroup2 hierarchy"),
	{ .name = "interfaces",
	  .type = FIELD_TEXT,
	  .list = true,
	  .check = check_interface,
	  .help = "the interfaces to watch; none: all" },
	{ .name = "trustedProxies",
	  .type = FIELD_TEXT,
	  .list = true,
	  .check = check_cidr,
	  .help = "peers whose headers name the user and groups" },
	{ .name = "proxyProtocol",
	  .type = FIELD_TEXT,
	  .list = true,
	  .check = check_cidr,
	  .help = "its connections begin with a PROXY protocol preamble: peers whose word is taken" },
	{ .name = "identity", .type = FIELD_OBJECT, .shape = &identity_shape, .help = "whose a request is" },
	{ .name = "loopback", .type = FIELD_TEXT, .words = loopback_words, .help = "over-limit requests on loopback" },
	{ .name = "framing", .type = FIELD_TEXT, .words = framing_words, .help = "ambiguous requests" },
	{ .name = "paths", .type = FIELD_TEXT, .words = paths_words, .help = "how the server reads paths" },
	{ .name = "namespaceFrom",
	  .type = FIELD_TEXT,
	  .check = check_namespace_from,
	  .help = "what names a request's namespace: path, segment=N, prefix=/A/B/, header=NAME" },
	{ .name = "hold", .type = FIELD_TEXT, .words = hold_words, .help = "what cannot be read and is over a limit" },
	{ .name = "whenFull", .type = FIELD_TEXT, .words = full_words, .help = "what finds no room in weir's tables" },
	{ .name = "keys", .type = FIELD_NUMBER, .max = PARSE_KEYS_MAX, .help = "buckets kept for each limit" },
	{ .name = "dryRun", .type = FIELD_FLAG, .help = "decide and count, shed nothing" },
	{ .name = "paused", .type = FIELD_FLAG, .help = "let everything pass" },
	{ .name = "maxInFlight",
	  .type = FIELD_OBJECT,
	  .shape = &max_in_flight_shape,
	  .help = "requests at one time, as kube-apiserver limits them" },
	{ .name = "priorityLevels",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .most = WEIR_SERVER_LIMITS,
	  .shape = &policy_own_level_shape,
	  .help = "priority levels, as PriorityLevelConfigurations are" },
	{ .name = "flowSchemas",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .most = WEIR_RULES_MAX,
	  .shape = &policy_own_schema_shape,
	  .help = "which requests are of which level, as FlowSchemas say it" },
	{ .name = "concurrency",
	  .type = FIELD_NUMBER,
	  .min = 1,
	  .max = WEIR_BURST_MAX,
	  .help = "the seats that priority levels share" },
	{ .name = "listWidth",
	  .type = FIELD_NUMBER,
	  .max = WEIR_SEATS_MAX,
	  .help = "the seats that a LIST takes; 0: by the size of the latest answers to it, 1 until it is known to be wide" },
	{ .name = "listObjectBytes",
	  .type = FIELD_NUMBER,
	  .max = STATE_OBJECT_BYTES_MAX,
	  .help = "bytes of an object in an answer to a LIST, 100 of which are a seat; 0: 1000" },
	{ .name = "exempt",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .most = WEIR_RULES_MAX,
	  .shape = &policy_own_rule_shape,
	  .help = "requests that no limit is for" },
	{ .name = "limits",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .most = WEIR_SERVER_LIMITS,
	  .shape = &limit_shape,
	  .help = "its limits" },
	END,
};
static const struct shape spec_shape = { spec_fields, NULL };

static const struct field metadata_fields[] = {
	{ .name = "name",
	  .type = FIELD_TEXT,
	  .required = true,
	  .check = check_server_name,
	  .help = "the server's name" },
	{ .name = "labels", .type = FIELD_IGNORED },
	{ .name = "annotations", .type = FIELD_IGNORED },
	END,
};
static const struct shape metadata_shape = { metadata_fields, NULL };

static const struct field throttle_fields[] = {
	{ .name = "apiVersion", .type = FIELD_TEXT, .required = true },
	{ .name = "kind", .type = FIELD_TEXT, .required = true },
	{ .name = "metadata", .type = FIELD_OBJECT, .required = true, .shape = &metadata_shape },
	{ .name = "spec", .type = FIELD_OBJECT, .required = true, .shape = &spec_shape },
	END,
};
const struct shape policy_throttle_shape = { throttle_fields, NULL };
