/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a connection has only while something is under way (struct weir_busy). Each time it is made it gets another number.
 * The connection's `busy` is set and cleared under its lock, and what stands there is deleted only after that: so
 * whoever finds under the lock that the number is still the connection's may use it for as long as the lock is held.
 */
#ifndef WEIR_BPF_BUSY_H
#define WEIR_BPF_BUSY_H

#include "work.h"

#define BUSY_TRIES 3 /* numbers are random */

static const struct weir_busy nothing_under_way;

/* What a connection has, or is to have. */
struct busy_found {
	struct weir_busy *there; /* NULL: nothing, or it was not asked for; of what is to be: there is no room for it */
	__u32 at;
	__u32 had; /* the connection's number when it was looked at; another one than `at`: this is not the connection's yet */
};

static __always_inline struct busy_found busy_seen(const struct weir_conn *c)
{
	__u32 at = WEIR_FRESH(c->busy);

	return (struct busy_found){ .at = at, .had = at };
}

static __always_inline struct busy_found busy_find(const struct weir_conn *c)
{
	struct busy_found b = busy_seen(c);

	if (b.at)
		b.there = bpf_map_lookup_elem(&busy, &b.at);
	return b;
}

/* If there is none, it is made. */
static __always_inline struct busy_found busy_find_or_make(const struct weir_conn *c)
{
	struct busy_found b = busy_find(c);

	if (b.at)
		return b;
#pragma clang loop unroll(disable)
	for (int i = 0; i < BUSY_TRIES; i++) {
		b.at = bpf_get_prandom_u32() | 1;
		if (bpf_map_update_elem(&busy, &b.at, &nothing_under_way, BPF_NOEXIST))
			continue;
		b.there = bpf_map_lookup_elem(&busy, &b.at);
		break;
	}
	return b;
}

static __always_inline bool busy_has_no_room(const struct busy_found *b)
{
	return b->at != b->had && !b->there;
}

/* Under the lock: is it the connection's, as it was when it was looked at? */
static __always_inline bool busy_is_kept(const struct weir_conn *c, const struct busy_found *b)
{
	return c->busy == b->had;
}

/* Under the lock: has another CPU changed that, or taken the packet's connection away: to rest, or for good? */
static __always_inline bool busy_moved(const struct work *w, const struct weir_conn *c, const struct busy_found *b)
{
	return !busy_is_kept(c, b) || !conn_is_found(w, c);
}

/* Under the lock, when nothing has moved: what was made is the connection's. */
static __always_inline void busy_keep(struct weir_conn *c, struct busy_found *b)
{
	if (!b->there)
		return;
	c->busy = b->at;
	b->had = b->at;
}

/* Deletes what was made, if the connection did not come to have it. */
static __always_inline void busy_drop(const struct busy_found *b)
{
	if (b->at != b->had)
		bpf_map_delete_elem(&busy, &b->at);
}

/* Deletes what the connection had, after the lock is released. `at` was taken from the connection under the lock. */
static __always_inline void busy_delete(__u32 at)
{
	if (at)
		bpf_map_delete_elem(&busy, &at);
}

/* The connection is forgotten, and gets no struct weir_busy again. */
static __always_inline void busy_end(struct weir_conn *c)
{
	__u32 at;

	bpf_spin_lock(&c->lock);
	at = c->busy;
	c->busy = 0;
	bpf_spin_unlock(&c->lock);
	busy_delete(at);
}

/* The connection is idle, and needs no struct weir_busy. */
static __always_inline void busy_let_go(struct weir_conn *c, __u64 now_ns)
{
	__u32 at = 0;

	bpf_spin_lock(&c->lock);
	if (weir_conn_wastes_busy(c, now_ns)) {
		at = c->busy;
		c->busy = 0;
		c->version++; /* what is being read meanwhile comes again */
	}
	bpf_spin_unlock(&c->lock);
	busy_delete(at);
}

#endif
