/* SPDX-License-Identifier: GPL-2.0 */
/* Whose request is it: the subjects that limits are kept for, and their names for people. */
#ifndef WEIR_BPF_IDENTIFY_H
#define WEIR_BPF_IDENTIFY_H

#include "weir/subject.h"

#include "maps.h"

static __always_inline bool from_trusted_proxy(const struct work *w)
{
	struct weir_proxy_key key = { .prefixlen = 32 + 128, .server = w->server };

	__builtin_memcpy(key.address, w->packet.source, sizeof(key.address));
	return bpf_map_lookup_elem(&proxies, &key);
}

/* The peer's address, an IPv6 one cut to its /64. */
static __always_inline void peer_address(const struct work *w, __u8 *address)
{
	__builtin_memcpy(address, w->packet.source, 16);
	if (w->packet.ipv6)
		__builtin_memset(address + 8, 0, 8);
}

/* The user the request counts for: X-Remote-User when a trusted proxy says so, else the peer. */
static __always_inline __u64 user_subject(struct work *w, __u8 *kind)
{
	const struct weir_request *r = &w->request.request;
	__u8 address[16];

	if (r->user_subject && from_trusted_proxy(w)) {
		if (!(r->flags & WEIR_REQUEST_USER_REPEATED)) {
			*kind = WEIR_NAME_USER;
			return r->user_subject;
		}
		w->repeated_user++;
	}
	*kind = WEIR_NAME_ADDRESS;
	peer_address(w, address);
	return weir_subject_of_address(w->seed, WEIR_NAME_ADDRESS, address);
}

/* Where in the request the name stands, and how long it is. */
static __always_inline __u32 name_place(const struct work *w, __u8 kind, __u32 *length)
{
	const struct weir_request *r = &w->request.request;
	__u32 segment = w->attributes.namespace_at;

	*length = 0;
	if (kind == WEIR_NAME_USER) {
		*length = r->user_length;
		return r->user_offset;
	}
	if (segment >= WEIR_PATH_SEGMENTS)
		return 0;
	*length = r->path.segments[segment].length;
	return r->path.segments[segment].offset;
}

/* Writes a field of the packet's Event to its place, cut to the room there is. */
static __always_inline int object_text(struct __sk_buff *skb, const struct work *w, enum weir_event_field field,
				       char *text, __u32 room)
{
	__u32 at = w->packet.payload + w->event_at + w->event.offsets[field];

	if (!w->event.lengths[field])
		return 0;
	return bpf_skb_load_bytes(skb, at, text, size_up_to(room, w->event.lengths[field]));
}

static __always_inline int object_name(struct __sk_buff *skb, const struct work *w, struct weir_object_name *name)
{
	if (object_text(skb, w, WEIR_EVENT_KIND, name->kind, sizeof(name->kind)) ||
	    object_text(skb, w, WEIR_EVENT_NAMESPACE, name->namespace, sizeof(name->namespace)))
		return -1;
	return object_text(skb, w, WEIR_EVENT_NAME, name->name, sizeof(name->name));
}

/* Remembers what a subject is called, as far as the name stands in this packet. */
__noinline int remember_name(struct __sk_buff *skb, __u32 hook, __u64 subject, __u8 kind)
{
	struct work *w = work_of(hook);
	struct weir_name *name;
	__u32 length, at;

	if (!w)
		return 0;
	name = &w->name;
	if (bpf_map_lookup_elem(&names, &subject))
		return 0;
	__builtin_memset(name, 0, sizeof(*name));
	name->kind = kind;
	if (kind == WEIR_NAME_ADDRESS) {
		peer_address(w, (__u8 *)name->text);
		name->length = 16;
		name->whole = 16;
	} else if (kind == WEIR_NAME_OBJECT) {
		name->length = sizeof(struct weir_object_name);
		name->whole = sizeof(struct weir_object_name);
		if (object_name(skb, w, (struct weir_object_name *)name->text))
			return 0;
	} else {
		at = w->request.start - w->packet.segment.seq + name_place(w, kind, &length);
		if (!w->request.whole || !length || at + length > w->packet.segment.len)
			return 0;
		name->whole = length;
		length = size_up_to(WEIR_NAME_TEXT, length);
		name->length = length;
		if (bpf_skb_load_bytes(skb, w->packet.payload + at, name->text, length))
			return 0;
	}
	bpf_map_update_elem(&names, &subject, name, BPF_ANY);
	return 0;
}

#endif
