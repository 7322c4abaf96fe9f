/* SPDX-License-Identifier: GPL-2.0 */
/* Whose a request inside a server is, and what it asks for, as the server has it in memory. */
#ifndef WEIR_BPF_INSIDE_ABOUT_H
#define WEIR_BPF_INSIDE_ABOUT_H

#include "inside_request.h"

/* What bpf_loop() hands to its callbacks must be on the stack. */
struct inside_group_turn {
	struct inside_request *request;
	const struct weir_inside_process *process;
};

/* The network that its peer is charged as: an IPv6 one by its /64. */
static __always_inline void inside_network(const struct inside_request *r, __u8 address[16])
{
	__builtin_memcpy(address, r->peer.address, 16);
	if (!inside_peer_is_ipv4(&r->peer))
		__builtin_memset(address + 8, 0, 8);
}

/* Its peer: whom a request is charged to that has no user. */
static __noinline int inside_by_peer(struct inside_request *r)
{
	struct weir_settings *set;
	__u32 zero = 0;

	set = bpf_map_lookup_elem(&settings, &zero);
	if (!r || !set || !r->peer.known)
		return 0;
	inside_network(r, (__u8 *)r->name.text);
	r->address = weir_subject_of_address(set->seed, WEIR_NAME_ADDRESS, (const __u8 *)r->name.text);
	if (!r->record.trace.user)
		r->record.trace.user = r->address;
	if (bpf_map_lookup_elem(&names, &r->address))
		return 0;
	__builtin_memset(&r->name, 0, sizeof(r->name));
	inside_network(r, (__u8 *)r->name.text);
	r->name.kind = WEIR_NAME_ADDRESS;
	r->name.length = r->name.whole = 16;
	bpf_map_update_elem(&names, &r->address, &r->name, BPF_ANY);
	return 0;
}

/* A string, for people: as much as there is room for. */
static __noinline int inside_remember(struct inside_request *r, const struct weir_inside_string *string, __u8 kind,
				      __u64 subject)
{
	__u32 n;

	if (!r || !string || !string->length || !subject || bpf_map_lookup_elem(&names, &subject))
		return 0;
	n = string->length < WEIR_NAME_TEXT ? string->length : WEIR_NAME_TEXT;
	WEIR_BARRIER(n);
	__builtin_memset(&r->name, 0, sizeof(r->name));
	if (n > WEIR_NAME_TEXT || bpf_probe_read_user(r->name.text, n, (const void *)string->at))
		return 0;
	r->name.kind = kind;
	r->name.length = n;
	r->name.whole = string->length;
	bpf_map_update_elem(&names, &subject, &r->name, BPF_ANY);
	return 0;
}

/* Where it may not be known: most requests come from users who were seen a moment ago. */
static __always_inline void inside_remember_user(struct inside_request *r)
{
	inside_remember(r, &r->user, WEIR_NAME_USER, r->record.trace.user);
}

#define INSIDE_GROUPS_AT_ONCE 8 /* a power of two: their strings are read at once */

/* The strings of groups i and those behind it. */
static __always_inline __u32 inside_group_strings(struct inside_request *r, __u32 i)
{
	__u32 left = r->n_groups - i, n = left < INSIDE_GROUPS_AT_ONCE ? left : INSIDE_GROUPS_AT_ONCE;

	return inside_struct(r, r->groups_at + i * sizeof(struct weir_inside_string),
			     n * sizeof(struct weir_inside_string));
}

/* Is there a group whose name has the length of this one's? Most users' groups are none that the server's settings name. */
static __always_inline bool inside_may_be_known(const struct inside_request *r, __u32 at)
{
	return r->group_lengths & weir_length_bit(inside_field(r, at * sizeof(struct weir_inside_string) + 8));
}

/* One of the user's groups: adds what `groups` has for it. The first ones have been read. */
static long inside_group_step(__u32 i, struct inside_group_turn *turn)
{
	struct inside_request *r = turn->request;
	__u32 at = i & (INSIDE_GROUPS_AT_ONCE - 1);
	struct weir_inside_string string;
	__u64 subject = 0;
	const __u32 *bit;

	r->outcome = at || !i ? INSIDE_READ : inside_group_strings(r, i);
	if (r->outcome != INSIDE_READ)
		return 1;
	if (!inside_may_be_known(r, at))
		return 0;
	string = inside_string_in(r, at * sizeof(string));
	r->outcome = inside_subject(turn->process, &r->walk, &string, WEIR_NAME_GROUP, &subject);
	if (r->outcome != INSIDE_READ)
		return 1;
	r->known.subject = subject;
	bit = bpf_map_lookup_elem(&groups, &r->known);
	if (bit)
		weir_groups_add(&r->groups, *bit);
	return 0;
}

/* May one of those that were read be known? */
static __always_inline bool inside_may_one_be_known(const struct inside_request *r)
{
	bool may = false;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < INSIDE_GROUPS_AT_ONCE; i++) {
		if (i < r->n_groups)
			may |= inside_may_be_known(r, i);
	}
	return may;
}

/* slice: of their names. */
static __always_inline __u32 inside_groups(struct inside_request *r, const struct weir_inside_process *process,
					   const struct weir_server *server, const struct weir_inside_string *slice)
{
	struct inside_group_turn turn = { .request = r, .process = process };

	if (slice->length > WEIR_INSIDE_GROUPS_MAX)
		return WEIR_INSIDE_OTHER_USER;
	r->known.server = process->server;
	r->group_lengths = server->groups.lengths;
	r->groups_at = slice->at;
	r->n_groups = slice->length;
	if (!r->group_lengths || !r->n_groups)
		return INSIDE_READ;
	r->outcome = inside_group_strings(r, 0);
	if (r->outcome == INSIDE_READ && (r->n_groups > INSIDE_GROUPS_AT_ONCE || inside_may_one_be_known(r)))
		bpf_loop(slice->length, inside_group_step, &turn, 0);
	return r->outcome;
}

/* Kubernetes' name for who has not authenticated: weir tells them apart by their addresses. */
static __always_inline bool inside_is_anonymous(const struct inside_walk *walk, const struct weir_inside_string *name)
{
	return WEIR_UNLIKELY(name->length == 16) &&
	       walk->words[0] == WEIR_TEXT8('s', 'y', 's', 't', 'e', 'm', ':', 'a') &&
	       walk->words[1] == WEIR_TEXT8('n', 'o', 'n', 'y', 'm', 'o', 'u', 's');
}

/* Was the struct read with a context's parent? *at: where in `words` it is. */
static __always_inline bool inside_is_behind_parent(const struct inside_request *r, __u64 struct_at, __u32 size,
						    __u32 *at)
{
	__u64 from = struct_at - r->behind_parent;

	*at = from;
	return WEIR_LIKELY(r->behind_parent) && WEIR_LIKELY(from < r->behind_parent_n) &&
	       WEIR_LIKELY(size <= r->behind_parent_n - from) && WEIR_LIKELY(!(from & 7));
}

/* A user.Info: its itab and what it points to. Sets the request's user and groups. */
static __always_inline __u32 inside_user(struct inside_request *r, const struct weir_inside_process *process,
					 const struct weir_server *server, __u64 itab, __u64 user)
{
	struct weir_inside_string name, slice;
	__u64 *subject;
	__u32 outcome, at;

	if (!r || !process)
		return WEIR_INSIDE_UNREADABLE;
	if (WEIR_UNLIKELY(itab != process->layout.user_itab))
		return WEIR_INSIDE_OTHER_USER;
	if (WEIR_UNLIKELY(!inside_is_behind_parent(r, user, process->layout.user_size, &at))) {
		at = 0;
		if (inside_struct(r, user, process->layout.user_size) != INSIDE_READ)
			return WEIR_INSIDE_UNREADABLE;
	}
	name = inside_string_in(r, at + process->layout.user_name);
	slice = inside_string_in(r, at + process->layout.user_groups);
	outcome = inside_groups(r, process, server, &slice);
	if (WEIR_UNLIKELY(outcome != INSIDE_READ))
		return outcome;
	subject = &r->record.trace.user;
	outcome = inside_subject(process, &r->walk, &name, WEIR_NAME_USER, subject);
	if (WEIR_UNLIKELY(outcome != INSIDE_READ))
		return outcome;
	if (inside_is_anonymous(&r->walk, &name))
		*subject = 0;
	else
		r->user = name;
	return INSIDE_READ;
}

static __always_inline void inside_attribute_flags(struct weir_attributes *a, __u32 is_resource, bool runs_long)
{
	a->flags = is_resource * WEIR_ATTRIBUTE_RESOURCE;
	if (a->verb == WEIR_VERB_GET || a->verb == WEIR_VERB_LIST || a->verb == WEIR_VERB_WATCH)
		a->flags |= WEIR_ATTRIBUTE_READ_ONLY;
	if (WEIR_UNLIKELY(a->verb == WEIR_VERB_WATCH) || WEIR_UNLIKELY(a->verb == WEIR_VERB_PROXY) ||
	    WEIR_UNLIKELY(runs_long))
		a->flags |= WEIR_ATTRIBUTE_LONG_RUNNING;
	a->namespace_at = a->group_at = a->version_at = WEIR_SEGMENT_NONE;
	a->resource_at = a->subresource_at = a->name_at = WEIR_SEGMENT_NONE;
}

/* --- names of what it asks for */

#define INSIDE_NAMES 5

/* Namespace, group, resource, subresource and name: where they are, and where their subjects go. */
static __always_inline __u32 inside_name_at(const struct inside_request *r, __u32 i)
{
	return (&r->fields.namespace)[i];
}

_Static_assert(__builtin_offsetof(struct weir_inside_fields, name) -
			       __builtin_offsetof(struct weir_inside_fields, namespace) ==
		       (INSIDE_NAMES - 1) * sizeof(__u16),
	       "names in a row");
_Static_assert(__builtin_offsetof(struct weir_attributes, name) -
			       __builtin_offsetof(struct weir_attributes, namespace) ==
		       (INSIDE_NAMES - 1) * sizeof(__u64),
	       "their subjects in the same row");

/* Reads what lies between the first and the last byte of all names, if that is not much. */
static __always_inline void inside_read_span(struct inside_request *r)
{
	__u64 from = ~0ULL, to = 0, length;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < INSIDE_NAMES; i++) {
		struct weir_inside_string string = inside_string_in(r, inside_name_at(r, i));

		if (!string.length)
			continue;
		from = string.at < from ? string.at : from;
		to = string.at + string.length > to ? string.at + string.length : to;
	}
	length = to - from;
	r->span.at = from;
	r->span.length = 0;
	WEIR_BARRIER(length);
	if (WEIR_LIKELY(from < to) && WEIR_LIKELY(length <= INSIDE_SPAN_MAX) &&
	    WEIR_LIKELY(!bpf_probe_read_user(r->span.text, length, (const void *)from)))
		r->span.length = length;
}

/* Where a text is that the span has; NULL: it has not. */
static __always_inline const char *inside_in_span(const struct inside_request *r,
						  const struct weir_inside_string *string)
{
	__u64 at = string->at - r->span.at;

	if (WEIR_UNLIKELY(at > r->span.length) || WEIR_UNLIKELY(string->length > r->span.length - at))
		return NULL;
	if (WEIR_UNLIKELY(at >= INSIDE_SPAN_MAX))
		return NULL;
	WEIR_BARRIER(at); /* nor is it added before that was asked */
	return r->span.text + at;
}

/* Word i of a text in the span, zeros behind its end. */
static __always_inline __u64 inside_span_word(const char *text, __u32 i, __u32 length)
{
	__u64 word = ((const __u64 *)text)[i];
	__u32 left = length - 8 * i;

	return left < 8 ? word & ((1ULL << 8 * left) - 1) : word;
}

/* Is it a subresource whose requests may last for hours, or the path of a profile? */
static __always_inline __u32 inside_runs_long(const struct inside_request *r, const struct weir_inside_string *string,
					      bool is_resource, bool *runs_long)
{
	const char *read = string->length ? inside_in_span(r, string) : NULL;
	__u64 text[2];

	*runs_long = false;
	if (!string->length)
		return INSIDE_READ;
	if (read) {
		text[0] = inside_span_word(read, 0, string->length);
		text[1] = string->length > 8 ? inside_span_word(read, 1, string->length) : 0;
	} else if (inside_beginning(string, text) != INSIDE_READ) {
		return WEIR_INSIDE_UNREADABLE;
	}
	if (is_resource)
		*runs_long = string->length <= WEIR_INSIDE_WORD_MAX && weir_text_is_interactive(text[0], text[1]);
	else
		*runs_long = weir_text_is_profile(text[0], text[1]);
	return INSIDE_READ;
}

/* The subject of name i. */
static __always_inline __u32 inside_name(struct inside_request *r, const struct weir_inside_process *process, __u32 i)
{
	struct weir_inside_string string = inside_string_in(r, inside_name_at(r, i));
	__u64 *subject = &r->record.trace.attributes.namespace + i;
	const char *text;

	if (!string.length)
		return INSIDE_READ;
	text = WEIR_LIKELY(string.length <= INSIDE_SHORT_MAX) ? inside_in_span(r, &string) : NULL;
	*subject = WEIR_LIKELY(text) ?
			   inside_plain_subject(process, (const void *)(text - 1), string.length, WEIR_NAME_NAMESPACE) :
			   0;
	return WEIR_LIKELY(*subject) ? INSIDE_READ :
				       inside_subject(process, &r->walk, &string, WEIR_NAME_NAMESPACE, subject);
}

#define INSIDE_UNASKED 1 /* there is such a name, whose subject nobody has asked for */

/* All that rules ask for. Of an object's name they ask only whether there is one: its subject is for those who trace. */
static __always_inline __u32 inside_names(struct inside_request *r, const struct weir_inside_process *process)
{
	__u32 outcome = INSIDE_READ;
	struct weir_inside_string name;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < INSIDE_NAMES - 1; i++) {
		outcome = inside_name(r, process, i);
		if (WEIR_UNLIKELY(outcome != INSIDE_READ))
			break;
	}
	name = inside_string_in(r, inside_name_at(r, INSIDE_NAMES - 1));
	r->record.trace.attributes.name = name.length ? INSIDE_UNASKED : 0;
	return outcome;
}

/* The struct that was read last is the one with its names. */
WEIR_SELDOM int inside_name_object(struct inside_request *r, const struct weir_inside_process *process)
{
	if (!r || !process || !r->record.trace.attributes.name)
		return 0;
	if (inside_name(r, process, INSIDE_NAMES - 1) != INSIDE_READ)
		r->record.trace.attributes.name = 0;
	return 0;
}

/* 1: it is true. */
static __always_inline __u32 inside_bool(const struct inside_request *r, __u32 offset)
{
	return inside_field(r, offset) >> offset % 8 * 8 & 1;
}

/* Verbs are constants of the server's binary: of one that was read before, the address is enough. */
static __always_inline __u32 inside_verb_of(struct weir_inside_process *process,
					    const struct weir_inside_string *string, __u8 *verb)
{
	__u64 *known = &process->learnt.words[weir_inside_word_of(string->at)], word;

	word = WEIR_FRESH(*known);
	if (WEIR_LIKELY(weir_inside_verb_is(word, string->at, string->length))) {
		*verb = word;
		return INSIDE_READ;
	}
	if (inside_verb(string, verb) != INSIDE_READ)
		return WEIR_INSIDE_UNREADABLE;
	if (weir_inside_is_constant(&process->layout, string->at, string->length) && inside_is_its(process))
		*(volatile __u64 *)known = weir_inside_verb_word(string->at, string->length, *verb);
	return INSIDE_READ;
}

/* What the struct at r->fields_at says, whose fields are r->fields. */
static __always_inline __u32 inside_attributes(struct inside_request *r, struct weir_inside_process *process)
{
	struct weir_inside_string verb, detail;
	const struct weir_inside_fields *f;
	struct weir_attributes *a;
	bool runs_long = false;
	__u32 outcome, is_resource;

	if (!r || !process)
		return WEIR_INSIDE_UNREADABLE;
	a = &r->record.trace.attributes;
	f = &r->fields;
	if (WEIR_UNLIKELY(inside_struct(r, r->fields_at, f->size) != INSIDE_READ))
		return WEIR_INSIDE_UNREADABLE;
	is_resource = inside_bool(r, f->is_resource);
	verb = inside_string_in(r, f->verb);
	detail = inside_string_in(r, WEIR_MOSTLY(f->subresource, !is_resource, f->path));
	r->span.length = 0;
	if (WEIR_LIKELY(is_resource))
		inside_read_span(r);
	outcome = inside_verb_of(process, &verb, &a->verb);
	if (WEIR_LIKELY(outcome == INSIDE_READ))
		outcome = inside_runs_long(r, &detail, is_resource, &runs_long);
	inside_attribute_flags(a, is_resource, runs_long);
	r->health = WEIR_UNLIKELY(!is_resource) && inside_is_health(&r->walk, &detail);
	return WEIR_LIKELY(outcome == INSIDE_READ) && WEIR_LIKELY(is_resource) ? inside_names(r, process) : outcome;
}

/* --- the http.Request */

/* Reads it, whether it is there or not: r->unread says so. known: INSIDE_PEERS, or NULL */
static __always_inline int inside_read_http(struct inside_request *r, const struct weir_inside_process *process,
					    struct inside_known_peer *known)
{
	const struct weir_inside_layout *layout;

	if (!r || !process)
		return 0;
	layout = &process->layout;
	r->unread = inside_struct(r, r->request, layout->request_size);
	if (WEIR_UNLIKELY(r->unread != INSIDE_READ))
		return 0;
	r->http.method = inside_string_in(r, layout->method);
	r->http.uri = inside_string_in(r, layout->uri);
	r->http.peer = inside_string_in(r, layout->peer);
	r->http.context[0] = inside_field(r, layout->context.request);
	r->http.context[1] = inside_field(r, layout->context.request + 8);
	r->http1 = inside_field(r, layout->proto_major) < 2;
	r->on_wire = WEIR_UNLIKELY(!inside_field(r, layout->tls)) && inside_field(r, layout->proto_major) == 1;
	if (WEIR_UNLIKELY(r->on_wire))
		count(process->server, WEIR_INSIDE_ON_WIRE);
	else
		r->unread = inside_peer(&r->walk, &r->http.peer, known, &r->peer);
	return 0;
}

#endif
