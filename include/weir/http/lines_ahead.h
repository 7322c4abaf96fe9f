/* SPDX-License-Identifier: GPL-2.0 */
/* Heads read line by line where they stand in a window (request_ahead.h, response_ahead.h). */
#ifndef WEIR_HTTP_LINES_AHEAD_H
#define WEIR_HTTP_LINES_AHEAD_H

#include "weir/http/request_ahead.h"
#include "weir/http/response_ahead.h"

/* Reads one field line of a request, or the empty one up to its last byte. 0: that is for the machine to do. */
WEIR_INLINE __u32 weir_request_field_ahead(struct weir_request *r, const struct weir_reading *how,
					   const struct weir_window *w, __u32 at)
{
	struct weir_line_name name = {};
	__u32 n, length;

	if (!weir_framing_at_line(&r->framing))
		return 0;
	if (weir_line_is_last(w, at))
		return weir_head_ahead(&r->framing);
	n = weir_line_name(w, at, &name);
	length = weir_line_ahead(&r->framing, w, at, how->lengths, &name, n);
	if (!length)
		length = weir_name_line_ahead(r, how, w, at, &name, n);
	return weir_framing_ahead(&r->framing, length);
}

/* Reads one line, or what is plain of a request line. 0: that is for the machine to do. */
WEIR_INLINE __u32 weir_request_line_ahead(struct weir_request *r, const struct weir_reading *how,
					  const struct weir_window *w, __u32 at)
{
	return weir_request_fresh(r) ? weir_request_start_ahead(r, how, w, at) :
				       weir_request_field_ahead(r, how, w, at);
}

/* Reads one line. 0: that is for the machine to do. */
WEIR_INLINE __u32 weir_response_line_ahead(struct weir_response *r, const struct weir_window *w, __u32 at)
{
	struct weir_line_name name = {};

	if (weir_response_fresh(r))
		return weir_response_start_ahead(r, w, at);
	if (!weir_framing_at_line(&r->framing))
		return 0;
	if (weir_line_is_last(w, at))
		return weir_head_ahead(&r->framing);
	return weir_framing_ahead(&r->framing,
				  weir_line_ahead(&r->framing, w, at, 0, &name, weir_line_name(w, at, &name)));
}

#endif
