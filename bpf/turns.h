/* SPDX-License-Identifier: GPL-2.0 */
/* The map of turns (include/weir/inside/turn.h), which programs inside servers and those at sockets share without a lock. */
#ifndef WEIR_BPF_TURNS_H
#define WEIR_BPF_TURNS_H

#include "weir/inside/turn.h"

#include "maps.h"

#define TURN_TRIES 8 /* of a compare-and-swap; then others have noted their turns */

static const struct weir_turns no_turns = {};

/* port: in host order; 0: the address' own key. */
static __always_inline void turn_key(struct weir_turn_key *key, __u32 server, const __u8 *address, __u16 port)
{
	__builtin_memcpy(key->address, address, sizeof(key->address));
	if (!port && !weir_address_is_ipv4(address))
		__builtin_memset(key->address + 8, 0, 8);
	key->server = server;
	key->port = port;
	key->pad = 0;
}

/* NULL: there is no room. */
static __always_inline struct weir_turns *turns_make(const struct weir_turn_key *key)
{
	struct weir_turns *turns = bpf_map_lookup_elem(&hold_turns, key);

	if (turns)
		return turns;
	bpf_map_update_elem(&hold_turns, key, &no_turns, BPF_NOEXIST);
	return bpf_map_lookup_elem(&hold_turns, key);
}

/* One try; false: others have noted their turns meanwhile. A function of its own, so that the verifier reads it once. */
__noinline int turn_try(struct weir_turns *turns, __u64 tag, __u64 at_ns, __u64 now_ns)
{
	__u64 first, second, there, next, *word;
	bool other;

	if (!turns)
		return true;
	first = WEIR_FRESH(turns->words[0]);
	second = WEIR_FRESH(turns->words[1]);
	other = weir_turns_place(first, second, tag, now_ns);
	there = other ? second : first;
	next = weir_turn_next(there, tag, at_ns);
	word = other ? &turns->words[1] : &turns->words[0];
	return next == there || __sync_val_compare_and_swap(word, there, next) == there;
}

/* A user's debt lasts until at_ns: which is now, if he has none. */
static __always_inline void turn_note(struct weir_turns *turns, __u64 tag, __u64 at_ns, __u64 now_ns)
{
	for (int i = 0; i < TURN_TRIES; i++) {
		if (turn_try(turns, tag, at_ns, now_ns))
			break;
	}
}

/* The connection has ended, or what is known of it is of an earlier one. */
static __always_inline void turns_forget(__u32 server, const __u8 *address, __u16 port)
{
	struct weir_turn_key key;

	turn_key(&key, server, address, port);
	bpf_map_delete_elem(&hold_turns, &key);
}

#endif
