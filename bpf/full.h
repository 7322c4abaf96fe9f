/* SPDX-License-Identifier: GPL-2.0 */
/* What becomes of a connection for which the table has no room (`attach --when-full`). */
#ifndef WEIR_BPF_FULL_H
#define WEIR_BPF_FULL_H

#include "decide.h"
#include "table.h"

/* Has the operator named the packet's source: in the address table, or as exempt? */
__noinline int source_is_known(__u32 hook)
{
	struct work *w = work_of(hook);
	bool known;

	if (!w)
		return 0;
	w->whose.preamble = (struct weir_preamble){};
	identify_client(w);
	known = w->decision.identity.by == WEIR_IDENTIFIED_BY_ADDRESS_TABLE || identity_exempt(w) ||
		limits_find(&w->decision, &w->request.request.path);
	w->decision.unreadable = 0;
	return known;
}

/* Must a connection that finds no room in the table wait until there is some? */
static __always_inline bool must_wait(const struct work *w)
{
	if (!(w->server_flags & WEIR_SERVER_FULL_REFUSES))
		return false;
	return !(w->server_flags & WEIR_SERVER_FULL_KNOWN) || !source_is_known(w->hook);
}

/* A new connection, whose handshake waits: TCP tries again. */
static __always_inline bool handshake_waits(const struct work *w)
{
	__u32 why;

	if (!(w->server_flags & WEIR_SERVER_FULL_KNOWN))
		return false;
	if (table_is_full())
		why = WEIR_CONN_MAP_FULL;
	else if (!holder_has_room(holder_find(w->hook)))
		why = WEIR_CONN_OVER_SHARE;
	else
		return false;
	if (source_is_known(w->hook))
		return false;
	count(w->server, why);
	count(w->server, WEIR_HANDSHAKE_HELD);
	return true;
}

#endif
