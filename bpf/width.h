/* SPDX-License-Identifier: GPL-2.0 */
/* How wide lists are (include/weir/limit/width.h): asked when a LIST comes. */
#ifndef WEIR_BPF_WIDTH_H
#define WEIR_BPF_WIDTH_H

#include "weir/limit/width.h"

#include "decision.h"

/* What the request takes of a level's seats, and whose width its answer will tell. */
__noinline int width_find(struct decision *d)
{
	struct weir_width_key key = {};
	struct weir_width *width;
	struct weir_server *server;

	if (!d)
		return 0;
	d->width = (struct weir_width_said){ .seats = 1 };
	d->list.list = d->list_of;
	d->list.request = d->request;
	d->list.whole = !(d->attributes.flags & WEIR_ATTRIBUTE_NARROWED);
	key.server = d->server;
	key.list = d->list_of;
	server = server_of(d->server);
	if (!key.list || !server)
		return 0;
	width = bpf_map_lookup_elem(&widths, &key);
	d->width = weir_list_width(width ? weir_width_bytes(width, d->now_ns) : 0, server->object_bytes,
				   server->list_width, d->attributes.list == WEIR_LIST_PAGE ? d->attributes.limit : 0,
				   d->attributes.name);
	return 0;
}

#endif
