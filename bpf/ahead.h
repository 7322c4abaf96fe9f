/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Heads read where they stand in the window, before the machines get what is left (include/weir/http/lines_ahead.h). A request's line,
 * and the lines behind it, are functions of their own, which the verifier reads once.
 */
#ifndef WEIR_BPF_AHEAD_H
#define WEIR_BPF_AHEAD_H

#include "window.h"

#define WEIR_PIECE(name) name
int path_fed(struct weir_request *r, const struct weir_reading *how, __u32 c);
int query_fed(struct weir_request *r, const struct weir_reading *how, __u32 c);
int query_ahead(struct weir_request *r, const struct weir_reading *how, const struct weir_window *window, __u32 at);

#include "weir/http/lines_ahead.h"

__noinline int path_fed(struct weir_request *r, const struct weir_reading *how, __u32 c)
{
	return r && how ? weir_path_fed(r, how, c) : 0;
}

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

__noinline int request_start_ahead(struct weir_request *r, const struct weir_reading *how,
				   const struct weir_window *window, __u32 at)
{
	return r && how && window ? weir_request_start_ahead(r, how, window, at) : 0;
}

/* As many field lines as can be had at once. */
__noinline int request_fields_ahead(struct work *w, const struct weir_reading *how)
{
	struct weir_request_reader *r;
	__u32 n = 1, at;

	if (!w || !how)
		return 0;
	r = &w->request;
#pragma clang loop unroll(disable)
	for (int i = 0; i < WEIR_LINES_MAX && n; i++) {
		WEIR_FRESH_ALL();
		at = r->next - w->packet.segment.seq;
		n = window_has(w, at) ? weir_request_field_ahead(&r->request, how, &w->window, at - w->window.at) : 0;
		r->next += n;
	}
	return 0;
}

/* The window has the next byte: as much as can be had at once from there. */
static __always_inline void request_ahead(struct work *w, const struct weir_reading *how)
{
	struct weir_request_reader *r = &w->request;
	__u32 at = r->next - w->packet.segment.seq;

	if (weir_request_fresh(&r->request))
		r->next += request_start_ahead(&r->request, how, &w->window, at - w->window.at);
	if (weir_framing_at_line(&r->request.framing))
		request_fields_ahead(w, how);
}

/* Has the window the LF next that ends a head, or trailers? */
static __always_inline bool ends_head(const struct work *w, const struct weir_framing *f, __u32 at)
{
	return f->state == WEIR_AT_END_LF && window_has(w, at) &&
	       w->window.bytes[(at - w->window.at) & (WEIR_WINDOW - 1)] == '\n';
}

/* As many lines as can be had at once. */
__noinline int response_ahead(struct work *w)
{
	struct weir_response_reader *r;
	__u32 n = 1, at;

	if (!w)
		return 0;
	r = &w->response;
#pragma clang loop unroll(disable)
	for (int i = 0; i < WEIR_LINES_MAX && n; i++) {
		WEIR_FRESH_ALL();
		at = r->next - w->packet.segment.seq;
		n = window_has(w, at) ? weir_response_line_ahead(&r->response, &w->window, at - w->window.at) : 0;
		r->next += n;
	}
	return 0;
}

#endif
