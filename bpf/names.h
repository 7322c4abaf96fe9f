/* SPDX-License-Identifier: GPL-2.0 */
/* What subjects are called, for people: remembered when a limit meets one for the first time. */
#ifndef WEIR_BPF_NAMES_H
#define WEIR_BPF_NAMES_H

#include "identify.h"
#include "terms.h"

/* Whom a name is that no header of this packet says; NULL: one does. */
static __always_inline struct weir_principal *principal_of(struct work *w, __u32 part)
{
	if (part == WEIR_KEY_OBJECT || part == WEIR_KEY_SOURCE)
		return NULL;
	if (part == WEIR_KEY_NAMESPACE)
		return w->decision.attributes.namespace ? NULL : principal_by_address(w);
	if (w->decision.identity.by == WEIR_IDENTIFIED_BY_TOKEN)
		return principal_by_token(w);
	return w->decision.identity.by == WEIR_IDENTIFIED_BY_ADDRESS_TABLE ? principal_by_address(w) : NULL;
}

/* Remembers the name of a part that the settings, or the client's address, say. False: they do not. */
static __always_inline bool name_needs_no_packet(struct work *w, __u32 part, __u64 subject)
{
	struct weir_principal *principal = principal_of(w, part);

	if (principal) {
		bpf_map_update_elem(&names, &subject,
				    part == WEIR_KEY_USER ? &principal->user_name : &principal->namespace_name,
				    BPF_ANY);
		return true;
	}
	if (part != WEIR_KEY_SOURCE && (part != WEIR_KEY_USER || w->decision.identity.by != WEIR_IDENTIFIED_BY_NOBODY))
		return false;
	__builtin_memset(&w->entry.name, 0, sizeof(w->entry.name));
	w->entry.name.kind = WEIR_NAME_ADDRESS;
	w->entry.name.length = w->entry.name.whole = 16;
	client_address(w, (__u8 *)w->entry.name.text);
	bpf_map_update_elem(&names, &subject, &w->entry.name, BPF_ANY);
	return true;
}

/* A subject of several parts is called what they are. */
__noinline int remember_parts(__u32 hook, __u32 n, __u32 key)
{
	struct work *w = work_of(hook);
	__u64 *parts, subject;
	__u32 length = 0;

	if (!w || n >= WEIR_MATCHES_MAX)
		return 0;
	subject = w->decision.subjects[n];
	if (subject == WEIR_SUBJECT_OVERFLOW || bpf_map_lookup_elem(&names, &subject))
		return 0;
	__builtin_memset(&w->entry.name, 0, sizeof(w->entry.name));
	parts = (__u64 *)w->entry.name.text;
	for (__u32 i = 0; i < WEIR_KEY_PARTS; i++) {
		if (key >> i & 1)
			parts[length++] = key_part(&w->decision, 1U << i, n);
	}
	w->entry.name.kind = WEIR_NAME_PARTS;
	w->entry.name.length = w->entry.name.whole = length * sizeof(*parts);
	bpf_map_update_elem(&names, &subject, &w->entry.name, BPF_ANY);
	return 0;
}

/* As remember_name() where there is no request. */
__noinline int remember_client(__u32 hook, __u32 part)
{
	struct work *w = work_of(hook);
	__u64 subject;

	if (!w)
		return 0;
	subject = key_part(&w->decision, part, 0);
	if (subject && !bpf_map_lookup_elem(&names, &subject))
		name_needs_no_packet(w, part, subject);
	return 0;
}

/* The subject of the client's address. */
__noinline int remember_address(__u32 hook, __u64 subject)
{
	struct work *w = work_of(hook);

	if (w && !bpf_map_lookup_elem(&names, &subject))
		name_needs_no_packet(w, WEIR_KEY_SOURCE, subject);
	return 0;
}

__noinline int remember_client_of(struct work *w, __u32 n)
{
	__u32 key;

	if (!w || n >= WEIR_MATCHES_MAX)
		return 0;
	key = terms_of(&w->decision, n)->key;
	for (__u32 i = 0; i < WEIR_KEY_PARTS; i++) {
		if (key >> i & 1 && 1U << i != WEIR_KEY_GROUP)
			remember_client(w->hook, 1U << i);
	}
	if (key & (key - 1))
		remember_parts(w->hook, n, key);
	return 0;
}

/* Of a new connection, the subjects that were not known to a limit. */
__noinline int remember_clients(__u32 hook)
{
	struct work *w = work_of(hook);

	if (!w)
		return 0;
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (w->decision.nameless >> n & 1)
			remember_client_of(w, n);
	}
	return 0;
}

#endif
