/* SPDX-License-Identifier: GPL-2.0 */
/* Whose request is it: the subjects that limits are kept for, and their names for people. */
#ifndef WEIR_BPF_IDENTIFY_H
#define WEIR_BPF_IDENTIFY_H

#include "weir/subject.h"

#include "maps.h"

/* The look-ups here take their keys from w, of which a program has no room on its stack: w is work_of() a hook. */

static __always_inline void *known_as(struct work *w, void *map, __u64 subject)
{
	w->known.server = w->server;
	w->known.subject = subject;
	return bpf_map_lookup_elem(map, &w->known);
}

/* The client's address, an IPv6 one cut to its /64. After find_client(). */
static __always_inline void client_address(const struct work *w, __u8 *address)
{
	__builtin_memcpy(address, w->peer.address, 16);
	if (!weir_address_is_ipv4(address))
		__builtin_memset(address + 8, 0, 8);
}

static __always_inline struct weir_server *server_of(const struct work *w)
{
	__u32 index = w->server;

	return bpf_map_lookup_elem(&servers, &index);
}

static __always_inline struct weir_principal *principal_by_token(struct work *w)
{
	__u64 token = weir_request_token(&w->request.request);

	return token ? known_as(w, &tokens, token) : NULL;
}

static __always_inline struct weir_principal *principal_by_address(struct work *w)
{
	return w->server_flags & WEIR_SERVER_HAS_ADDRESSES ? bpf_map_lookup_elem(&addresses, &w->peer) : NULL;
}

/* Adds what `groups` has for this subject, a group's or a user's. */
static __always_inline void join_group(struct work *w, __u64 subject, struct weir_groups *set)
{
	const __u32 *bit = known_as(w, &groups, subject);

	if (bit)
		weir_groups_add(set, *bit);
}

static __always_inline void find_peer(struct work *w)
{
	w->peer.prefixlen = 32 + 128;
	w->peer.server = w->server;
	__builtin_memcpy(w->peer.address, w->packet.source, sizeof(w->peer.address));
}

/* Sets w->peer to the client: whom the connection's preamble names, if its peer may say so; else the peer. 1: it may not. */
__noinline int find_client(__u32 hook)
{
	struct work *w = work_of(hook);

	if (!w)
		return 0;
	find_peer(w);
	if (!w->request.preamble.given)
		return 0;
	if (!bpf_map_lookup_elem(&balancers, &w->peer))
		return 1;
	__builtin_memcpy(w->peer.address, w->request.preamble.address, sizeof(w->peer.address));
	return 0;
}

/* Is the peer one that may name users? */
static __always_inline bool peer_is_trusted(struct work *w)
{
	find_peer(w);
	return bpf_map_lookup_elem(&proxies, &w->peer);
}

/* Sets w->identity. */
__noinline int identify(__u32 hook)
{
	struct work *w = work_of(hook);
	const struct weir_request *r;
	struct weir_server *server;
	struct weir_identity *id;
	bool trusted, unbelieved;
	__u8 address[16];

	if (!w)
		return 0;
	server = server_of(w);
	if (!server)
		return 0;
	r = &w->request.request;
	id = &w->identity;
	trusted = weir_request_claims(r) && peer_is_trusted(w);
	unbelieved = find_client(hook);
	weir_identify(id, r, w->attributes.namespace, &server->groups, trusted, principal_by_token(w),
		      principal_by_address(w));
	if (unbelieved)
		weir_identity_note(id, WEIR_UNTRUSTED_IDENTITY);
	if (!id->user) {
		client_address(w, address);
		id->user = weir_subject_of_address(w->seed, WEIR_NAME_ADDRESS, address);
	}
	if (w->server_flags & WEIR_SERVER_KNOWS_USERS)
		join_group(w, id->user, &id->groups);
	return 0;
}

/*
 * The same where there is no request: what an earlier packet's reader has left does not say whose this is. Its preamble is
 * that of the connection, put there before.
 */
static __always_inline void identify_client(struct work *w)
{
	__builtin_memset(&w->request.request, 0, sizeof(w->request.request));
	__builtin_memset(&w->attributes, 0, sizeof(w->attributes));
	identify(w->hook);
}

static __always_inline bool identity_exempt(const struct work *w)
{
	struct weir_server *server = server_of(w);

	return server && weir_identity_exempt(&w->identity, &server->groups);
}

/* A group's name has ended in the request's head. */
__noinline int request_group(__u32 hook)
{
	struct work *w = work_of(hook);

	if (w)
		join_group(w, w->request.request.group_subject, &w->request.request.groups);
	return 0;
}

static __always_inline void note_identity(struct work *w)
{
	w->sources[w->identity.source & (WEIR_SOURCES - 1)]++;
	for (int i = 0; i < WEIR_NOTES; i++)
		w->notes[i] += w->identity.notes >> i & 1;
}

/* Whom a name is that no header of this packet says; NULL: one does. */
static __always_inline struct weir_principal *principal_of(struct work *w, __u32 type)
{
	if (type == WEIR_LIMIT_SOURCE_AND_OBJECT)
		return NULL;
	if (type == WEIR_LIMIT_NAMESPACE)
		return w->attributes.namespace ? NULL : principal_by_address(w);
	if (w->identity.source == WEIR_SOURCE_TOKEN)
		return principal_by_token(w);
	return w->identity.source == WEIR_SOURCE_ADDRESS_TABLE ? principal_by_address(w) : NULL;
}

/* Where in the request the namespace's name stands, and how long it is. */
static __always_inline __u32 namespace_place(const struct work *w, __u32 *length)
{
	const struct weir_request *r = &w->request.request;
	__u32 segment = w->attributes.namespace_at;

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

/* A name as it stands in this packet. 0: it does. */
static __always_inline int read_name(struct __sk_buff *skb, struct work *w, __u32 offset, __u32 length)
{
	__u32 at = w->request.start - w->packet.segment.seq + offset;

	if (!w->request.whole || !length || at + length > w->packet.segment.len)
		return -1;
	w->name.whole = length;
	length = size_up_to(WEIR_NAME_TEXT, length);
	w->name.length = length;
	return bpf_skb_load_bytes(skb, w->packet.payload + at, w->name.text, length);
}

/* What the subject of a limit is called, as the packet has it. 0: it does. */
static __always_inline int name_write(struct __sk_buff *skb, struct work *w, __u32 type)
{
	const struct weir_request *r = &w->request.request;
	__u32 at, length;

	if (type == WEIR_LIMIT_NAMESPACE) {
		w->name.kind = WEIR_NAME_NAMESPACE;
		at = namespace_place(w, &length);
		return read_name(skb, w, at, length);
	}
	if (type == WEIR_LIMIT_SOURCE_AND_OBJECT) {
		w->name.kind = WEIR_NAME_OBJECT;
		w->name.length = w->name.whole = sizeof(struct weir_object_name);
		return object_name(skb, w, (struct weir_object_name *)w->name.text);
	}
	if (w->identity.source == WEIR_SOURCE_ANONYMOUS) {
		w->name.kind = WEIR_NAME_ADDRESS;
		w->name.length = w->name.whole = 16;
		client_address(w, (__u8 *)w->name.text);
		return 0;
	}
	w->name.kind = WEIR_NAME_USER;
	return read_name(skb, w, r->user_offset, r->user_length);
}

static __always_inline __u64 named_subject(const struct work *w, __u32 type)
{
	if (type == WEIR_LIMIT_SOURCE_AND_OBJECT)
		return w->event_subject;
	return type == WEIR_LIMIT_USER ? w->identity.user : w->identity.namespace;
}

/* Remembers what the subject of a limit is called, as far as that is known. */
__noinline int remember_name(struct __sk_buff *skb, __u32 hook, __u32 type)
{
	struct work *w = work_of(hook);
	struct weir_principal *principal;
	__u64 subject;

	if (!w)
		return 0;
	if (type == WEIR_LIMIT_SOURCE_AND_OBJECT && w->event_key != WEIR_EVENT_KEYED)
		type = WEIR_LIMIT_USER;
	subject = named_subject(w, type);
	if (bpf_map_lookup_elem(&names, &subject))
		return 0;
	principal = principal_of(w, type);
	if (principal) {
		bpf_map_update_elem(&names, &subject,
				    type == WEIR_LIMIT_USER ? &principal->user_name : &principal->namespace_name,
				    BPF_ANY);
		return 0;
	}
	__builtin_memset(&w->name, 0, sizeof(w->name));
	if (!name_write(skb, w, type))
		bpf_map_update_elem(&names, &subject, &w->name, BPF_ANY);
	return 0;
}

#endif
