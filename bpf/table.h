/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Room in the table of connections. It is a hash that never pushes out what lives. What has ended gives way to what begins,
 * the oldest first; what one address has living there is counted, by its place in `holders`.
 */
#ifndef WEIR_BPF_TABLE_H
#define WEIR_BPF_TABLE_H

#include "badge.h"
#include "holders.h"
#include "rest.h"
#include "seats.h"

#define GIVE_WAY_TRIES 8 /* ended entries may have gone meanwhile */

/* An entry has gone, and there is room for another one. */
static __always_inline void table_gone(__u32 server, bool translated)
{
	struct weir_table *t = table_of_conns();

	if (t)
		__sync_fetch_and_add(&t->used, -1);
	count(server, WEIR_CONN_CLOSED);
	if (translated)
		count(server, WEIR_SPLICE_CLOSED);
}

/* The same of one that rests. */
static __noinline int resting_forget(const struct weir_flow *key, __u64 id)
{
	const struct weir_resting *r = bpf_map_lookup_elem(&resting, key);
	__u32 server, holder;
	bool translated;

	if (!r || r->id != id)
		return 0;
	server = r->server;
	holder = r->holder;
	translated = r->flags & WEIR_RESTING_CUT;
	if (bpf_map_delete_elem(&resting, key))
		return 0;
	holder_release(holder);
	table_gone(server, translated);
	return 1;
}

/* 0: it has gone. */
static __always_inline __u64 finished_id(const struct weir_finished *f)
{
	const struct weir_conn *c = bpf_map_lookup_elem(&conns, &f->flow);

	return c && c->gives_way && (__u32)c->id == f->id ? c->id : 0;
}

enum first {
	FIRST_NONE,
	FIRST_GONE, /* and has left its place */
	FIRST_GIVES_WAY,
};

/* Of those that have ended, the first: enum first. A function of its own, because conn_forget() has little room on the stack. */
__noinline int finished_first(void)
{
	struct weir_finished f = {};

	if (bpf_map_peek_elem(&finished, &f))
		return FIRST_NONE;
	if (finished_id(&f))
		return FIRST_GIVES_WAY;
	/* Another CPU may have taken that one away, and this is the next. */
	if (!bpf_map_pop_elem(&finished, &f) && finished_id(&f))
		bpf_map_push_elem(&finished, &f, BPF_EXIST);
	return FIRST_GONE;
}

/* Each that goes takes two away that have gone, so that few are in the way of who looks for room. */
static __always_inline void finished_tidy(void)
{
	if (finished_first() == FIRST_GONE)
		finished_first();
}

/*
 * Deletes the entry that was found with this id. By now there may be none of this flow, or that of another connection: the
 * id tells, and who takes it away is the only one who deletes. 1: it is gone.
 */
__noinline int conn_forget(const struct weir_flow *flow, __u64 id)
{
	struct weir_flow key = {};
	struct weir_conn *c;
	bool found, translated, dying, gave_way;
	__u32 server;

	if (!flow || id == WEIR_CONN_FORGOTTEN)
		return 0;
	key = *flow;
	c = bpf_map_lookup_elem(&conns, &key);
	if (!c)
		return resting_forget(&key, id);
	/* Under the lock, so that nothing is committed any more. */
	bpf_spin_lock(&c->lock);
	found = c->id == id;
	if (found)
		c->id = WEIR_CONN_FORGOTTEN;
	translated = weir_conn_translated(c);
	bpf_spin_unlock(&c->lock);
	if (!found)
		return resting_forget(&key, id);
	server = c->server;
	dying = c->dying;
	gave_way = c->gives_way;
	conn_release(c, WEIR_CONN_FORGOTTEN);
	busy_end(c);
	holder_release(__sync_lock_test_and_set(&c->holder, 0));
	if (dying)
		bpf_map_delete_elem(&lingering, &key);
	if (bpf_map_delete_elem(&conns, &key))
		return 0;
	table_gone(server, translated);
	if (gave_way)
		finished_tidy();
	return 1;
}

/* It has ended: from now on it holds nobody's share, which was `holder`'s, and gives way. */
static __always_inline void conn_gives_way(const struct weir_flow *flow, __u64 id, __u32 holder)
{
	struct weir_finished f = { .flow = *flow, .id = (__u32)id };

	holder_release(holder);
	bpf_map_push_elem(&finished, &f, BPF_EXIST);
}

/* Is there no room, and nothing that would give way? What stands behind many that have gone is not looked for: TCP tries again. */
__noinline int table_is_full(void)
{
	const struct weir_table *t = table_of_conns();

	if (!t || t->used < (__s64)t->max)
		return 0;
	for (int i = 0; i < GIVE_WAY_TRIES; i++) {
		int first = finished_first();

		if (first != FIRST_GONE)
			return first == FIRST_NONE;
	}
	return 1;
}

/* The entry that ended first goes. 0: there is none. */
__noinline int table_make_room(__u32 server)
{
	struct weir_finished f = {};

	for (int i = 0; i < GIVE_WAY_TRIES; i++) {
		if (bpf_map_pop_elem(&finished, &f))
			return 0;
		if (!conn_forget(&f.flow, finished_id(&f)))
			continue;
		count(server, WEIR_CONN_GAVE_WAY);
		return 1;
	}
	return 0;
}

enum added {
	ADDED,
	ADDED_BEFORE, /* by another CPU, just now */
	ADDED_NOT,    /* there is no room */
};

/* One more in the table, if there is room: those that rest wake without asking. */
static __always_inline bool table_take(struct weir_table *t)
{
	if (!t)
		return true;
	if (__sync_fetch_and_add(&t->used, 1) < (__s64)t->max || !t->max)
		return true;
	__sync_fetch_and_add(&t->used, -1);
	return false;
}

/* Puts w->entry.conn where it belongs, if there is room. */
__noinline int conn_insert(__u32 hook)
{
	struct weir_table *t = table_of_conns();
	struct work *w = work_of(hook);
	long ret;

	if (!w)
		return 0;
	if (!table_take(t))
		return -E2BIG;
	ret = bpf_map_update_elem(&conns, &w->packet.flow, &w->entry.conn, BPF_NOEXIST);
	if (ret && t)
		__sync_fetch_and_add(&t->used, -1);
	return ret;
}

/* Puts w->entry.conn into the table as the packet's connection. */
__noinline int conn_add(__u32 hook)
{
	struct work *w = work_of(hook);
	struct weir_conn *fresh;
	int ret;

	if (!w)
		return ADDED_NOT;
	fresh = &w->entry.conn;
	fresh->holder = holder_find(hook);
	if (!holder_take(w, fresh->holder)) {
		count(w->server, WEIR_CONN_OVER_SHARE);
		return ADDED_NOT;
	}
	badge_make(fresh);
	fresh->id = bpf_ktime_get_ns();
	/* Another CPU may still work for the connection that had this memory: its version does not fit any more. */
	fresh->version = fresh->hold.version = bpf_get_prandom_u32();
	ret = conn_insert(hook);
	if (ret && ret != -EEXIST && table_make_room(w->server))
		ret = conn_insert(hook);
	if (ret) {
		holder_release(fresh->holder);
		if (ret == -EEXIST)
			return ADDED_BEFORE;
		count(w->server, WEIR_CONN_MAP_FULL);
		return ADDED_NOT;
	}
	count(w->server, WEIR_CONN_OPENED);
	return ADDED;
}

#endif
