/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/limit_counts.h"
#include "agent/net.h"
#include "agent/servers.h"
#include "commands/commands.h"
#include "weir/http/identity.h"

#include "agent/agent.h"
#include "agent/inside.h"
#include "base/cleanup.h"
#include "base/output.h"
#include "metrics/metrics.h"
#include "model/key.h"
#include "model/parse.h"
#include "rules/identity.h"
#include "rules/server_rules.h"
#include "show/explain.h"
#include "show/explain_request.h"
#include "show/trace.h"

#define ANONYMOUS "system:anonymous" /* Kubernetes' name for who has not authenticated */

/* Everything about one question. */
struct explaining {
	struct net *net;
	const struct server *server;
	struct explain_request request;
	__u32 inside; /* enum weir_explain_inside */
	char *bytes;  /* of the request */
	size_t length;
	struct weir_explained answer;
	char *user, *namespace;		/* what they are called, as far as the request or the kernel says; else NULL */
	char source[PARSE_LISTEN_TEXT]; /* the peer's address, or its network */
	__u64 source_subject;
};

static void explaining_clear(struct explaining *x)
{
	free(x->bytes);
	free(x->user);
	free(x->namespace);
}
#define CLEANUP_EXPLAINING __attribute__((cleanup(explaining_clear)))

/* --- names: the kernel remembers those that it has charged, and this request may be the first of its user */

/* The peer's address as a subject. */
static void name_source(struct explaining *x)
{
	struct datapath_cidr source = source_counted(x->request.address);

	format_source(&source, x->source);
	x->source_subject = datapath_subject(x->net->dp, WEIR_NAME_ADDRESS, source.address, sizeof(source.address));
}

/* What the request's first header of this name says; NULL: it has none. */
static const char *header_value(const struct explaining *x, const char *header)
{
	size_t length = strlen(header), i;
	json_t *item;

	json_array_foreach (x->request.headers, i, item) {
		const char *text = json_string_value(item);

		if (strncasecmp(text, header, length) == 0 && text[length] == ':')
			return text + length + 1 + strspn(text + length + 1, " \t");
	}
	return NULL;
}

/* NULL where the name does not stand for the subject. */
static char *name_if(const struct explaining *x, enum weir_name_kind kind, const char *name, __u64 subject)
{
	bool right = name && datapath_subject(x->net->dp, kind, name, strlen(name)) == subject;

	return right ? output_visible(name) : NULL;
}

/* Of a network, or of the header that names it. One that is in the path is found there (request_json()). */
static void name_namespace(struct explaining *x)
{
	const char *header = x->server->tenancy.header;
	__u64 subject = x->answer.trace.attributes.namespace;
	char text[256];

	if (!subject)
		return;
	if (x->answer.namespace_name.length) {
		datapath_name_text(&x->answer.namespace_name, text, sizeof(text));
		x->namespace = strdup(text);
	} else if (*header) {
		x->namespace = name_if(x, WEIR_NAME_NAMESPACE, header_value(x, header), subject);
	}
}

static void name_user(struct explaining *x)
{
	const struct weir_explained *answer = &x->answer;
	__u64 subject = answer->trace.user;
	char text[256];

	if (answer->trace.by == WEIR_IDENTIFIED_BY_NOBODY) {
		x->user = strdup(x->source);
	} else if (answer->user_name.length) {
		datapath_name_text(&answer->user_name, text, sizeof(text));
		x->user = strdup(text);
	} else {
		x->user = name_if(x, WEIR_NAME_USER,
				  x->request.user ?: header_value(x, x->server->identity.user_header), subject);
	}
}

/* A key's parts, of those that have names here. */
static char *combined_name(const struct explaining *x, __u8 key, __u64 subject)
{
	const struct {
		enum weir_key_part part;
		__u64 subject;
		const char *name;
	} parts[] = { { WEIR_KEY_NAMESPACE, x->answer.trace.attributes.namespace, x->namespace },
		      { WEIR_KEY_USER, x->answer.trace.user, x->user },
		      { WEIR_KEY_SOURCE, x->source_subject, x->source } };
	__u64 pair = 0;
	char *text = NULL;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		CLEANUP_FREE char *before = text;

		if (!(key & parts[i].part)) {
			before = NULL;
			continue;
		}
		pair = pair ? weir_pair(pair, parts[i].subject) : parts[i].subject;
		if (asprintf(&text, "%s%s%s", before ?: "", before ? "/" : "", parts[i].name ?: "?") < 0)
			return NULL;
	}
	if (pair == subject)
		return text;
	free(text);
	return NULL;
}

static char *subject_name(void *arg, __u64 subject)
{
	const __u8 known = WEIR_KEY_NAMESPACE | WEIR_KEY_USER | WEIR_KEY_SOURCE;
	struct explaining *x = arg;

	for (__u8 key = 1; key <= known; key++) {
		char *name = key & ~known ? NULL : combined_name(x, key, subject);

		if (name && !strchr(name, '?'))
			return name;
		free(name);
	}
	return net_name(x->net, subject);
}

static __u64 subject_of_segment(void *dp, const char *bytes, size_t length)
{
	return datapath_subject(dp, WEIR_NAME_NAMESPACE, bytes, length);
}

/* --- the request as it was read: as `weir trace` tells it, without what there is only of one that has come */

static json_t *request_json(struct explaining *x)
{
	const __u64 namespace_subject = x->answer.trace.attributes.namespace;
	CLEANUP_FREE char *user = x->user ? strdup(x->user) : net_name(x->net, x->answer.trace.user);
	CLEANUP_FREE char *namespace = x->namespace	 ? strdup(x->namespace) :
				       namespace_subject ? net_name(x->net, namespace_subject) :
							   NULL;
	CLEANUP_JSON json_t *groups = identity_group_names(&x->server->identity, &x->answer.trace.groups);
	struct weir_trace_record record = { .trace = x->answer.trace };
	const struct trace_context context = {
		.server = x->server->name,
		.user = user,
		.namespace = namespace,
		.groups = groups,
		.subject = subject_of_segment,
		.arg = x->net->dp,
	};
	json_t *object;

	record.trace.n_refused = 0;
	if (record.trace.line_kept > sizeof(record.line))
		record.trace.line_kept = sizeof(record.line);
	memcpy(record.line, x->bytes, record.trace.line_kept);
	object = user ? trace_json(&record, &context) : NULL;
	if (!x->namespace && namespace_subject && json_is_string(json_object_get(object, "namespace")))
		x->namespace = strdup(json_string_value(json_object_get(object, "namespace")));
	json_object_del(object, "time");
	json_object_del(object, "monotonic_ns");
	json_object_del(object, "server");
	json_object_del(object, "port");
	json_object_del(object, "decision");
	return object;
}

/*
 * Who answers the address' SYN in a flood of SYNs (weir/admission/cookie.h). NULL: its SYN is refused, or XDP answers none here in any case.
 */
static const char *flood_answered_by(const struct explaining *x)
{
	const struct weir_trace *trace = &x->answer.trace;

	if (x->server->syn_cookies != SYN_COOKIES_XDP || x->server->xdp == XDP_OFF ||
	    trace->decision == WEIR_ADMISSION_DROPPED || trace->decision == WEIR_ADMISSION_RESET)
		return NULL;
	if (x->server->paused || x->server->dry_run || trace->decision == WEIR_ADMISSION_EXEMPT || !trace->user ||
	    datapath_connections_of(x->net->dp, x->source_subject))
		return "kernel";
	return "xdp";
}

/* What is known of a connection before its first byte. */
static json_t *connection_json(const struct explaining *x)
{
	const struct weir_trace *trace = &x->answer.trace;

	return json_pack("{s:s, s:s?, s:s, s:s?, s:s*}", "client", x->source, "user", trace->user ? x->user : NULL,
			 "identified_by", metrics_reasons[weir_identified_reason(trace->by)].label, "namespace",
			 x->namespace, "flood_answered_by", flood_answered_by(x));
}

/* --- the command */

/* The first question has a program loaded. */
static int ask_kernel(struct explaining *x, int slot, const struct datapath_question *question, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(x->net->agent);

	return datapath_explain(x->net->dp, slot, question, &x->answer, err);
}

static int ask(struct explaining *x, int slot, struct error *err)
{
	struct datapath_question question = { .believed = x->request.user, .inside = x->inside };
	int ret;

	x->bytes = explain_request_bytes(&x->request, &x->server->identity, &x->length);
	if (!x->bytes)
		return error_set(err, -ENOMEM, "out of memory");
	question.request = x->bytes;
	question.length = x->length;
	memcpy(question.source, x->request.address, sizeof(question.source));
	ret = ask_kernel(x, slot, &question, err);
	if (ret)
		return ret;
	if (x->answer.lost < WEIR_REASON_COUNT)
		return error_set(err, -EINVAL, "this is not a request that weir can read (%s). %s",
				 metrics_reasons[x->answer.lost].label, metrics_reason_help(x->answer.lost));
	return x->answer.whole ? 0 : error_set(err, -EINVAL, "this is not a complete request");
}

static int tell(struct explaining *x, const char *lane, json_t **result, struct error *err)
{
	struct server_rule *rules = NULL;
	int n = server_rules_list(x->server, &rules, err);
	struct explain_context context = {
		.server = x->server, .rules = rules, .n_rules = n, .name = subject_name, .arg = x
	};

	if (n < 0)
		return n;
	name_source(x);
	name_user(x);
	name_namespace(x);
	context.about = x->request.connection ? "connection" : "request";
	context.lane = lane;
	context.request = x->request.connection ? connection_json(x) : request_json(x);
	*result = context.request ? explain_json(&x->answer, &context) : NULL;
	json_decref(context.request);
	server_rules_list_free(rules, n);
	return *result ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* What nobody reads inside the server is left out of the question. */
static void ask_inside(struct explaining *x)
{
	if (!x->inside)
		return;
	x->request.headers = NULL;
	x->request.body = NULL;
	if (x->inside & WEIR_EXPLAIN_BARE || (x->request.user && !strcmp(x->request.user, ANONYMOUS)))
		x->request.user = NULL;
	if (x->inside & WEIR_EXPLAIN_BARE)
		x->request.groups = NULL;
}

/* As the kernel has it (peer_is_of_many()): such a sender's address is no subject of a connection. */
static bool is_of_many(const struct explaining *x)
{
	const struct server *server = x->server;

	for (size_t i = 0; i < server->n_proxies; i++)
		if (cidr_covers(&server->proxies[i], x->request.address))
			return true;
	for (size_t i = 0; i < server->n_balancers; i++)
		if (cidr_covers(&server->balancers[i], x->request.address))
			return true;
	return false;
}

static void warn_of_many(const struct explaining *x, json_t *result)
{
	if (is_of_many(x))
		json_object_set_new(
			result, "warnings",
			json_pack("[s+]", x->source,
				  " brings the connections of many (--trusted-proxy, --proxy-protocol): limits for its "
				  "address are not for its connections"));
}

/* What is explained is a request that can be read. */
static void warn(const struct agent *agent, int slot, json_t *result)
{
	CLEANUP_FREE char *unread = inside_explained(agent, slot) ? NULL : server_unread(agent, slot);

	if (unread)
		json_object_set_new(result, "warnings",
				    json_pack("[s+]", unread,
					      ": limits for users, namespaces, groups and paths have no effect on "
					      "them. Only limits for addresses and for the whole server do"));
}

int agent_explain(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_EXPLAINING struct explaining x = {};
	const char *name = NULL, *lane;
	json_t *request = NULL;
	json_error_t why;
	int slot, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s:o !}", "server", &name, "request", &request))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	slot = server_named(agent, name, err);
	if (slot < 0)
		return slot;
	ret = explain_request_from_json(request, &x.request, err);
	if (ret)
		return ret;
	x.server = agent->state.servers[slot];
	if (!agent->servers[slot].in_force)
		return error_set(err, -EAGAIN, "server \"%s\" is not in force: %s", x.server->name,
				 agent->servers[slot].problem.text);
	x.net = server_net(agent, x.server);
	x.inside = x.request.connection ? 0 : inside_explained(agent, slot);
	ask_inside(&x);
	lane = x.request.connection ? NULL : inside_lane(agent, slot);
	ret = ask(&x, slot, err) ?: tell(&x, lane, result, err);
	if (!ret && x.request.connection)
		warn_of_many(&x, *result);
	if (ret || !lane)
		return ret;
	json_object_set_new(*result, "lane", json_string(lane));
	warn(agent, slot, *result);
	return 0;
}
