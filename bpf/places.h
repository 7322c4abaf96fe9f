/* SPDX-License-Identifier: GPL-2.0 */
/* Places that a connection's requests hold (include/weir/conn/places.h), and that go back when they want them no more. */
#ifndef WEIR_BPF_PLACES_H
#define WEIR_BPF_PLACES_H

#include "in_flight.h"
#include "work.h"

/* What a connection's requests held and do not want any more, taken out into w->given. */
__noinline int places_give(struct work *w)
{
	if (!w)
		return 0;
	for (__u32 i = 0; i < WEIR_PLACES_MAX; i++)
		in_flight_give(&w->given[i].key, w->given[i].taken);
	return 0;
}

/* Whatever its requests hold is free: the server has ended, or the connection has. */
static __noinline int conn_release(struct weir_conn *c)
{
	struct weir_place out;

	for (__u32 i = 0; i < WEIR_PLACES_MAX; i++) {
		bpf_spin_lock(&c->lock);
		weir_place_take_out(&c->places[i], &out, 0, true);
		bpf_spin_unlock(&c->lock);
		if (out.taken)
			in_flight_give(&out.key, out.taken);
	}
	return 0;
}

#endif
