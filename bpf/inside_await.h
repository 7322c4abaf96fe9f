/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a place has not found in memory, where it decides and no later one does. Its program may not sleep. So it has its function's
 * stack seem too small: the check's jump is taken, and where that leads, at GROWS, a program that may sleep waits for the memory, and
 * sends the call back to the jump with the flags it came with. To the server, nothing has been executed.
 */
#ifndef WEIR_BPF_INSIDE_AWAIT_H
#define WEIR_BPF_INSIDE_AWAIT_H

#include "inside_decide.h"

/* Instead of a status: the call has been sent to GROWS, and comes back. */
#define INSIDE_AWAITED 1U

#ifdef __TARGET_ARCH_x86

/* In assembly: newer compilers would take the address of the field first, which verifiers refuse. */
#define INSIDE_SET(ctx, field, value)                                                                        \
	asm volatile("*(u64 *)(%[to] + %[at]) = %[what]"                                                     \
		     :                                                                                       \
		     : [to] "r"(ctx), [at] "i"(__builtin_offsetof(struct pt_regs, field)), [what] "r"(value) \
		     : "memory")

/*
 * The carry and the zero flag. No comparison sets both: with both, the jump was taken because a program had it taken, and the stack is
 * large enough. With either, it is too small.
 */
#define INSIDE_SENT 0x41U

static __always_inline void inside_send(struct pt_regs *ctx)
{
	INSIDE_SET(ctx, flags, ctx->flags | INSIDE_SENT);
}

static __always_inline bool inside_was_sent(const struct pt_regs *ctx)
{
	return (ctx->flags & INSIDE_SENT) == INSIDE_SENT;
}

/* The call goes on at the jump, which is not taken now. */
static __always_inline void inside_send_back(struct pt_regs *ctx, __u64 to)
{
	INSIDE_SET(ctx, flags, ctx->flags & ~(__u64)INSIDE_SENT);
	INSIDE_SET(ctx, ip, to);
}

static __always_inline __u64 inside_at(const struct pt_regs *ctx)
{
	return ctx->ip;
}

#else

static __always_inline void inside_send(struct pt_regs *ctx)
{
	(void)ctx;
}

static __always_inline bool inside_was_sent(const struct pt_regs *ctx)
{
	(void)ctx;
	return false;
}

static __always_inline void inside_send_back(struct pt_regs *ctx, __u64 to)
{
	(void)ctx;
	(void)to;
}

static __always_inline __u64 inside_at(const struct pt_regs *ctx)
{
	(void)ctx;
	return 0;
}

#endif

/* Has this request been waited for before? Else its goroutine's entry is that of another one, or what FILTER could not read. */
static __always_inline bool inside_has_awaited(const struct inside_request *r, __u64 request)
{
	return r && r->waits && r->request == request;
}

/*
 * Sends the call to GROWS, where what this thread has failed to read last is waited for, so that it is decided when it comes back. Or with
 * the status that it is refused with. False: there is no such place, the call has come back by another way, or it was in vain.
 */
WEIR_SELDOM int inside_await(struct pt_regs *ctx, struct weir_inside_process *process, struct weir_inside_key *key,
			     __u32 status)
{
	struct inside_request *r = bpf_map_lookup_elem(&inside_requests, key);
	__u64 request = inside_register(ctx, process->layout.request_in);

	if (!weir_inside_cookie_of(bpf_get_attach_cookie(ctx)).grows)
		return 0;
	if (!inside_has_awaited(r, request))
		r = inside_keep(process, key, request);
	if (!r || r->sent_from || r->waits >= INSIDE_WAITS) {
		inside_forget(key, r);
		return 0;
	}
	r->waits++;
	r->status = status;
	r->decision = status ? WEIR_SHED : WEIR_REASON_NONE;
	r->sent_from = inside_at(ctx);
	inside_send(ctx);
	return 1;
}

#endif
