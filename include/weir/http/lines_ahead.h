/* SPDX-License-Identifier: GPL-2.0 */
/* Heads read line by line where they stand in a window (request_ahead.h, response_ahead.h). */
#ifndef WEIR_HTTP_LINES_AHEAD_H
#define WEIR_HTTP_LINES_AHEAD_H

#include "weir/http/request_ahead.h"
#include "weir/http/response_ahead.h"

/* Reads field lines of a request, and the empty one up to its last byte. If none: the first is for the machine to do. */
WEIR_INLINE void weir_request_fields_ahead(struct weir_request *r, const struct weir_reading *how,
					   struct weir_window *w)
{
	__u64 ahead = r->framing.position - w->line.at;
	enum weir_line_is is;

	if (!weir_framing_at_line(&r->framing))
		return;
	WEIR_ROLLED
	for (__u64 i = 0; i < WEIR_LINES_MAX; i++) {
		WEIR_FRESH_ALL();
		if (!weir_line_find(w)) {
			weir_line_last_ahead(&r->framing, w);
			break;
		}
		is = weir_line_ahead(&r->framing, w, how->lengths);
		if (is == WEIR_LINE_OTHERS && !weir_name_line_ahead(r, how, w, ahead + w->line.at))
			break;
		weir_line_next(w);
	}
	r->framing.position = ahead + w->line.at;
}

/*
 * Reads what is plain of a request line but for a query's parameters, and lines behind it: how many bytes of them. 0: that is for the machine
 * to do.
 */
WEIR_INLINE __u32 weir_request_lines_ahead(struct weir_request *r, const struct weir_reading *how,
					   struct weir_window *w, __u32 at)
{
	w->line.at = at;
	WEIR_FRESH_ALL();
	if (weir_request_fresh(r))
		weir_request_start_ahead(r, how, w);
	WEIR_FRESH_ALL();
	weir_version_ahead(r, w);
	WEIR_FRESH_ALL();
	weir_request_fields_ahead(r, how, w);
	return w->line.at - at;
}

/* The same, or from a query on. */
WEIR_INLINE __u32 weir_request_line_ahead(struct weir_request *r, const struct weir_reading *how, struct weir_window *w,
					  __u32 at)
{
	return r->framing.state == WEIR_AT_QUERY ? weir_query_ahead(r, how, w, at) :
						   weir_request_lines_ahead(r, how, w, at);
}

/* Reads field lines of a response, and the empty one up to its last byte. If none: as above. */
WEIR_INLINE void weir_response_fields_ahead(struct weir_response *r, struct weir_window *w)
{
	__u64 ahead = r->framing.position - w->line.at;

	if (!weir_framing_at_line(&r->framing))
		return;
	WEIR_ROLLED
	for (__u64 i = 0; i < WEIR_LINES_MAX; i++) {
		WEIR_FRESH_ALL();
		if (!weir_line_find(w)) {
			weir_line_last_ahead(&r->framing, w);
			break;
		}
		if (weir_line_ahead(&r->framing, w, 0) == WEIR_LINE_OTHERS)
			break;
		weir_line_next(w);
	}
	r->framing.position = ahead + w->line.at;
}

/* Reads a status line, and lines behind it: how many bytes of them. 0: that is for the machine to do. */
WEIR_INLINE __u32 weir_response_lines_ahead(struct weir_response *r, struct weir_window *w, __u32 at)
{
	w->line.at = at;
	WEIR_FRESH_ALL();
	if (weir_response_fresh(r))
		weir_response_start_ahead(r, w);
	WEIR_FRESH_ALL();
	weir_response_fields_ahead(r, w);
	return w->line.at - at;
}

#endif
