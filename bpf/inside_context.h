/* SPDX-License-Identifier: GPL-2.0 */
/* Where a Kubernetes API server keeps a request's user and RequestInfo: in values of the request's context, one within the other. */
#ifndef WEIR_BPF_INSIDE_CONTEXT_H
#define WEIR_BPF_INSIDE_CONTEXT_H

#include "inside_about.h"

#define INSIDE_BEHIND_PARENT 256U /* bytes that are read from a context's parent on */
#define INSIDE_PAGE 4096U

/*
 * The parent at this address, and what lies behind it as far as its page goes: who the user is, the server found out soon after it made
 * such a context.
 */
static __always_inline __u32 inside_read_parent(struct inside_request *r, __u64 at)
{
	__u32 left = INSIDE_PAGE - (at & (INSIDE_PAGE - 1)), n;

	n = WEIR_MOSTLY(INSIDE_BEHIND_PARENT, left < INSIDE_BEHIND_PARENT, left);
	n = WEIR_MOSTLY(n, n < sizeof(r->context), sizeof(r->context));
	if (inside_struct(r, at, n) != INSIDE_READ)
		return WEIR_INSIDE_UNREADABLE;
	r->behind_parent = at;
	r->behind_parent_n = n;
	r->context[0] = r->words[0];
	r->context[1] = r->words[1];
	return INSIDE_READ;
}

/* The parent of the context in r->context, which has no value: it is looked at next. False: it has none that weir knows. */
static __always_inline bool inside_parent(struct inside_request *r, const struct weir_inside_context *c)
{
	__u64 at = 0;

	for (__u32 i = 0; i < WEIR_INSIDE_CONTEXTS; i++)
		if (i < c->n_others && r->context[0] == c->others[i].itab)
			at = r->context[1] + c->others[i].at;
	if (!at)
		return false;
	r->outcome = inside_read_parent(r, at);
	return r->outcome == INSIDE_READ;
}

/* A key that is not known yet. Where it is a constant, it is read once: the user's, or another one if no verb has its place. */
WEIR_SELDOM bool inside_read_key(struct inside_request *r, struct weir_inside_process *process, __u64 key, __u64 *other)
{
	__u64 value = 0;
	bool is_user;

	if (!r || !process || !other)
		return false;
	r->outcome = inside_copy(&value, sizeof(value), key);
	if (r->outcome != INSIDE_READ)
		return false;
	is_user = value == process->layout.context.user_key;
	if (!weir_inside_is_constant(&process->layout, key, sizeof(value)) || !inside_is_its(process))
		return is_user;
	if (is_user)
		*(volatile __u64 *)&process->learnt.user_key = key;
	else if (!WEIR_FRESH(*other))
		*(volatile __u64 *)other = weir_inside_key_word(key);
	return is_user;
}

/* Is the user kept under this key, an `any`? It is what the server itself asks for. */
static __always_inline bool inside_is_user_key(struct inside_request *r, struct weir_inside_process *process,
					       const __u64 key[2])
{
	__u64 *other = &process->learnt.words[weir_inside_word_of(key[1])];

	if (key[0] != process->layout.context.key_type)
		return false;
	if (WEIR_LIKELY(key[1] && key[1] == WEIR_FRESH(process->learnt.user_key)))
		return true;
	return WEIR_UNLIKELY(!weir_inside_key_is(WEIR_FRESH(*other), key[1])) &&
	       inside_read_key(r, process, key[1], other);
}

/*
 * The innermost ones are those in force: the user may be one who is impersonated. False: he is of a type that weir does not read, and
 * those further out are others.
 */
static __always_inline bool inside_value(struct inside_request *r, struct weir_inside_process *process,
					 const struct weir_inside_value_context *context)
{
	const struct weir_inside_context *c = &process->layout.context;
	const __u64 *value = context->value;

	if (WEIR_UNLIKELY(value[0] == c->info_type) && !(r->found & INSIDE_HAS_FIELDS)) {
		r->fields_at = value[1];
		r->found |= INSIDE_HAS_FIELDS;
	}
	if (!(r->found & INSIDE_HAS_USER) && inside_is_user_key(r, process, context->key)) {
		r->user_at = value[1];
		r->found |= INSIDE_HAS_USER;
		return value[0] == c->user_type;
	}
	return r->outcome == INSIDE_READ;
}

/*
 * A value's context, at this address; NULL: it cannot be read. Those of a request are made one after the other, each within the one before
 * it: so its parent is often right before it, and both are read at once, as far as their page goes.
 */
static __always_inline const struct weir_inside_value_context *inside_context_at(struct inside_request *r, __u64 at)
{
	const __u32 size = sizeof(struct weir_inside_value_context);
	__u64 from = at - r->span.at;
	__u32 before = at & (INSIDE_PAGE - 1);

	if (WEIR_UNLIKELY(from > INSIDE_BEFORE) || WEIR_UNLIKELY(from + size > r->span.length)) {
		from = WEIR_MOSTLY(INSIDE_BEFORE, before < INSIDE_BEFORE, before);
		WEIR_BARRIER(from);
		if (WEIR_UNLIKELY(from > INSIDE_BEFORE) ||
		    WEIR_UNLIKELY(bpf_probe_read_user(r->span.text, from + size, (const void *)(at - from)))) {
			inside_miss(at, size);
			r->outcome = WEIR_INSIDE_UNREADABLE;
			return NULL;
		}
		r->span.at = at - from;
		r->span.length = from + size;
	}
	WEIR_BARRIER(from);
	return from <= INSIDE_BEFORE ? (const void *)(r->span.text + from) : NULL;
}

/* Looks at the context in r->context. True: it is to be gone on with its parent. */
static __always_inline bool inside_context_step(struct inside_request *r, struct weir_inside_process *process)
{
	const struct weir_inside_value_context *context;

	if (WEIR_UNLIKELY(r->context[0] != process->layout.context.value_itab))
		return inside_parent(r, &process->layout.context);
	context = inside_context_at(r, r->context[1]);
	if (WEIR_UNLIKELY(!context))
		return false;
	if (WEIR_UNLIKELY(!inside_value(r, process, context))) {
		r->found = 0;
		return false;
	}
	r->context[0] = context->parent[0];
	r->context[1] = context->parent[1];
	return r->found != INSIDE_HAS_BOTH;
}

/* Most requests have no more. A call for each would take longer than what it does. */
#define INSIDE_CONTEXTS_AT_ONCE 8

/* True: it is to be gone on. Verifiers read it once. */
__noinline int inside_contexts(struct inside_request *r, struct weir_inside_process *process)
{
	if (!r || !process)
		return false;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < INSIDE_CONTEXTS_AT_ONCE; i++) {
		if (WEIR_UNLIKELY(!inside_context_step(r, process)))
			return false;
	}
	return true;
}

/* Finds the user and what is asked for in the request's context. */
static __always_inline __u32 inside_context(struct inside_request *r, struct weir_inside_process *process)
{
	if (!r || !process)
		return WEIR_INSIDE_UNREADABLE;
	r->found = 0;
	r->outcome = INSIDE_READ;
	r->span.length = 0;
	r->context[0] = r->http.context[0];
	r->context[1] = r->http.context[1];
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < WEIR_INSIDE_CONTEXT_DEPTH / INSIDE_CONTEXTS_AT_ONCE; i++) {
		if (WEIR_LIKELY(!inside_contexts(r, process)))
			break;
	}
	if (WEIR_UNLIKELY(r->outcome != INSIDE_READ))
		return r->outcome;
	return WEIR_MOSTLY(INSIDE_READ, r->found != INSIDE_HAS_BOTH, WEIR_INSIDE_OTHER_USER);
}

#endif
