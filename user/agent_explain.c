/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "weir/identity.h"

#include "agent_private.h"
#include "cleanup.h"
#include "explain.h"
#include "explain_request.h"
#include "metrics.h"
#include "output.h"
#include "server_rules.h"
#include "trace.h"

/* Everything about one question. */
struct explaining {
	struct net *net;
	const struct server *server;
	struct explain_request request;
	char *bytes; /* of the request */
	size_t length;
	struct weir_explained answer;
	char user[256], source[PARSE_LISTEN_TEXT]; /* what the user and the peer's address are called */
	__u64 source_subject;
};

/* --- names: the kernel remembers those that it has charged, and this request may be the first of its user */

/* The peer's address as a subject: IPv6 by its /64. */
static void name_source(struct explaining *x)
{
	struct datapath_cidr cidr = { .bits = 128 };

	memcpy(cidr.address, x->request.address, sizeof(cidr.address));
	if (!IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)cidr.address)) {
		memset(cidr.address + 8, 0, 8);
		cidr.bits = 64;
		format_cidr(&cidr, x->source);
	} else {
		format_address(cidr.address, x->source);
	}
	x->source_subject =
		datapath_subject(x->net->dp, WEIR_NAME_ADDRESS, cidr.address, sizeof(cidr.address));
}

static void name_user(struct explaining *x)
{
	const struct weir_explained *answer = &x->answer;

	if (answer->trace.source == WEIR_SOURCE_ANONYMOUS)
		snprintf(x->user, sizeof(x->user), "%s", x->source);
	else if (answer->user_name.length)
		datapath_name_text(&answer->user_name, x->user, sizeof(x->user));
	else if (x->request.user)
		snprintf(x->user, sizeof(x->user), "%s", x->request.user);
}

static char *subject_name(void *arg, __u64 subject)
{
	struct explaining *x = arg;

	if (subject == x->answer.trace.user && *x->user)
		return output_visible(x->user);
	if (subject == x->source_subject)
		return strdup(x->source);
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
	CLEANUP_FREE char *user = subject_name(x, x->answer.trace.user);
	CLEANUP_FREE char *namespace = namespace_subject ? net_name(x->net, namespace_subject) : NULL;
	struct weir_trace_record record = { .trace = x->answer.trace };
	const struct trace_context context = {
		.server = x->server->name,
		.user = user,
		.namespace = namespace,
		.subject = subject_of_segment,
		.arg = x->net->dp,
	};
	json_t *object;

	record.trace.n_refused = 0;
	if (record.trace.line_kept > sizeof(record.line))
		record.trace.line_kept = sizeof(record.line);
	memcpy(record.line, x->bytes, record.trace.line_kept);
	object = user ? trace_json(&record, &context) : NULL;
	json_object_del(object, "time");
	json_object_del(object, "server");
	json_object_del(object, "port");
	json_object_del(object, "decision");
	return object;
}

/* --- the command */

static int ask(struct explaining *x, int slot, struct error *err)
{
	struct datapath_question question = { .believed = x->request.user };
	int ret;

	x->bytes = explain_request_bytes(&x->request, &x->server->identity, &x->length);
	if (!x->bytes)
		return error_set(err, -ENOMEM, "out of memory");
	question.request = x->bytes;
	question.length = x->length;
	memcpy(question.source, x->request.address, sizeof(question.source));
	ret = datapath_explain(x->net->dp, slot, &question, &x->answer, err);
	if (ret)
		return ret;
	if (x->answer.lost < WEIR_REASON_COUNT)
		return error_set(err, -EINVAL, "this is not read as a request: %s (docs/operations.md has what that means)",
				 metrics_reasons[x->answer.lost].label);
	return x->answer.whole ? 0 : error_set(err, -EINVAL, "this is not read as a whole request");
}

static int tell(struct explaining *x, json_t **result, struct error *err)
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
	context.request = request_json(x);
	*result = context.request ? explain_json(&x->answer, &context) : NULL;
	json_decref(context.request);
	server_rules_list_free(rules, n);
	return *result ? 0 : error_set(err, -ENOMEM, "out of memory");
}

int agent_explain(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	struct explaining x = {};
	const char *name = NULL;
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
	ret = ask(&x, slot, err) ?: tell(&x, result, err);
	free(x.bytes);
	return ret;
}
