/* SPDX-License-Identifier: GPL-2.0 */
/* How wide lists are (include/weir/limit/width.h): asked when a LIST comes, learned when it is answered. */
#ifndef WEIR_BPF_WIDTH_H
#define WEIR_BPF_WIDTH_H

#include "weir/http/list.h"
#include "weir/limit/width.h"

#include "work.h"

/* What the request takes of a level's seats, and whose width its answer will tell. */
__noinline int width_find(__u32 hook)
{
	const struct weir_attributes *a;
	struct weir_width_key key = {};
	struct work *w = work_of(hook);
	struct weir_width *width;
	struct weir_server *server;

	if (!w)
		return 0;
	a = &w->attributes;
	w->width = (struct weir_width_said){ .seats = 1 };
	w->places.list = weir_list_of(&w->request.request, a);
	w->places.whole = !(a->flags & WEIR_ATTRIBUTE_NARROWED);
	key.server = w->server;
	key.list = w->places.list;
	server = bpf_map_lookup_elem(&servers, &key.server);
	if (!key.list || !server)
		return 0;
	width = bpf_map_lookup_elem(&widths, &key);
	w->width = weir_list_width(width ? weir_width_bytes(width, w->now_ns) : 0, server->object_bytes,
				   server->list_width, a->list == WEIR_LIST_PAGE ? a->limit : 0, a->name);
	return 0;
}

/* The answer to a request, of which there are so many bytes. */
__noinline int width_learn(const struct weir_flow *flow, __u32 request, __u32 bytes, __u32 all)
{
	struct weir_place_key at = { .request = request };
	struct work *w = work_of(HOOK_EGRESS);
	struct weir_width_key key = {};
	struct weir_width *width, fresh = {};
	struct weir_server *server;
	struct weir_places *p;

	if (!flow || !w)
		return 0;
	at.flow = *flow;
	p = bpf_map_lookup_elem(&places, &at);
	if (!p || !p->list)
		return 0;
	key.server = w->server;
	key.list = p->list;
	width = bpf_map_lookup_elem(&widths, &key);
	if (width) {
		weir_width_learn(width, bytes, all && p->whole, w->now_ns);
		return 0;
	}
	server = bpf_map_lookup_elem(&servers, &key.server);
	if (!server || !weir_width_is_news(bytes, server->object_bytes))
		return 0;
	weir_width_learn(&fresh, bytes, true, w->now_ns);
	bpf_map_update_elem(&widths, &key, &fresh, BPF_NOEXIST);
	return 0;
}

/* The response that was read latest has ended. */
static __always_inline void width_note(struct work *w)
{
	const struct weir_response_reader *r = &w->response;
	__u32 request = r->first + r->responses - 1;

	if (r->response.status == 200 && seq_before(request, r->places_end))
		width_learn(&w->packet.flow, request, r->next - r->began, true);
}

/* Nothing more comes from the server, which may be in the midst of a response, or may have said by that where it ends. */
static __always_inline void width_note_cut(struct work *w, const struct weir_conn *c)
{
	if (c->response.status == 200 && !weir_response_ended(&c->response) &&
	    seq_before(c->responses, c->places_end) && seq_after(c->splice.server_end, c->response_began))
		width_learn(&w->packet.flow, c->responses, c->splice.server_end - c->response_began, false);
}

#endif
