/* SPDX-License-Identifier: GPL-2.0 */
/* Seats that a connection's requests have (include/weir/conn/seats.h): given back when no request needs them any more. */
#ifndef WEIR_BPF_SEATS_H
#define WEIR_BPF_SEATS_H

#include "busy.h"
#include "in_flight.h"
#include "work.h"

/* What a connection's requests had and do not want any more, taken out into w->given. */
__noinline int seats_give(struct work *w)
{
	if (!w)
		return 0;
	for (__u32 i = 0; i < WEIR_SEAT_SLOTS; i++)
		in_flight_give(&w->given[i].key, w->given[i].taken);
	return 0;
}

/* Whatever seats its requests have are free: the server has ended, or the connection has. By now its memory may be another one's. */
static __noinline int conn_release(struct weir_conn *c, __u64 id)
{
	struct busy_found b = busy_find(c);

	if (!b.there)
		return 0;
	for (__u64 i = 0; i < WEIR_SEAT_SLOTS; i++) {
		struct weir_seats out = {};

		WEIR_FRESH_ALL();
		bpf_spin_lock(&c->lock);
		if (c->id == id && busy_is_kept(c, &b))
			weir_seats_take_out(&b.there->seats[i], &out, 0, true);
		bpf_spin_unlock(&c->lock);
		if (out.taken)
			in_flight_give(&out.key, out.taken);
	}
	return 0;
}

#endif
