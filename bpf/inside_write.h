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
					   __u64 at, bool sleeps)
{
	__u64 there = 0, nothing = WEIR_FRESH(process->layout.nothing);

	if (inside_word(at, &there, sleeps) != INSIDE_READ || !there || there != r->execute || !nothing ||
	    !inside_is_its(process))
		return false;
	return !bpf_probe_write_user((void *)at, &nothing, sizeof(nothing));
}

/*
 * at: where what is to be executed lies; sleeps: as of inside_word(). Who sleeps has its page brought, and tries once more: the page may
 * have gone again before it was written.
 */
static __always_inline void inside_refuse_at(struct inside_request *r, const struct weir_inside_process *process,
					     __u64 at, bool sleeps)
{
	if (!r->status)
		return;
	r->status = 0;
	inside_answered(process,
			inside_replace(r, process, at, sleeps) || (sleeps && inside_replace(r, process, at, sleeps)));
}

/* As weir_inside_handle. The argument is in memory already, if it is not in a register. */
SEC("uprobe")
int weir_inside_handle_write(struct pt_regs *ctx)
{
	struct inside_hit hit = {};
	struct inside_request *r;
	__u8 in;

	own_stack();
	r = inside_hits(ctx, &hit) ? inside_handle(ctx, &hit, true) : NULL;
	if (!r)
		return 0;
	in = hit.process->layout.execute_in;
	if (in & WEIR_INSIDE_ON_STACK)
		inside_refuse_at(r, hit.process, inside_on_stack(ctx, in), false);
	return 0;
}

/* Handle has put on its stack what it is to execute. */
SEC("uprobe.s")
int weir_inside_handed(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };
	struct weir_inside_process *process = inside_process(ctx, &key);
	struct inside_request *r = process ? bpf_map_lookup_elem(&inside_requests, &key) : NULL;

	own_stack();
	if (r)
		inside_refuse_at(r, process, ctx->sp + process->layout.handed_at, true);
	return 0;
}

/* As weir_inside_authorize. What was not decided before cannot be refused here. */
SEC("uprobe")
int weir_inside_authorized(struct pt_regs *ctx)
{
	struct inside_hit hit = {};
	struct inside_request *r;

	own_stack();
	if (!inside_hits(ctx, &hit))
		return 0;
	r = bpf_map_lookup_elem(&inside_requests, &hit.key);
	if (r && (r->on_wire || r->decision != WEIR_REASON_NONE))
		return 0;
	inside_authorized(ctx, &hit, inside_is_read(r) ? r : NULL, 0);
	bpf_map_delete_elem(&inside_requests, &hit.key);
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

	own_stack();
	server = r && inside_has_begun(ctx) ? server_of(process->server) : NULL;
	if (server && r->execute == inside_closure(ctx))
		inside_executed(r, process->server, server);
	return 0;
}

#endif
