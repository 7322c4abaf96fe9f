/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Refusing requests by memory (attach --write-memory), where the kernel lets no program write registers: API Priority and Fairness
 * executes a func() that does nothing in the place of the one that it was handed, sees that the request was not executed, and answers
 * 429. One word is written, on the stack of the goroutine that serves the request: the argument, or where the function has put it.
 */
#ifndef WEIR_BPF_INSIDE_WRITE_H
#define WEIR_BPF_INSIDE_WRITE_H

#include "inside_answer.h"

/* Only what was read at the decision is written over. */
static __always_inline bool inside_replace(const struct inside_request *r, const struct weir_inside_process *process,
					   __u64 at)
{
	__u64 there = 0, nothing = process->layout.nothing;

	if (bpf_probe_read_user(&there, sizeof(there), (const void *)at) || !there || there != r->execute || !nothing)
		return false;
	return !bpf_probe_write_user((void *)at, &nothing, sizeof(nothing));
}

/* at: where what is to be executed lies. */
static __always_inline void inside_refuse_at(struct inside_request *r, const struct weir_inside_process *process,
					     __u64 at)
{
	if (!r->status)
		return;
	r->status = 0;
	inside_answered(process, inside_replace(r, process, at));
}

/* As weir_inside_handle. The argument is in memory already, if it is not in a register. */
SEC("uprobe")
int weir_inside_handle_write(struct pt_regs *ctx)
{
	struct weir_inside_key key = {};
	struct weir_inside_process *process = inside_here(ctx, &key);
	struct inside_request *r;
	__u8 in;

	own_stack(ctx);
	r = process ? inside_handle(ctx, process, &key, true) : NULL;
	if (!r)
		return 0;
	in = process->layout.execute_in;
	if (in & WEIR_INSIDE_ON_STACK)
		inside_refuse_at(r, process, inside_on_stack(ctx, in));
	return 0;
}

/* Handle has put on its stack what it is to execute. */
SEC("uprobe")
int weir_inside_handed(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };
	struct weir_inside_process *process = inside_process(ctx, &key);
	struct inside_request *r = process ? bpf_map_lookup_elem(&inside_requests, &key) : NULL;

	own_stack(ctx);
	if (r)
		inside_refuse_at(r, process, ctx->sp + process->layout.handed_at);
	return 0;
}

/* As weir_inside_authorize. What was not decided before cannot be refused here. */
SEC("uprobe")
int weir_inside_authorized(struct pt_regs *ctx)
{
	struct weir_inside_key key = {};
	struct weir_inside_process *process = inside_here(ctx, &key);
	struct inside_request *r;

	own_stack(ctx);
	r = process ? bpf_map_lookup_elem(&inside_requests, &key) : NULL;
	if (!process || (r && (r->on_wire || r->decision != WEIR_REASON_NONE)))
		return 0;
	inside_forget(&key, r);
	inside_authorized(ctx, process, &key, 0);
	return 0;
}

/* As weir_inside_execute, of a request that passes. */
SEC("uprobe")
int weir_inside_executed(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };
	struct weir_inside_process *process = inside_process(ctx, &key);
	struct inside_request *r = process ? bpf_map_lookup_elem(&inside_requests, &key) : NULL;
	struct weir_server *server;

	own_stack(ctx);
	server = r && inside_has_begun(ctx) ? server_of(process->server) : NULL;
	if (server && r->execute == inside_closure(ctx))
		inside_executed(r, process->server, server);
	return 0;
}

#endif
