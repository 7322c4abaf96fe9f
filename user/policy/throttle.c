/* SPDX-License-Identifier: GPL-2.0 */
/* What a Throttle may say: a server as `weir attach` has it, and its limits (limit_fields.c). */
#include <errno.h>

#include "weir/inside/share.h"
#include "weir/inside/turn.h"

#include "model/parse.h"
#include "model/tenancy.h"
#include "policy/kinds.h"
#include "state/state.h"

#define TEXT(field, words_help)                                           \
	{                                                                 \
		.name = (field), .type = FIELD_TEXT, .help = (words_help) \
	}

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

/* A path, or the name of one. */
static int check_not_empty(const struct field *field, const char *text, struct error *err)
{
	(void)field;
	return *text ? 0 : error_set(err, -EINVAL, "the path is empty");
}

/* The agent's working directory is another one than that of who wrote the file. */
static int check_absolute(const struct field *field, const char *text, struct error *err)
{
	(void)field;
	return *text == '/' ? 0 : error_set(err, -EINVAL, "must be an absolute path");
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
	TEXT("userHeader", "Header in which trusted proxies name the user. Default: X-Remote-User."),
	TEXT("groupHeader", "Header in which trusted proxies name a group. Default: X-Remote-Group."),
	{ .name = "exemptGroups",
	  .type = FIELD_TEXT,
	  .list = true,
	  .help = "Groups that are exempt from all limits. Default: system:masters." },
	{ .name = "exemptUsers", .type = FIELD_TEXT, .list = true, .help = "Users that are exempt from all limits." },
	TEXT("tokenFile", "CSV file of bearer tokens, an absolute path."),
	TEXT("addressFile", "CSV file of networks and their users, an absolute path."),
	{ .name = "addresses",
	  .type = FIELD_TEXT,
	  .list = true,
	  .help = "Rows like those of that file: CIDR,user,groups,namespace." },
	TEXT("newSubjects", "Rate at which new subjects of a limit get a bucket of their own: QPS or QPS:BURST."),
	FIELDS_END,
};
static const struct shape identity_shape = { .fields = identity_fields, .check = check_identity };

static const char *const loopback_words[] = { "auto", "translate", "close", NULL };
static const char *const framing_words[] = { "reject", "pass", NULL };
static const char *const bodies_words[] = { "auto", "unread", "read", NULL };
static const char *const paths_words[] = { "kubernetes", "nginx", "raw", NULL };
static const char *const hold_words[] = { "auto", "pace", "drop", NULL };
static const char *const inside_words[] = { "off", "see", "answer", "hold", "auto", NULL };
static const char *const refusals_words[] = { "named", "plain", NULL };
static const char *const xdp_words[] = { "auto", "native", "generic", "off", NULL };
static const char *const syn_cookies_words[] = { "kernel", "xdp", NULL };
static const char *const full_words[] = { "known", "open", "closed", NULL };

static const struct field max_in_flight_fields[] = {
	{ .name = "readOnly",
	  .type = FIELD_NUMBER,
	  .max = WEIR_BURST_MAX,
	  .help = "get, list and watch requests. 0: no limit." },
	{ .name = "mutating", .type = FIELD_NUMBER, .max = WEIR_BURST_MAX, .help = "All other requests. 0: no limit." },
	FIELDS_END,
};
static const struct shape max_in_flight_shape = { .fields = max_in_flight_fields };

static const struct field spec_fields[] = {
	{ .name = "listen",
	  .type = FIELD_TEXT,
	  .list = true,
	  .check = check_listen,
	  .help = "Where the server listens: ADDR:PORT or *:PORT. With it, apply attaches the server." },
	{ .name = "netns",
	  .type = FIELD_TEXT,
	  .check = check_not_empty,
	  .help = "Network namespace: a path, or a name below /run/netns." },
	{ .name = "cgroup",
	  .type = FIELD_TEXT,
	  .check = check_absolute,
	  .help = "What cannot be read is held at the sockets of this cgroup2 directory (default: the root). While one of the server's listening sockets was made outside, it is the root, with a warning." },
	{ .name = "interfaces",
	  .type = FIELD_TEXT,
	  .list = true,
	  .check = check_interface,
	  .help = "Interfaces to watch. Default: all." },
	{ .name = "trustedProxies",
	  .type = FIELD_TEXT,
	  .list = true,
	  .most = WEIR_MAX_PROXIES,
	  .check = check_cidr,
	  .help = "Peers whose identity headers are believed, as CIDR." },
	{ .name = "proxyProtocol",
	  .type = FIELD_TEXT,
	  .list = true,
	  .most = WEIR_MAX_PROXIES,
	  .check = check_cidr,
	  .help = "Every connection begins with a PROXY protocol preamble. Peers whose preambles are believed, as CIDR." },
	{ .name = "identity", .type = FIELD_OBJECT, .shape = &identity_shape, .help = "How requests are identified." },
	{ .name = "loopback",
	  .type = FIELD_TEXT,
	  .words = loopback_words,
	  .help = "Connections on loopback after a 429: close if conntrack tracks loopback (auto), keep open, or close." },
	{ .name = "framing",
	  .type = FIELD_TEXT,
	  .words = framing_words,
	  .help = "Ambiguous requests: answer 400, or pass them to the server and hold the connection." },
	{ .name = "bodies",
	  .type = FIELD_TEXT,
	  .words = bodies_words,
	  .help = "Does the server read requests' bodies, or does it leave some unread and take them for requests? See --bodies." },
	{ .name = "paths", .type = FIELD_TEXT, .words = paths_words, .help = "How the server reads paths." },
	{ .name = "namespaceFrom",
	  .type = FIELD_TEXT,
	  .check = check_namespace_from,
	  .help = "What names a request's namespace: path, segment=N, prefix=/A/B/ or header=NAME." },
	{ .name = "hold",
	  .type = FIELD_TEXT,
	  .words = hold_words,
	  .help = "How unreadable traffic over a limit is held." },
	{ .name = "whenFull",
	  .type = FIELD_TEXT,
	  .words = full_words,
	  .help = "Connections and requests for which weir's tables have no room. See --when-full." },
	{ .name = "inside",
	  .type = FIELD_TEXT,
	  .words = inside_words,
	  .help = "Limit requests inside the server, behind TLS and HTTP/2. Default: auto. See --inside." },
	{ .name = "insideShare",
	  .type = FIELD_NUMBER,
	  .min = 1,
	  .max = WEIR_INSIDE_ALL,
	  .help = "Percent of connections of which the server refuses requests. Of the others they pass, and are counted. Default: 100." },
	{ .name = "writeMemory",
	  .type = FIELD_FLAG,
	  .help = "true: where weir may not write a server's registers, it writes its memory to have it refuse requests. See --write-memory." },
	{ .name = "holdMax",
	  .type = FIELD_NUMBER,
	  .min = 1,
	  .max = WEIR_TURN_HOLD_LIMIT_S,
	  .help = "The longest that a connection is held with inside: hold, in seconds. Default: 10." },
	{ .name = "refusals",
	  .type = FIELD_TEXT,
	  .words = refusals_words,
	  .help = "Answers to refused requests: named (they say that weir refused, and by which limit) or plain." },
	{ .name = "xdp",
	  .type = FIELD_TEXT,
	  .words = xdp_words,
	  .help = "Refuse connections at XDP, before tc. See --xdp." },
	{ .name = "synCookies",
	  .type = FIELD_TEXT,
	  .words = syn_cookies_words,
	  .help = "Who answers SYNs with cookies in a flood of them. See --syn-cookies." },
	{ .name = "maxRetryAfter",
	  .type = FIELD_NUMBER,
	  .min = 1,
	  .max = WEIR_RETRY_MAX_S,
	  .help = "The longest Retry-After that is told, in seconds. Default: 3600." },
	{ .name = "keys",
	  .type = FIELD_NUMBER,
	  .max = PARSE_KEYS_MAX,
	  .help = "Number of buckets for each limit. 0: 65536, the default." },
	{ .name = "dryRun", .type = FIELD_FLAG, .help = "true: decide and count, but refuse nothing." },
	{ .name = "paused", .type = FIELD_FLAG, .help = "true: all requests pass." },
	{ .name = "maxInFlight",
	  .type = FIELD_OBJECT,
	  .shape = &max_in_flight_shape,
	  .help = "Requests in flight, limited as kube-apiserver does." },
	{ .name = "priorityLevels",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .most = WEIR_SERVER_LIMITS,
	  .distinct = "name",
	  .shape = &policy_own_level_shape,
	  .help = "Priority levels, for any API." },
	{ .name = "flowSchemas",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .most = WEIR_RULES_MAX,
	  .distinct = "name",
	  .shape = &policy_own_schema_shape,
	  .help = "Which requests belong to which priority level." },
	{ .name = "concurrency",
	  .type = FIELD_NUMBER,
	  .min = 1,
	  .max = WEIR_BURST_MAX,
	  .help = "Seats that the priority levels share. Default: 600." },
	{ .name = "listWidth",
	  .type = FIELD_NUMBER,
	  .max = WEIR_SEATS_MAX,
	  .help = "Seats that a LIST takes. 0, the default: learned from the size of the latest answers to it, and 1 until it is known to be wide." },
	{ .name = "listObjectBytes",
	  .type = FIELD_NUMBER,
	  .max = STATE_OBJECT_BYTES_MAX,
	  .help = "Mean size of an object in the answer to a LIST, in bytes. 100 objects are a seat. 0, the default: 1000." },
	{ .name = "exempt",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .most = WEIR_RULES_MAX,
	  .shape = &policy_own_rule_shape,
	  .help = "Requests that are exempt from all limits: one rule must match." },
	{ .name = "limits",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .most = WEIR_SERVER_LIMITS,
	  .distinct = "name",
	  .shape = &policy_own_limit_shape,
	  .help = "Limits." },
	FIELDS_END,
};
static const struct shape spec_shape = { .fields = spec_fields };

static const struct field metadata_fields[] = {
	{ .name = "name",
	  .type = FIELD_TEXT,
	  .required = true,
	  .check = check_server_name,
	  .help = "Name of the server." },
	{ .name = "labels", .type = FIELD_IGNORED },
	{ .name = "annotations", .type = FIELD_IGNORED },
	FIELDS_END,
};
static const struct shape metadata_shape = { .fields = metadata_fields };

static const struct field throttle_fields[] = {
	{ .name = "apiVersion", .type = FIELD_TEXT, .required = true },
	{ .name = "kind", .type = FIELD_TEXT, .required = true },
	{ .name = "metadata", .type = FIELD_OBJECT, .required = true, .shape = &metadata_shape },
	{ .name = "spec", .type = FIELD_OBJECT, .required = true, .shape = &spec_shape },
	FIELDS_END,
};
const struct shape policy_throttle_shape = { .fields = throttle_fields };
