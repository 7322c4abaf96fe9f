/* SPDX-License-Identifier: GPL-2.0 */
#include "agent/events.h"

#include <string.h>

#include "agent/net.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "rules/identity.h"
#include "show/trace.h"

#define EVENTS_KEPT 1000 /* the latest */

bool event_is(enum weir_reason decision)
{
	return decision == WEIR_SHED || decision == WEIR_REJECTED;
}

/* --- in words */

static __u64 subject_of_segment(void *dp, const char *bytes, size_t length)
{
	return datapath_subject(dp, WEIR_NAME_NAMESPACE, bytes, length);
}

/* One that was deleted since has no name any more. */
static size_t name_limits(const struct server *server, const struct weir_trace *trace, char names[][SLOT_NAME_SIZE],
			  const char *limits[])
{
	size_t n = trace->n_refused < WEIR_MATCHES_MAX ? trace->n_refused : WEIR_MATCHES_MAX;

	for (size_t i = 0; i < n; i++) {
		server_slot_name(server, trace->refused[i], names[i]);
		limits[i] = *names[i] ? names[i] : "(deleted)";
	}
	return n;
}

json_t *event_json(struct net *net, const struct weir_trace_record *record)
{
	const struct weir_trace *trace = &record->trace;
	CLEANUP_FREE char *user = net_name(net, trace->user);
	CLEANUP_FREE char *namespace = trace->attributes.namespace ? net_name(net, trace->attributes.namespace) : NULL;
	const struct server *server = net->agent->state.servers[trace->server];
	CLEANUP_JSON json_t *groups = identity_group_names(&server->identity, &trace->groups);
	__u64 ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC) + trace->time_ns;
	char names[WEIR_MATCHES_MAX][SLOT_NAME_SIZE];
	const char *limits[WEIR_MATCHES_MAX];
	const struct trace_context context = {
		.server = server->name,
		.user = user,
		.namespace = namespace,
		.groups = groups,
		.time = { .tv_sec = ns / WEIR_NS_PER_S, .tv_nsec = ns % WEIR_NS_PER_S },
		.limits = limits,
		.n_limits = name_limits(server, trace, names, limits),
		.subject = subject_of_segment,
		.arg = net->dp,
	};

	return user ? trace_json(record, &context) : NULL;
}

/* --- those that are kept */

void event_keep(struct agent *agent, json_t *event)
{
	if (!event || json_array_append(agent->events, event))
		return;
	if (json_array_size(agent->events) > EVENTS_KEPT)
		json_array_remove(agent->events, 0);
}

bool event_is_of(json_t *event, const char *server)
{
	return !server || !strcmp(json_string_value(json_object_get(event, "server")), server);
}
