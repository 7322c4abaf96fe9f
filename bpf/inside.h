/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests as a Go server itself knows them, behind TLS and HTTP/2: read by uprobes at the places in its code where it has
 * authenticated and parsed them (include/weir/inside/process.h says where and how).
 */
#ifndef WEIR_BPF_INSIDE_H
#define WEIR_BPF_INSIDE_H

#include "inside_decide.h"

/* Came this request over HTTP/1 without TLS? The packets' programs read it as well, and decide: it is theirs. */
static __always_inline bool inside_on_wire(const struct weir_inside_process *process, __u64 request)
{
	__u64 tls, major;

	if (bpf_probe_read_user(&tls, sizeof(tls), (const void *)(request + process->layout.tls)) ||
	    bpf_probe_read_user(&major, sizeof(major), (const void *)(request + process->layout.proto_major)))
		return false;
	if (tls || major != 1)
		return false;
	count(process->server, WEIR_INSIDE_ON_WIRE);
	return true;
}

static __always_inline __u32 inside_read_context(struct inside_request *r, const struct weir_inside_process *process)
{
	__u32 outcome = inside_context(r, process);

	if (outcome == INSIDE_READ)
		outcome = inside_peer(&r->walk, r->request + process->layout.peer, &r->peer);
	if (outcome == INSIDE_READ)
		outcome = inside_user(r, process, process->layout.user_itab, r->user_at);
	r->fields = process->layout.info;
	return outcome == INSIDE_READ ? inside_attributes(r) : outcome;
}

/* Decides a request that comes to the authorization. Says with what it is to be refused; 0: it is not. */
static __always_inline __u32 inside_authorized(struct pt_regs *ctx, const struct weir_inside_process *process,
					       struct weir_inside_key *key, __u32 answers)
{
	__u64 request = inside_register(ctx, process->layout.request_in);
	struct inside_request *r = inside_on_wire(process, request) ? NULL : inside_begin(process, key, request);
	__u32 status;

	if (!r)
		return 0;
	inside_settle(r, process, inside_read_context(r, process), answers);
	status = inside_status(r);
	bpf_map_delete_elem(&inside_requests, key);
	return status;
}

/* The function behind Kubernetes' WithAuthorization begins. */
SEC("uprobe")
int weir_inside_context(struct pt_regs *ctx)
{
	struct weir_inside_key key = {};
	struct weir_inside_process *process = inside_here(ctx, &key);

	own_stack(ctx);
	if (process)
		inside_authorized(ctx, process, &key, 0);
	return 0;
}

/* The same, where what is asked for is not known yet. */
SEC("uprobe")
int weir_inside_request(struct pt_regs *ctx)
{
	struct weir_inside_key key = {};
	struct weir_inside_process *process = inside_here(ctx, &key);
	__u64 request;

	own_stack(ctx);
	if (!process)
		return 0;
	request = inside_register(ctx, process->layout.request_in);
	if (!inside_on_wire(process, request))
		inside_begin(process, &key, request);
	return 0;
}

/* The AttributesRecord is at `record`. */
static __always_inline __u32 inside_read_record(struct inside_request *r, const struct weir_inside_process *process,
						__u64 record)
{
	const struct weir_inside_layout *layout = &process->layout;
	__u64 user[2] = {};
	__u32 outcome;

	r->fields_at = record;
	r->fields = layout->record;
	outcome = inside_peer(&r->walk, r->request + layout->peer, &r->peer);
	if (outcome == INSIDE_READ && bpf_probe_read_user(user, sizeof(user), (const void *)(record + layout->user)))
		outcome = WEIR_INSIDE_UNREADABLE;
	if (outcome == INSIDE_READ)
		outcome = inside_user(r, process, user[0], user[1]);
	return outcome == INSIDE_READ ? inside_attributes(r) : outcome;
}

/*
 * Kubernetes' GetAuthorizerAttributes returns. It is called for the audit, too: then its goroutine has not come to the
 * authorization yet.
 */
SEC("uprobe")
int weir_inside_attributes(struct pt_regs *ctx)
{
	struct weir_inside_key key = {};
	struct weir_inside_process *process = inside_here(ctx, &key);
	struct inside_request *r;
	__u64 record;

	own_stack(ctx);
	r = process ? bpf_map_lookup_elem(&inside_requests, &key) : NULL;
	if (!r)
		return 0;
	record = inside_register(ctx, process->layout.record_in);
	inside_settle(r, process, inside_read_record(r, process, record), 0);
	bpf_map_delete_elem(&inside_requests, &key);
	return 0;
}

/*
 * A handler of net/http begins: there is no user, and of the request only its line and its peer. Says with what it is to be
 * refused; 0: it is not.
 */
static __always_inline __u32 inside_http(struct pt_regs *ctx, const struct weir_inside_process *process,
					 struct weir_inside_key *key, __u32 answers)
{
	__u64 request = inside_register(ctx, process->layout.request_in);
	struct inside_request *r;
	__u32 status;

	r = inside_on_wire(process, request) ? NULL : inside_begin(process, key, request);
	if (!r)
		return 0;
	r->record.trace.attributes.verb = WEIR_VERB_OTHER;
	r->health = inside_is_health(&r->walk, r->request + process->layout.uri);
	inside_settle(r, process, inside_peer(&r->walk, r->request + process->layout.peer, &r->peer), answers);
	status = inside_status(r);
	bpf_map_delete_elem(&inside_requests, key);
	return status;
}

SEC("uprobe")
int weir_inside_http(struct pt_regs *ctx)
{
	struct weir_inside_key key = {};
	struct weir_inside_process *process = inside_here(ctx, &key);

	own_stack(ctx);
	if (process)
		inside_http(ctx, process, &key, 0);
	return 0;
}

#endif
