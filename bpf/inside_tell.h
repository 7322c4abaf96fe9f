/* SPDX-License-Identifier: GPL-2.0 */
/* Reports a request inside a server: to the trace, to top, and in the counters. */
#ifndef WEIR_BPF_INSIDE_TELL_H
#define WEIR_BPF_INSIDE_TELL_H

#include "inside_about.h"

#define INSIDE_METHOD_MAX 16
#define INSIDE_TARGET_MAX (WEIR_TRACE_LINE - INSIDE_METHOD_MAX - 1)

/* "GET /api": as much of it as there is room for. What cannot be read is left out: it was decided without it. */
static __noinline int inside_line(struct inside_request *r)
{
	struct weir_inside_string method, uri;
	struct weir_trace *t;
	__u32 n, length;

	if (!r || !r->http.method.length)
		return 0;
	t = &r->record.trace;
	method = r->http.method;
	uri = r->http.uri;
	n = method.length < INSIDE_METHOD_MAX ? method.length : INSIDE_METHOD_MAX;
	WEIR_BARRIER(n);
	if (n > INSIDE_METHOD_MAX || bpf_probe_read_user(r->record.line, n, (const void *)method.at))
		return 0;
	r->record.line[n] = ' ';
	n++;
	length = uri.length < INSIDE_TARGET_MAX ? uri.length : INSIDE_TARGET_MAX;
	WEIR_BARRIER(length);
	if (length > INSIDE_TARGET_MAX || bpf_probe_read_user(r->record.line + n, length, (const void *)uri.at))
		return 0;
	t->line_kept = n + length;
	t->line_length = uri.length < 0xffff - WEIR_TRACE_LINE ? n + uri.length : 0xffff;
	return 0;
}

static __noinline int inside_tell(struct inside_request *r, const struct weir_inside_process *process, __u32 decision)
{
	struct weir_trace *t;
	__u32 kept;

	if (!r || !process)
		return 0;
	t = &r->record.trace;
	inside_remember_user(r);
	inside_name_object(r, process);
	inside_line(r);
	t->time_ns = r->now_ns;
	t->server = process->server;
	t->decision = decision;
	t->flags = WEIR_REQUEST_CHUNKED; /* its body's length is not asked for */
	t->client_port = bpf_htons(r->peer.port);
	__builtin_memcpy(t->client, r->peer.address, sizeof(t->client));
	kept = t->line_kept;
	WEIR_BARRIER(kept);
	if (kept > WEIR_TRACE_LINE)
		return 0;
	if (bpf_ringbuf_output(&trace, &r->record, sizeof(*t) + kept, 0))
		count(process->server, WEIR_TRACE_LOST);
	return 0;
}

/* --- who makes the load */

static __always_inline void inside_asked(struct inside_request *r, const struct weir_inside_process *process)
{
	const struct weir_trace *t = &r->record.trace;
	struct weir_asked *asked = &r->asked;

	asked->counts.requests = 1;
	asked->first_ns = asked->last_ns = r->now_ns;
	asked->user = t->user;
	asked->namespace = t->attributes.namespace;
	asked->resource = t->attributes.resource;
	asked->is_path = !(t->attributes.flags & WEIR_ATTRIBUTE_RESOURCE);
	asked->verb = t->attributes.verb;
	asked->server = process->server;
	asked->can_name = WEIR_MOSTLY(1, !r->fields_at, 0);
	asked->has_address = r->peer.known;
	if (WEIR_UNLIKELY(!r->peer.known))
		return;
	__builtin_memcpy(asked->address, r->peer.words, sizeof(asked->address));
	if (WEIR_UNLIKELY(!inside_peer_is_ipv4(&r->peer)))
		__builtin_memset(asked->address + 8, 0, 8);
}

/* Its names, where some of them may not be known. */
WEIR_SELDOM int inside_remember_asked(struct inside_request *r, enum heavy_names names)
{
	struct weir_inside_string namespace, resource;

	inside_remember_user(r);
	if (names == HEAVY_CROWD)
		return 0;
	namespace = inside_string_in(r, r->fields.namespace);
	resource = inside_string_in(r, r->fields.resource);
	inside_remember(r, &namespace, WEIR_NAME_NAMESPACE, r->asked.namespace);
	return inside_remember(r, &resource, WEIR_NAME_NAMESPACE, r->asked.resource);
}

static __always_inline int inside_top(struct inside_request *r, const struct weir_inside_process *process)
{
	enum heavy_names names;

	if (!r || !process)
		return 0;
	r->asked.counts.refused = r->decision == WEIR_SHED;
	r->asked.counts.dry_run = r->decision == WEIR_DRY_RUN_SHED;
	names = heavy_count(&r->asked);
	return WEIR_LIKELY(names == HEAVY_NAMED) ? 0 : inside_remember_asked(r, names);
}

#endif
