/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Refusing requests inside a server: its own code answers with 429 or 403. These programs write registers of the thread that came to the
 * probe, which Linux allows since 6.18 unless it is locked down, and nothing else of the process. They stand where a
 * call has just begun: its return address is on top of the stack.
 */
#ifndef WEIR_BPF_INSIDE_ANSWER_H
#define WEIR_BPF_INSIDE_ANSWER_H

#include "inside_filter.h"

#ifdef __TARGET_ARCH_x86

/*
 * The function that has begun returns at once. False: its stack cannot be read, and nothing has been done. sleeps: as of inside_word()
 */
static __always_inline bool inside_return(struct pt_regs *ctx, bool sleeps)
{
	__u64 sp = ctx->sp, to = 0;

	if (inside_word(sp, &to, sleeps) != INSIDE_READ || !to)
		return false;
	INSIDE_SET(ctx, ip, to);
	INSIDE_SET(ctx, sp, sp + sizeof(to));
	return true;
}

/* In the place of the function that has begun, the method WriteHeader of the http.ResponseWriter that it was given. */
static __always_inline bool inside_write_header(struct pt_regs *ctx, const struct weir_inside_process *process,
						__u64 status, bool sleeps)
{
	__u8 in = WEIR_FRESH(process->layout.writer_in);
	__u64 itab = inside_register(ctx, in), writer = inside_register(ctx, in + 1), to = 0;

	if (inside_word(itab + WEIR_FRESH(process->layout.write_header), &to, sleeps) != INSIDE_READ || !to ||
	    !inside_is_its(process))
		return false;
	INSIDE_SET(ctx, ax, writer);
	INSIDE_SET(ctx, bx, status);
	INSIDE_SET(ctx, ip, to);
	return true;
}

/* The func value that runs: its closure's context. */
static __always_inline __u64 inside_closure(const struct pt_regs *ctx)
{
	return ctx->dx;
}

#else

static __always_inline bool inside_return(struct pt_regs *ctx, bool sleeps)
{
	(void)ctx;
	(void)sleeps;
	return false;
}

static __always_inline bool inside_write_header(struct pt_regs *ctx, const struct weir_inside_process *process,
						__u64 status, bool sleeps)
{
	(void)ctx;
	(void)process;
	(void)status;
	(void)sleeps;
	return false;
}

static __always_inline __u64 inside_closure(const struct pt_regs *ctx)
{
	(void)ctx;
	return 0;
}

#endif

static __always_inline void inside_answered(const struct weir_inside_process *process, bool done)
{
	count(process->server, done ? WEIR_INSIDE_ANSWERED : WEIR_INSIDE_UNANSWERED);
}

/* The function that has begun answers with the status: at once, or at GROWS, where the method's address can be waited for. */
static __always_inline void inside_refuse(struct pt_regs *ctx, struct weir_inside_process *process,
					  struct weir_inside_key *key, __u32 status)
{
	bool done = inside_write_header(ctx, process, status, false);

	if (done || !inside_await(ctx, process, key, status))
		inside_answered(process, done);
}

/*
 * The stack grows, as it would without weir: or memory is waited for, of a call whose program has sent it here. What comes of that, the
 * program finds when the call is back; a refusal is answered here.
 */
SEC("uprobe.s")
int weir_inside_grows(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };
	struct weir_inside_process *process = inside_was_sent(ctx) ? inside_process(ctx, &key) : NULL;
	struct inside_request *r = process ? bpf_map_lookup_elem(&inside_requests, &key) : NULL;
	__u64 back = r ? r->sent_from : 0;

	own_stack();
	if (!back)
		return 0;
	r->sent_from = 0;
	if (r->status && inside_write_header(ctx, process, r->status, true)) {
		inside_answered(process, true);
		bpf_map_delete_elem(&inside_requests, &key);
		return 0;
	}
	if (r->status || !inside_wait())
		r->waits = INSIDE_WAITS;
	inside_send_back(ctx, back);
	return 0;
}

/* A handler of net/http begins. */
SEC("uprobe")
int weir_inside_http_answer(struct pt_regs *ctx)
{
	struct inside_hit hit = {};
	__u32 status;

	own_stack();
	if (!inside_hits(ctx, &hit))
		return 0;
	status = inside_http(ctx, &hit, 1);
	if (status && status != INSIDE_AWAITED)
		inside_refuse(ctx, hit.process, &hit.key, status);
	return 0;
}

/* Where an argument lies that is on the stack. */
static __always_inline __u64 inside_on_stack(const struct pt_regs *ctx, __u8 which)
{
	return ctx->sp + 8 * (which & ~WEIR_INSIDE_ON_STACK);
}

/* An argument in a register or on the stack; 0: it cannot be read. */
static __always_inline __u64 inside_argument(const struct pt_regs *ctx, __u8 which)
{
	__u64 value = 0;

	if (!(which & WEIR_INSIDE_ON_STACK))
		return inside_register(ctx, which);
	inside_word(inside_on_stack(ctx, which), &value, false);
	return value;
}

/* Of the request that HANDLE has, whatever FILTER has read of one. */
static __always_inline __u32 inside_read_handle(struct pt_regs *ctx, struct inside_request *r,
						const struct inside_hit *hit)
{
	struct weir_inside_process *process = hit->process;
	const struct weir_inside_layout *layout = &process->layout;
	__u32 outcome;

	inside_read_http(r, process, NULL);
	outcome = r->unread;
	r->fields_at = inside_register(ctx, layout->info_in);
	r->fields = layout->info;
	if (outcome == INSIDE_READ)
		outcome = inside_user(r, process, hit->server, inside_register(ctx, layout->user_in),
				      inside_register(ctx, layout->user_in + 1));
	return outcome == INSIDE_READ ? inside_attributes(r, process) : outcome;
}

/*
 * FILTER has read all of it, and it is what HANDLE has: however long that is ago. The server may have waited for a CPU since.
 */
static __always_inline bool inside_is_handled(struct pt_regs *ctx, const struct inside_request *r,
					      const struct weir_inside_layout *layout)
{
	return inside_is_whole(r) && r->fields_at == inside_register(ctx, layout->info_in) &&
	       layout->user_itab == inside_register(ctx, layout->user_in) &&
	       r->user_at == inside_register(ctx, layout->user_in + 1);
}

static __always_inline __u32 inside_read_watch(struct pt_regs *ctx, const struct weir_inside_layout *layout,
					       bool *watches)
{
	struct weir_inside_string verb = {};
	__u64 at = inside_register(ctx, layout->info_in) + layout->info.verb, text = 0;

	if (bpf_probe_read_user(&verb, sizeof(verb), (const void *)at) ||
	    (verb.length == 5 && bpf_probe_read_user(&text, 5, (const void *)verb.at)))
		return WEIR_INSIDE_UNREADABLE;
	*watches = text == WEIR_TEXT8('w', 'a', 't', 'c', 'h', 0, 0, 0);
	return INSIDE_READ;
}

/*
 * A watch may last for hours, and is not handled in the goroutine that serves it: it is decided at AUTHORIZE. So is what may be one,
 * because its verb cannot be read here: this goroutine may be none that will have its seats until it ends.
 */
static __always_inline bool inside_may_watch(struct pt_regs *ctx, const struct weir_inside_process *process)
{
	bool watches = false;

	return inside_read_watch(ctx, &process->layout, &watches) != INSIDE_READ || watches;
}

/*
 * Reads what FILTER has not, or of another request. NULL: it is not decided here. Nor is one of which no FILTER is known: nothing here says
 * who its peer is.
 */
static __always_inline struct inside_request *inside_reread(struct pt_regs *ctx, struct inside_hit *hit,
							    struct inside_request *r, __u32 *outcome)
{
	if (inside_may_watch(ctx, hit->process))
		return NULL;
	if (!inside_is_filtered(r)) {
		inside_forget(&hit->key, r);
		return NULL;
	}
	r = inside_keep(hit->process, &hit->key, r->request);
	if (!r)
		return NULL;
	*outcome = inside_read_handle(ctx, r, hit);
	if (*outcome != WEIR_INSIDE_UNREADABLE)
		return r;
	inside_forget(&hit->key, r);
	return NULL;
}

/*
 * API Priority and Fairness' Handle begins, for a request of this goroutine, which is decided. It knows of no FILTER if that was of
 * another goroutine, as a watch's is. What an earlier decision has left here is over. What cannot be read here is decided at AUTHORIZE:
 * nothing is kept of it, and it is counted there.
 * too_many: a refusal is answered 429, whatever it is.
 */
static __always_inline struct inside_request *inside_handle(struct pt_regs *ctx, struct inside_hit *hit, bool too_many)
{
	const struct weir_inside_layout *layout = &hit->process->layout;
	struct inside_request *r = bpf_map_lookup_elem(&inside_requests, &hit->key);
	__u32 outcome = INSIDE_READ;

	if (inside_is_undecided(r) && r->on_wire)
		return NULL;
	if (!inside_is_handled(ctx, r, layout))
		r = inside_reread(ctx, hit, r, &outcome);
	else if (r->record.trace.attributes.verb == WEIR_VERB_WATCH)
		return NULL;
	if (!r)
		return NULL;
	r->execute = inside_argument(ctx, layout->execute_in);
	r->record.trace.too_many = too_many;
	inside_settle(r, NULL, hit, outcome, 1);
	r->status = inside_status(r);
	return r;
}

/* Where the call cannot be made to return, EXECUTE and AUTHORIZE have the verdict still. */
SEC("uprobe")
int weir_inside_handle(struct pt_regs *ctx)
{
	struct inside_hit hit = {};
	struct inside_request *r;

	own_stack();
	r = inside_hits(ctx, &hit) ? inside_handle(ctx, &hit, false) : NULL;
	if (!r || r->status != INSIDE_TOO_MANY ||
	    WEIR_FRESH(hit.process->layout.refuses) != WEIR_INSIDE_REFUSES_AT_HANDLE || !inside_is_its(hit.process) ||
	    !inside_return(ctx, false))
		return 0;
	inside_answered(hit.process, true);
	bpf_map_delete_elem(&inside_requests, &hit.key);
	return 0;
}

/* Handle returns: what it has not executed, and weir has not refused, the server has rejected by itself. */
static __always_inline void inside_handled(struct inside_request *r, __u32 server)
{
	if (r->executed || !r->execute || (r->decision == WEIR_SHED && !r->status))
		return;
	if (r->decision != WEIR_SHED)
		inside_undo(r, server);
	count(server, WEIR_INSIDE_REJECTED);
}

SEC("uprobe")
int weir_inside_handled(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };
	struct weir_inside_process *process = inside_process(ctx, &key);
	struct inside_request *r = process ? bpf_map_lookup_elem(&inside_requests, &key) : NULL;

	own_stack();
	if (!r || r->decision == WEIR_REASON_NONE)
		return 0;
	inside_handled(r, process->server);
	inside_give_seats(&key, WEIR_REASON_NONE);
	inside_over(&key);
	bpf_map_delete_elem(&inside_requests, &key);
	return 0;
}

/*
 * The function behind WithAuthorization begins. What API Priority and Fairness was asked for is decided already; it is forbidden here,
 * as Priority and Fairness has no other answer than 429. So is refused what neither HANDLE nor EXECUTE could refuse.
 */
SEC("uprobe")
int weir_inside_authorize(struct pt_regs *ctx)
{
	struct inside_hit hit = {};
	struct inside_request *r;
	__u32 status;

	own_stack();
	if (!inside_hits(ctx, &hit))
		return 0;
	r = bpf_map_lookup_elem(&inside_requests, &hit.key);
	if (r && r->on_wire)
		return 0;
	if (r && r->decision != WEIR_REASON_NONE) {
		status = r->status;
	} else {
		status = inside_authorized(ctx, &hit, inside_is_read(r) ? r : NULL, 1);
		if (status == INSIDE_AWAITED)
			return 0;
		bpf_map_delete_elem(&inside_requests, &hit.key);
	}
	if (status)
		inside_refuse(ctx, hit.process, &hit.key, status);
	return 0;
}

/* What passes is certain now. */
static __always_inline void inside_executed(struct inside_request *r, __u32 slot, const struct weir_server *server)
{
	r->executed = true;
	if (r->decision != WEIR_SHED)
		tally_decided(&r->decided, slot, inside_flags(server, r));
}

/* What API Priority and Fairness was handed begins: a refused one ends at once, as if the request had been rejected. */
SEC("uprobe.s")
int weir_inside_execute(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };
	struct weir_inside_process *process = inside_process(ctx, &key);
	struct inside_request *r = process ? bpf_map_lookup_elem(&inside_requests, &key) : NULL;
	struct weir_server *server;

	own_stack();
	server = r && inside_has_begun(ctx) ? server_of(process->server) : NULL;
	if (!server || r->execute != inside_closure(ctx))
		return 0;
	if (r->status == INSIDE_TOO_MANY && inside_server(process) && inside_return(ctx, true)) {
		r->status = 0;
		inside_answered(process, true);
		return 0;
	}
	inside_executed(r, process->server, server);
	return 0;
}

#endif
