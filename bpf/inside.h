/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests as a Go server itself knows them, behind TLS and HTTP/2: read by uprobes at the places in its code where it has
 * authenticated and parsed them (include/weir/inside/process.h says where and how).
 */
#ifndef WEIR_BPF_INSIDE_H
#define WEIR_BPF_INSIDE_H

#include "inside_await.h"
#include "inside_context.h"

/* --- a Kubernetes API server */

static __always_inline __u32 inside_read_context(struct inside_request *r, struct weir_inside_process *process,
						 const struct weir_server *server)
{
	__u32 outcome = inside_context(r, process);

	r->fields = process->layout.info;
	if (WEIR_LIKELY(outcome == INSIDE_READ))
		outcome = inside_user(r, process, server, process->layout.user_itab, r->user_at);
	return WEIR_LIKELY(outcome == INSIDE_READ) ? inside_attributes(r, process) : outcome;
}

/* Makes it what was read of the same request before. */
static __always_inline __u32 inside_as_read(struct inside_request *r, const struct inside_request *read)
{
	bpf_probe_read_kernel(r, sizeof(*r), read);
	return INSIDE_READ;
}

/* Says what the two that follow do. */
static __always_inline __u32 inside_settled(struct pt_regs *ctx, struct inside_piece *piece, struct inside_hit *hit,
					    __u32 outcome, __u32 answers)
{
	struct inside_request *r = &piece->request;

	if (answers && WEIR_UNLIKELY(outcome == WEIR_INSIDE_UNREADABLE) &&
	    inside_await(ctx, hit->process, &hit->key, 0))
		return INSIDE_AWAITED;
	inside_settle(r, piece, hit, outcome, answers);
	return inside_status(r);
}

/*
 * Decides a request that comes to the authorization. Says with what it is to be refused; 0: it is not; or INSIDE_AWAITED: it is decided when
 * it comes again. read: what FILTER has read of it, or NULL
 */
static __always_inline __u32 inside_authorized(struct pt_regs *ctx, struct inside_hit *hit, struct inside_request *read,
					       __u32 answers)
{
	struct weir_inside_process *process = hit->process;
	struct inside_piece *piece = inside_take(hit, inside_register(ctx, process->layout.request_in));
	struct inside_request *r;
	__u32 status = 0, outcome;

	if (WEIR_UNLIKELY(!piece))
		return 0;
	r = &piece->request;
	inside_read_http(r, process, piece->peers);
	if (WEIR_LIKELY(!r->on_wire)) {
		outcome = r->unread ?: inside_read_context(r, process, hit->server);
		if (outcome == WEIR_INSIDE_UNREADABLE && read)
			outcome = inside_as_read(r, read);
		status = inside_settled(ctx, piece, hit, outcome, answers);
	}
	inside_give_back(piece);
	return status;
}

/* The function behind Kubernetes' WithAuthorization begins. */
SEC("uprobe")
int weir_inside_context(struct pt_regs *ctx)
{
	struct inside_hit hit = {};

	own_stack();
	if (WEIR_LIKELY(inside_hits(ctx, &hit)))
		inside_authorized(ctx, &hit, NULL, 0);
	return 0;
}

/* The same, where what is asked for is not known yet. */
SEC("uprobe")
int weir_inside_request(struct pt_regs *ctx)
{
	struct inside_hit hit = {};
	struct inside_request *r;

	own_stack();
	if (!inside_hits(ctx, &hit))
		return 0;
	r = inside_keep(hit.process, &hit.key, inside_register(ctx, hit.process->layout.request_in));
	if (r)
		inside_read_http(r, hit.process, NULL);
	return 0;
}

/* The AttributesRecord is at `record`. */
static __always_inline __u32 inside_read_record(struct inside_request *r, const struct inside_hit *hit, __u64 record)
{
	const struct weir_inside_layout *layout = &hit->process->layout;
	__u32 outcome = r->unread;
	__u64 user[2];

	r->fields_at = record;
	r->fields = layout->record;
	if (outcome == INSIDE_READ && bpf_probe_read_user(user, sizeof(user), (const void *)(record + layout->user)))
		outcome = WEIR_INSIDE_UNREADABLE;
	if (outcome == INSIDE_READ)
		outcome = inside_user(r, hit->process, hit->server, user[0], user[1]);
	return outcome == INSIDE_READ ? inside_attributes(r, hit->process) : outcome;
}

/*
 * Kubernetes' GetAuthorizerAttributes returns. It is called for the audit, too: then its goroutine has not come to the
 * authorization yet.
 */
SEC("uprobe")
int weir_inside_attributes(struct pt_regs *ctx)
{
	struct inside_hit hit = {};
	struct inside_request *r;
	__u64 record;

	own_stack();
	r = inside_hits(ctx, &hit) ? bpf_map_lookup_elem(&inside_requests, &hit.key) : NULL;
	if (!r)
		return 0;
	record = inside_register(ctx, hit.process->layout.record_in);
	if (!r->on_wire)
		inside_settle(r, NULL, &hit, inside_read_record(r, &hit, record), 0);
	bpf_map_delete_elem(&inside_requests, &hit.key);
	return 0;
}

/* --- any other server */

/*
 * A handler of net/http begins. Only the request line and the peer are known, no user. Returns the status to refuse it with; 0:
 * it passes; or INSIDE_AWAITED.
 */
static __always_inline __u32 inside_http(struct pt_regs *ctx, struct inside_hit *hit, __u32 answers)
{
	struct inside_piece *piece = inside_take(hit, inside_register(ctx, hit->process->layout.request_in));
	struct inside_request *r;
	__u32 status = 0;

	if (!piece)
		return 0;
	r = &piece->request;
	inside_read_http(r, hit->process, piece->peers);
	if (WEIR_LIKELY(!r->on_wire)) {
		r->record.trace.attributes.verb = WEIR_VERB_OTHER;
		r->health = inside_is_health(&r->walk, &r->http.uri);
		status = inside_settled(ctx, piece, hit, r->unread, answers);
	}
	inside_give_back(piece);
	return status;
}

SEC("uprobe")
int weir_inside_http(struct pt_regs *ctx)
{
	struct inside_hit hit = {};

	own_stack();
	if (inside_hits(ctx, &hit))
		inside_http(ctx, &hit, 0);
	return 0;
}

#endif
