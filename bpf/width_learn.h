/* SPDX-License-Identifier: GPL-2.0 */
/* How wide lists are (include/weir/limit/width.h), learned when they are answered. */
#ifndef WEIR_BPF_WIDTH_LEARN_H
#define WEIR_BPF_WIDTH_LEARN_H

#include "weir/limit/width.h"

#include "busy.h"
#include "work.h"

/* Learns from the answer to a LIST that it has so many bytes. all: it has no more. */
__noinline int width_learn(const struct weir_asked_list *asked, __u32 bytes, __u32 all)
{
	struct work *w = work_of(HOOK_EGRESS);
	struct weir_width_key key = {};
	struct weir_width *width, fresh = {};
	struct weir_server *server;

	if (!asked || !w)
		return 0;
	key.server = w->server;
	key.list = asked->list;
	width = bpf_map_lookup_elem(&widths, &key);
	if (width) {
		weir_width_learn(width, bytes, all && asked->whole, w->now_ns);
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

	if (r->asked.list && r->response.status == 200 && r->asked.request == r->first + r->responses - 1)
		width_learn(&r->asked, r->next - r->began, true);
}

/* Nothing more comes from the server, which may be in the midst of a response, or may have said by that where it ends. */
static __always_inline void width_note_cut(const struct weir_conn *c)
{
	struct busy_found b = busy_find(c);
	struct weir_asked_list asked;

	if (!b.there || !c->asks || !weir_place_is_midway(c->response_place))
		return;
	asked = b.there->asked;
	if (asked.request == c->responses && b.there->response.status == 200 &&
	    seq_after(c->splice.server_end, c->response_began))
		width_learn(&asked, c->splice.server_end - c->response_began, false);
}

#endif
