/* SPDX-License-Identifier: GPL-2.0 */
/* What subjects are called that a request's own bytes name. */
#ifndef WEIR_BPF_NAMES_READ_H
#define WEIR_BPF_NAMES_READ_H

#include "names.h"

/* Where in the request the namespace's name stands, and how long it is. */
static __always_inline __u32 namespace_place(const struct work *w, __u32 *length)
{
	const struct weir_request *r = &w->request.request;
	__u32 segment = w->decision.attributes.namespace_at;

	*length = r->namespace_length;
	if (segment >= WEIR_PATH_SEGMENTS)
		return r->namespace_offset;
	*length = r->path.segments[segment].length;
	return r->path.segments[segment].offset;
}

/* Writes a field of the packet's Event to its place, cut to the room there is. */
static __always_inline int object_text(struct __sk_buff *skb, const struct work *w, enum weir_event_field field,
				       char *text, __u32 room)
{
	__u32 at = w->packet.payload + w->event.at + w->event.fields.offsets[field];

	if (!w->event.fields.lengths[field])
		return 0;
	return bpf_skb_load_bytes(skb, at, text, size_up_to(room, w->event.fields.lengths[field]));
}

static __always_inline int object_name(struct __sk_buff *skb, const struct work *w, struct weir_object_name *name)
{
	if (object_text(skb, w, WEIR_EVENT_KIND, name->kind, sizeof(name->kind)) ||
	    object_text(skb, w, WEIR_EVENT_NAMESPACE, name->namespace, sizeof(name->namespace)))
		return -1;
	return object_text(skb, w, WEIR_EVENT_NAME, name->name, sizeof(name->name));
}

/* A name as it stands in this packet. 0: it does. */
static __always_inline int read_name(struct __sk_buff *skb, struct work *w, __u32 offset, __u32 length)
{
	__u32 at = w->request.start - w->packet.segment.seq + offset;

	if (!w->request.whole || !length || at + length > w->packet.segment.len)
		return -1;
	w->entry.name.whole = length;
	length = size_up_to(WEIR_NAME_TEXT, length);
	w->entry.name.length = length;
	return bpf_skb_load_bytes(skb, w->packet.payload + at, w->entry.name.text, length);
}

/* Writes the name of a part's subject, as the packet has it, to w->entry.name. 0: it is there. */
static __always_inline int name_write(struct __sk_buff *skb, struct work *w, __u32 part)
{
	const struct weir_request *r = &w->request.request;
	__u32 at, length;

	if (part == WEIR_KEY_NAMESPACE) {
		w->entry.name.kind = WEIR_NAME_NAMESPACE;
		at = namespace_place(w, &length);
		return read_name(skb, w, at, length);
	}
	if (part == WEIR_KEY_OBJECT) {
		w->entry.name.kind = WEIR_NAME_OBJECT;
		w->entry.name.length = w->entry.name.whole = sizeof(struct weir_object_name);
		return object_name(skb, w, (struct weir_object_name *)w->entry.name.text);
	}
	w->entry.name.kind = WEIR_NAME_USER;
	return read_name(skb, w, r->user_offset, r->user_length);
}

/* Remembers the name of a part's subject, if it is known. */
__noinline int remember_name(struct __sk_buff *skb, __u32 hook, __u32 part)
{
	struct work *w = work_of(hook);
	__u64 subject;

	if (!w)
		return 0;
	if (part == WEIR_KEY_OBJECT && w->decision.event_key != WEIR_EVENT_KEYED)
		part = WEIR_KEY_USER;
	subject = key_part(&w->decision, part, 0);
	if (!subject || bpf_map_lookup_elem(&names, &subject))
		return 0;
	if (name_needs_no_packet(w, part, subject))
		return 0;
	__builtin_memset(&w->entry.name, 0, sizeof(w->entry.name));
	if (!name_write(skb, w, part))
		bpf_map_update_elem(&names, &subject, &w->entry.name, BPF_ANY);
	return 0;
}

__noinline int remember_subject(struct __sk_buff *skb, struct work *w, __u32 n)
{
	__u32 key;

	if (!w || n >= WEIR_MATCHES_MAX)
		return 0;
	key = terms_of(&w->decision, n)->key;
	for (__u32 i = 0; i < WEIR_KEY_PARTS; i++) {
		if (key >> i & 1 && 1U << i != WEIR_KEY_GROUP)
			remember_name(skb, w->hook, 1U << i);
	}
	if (key & (key - 1))
		remember_parts(w->hook, n, key);
	return 0;
}

/* Of the subjects that were not known to a limit. */
static __always_inline void remember_names(struct __sk_buff *skb, struct work *w)
{
	if (!w->decision.nameless || w->decision.look)
		return;
#pragma GCC unroll 16
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (w->decision.nameless >> n & 1)
			remember_subject(skb, w, n);
	}
}

#endif
