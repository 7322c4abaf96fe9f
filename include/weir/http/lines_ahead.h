/* SPDX-License-Identifier: GPL-2.0 */
/* Heads read line by line where they stand in a window (request_ahead.h, response_ahead.h). */
#ifndef WEIR_HTTP_LINES_AHEAD_H
#define WEIR_HTTP_LINES_AHEAD_H

#include "weir/http/request_ahead.h"
#include "weir/http/response_ahead.h"

/* Reads field lines of a request, and the empty one up to its last byte: how many bytes of them. 0: the first is for the machine to do. */
WEIR_INLINE __u32 weir_request_fields_ahead(struct weir_request *r, const struct weir_reading *how,
					    const struct weir_window *w, __u32 at)
{
	__u32 from = at, position = r->framing.position;
	__u32 nothing = weir_line_nothing(weir_window_word(w, at));
	struct weir_line line;
	enum weir_line_is is;

	if (!weir_framing_at_line(&r->framing))
		return 0;
	WEIR_ROLLED
	for (int i = 0; i < WEIR_LINES_MAX; i++) {
		WEIR_FRESH_ALL();
		at = weir_line_any(at, nothing);
		if (!weir_line_find(w, at, nothing, &line)) {
			at += weir_line_is_last(&r->framing, w, at);
			break;
		}
		is = weir_line_ahead(&r->framing, w, &line, how->lengths);
		if (is == WEIR_LINE_OTHERS && !weir_name_line_ahead(r, how, w, &line, position + at - from))
			break;
		at = line.end + 2;
	}
	r->framing.position = position + at - from;
	return at - from;
}

/* Reads what is plain of a request line but for a query's parameters, and lines behind it. 0: that is for the machine to do. */
WEIR_INLINE __u32 weir_request_lines_ahead(struct weir_request *r, const struct weir_reading *how,
					   const struct weir_window *w, __u32 at)
{
	__u32 from = at, nothing = weir_line_nothing(weir_window_word(w, at));

	if (weir_request_fresh(r))
		at = weir_line_any(at + weir_request_start_ahead(r, how, w, at), nothing);
	WEIR_FRESH_ALL();
	at = weir_line_any(at + weir_version_ahead(r, w, at), nothing);
	WEIR_FRESH_ALL();
	return at - from + weir_request_fields_ahead(r, how, w, at);
}

/* The same, or from a query on. */
WEIR_INLINE __u32 weir_request_line_ahead(struct weir_request *r, const struct weir_reading *how,
					  const struct weir_window *w, __u32 at)
{
	return r->framing.state == WEIR_AT_QUERY ? weir_query_ahead(r, how, w, at) :
						   weir_request_lines_ahead(r, how, w, at);
}

/* Reads field lines of a response, and the empty one up to its last byte: how many bytes of them. 0: as above. */
WEIR_INLINE __u32 weir_response_fields_ahead(struct weir_response *r, const struct weir_window *w, __u32 at)
{
	__u32 nothing = weir_line_nothing(weir_window_word(w, at));
	struct weir_line line;
	__u32 from = at;

	if (!weir_framing_at_line(&r->framing))
		return 0;
	WEIR_ROLLED
	for (int i = 0; i < WEIR_LINES_MAX; i++) {
		WEIR_FRESH_ALL();
		at = weir_line_any(at, nothing);
		if (!weir_line_find(w, at, nothing, &line)) {
			at += weir_line_is_last(&r->framing, w, at);
			break;
		}
		if (weir_line_ahead(&r->framing, w, &line, 0) == WEIR_LINE_OTHERS)
			break;
		at = line.end + 2;
	}
	return weir_framing_ahead(&r->framing, at - from);
}

/* Reads lines, or a status line. 0: that is for the machine to do. */
WEIR_INLINE __u32 weir_response_line_ahead(struct weir_response *r, const struct weir_window *w, __u32 at)
{
	return weir_response_fresh(r) ? weir_response_start_ahead(r, w, at) : weir_response_fields_ahead(r, w, at);
}

#endif
