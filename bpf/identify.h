/* SPDX-License-Identifier: GPL-2.0 */
/* Whose request is it: include/weir/http/identity.h on the maps. */
#ifndef WEIR_BPF_IDENTIFY_H
#define WEIR_BPF_IDENTIFY_H

#include "weir/base/subject.h"

#include "work.h"

/* The look-ups here take their keys from w, of which a program has no room on its stack: w is work_of() a hook. */

static __always_inline void *known_as(struct work *w, void *map, __u64 subject)
{
	w->whose.known.server = w->server;
	w->whose.known.subject = subject;
	return bpf_map_lookup_elem(map, &w->whose.known);
}

/* The client's address, an IPv6 one cut to its /64; `address` is aligned to a word. After find_client(). */
static __always_inline void client_address(const struct work *w, __u8 *address)
{
	__builtin_memcpy(__builtin_assume_aligned(address, 8), __builtin_assume_aligned(w->whose.peer.address, 8), 16);
	if (!weir_address_is_ipv4(address))
		__builtin_memset(__builtin_assume_aligned(address + 8, 8), 0, 8);
}

static __always_inline struct weir_principal *principal_by_token(struct work *w)
{
	__u64 token = weir_request_token(&w->request.request);

	return token ? known_as(w, &tokens, token) : NULL;
}

static __always_inline struct weir_principal *principal_by_address(struct work *w)
{
	return w->server_flags & WEIR_SERVER_HAS_ADDRESSES ? bpf_map_lookup_elem(&addresses, &w->whose.peer) : NULL;
}

/* Adds the bit that `groups` has for this subject, of a group or a user. */
static __always_inline void join_group(struct work *w, __u64 subject, struct weir_groups *set)
{
	const __u32 *bit = known_as(w, &groups, subject);

	if (bit)
		weir_groups_add(set, *bit);
}

static __always_inline void find_peer(struct work *w)
{
	w->whose.peer.prefixlen = 32 + 128;
	w->whose.peer.server = w->server;
	__builtin_memcpy(w->whose.peer.address, w->packet.source, sizeof(w->whose.peer.address));
}

/* Sets w->whose.peer to the client: whom the connection's preamble names, if its peer may say so; else the peer. True: it may not. */
static __always_inline bool client_find(struct work *w)
{
	find_peer(w);
	if (!w->whose.preamble.given)
		return false;
	if (!bpf_map_lookup_elem(&balancers, &w->whose.peer))
		return true;
	__builtin_memcpy(w->whose.peer.address, w->whose.preamble.address, sizeof(w->whose.peer.address));
	return false;
}

/* client_find() as a function of its own, for those who need no answer. */
__noinline int find_client(__u32 hook)
{
	struct work *w = work_of(hook);

	return w ? client_find(w) : 0;
}

/* Is the peer one that may name users? */
static __always_inline bool peer_is_trusted(struct work *w)
{
	find_peer(w);
	return bpf_map_lookup_elem(&proxies, &w->whose.peer);
}

/* Sets w->decision.identity. */
__noinline int identify(__u32 hook)
{
	struct work *w = work_of(hook);
	const struct weir_request *r;
	struct weir_server *server;
	struct weir_identity *id;
	bool trusted, unbelieved;
	__u8 address[16] __attribute__((aligned(8)));

	if (!w)
		return 0;
	server = server_of(w->server);
	if (!server)
		return 0;
	r = &w->request.request;
	id = &w->decision.identity;
	trusted = weir_request_claims(r) && (w->whose.believed || peer_is_trusted(w));
	unbelieved = client_find(w);
	__builtin_memcpy(w->decision.address, w->whose.peer.address, sizeof(w->decision.address));
	weir_identify(id, r, w->decision.attributes.namespace, &server->groups, trusted, principal_by_token(w),
		      principal_by_address(w));
	if (unbelieved)
		weir_identity_note(id, WEIR_UNTRUSTED_IDENTITY);
	if (!id->user || (w->decision.traits & WEIR_SERVER_SOURCES)) {
		client_address(w, address);
		w->decision.source = weir_subject_of_address(w->settings.seed, WEIR_NAME_ADDRESS, address);
	}
	if (!id->user)
		id->user = w->decision.source;
	if (w->server_flags & WEIR_SERVER_KNOWS_USERS)
		join_group(w, id->user, &id->groups);
	return 0;
}

/*
 * The same where there is no request. What is left of an earlier packet's request is cleared, or it would say whose this is. The
 * connection's preamble is in w->whose.
 */
static __always_inline void identify_client(struct work *w)
{
	__builtin_memset(&w->request.request, 0, sizeof(w->request.request));
	__builtin_memset(&w->decision.attributes, 0, sizeof(w->decision.attributes));
	w->decision.unreadable = 1;
	identify(w->hook);
}

static __always_inline bool identity_exempt(const struct work *w)
{
	struct weir_server *server = server_of(w->server);

	return server && weir_identity_exempt(&w->decision.identity, &server->groups);
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
	w->tally.identified[w->decision.identity.by & (WEIR_IDENTIFIED_WAYS - 1)]++;
	for (int i = 0; i < WEIR_NOTES; i++)
		w->tally.notes[i] += w->decision.identity.notes >> i & 1;
}

#endif
