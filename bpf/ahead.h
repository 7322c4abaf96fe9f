/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Heads read where they stand in the window, before the machines get what is left (include/weir/http/lines_ahead.h). A request's line,
 * and the lines behind it, are functions of their own, which the verifier reads once.
 */
#ifndef WEIR_BPF_AHEAD_H
#define WEIR_BPF_AHEAD_H

#include "window.h"

#define WEIR_PIECE(name) name
int query_fed(struct weir_request *r, const struct weir_reading *how, __u32 c);

#include "weir/http/lines_ahead.h"

__noinline int query_fed(struct weir_request *r, const struct weir_reading *how, __u32 c)
{
	if (r && how)
		weir_query_fed(r, how, c);
	return 0;
}

__noinline int query_ahead(struct weir_request *r, const struct weir_reading *how, const struct weir_window *window,
			   __u32 at)
{
	return r && how && window ? weir_query_ahead(r, how, window, at) : 0;
}

__noinline int request_lines_ahead(struct weir_request *r, const struct weir_reading *how, struct weir_window *window,
				   __u32 at)
{
	return r && how && window ? weir_request_lines_ahead(r, how, window, at) : 0;
}

/* The window has the next byte: as much as can be had at once from there. A query is read beside the rest: that needs less stack. */
static __always_inline void request_ahead(struct work *w, const struct weir_reading *how)
{
	struct weir_request *r = &w->request.request;
	__u32 at = w->request.next - w->packet.segment.seq - w->window.at;

	w->request.next += r->framing.state == WEIR_AT_QUERY ? query_ahead(r, how, &w->window, at) :
							       request_lines_ahead(r, how, &w->window, at);
}

/* Has the window the LF next that ends a head, or trailers? */
static __always_inline bool ends_head(const struct work *w, const struct weir_framing *f, __u32 at)
{
	return f->state == WEIR_AT_END_LF && window_has(w, at) &&
	       w->window.bytes[(at - w->window.at) & (WEIR_WINDOW - 1)] == '\n';
}

/* The window has the next byte: as much as can be had at once from there. */
static __always_inline void response_ahead(struct work *w)
{
	struct weir_response_reader *r = &w->response;

	r->next += weir_response_lines_ahead(&r->response, &w->window, r->next - w->packet.segment.seq - w->window.at);
}

#endif
