/* SPDX-License-Identifier: GPL-2.0 */
/* Whose a request inside a server is, and what it asks for, as the server has it in memory. */
#ifndef WEIR_BPF_INSIDE_ABOUT_H
#define WEIR_BPF_INSIDE_ABOUT_H

#include "inside_request.h"

/* What bpf_loop() hands to its callbacks must be on the stack. */
struct inside_group_turn {
	struct inside_request *request;
};

/* Its peer, an IPv6 one by its /64: whom a request is charged to that has no user. */
static __noinline int inside_by_peer(struct inside_request *r)
{
	struct weir_settings *set;
	__u32 zero = 0;

	set = bpf_map_lookup_elem(&settings, &zero);
	if (!r || !set || !r->peer.known)
		return 0;
	__builtin_memset(&r->name, 0, sizeof(r->name));
	__builtin_memcpy(r->name.text, r->peer.address, 16);
	if (!weir_address_is_ipv4(r->peer.address))
		__builtin_memset(r->name.text + 8, 0, 8);
	r->address = weir_subject_of_address(set->seed, WEIR_NAME_ADDRESS, (const __u8 *)r->name.text);
	if (!r->record.trace.user)
		r->record.trace.user = r->address;
	r->name.kind = WEIR_NAME_ADDRESS;
	r->name.length = r->name.whole = 16;
	if (!bpf_map_lookup_elem(&names, &r->address))
		bpf_map_update_elem(&names, &r->address, &r->name, BPF_ANY);
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

/* One of the user's groups: adds what `groups` has for it. */
static long inside_group_step(__u32 i, struct inside_group_turn *turn)
{
	struct inside_request *r = turn->request;
	__u64 subject = 0;
	const __u32 *bit;

	r->outcome = inside_subject(&r->walk, r->groups_at + i * sizeof(struct weir_inside_string), WEIR_NAME_GROUP,
				    &subject);
	if (r->outcome != INSIDE_READ)
		return 1;
	r->known.subject = subject;
	bit = bpf_map_lookup_elem(&groups, &r->known);
	if (bit)
		weir_groups_add(&r->groups, *bit);
	return 0;
}

/* at: address of the slice of their names. */
static __noinline __u32 inside_groups(struct inside_request *r, __u32 server, __u64 at)
{
	struct inside_group_turn turn = { r };
	struct weir_inside_string slice = {};

	if (!r || inside_string(at, &slice) != INSIDE_READ)
		return WEIR_INSIDE_UNREADABLE;
	if (slice.length > WEIR_INSIDE_GROUPS_MAX)
		return WEIR_INSIDE_OTHER_USER;
	r->known.server = server;
	r->groups_at = slice.at;
	r->outcome = INSIDE_READ;
	bpf_loop(slice.length, inside_group_step, &turn, 0);
	return r->outcome;
}

/* Kubernetes' name for who has not authenticated: weir tells them apart by their addresses. */
static __always_inline bool inside_is_anonymous(__u64 at)
{
	struct weir_inside_string string = {};
	__u64 text[2] = {};

	return inside_string(at, &string) == INSIDE_READ && string.length == sizeof(text) &&
	       !bpf_probe_read_user(text, sizeof(text), (const void *)string.at) &&
	       text[0] == WEIR_TEXT8('s', 'y', 's', 't', 'e', 'm', ':', 'a') &&
	       text[1] == WEIR_TEXT8('n', 'o', 'n', 'y', 'm', 'o', 'u', 's');
}

/* A user.Info: its itab and what it points to. Sets the request's user and groups. */
static __noinline __u32 inside_user(struct inside_request *r, const struct weir_inside_process *process, __u64 itab,
				    __u64 user)
{
	const struct weir_inside_layout *layout;
	__u32 outcome;
	__u64 name;

	if (!r || !process)
		return WEIR_INSIDE_UNREADABLE;
	layout = &process->layout;
	if (itab != layout->user_itab)
		return WEIR_INSIDE_OTHER_USER;
	outcome = inside_groups(r, process->server, user + layout->user_groups);
	name = user + layout->user_name;
	if (outcome != INSIDE_READ || inside_is_anonymous(name))
		return outcome;
	outcome = inside_subject(&r->walk, name, WEIR_NAME_USER, &r->record.trace.user);
	if (outcome == INSIDE_READ)
		inside_remember(r, name, WEIR_NAME_USER, r->record.trace.user);
	return outcome;
}

static __always_inline void inside_attribute_flags(struct weir_attributes *a, bool is_resource, bool runs_long)
{
	a->flags = is_resource ? WEIR_ATTRIBUTE_RESOURCE : 0;
	if (a->verb == WEIR_VERB_GET || a->verb == WEIR_VERB_LIST || a->verb == WEIR_VERB_WATCH)
		a->flags |= WEIR_ATTRIBUTE_READ_ONLY;
	if (a->verb == WEIR_VERB_WATCH || a->verb == WEIR_VERB_PROXY || runs_long)
		a->flags |= WEIR_ATTRIBUTE_LONG_RUNNING;
	a->namespace_at = a->group_at = a->version_at = WEIR_SEGMENT_NONE;
	a->resource_at = a->subresource_at = a->name_at = WEIR_SEGMENT_NONE;
}

/* What the struct at r->fields_at says, whose fields are r->fields. */
static __noinline __u32 inside_attributes(struct inside_request *r)
{
	const struct weir_inside_fields *f;
	struct weir_attributes *a;
	bool runs_long = false;
	__u8 is_resource = 0;
	__u32 outcome;
	__u64 at;

	if (!r)
		return WEIR_INSIDE_UNREADABLE;
	a = &r->record.trace.attributes;
	f = &r->fields;
	at = r->fields_at;
	if (bpf_probe_read_user(&is_resource, 1, (const void *)(at + f->is_resource)))
		return WEIR_INSIDE_UNREADABLE;
	outcome = inside_verb(at + f->verb, &a->verb);
	if (outcome == INSIDE_READ)
		outcome = inside_runs_long(at + (is_resource ? f->subresource : f->path), is_resource, &runs_long);
	inside_attribute_flags(a, is_resource, runs_long);
	r->health = !is_resource && inside_is_health(&r->walk, at + f->path);
	if (outcome != INSIDE_READ || !is_resource)
		return outcome;
	outcome = inside_subject(&r->walk, at + f->namespace, WEIR_NAME_NAMESPACE, &a->namespace);
	if (outcome == INSIDE_READ)
		outcome = inside_subject(&r->walk, at + f->group, WEIR_NAME_NAMESPACE, &a->group);
	if (outcome == INSIDE_READ)
		outcome = inside_subject(&r->walk, at + f->resource, WEIR_NAME_NAMESPACE, &a->resource);
	if (outcome == INSIDE_READ)
		outcome = inside_subject(&r->walk, at + f->subresource, WEIR_NAME_NAMESPACE, &a->subresource);
	if (outcome == INSIDE_READ)
		outcome = inside_subject(&r->walk, at + f->name, WEIR_NAME_NAMESPACE, &a->name);
	return outcome;
}

/* --- contexts */

/* The parent of the context in r->context: it is looked at next. False: it has none that weir knows. */
static __always_inline bool inside_parent(struct inside_request *r, const struct weir_inside_context *c)
{
	__u64 at = 0;

	if (r->context[0] == c->value_itab)
		at = r->context[1] + c->parent;
	for (__u32 i = 0; i < WEIR_INSIDE_CONTEXTS; i++)
		if (i < c->n_others && r->context[0] == c->others[i].itab)
			at = r->context[1] + c->others[i].at;
	return at && !bpf_probe_read_user(r->context, sizeof(r->context), (const void *)at);
}

struct inside_context_turn {
	struct inside_request *request;
	const struct weir_inside_context *context;
};

/* The innermost ones are those in force: the user may be one who is impersonated. */
static long inside_context_step(__u32 i, struct inside_context_turn *turn)
{
	const struct weir_inside_context *c = turn->context;
	struct inside_request *r = turn->request;
	__u64 value[2] = {};

	(void)i;
	if (r->context[0] == c->value_itab &&
	    !bpf_probe_read_user(value, sizeof(value), (const void *)(r->context[1] + c->value))) {
		if (value[0] == c->user_type && !r->has_user) {
			r->user_at = value[1];
			r->has_user = true;
		}
		if (value[0] == c->info_type && !r->has_fields) {
			r->fields_at = value[1];
			r->has_fields = true;
		}
	}
	return (r->has_user && r->has_fields) || !inside_parent(r, c);
}

/* Finds the user and what is asked for in the request's context. */
static __noinline __u32 inside_context(struct inside_request *r, const struct weir_inside_process *process)
{
	struct inside_context_turn turn = { .request = r };

	if (!r || !process)
		return WEIR_INSIDE_UNREADABLE;
	turn.context = &process->layout.context;
	r->has_user = r->has_fields = false;
	if (bpf_probe_read_user(r->context, sizeof(r->context), (const void *)(r->request + turn.context->request)))
		return WEIR_INSIDE_UNREADABLE;
	bpf_loop(WEIR_INSIDE_CONTEXT_DEPTH, inside_context_step, &turn, 0);
	return r->has_user && r->has_fields ? INSIDE_READ : WEIR_INSIDE_OTHER_USER;
}

#endif
