/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections that rest (include/weir/conn/rest.h) and wake. Who looks for a connection looks in `conns` first, then in `resting`.
 * An entry there is not written again. It is put there before the one in `conns` goes, and goes when that is there again, so
 * there is no moment at which a connection is nowhere; and who deletes it is the one who wakes the connection, or forgets it.
 */
#ifndef WEIR_BPF_REST_H
#define WEIR_BPF_REST_H

#include "weir/conn/rest.h"

#include "badge.h"
#include "busy.h"
#include "work.h"

/* Under the lock: nothing is committed here any more, and nobody's share is given back. */
static __always_inline __u32 conn_leave(struct weir_conn *c)
{
	__u32 at = c->busy;

	c->id = WEIR_CONN_FORGOTTEN;
	c->holder = 0;
	c->busy = 0;
	return at;
}

/* It has left, and stays after all. Nothing was under way, so it is whole without what it had for that. */
static __always_inline void conn_come_back(struct weir_conn *c, const struct weir_resting *r)
{
	bpf_spin_lock(&c->lock);
	c->holder = r->holder;
	c->id = r->id;
	bpf_spin_unlock(&c->lock);
}

/*
 * It rests, if it may. When the kernel has no room for that it stays awake. What is noted is so until it wakes, for it leaves under the
 * lock under which it is noted: what comes before the note is there comes again, and who would forget it finds nobody to forget.
 */
static __always_inline void conn_rest(const struct weir_flow *flow, struct weir_conn *c, __u64 now_ns)
{
	struct weir_resting r = {};
	__u32 at = 0;
	bool rests;

	bpf_spin_lock(&c->lock);
	rests = weir_conn_may_rest(c, now_ns);
	if (rests && weir_conn_has_moved(c)) {
		c->stood = weir_conn_ends(c);
		c->last_ns = now_ns;
		rests = false;
	}
	if (rests) {
		weir_resting_note(&r, c);
		at = conn_leave(c);
	}
	bpf_spin_unlock(&c->lock);
	if (!rests)
		return;
	busy_delete(at);
	if (bpf_map_update_elem(&resting, flow, &r, BPF_NOEXIST))
		conn_come_back(c, &r);
	else
		bpf_map_delete_elem(&conns, flow);
}

enum woken {
	WOKEN_NONE, /* there is no such connection */
	WOKEN,	    /* it is in `conns`, unless it has been forgotten meanwhile */
	WOKEN_NOT,  /* it rests on: the packet brings nothing */
	WOKEN_NO_ROOM,
};

/*
 * Wakes the packet's connection, which is not in `conns`. `read`: its segment has been parsed. Of two CPUs one wakes it. What is read
 * of an entry is right if it is still there afterwards: its memory may have become another one's meanwhile.
 */
__noinline int conn_wake(__u32 hook, __u32 read)
{
	struct work *w = work_of(hook);
	const struct weir_resting *r;
	struct weir_conn *fresh;
	long ret;

	if (!w)
		return WOKEN_NONE;
	r = bpf_map_lookup_elem(&resting, &w->packet.flow);
	if (!r)
		return WOKEN_NONE;
	if (read && weir_resting_ignores(r, &w->packet.segment))
		return WOKEN_NOT;
	fresh = &w->entry.conn;
	__builtin_memset(fresh, 0, sizeof(*fresh));
	weir_resting_wake(r, fresh);
	fresh->version = fresh->hold.version = bpf_get_prandom_u32();
	fresh->last_ns = bpf_ktime_get_coarse_ns();
	badge_make(fresh);
	r = bpf_map_lookup_elem(&resting, &w->packet.flow);
	if (!r || r->id != fresh->id)
		return WOKEN;
	ret = bpf_map_update_elem(&conns, &w->packet.flow, fresh, BPF_NOEXIST);
	if (ret)
		return ret == -EEXIST ? WOKEN : WOKEN_NO_ROOM;
	if (!bpf_map_delete_elem(&resting, &w->packet.flow))
		return WOKEN;
	bpf_map_delete_elem(&conns, &w->packet.flow);
	return WOKEN_NONE;
}

#endif
