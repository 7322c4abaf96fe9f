/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests as a Go server itself knows them, behind TLS and HTTP/2: read by uprobes at the places in its code where it has
 * authenticated and parsed them (include/weir/inside/process.h says where and how).
 *
 * These programs can be preempted, so nothing of theirs is per CPU: what a request needs is in its entry of
 * `inside_requests`, which belongs to its goroutine alone. Nobody else deletes it.
 */
#ifndef WEIR_BPF_INSIDE_H
#define WEIR_BPF_INSIDE_H

#include "weir/conn/trace.h"
#include "weir/http/identity.h"

#include "heavy.h"
#include "inside_read.h"
#include "maps.h"

/* What is kept of a request between its probes. */
struct inside_request {
	__u64 request; /* the *http.Request */
	__u64 now_ns;
	__u64 record_at; /* the AttributesRecord; 0: there is none */
	struct inside_peer peer;
	struct weir_asked asked;
	struct inside_walk walk;
	struct weir_name name;
	struct weir_trace_record record;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_INSIDE_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct weir_inside_process);
} inside_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_INSIDE_REQUESTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_inside_key);
	__type(value, struct inside_request);
} inside_requests SEC(".maps");

/* Which agent has loaded these programs; set before they are. */
const volatile __u32 inside_generation = 0;
static const struct inside_request inside_nothing = {};

/* Others may count on this CPU meanwhile. */
static __always_inline void inside_count(__u32 server, __u32 reason)
{
	__u32 index = server * WEIR_REASON_COUNT + reason;
	__u64 *counter = bpf_map_lookup_elem(&counters, &index);

	if (counter)
		__sync_fetch_and_add(counter, 1);
}

/* --- whose request */

static __always_inline __u64 inside_process_start(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return BPF_CORE_READ(task, group_leader, start_boottime) / WEIR_INSIDE_TICK_NS;
}

/* The server's process that runs; NULL: it is none, as is every other one of the same binary. */
static __always_inline struct weir_inside_process *inside_process(struct weir_inside_key *key)
{
	__u32 process = bpf_get_current_pid_tgid() >> 32;
	struct weir_inside_process *found = bpf_map_lookup_elem(&inside_processes, &process);

	if (!found || found->generation != inside_generation || found->start != inside_process_start())
		return NULL;
	key->process = process;
	return found;
}

static __always_inline struct weir_server *inside_server(const struct weir_inside_process *process)
{
	__u32 index = process->server;
	struct weir_server *server = bpf_map_lookup_elem(&servers, &index);

	if (!server || !(server->flags & WEIR_SERVER_ACTIVE) || (server->flags & WEIR_SERVER_DRAINING))
		return NULL;
	return server;
}

/* --- what it is about */

/* Whom a request is charged to that has no user: its peer, an IPv6 one by its /64. */
static __noinline int inside_by_peer(struct inside_request *r)
{
	struct weir_settings *set;
	__u32 zero = 0;
	__u64 subject;

	set = bpf_map_lookup_elem(&settings, &zero);
	if (!r || !set || !r->peer.known)
		return 0;
	__builtin_memset(&r->name, 0, sizeof(r->name));
	__builtin_memcpy(r->name.text, r->peer.address, 16);
	if (!weir_address_is_ipv4(r->peer.address))
		__builtin_memset(r->name.text + 8, 0, 8);
	subject = weir_subject_of_address(set->seed, WEIR_NAME_ADDRESS, (const __u8 *)r->name.text);
	r->record.trace.user = subject;
	r->name.kind = WEIR_NAME_ADDRESS;
	r->name.length = r->name.whole = 16;
	if (!bpf_map_lookup_elem(&names, &subject))
		bpf_map_update_elem(&names, &subject, &r->name, BPF_ANY);
	return 0;
}

/* The string in a field, for people: as much as there is room for. */
static __noinline int inside_remember(struct inside_request *r, __u64 at, __u8 kind, __u64 subject)
{
	struct weir_inside_string string = {};
	__u32 n;

	if (!r || !subject || bpf_map_lookup_elem(&names, &subject) || inside_string(at, &string) != INSIDE_READ)
		return 0;
	n = string.length < WEIR_NAME_TEXT ? string.length : WEIR_NAME_TEXT;
	WEIR_BARRIER(n);
	__builtin_memset(&r->name, 0, sizeof(r->name));
	if (n > WEIR_NAME_TEXT || bpf_probe_read_user(r->name.text, n, (const void *)string.at))
		return 0;
	r->name.kind = kind;
	r->name.length = n;
	r->name.whole = string.length;
	bpf_map_update_elem(&names, &subject, &r->name, BPF_ANY);
	return 0;
}

/* user: address of a user.Info. Sets the request's user. */
static __noinline __u32 inside_user(struct inside_request *r, const struct weir_inside_layout *layout, __u64 at)
{
	__u64 info[2] = {}, name;
	__u32 outcome;

	if (!r || !layout)
		return WEIR_INSIDE_UNREADABLE;
	if (bpf_probe_read_user(info, sizeof(info), (const void *)at))
		return WEIR_INSIDE_UNREADABLE;
	if (info[0] != layout->user_itab)
		return WEIR_INSIDE_OTHER_USER;
	name = info[1] + layout->user_name;
	outcome = inside_subject(&r->walk, name, WEIR_NAME_USER, &r->record.trace.user);
	if (outcome == INSIDE_READ)
		inside_remember(r, name, WEIR_NAME_USER, r->record.trace.user);
	return outcome;
}

static __always_inline void inside_attribute_flags(struct weir_attributes *a, bool is_resource)
{
	a->flags = is_resource ? WEIR_ATTRIBUTE_RESOURCE : 0;
	if (a->verb == WEIR_VERB_GET || a->verb == WEIR_VERB_LIST || a->verb == WEIR_VERB_WATCH)
		a->flags |= WEIR_ATTRIBUTE_READ_ONLY;
	if (a->verb == WEIR_VERB_WATCH || a->verb == WEIR_VERB_PROXY)
		a->flags |= WEIR_ATTRIBUTE_LONG_RUNNING;
	a->namespace_at = a->group_at = a->version_at = WEIR_SEGMENT_NONE;
	a->resource_at = a->subresource_at = a->name_at = WEIR_SEGMENT_NONE;
}

/* record: address of the AttributesRecord. */
static __noinline __u32 inside_attributes(struct inside_request *r, const struct weir_inside_layout *layout,
					  __u64 record)
{
	struct weir_attributes *a;
	__u8 is_resource = 0;
	__u32 outcome;

	if (!r || !layout)
		return WEIR_INSIDE_UNREADABLE;
	a = &r->record.trace.attributes;
	if (bpf_probe_read_user(&is_resource, 1, (const void *)(record + layout->is_resource)))
		return WEIR_INSIDE_UNREADABLE;
	outcome = inside_verb(record + layout->verb, &a->verb);
	inside_attribute_flags(a, is_resource);
	if (outcome != INSIDE_READ || !is_resource)
		return outcome;
	outcome = inside_subject(&r->walk, record + layout->namespace, WEIR_NAME_NAMESPACE, &a->namespace);
	if (outcome == INSIDE_READ)
		outcome = inside_subject(&r->walk, record + layout->group, WEIR_NAME_NAMESPACE, &a->group);
	if (outcome == INSIDE_READ)
		outcome = inside_subject(&r->walk, record + layout->resource, WEIR_NAME_NAMESPACE, &a->resource);
	if (outcome == INSIDE_READ)
		outcome = inside_subject(&r->walk, record + layout->subresource, WEIR_NAME_NAMESPACE, &a->subresource);
	if (outcome == INSIDE_READ)
		outcome = inside_subject(&r->walk, record + layout->name, WEIR_NAME_NAMESPACE, &a->name);
	return outcome;
}

/* --- telling */

#define INSIDE_METHOD_MAX 16
#define INSIDE_TARGET_MAX (WEIR_TRACE_LINE - INSIDE_METHOD_MAX - 1)

/* "GET /api": as much of it as there is room for. What cannot be read is left out: it was decided without it. */
static __noinline int inside_line(struct inside_request *r, const struct weir_inside_layout *layout)
{
	struct weir_inside_string method = {}, uri = {};
	struct weir_trace *t;
	__u32 n, length;

	if (!r || !layout)
		return 0;
	t = &r->record.trace;
	inside_string(r->request + layout->method, &method);
	inside_string(r->request + layout->uri, &uri);
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
	inside_line(r, &process->layout);
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
		inside_count(process->server, WEIR_TRACE_LOST);
	return 0;
}

/* --- who makes the load */

static __always_inline void inside_asked(struct inside_request *r, const struct weir_inside_process *process)
{
	const struct weir_trace *t = &r->record.trace;
	struct weir_asked *asked = &r->asked;
	struct weir_settings *set;
	__u32 zero = 0;

	asked->counts.requests = 1;
	asked->now_ns = r->now_ns;
	asked->user = t->user;
	asked->namespace = t->attributes.namespace;
	asked->resource = t->attributes.resource;
	asked->is_path = !(t->attributes.flags & WEIR_ATTRIBUTE_RESOURCE);
	asked->verb = t->attributes.verb;
	asked->server = process->server;
	asked->slot = WEIR_ASKED_NO_SLOT;
	asked->can_name = r->record_at != 0;
	set = bpf_map_lookup_elem(&settings, &zero);
	if (!set || !r->peer.known)
		return;
	__builtin_memcpy(asked->address, r->peer.address, sizeof(asked->address));
	if (!weir_address_is_ipv4(asked->address))
		__builtin_memset(asked->address + 8, 0, 8);
	asked->source = weir_asked_source(set->seed, asked->address);
}

static __noinline int inside_top(struct inside_request *r, const struct weir_inside_process *process)
{
	__u32 nameless;

	if (!r || !process)
		return 0;
	inside_asked(r, process);
	nameless = heavy_count(&r->asked);
	if (nameless & (1U << WEIR_HEAVY_NAMESPACE))
		inside_remember(r, r->record_at + process->layout.namespace, WEIR_NAME_NAMESPACE, r->asked.namespace);
	if (nameless & (1U << WEIR_HEAVY_RESOURCE))
		inside_remember(r, r->record_at + process->layout.resource, WEIR_NAME_NAMESPACE, r->asked.resource);
	return 0;
}

/* --- the probes */

/* The entry of this goroutine's request, made anew: what an earlier one has left is over. */
static __always_inline struct inside_request *inside_begin(const struct weir_inside_process *process,
							   const struct weir_inside_key *key, __u64 request)
{
	struct inside_request *r = NULL;

	if (!bpf_map_update_elem(&inside_requests, key, &inside_nothing, BPF_ANY))
		r = bpf_map_lookup_elem(&inside_requests, key);
	if (!r) {
		inside_count(process->server, WEIR_INSIDE_NO_ROOM);
		return NULL;
	}
	r->request = request;
	r->now_ns = bpf_ktime_get_ns();
	return r;
}

/* All that there was to be read of a request has been, or could not be. */
static __always_inline void inside_seen(struct inside_request *r, const struct weir_inside_process *process,
					const struct weir_server *server, __u32 outcome)
{
	struct weir_trace *t = &r->record.trace;

	t->source = t->user ? WEIR_SOURCE_SERVER : WEIR_SOURCE_ANONYMOUS;
	if (!t->user)
		inside_by_peer(r);
	inside_count(process->server, outcome == INSIDE_READ ? WEIR_INSIDE_SEEN : outcome);
	inside_count(process->server, weir_source_reason(t->source));
	inside_count(process->server, WEIR_PASSED);
	inside_top(r, process);
	if (server->trace_until_ns > r->now_ns)
		inside_tell(r, process, WEIR_PASSED);
}

/* The function behind Kubernetes' WithAuthorization begins. */
SEC("uprobe")
int weir_inside_request(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };
	struct weir_inside_process *process = inside_process(&key);

	if (process && inside_server(process))
		inside_begin(process, &key, inside_register(ctx, process->layout.request_in));
	return 0;
}

/*
 * Kubernetes' GetAuthorizerAttributes returns. It is called for the audit, too: then its goroutine has not come to the
 * authorization yet.
 */
SEC("uprobe")
int weir_inside_attributes(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };
	struct weir_inside_process *process = inside_process(&key);
	struct weir_inside_layout *layout;
	struct weir_server *server;
	struct inside_request *r;
	__u64 record;
	__u32 outcome;

	r = process ? bpf_map_lookup_elem(&inside_requests, &key) : NULL;
	server = process ? inside_server(process) : NULL;
	if (!r || !server)
		return 0;
	layout = &process->layout;
	record = inside_register(ctx, layout->record_in);
	r->record_at = record;
	outcome = inside_peer(&r->walk, r->request + layout->peer, &r->peer);
	if (outcome == INSIDE_READ)
		outcome = inside_user(r, layout, record + layout->user);
	if (outcome == INSIDE_READ)
		outcome = inside_attributes(r, layout, record);
	inside_seen(r, process, server, outcome);
	bpf_map_delete_elem(&inside_requests, &key);
	return 0;
}

/* A handler of net/http begins: there is no user, and of the request only its line and its peer. */
SEC("uprobe")
int weir_inside_http(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };
	struct weir_inside_process *process = inside_process(&key);
	struct weir_server *server = process ? inside_server(process) : NULL;
	struct inside_request *r;

	if (!server)
		return 0;
	r = inside_begin(process, &key, inside_register(ctx, process->layout.request_in));
	if (!r)
		return 0;
	r->record.trace.attributes.verb = WEIR_VERB_OTHER;
	inside_seen(r, process, server, inside_peer(&r->walk, r->request + process->layout.peer, &r->peer));
	bpf_map_delete_elem(&inside_requests, &key);
	return 0;
}

#endif
