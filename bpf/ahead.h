/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Heads read where they stand in the window, before the machines get what is left (include/weir/http/lines_ahead.h). Each kind of line
 * is a function of its own, which the verifier reads once.
 */
#ifndef WEIR_BPF_AHEAD_H
#define WEIR_BPF_AHEAD_H

#define WEIR_PIECE(name) name
int path_fed(struct weir_request *r, const struct weir_reading *how, __u32 c);

#include "weir/http/request_ahead.h"
#include "weir/http/response_ahead.h"

#include "window.h"

__noinline int path_fed(struct weir_request *r, const struct weir_reading *how, __u32 c)
{
	return r && how ? weir_path_fed(r, how, c) : 0;
}

__noinline int line_ahead(struct weir_framing *f, const struct weir_window *window, __u32 at, __u32 lengths)
{
	return f && window ? weir_line_ahead(f, window, at, lengths) : 0;
}

__noinline int name_line_ahead(struct weir_request *r, const struct weir_reading *how, const struct weir_window *window,
			       __u32 at)
{
	return r && how && window ? weir_name_line_ahead(r, how, window, at) : 0;
}

__noinline int request_start_ahead(struct weir_request *r, const struct weir_reading *how,
				   const struct weir_window *window, __u32 at)
{
	return r && how && window ? weir_request_start_ahead(r, how, window, at) : 0;
}

__noinline int response_start_ahead(struct weir_response *r, const struct weir_window *window, __u32 at)
{
	return r && window ? weir_response_start_ahead(r, window, at) : 0;
}

#include "weir/http/lines_ahead.h"

/* As many lines as can be had at once. */
static __always_inline void request_ahead(struct work *w, const struct weir_server *server)
{
	struct weir_request_reader *r = &w->request;
	__u32 n = 1, at;

#pragma clang loop unroll(disable)
	for (int i = 0; i < WEIR_LINES_MAX && n; i++) {
		at = r->next - w->packet.segment.seq;
		n = window_has(w, at) ?
			    weir_request_line_ahead(&r->request, &server->reading, &w->window, at - w->window.at) :
			    0;
		r->next += n;
	}
}

static __always_inline void response_ahead(struct work *w)
{
	struct weir_response_reader *r = &w->response;
	__u32 n = 1, at;

#pragma clang loop unroll(disable)
	for (int i = 0; i < WEIR_LINES_MAX && n; i++) {
		at = r->next - w->packet.segment.seq;
		n = window_has(w, at) ? weir_response_line_ahead(&r->response, &w->window, at - w->window.at) : 0;
		r->next += n;
	}
}

#endif
