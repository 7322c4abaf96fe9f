/* SPDX-License-Identifier: GPL-2.0 */
/* Heads read line by line where they stand in a window, in pieces (request_ahead.h, response_ahead.h). */
#ifndef WEIR_HTTP_LINES_AHEAD_H
#define WEIR_HTTP_LINES_AHEAD_H

#include "weir/http/request_ahead.h"
#include "weir/http/response_ahead.h"

/* Reads one line, or what is plain of a request line. 0: that is for the machine to do. */
WEIR_INLINE __u32 weir_request_line_ahead(struct weir_request *r, const struct weir_reading *how,
					  const struct weir_window *w, __u32 at)
{
	__u32 n;

	if (weir_request_fresh(r))
		return WEIR_PIECE(request_start_ahead)(r, how, w, at);
	if (!weir_framing_at_line(&r->framing))
		return 0;
	if (weir_line_is_last(w, at))
		return weir_head_ahead(&r->framing);
	n = WEIR_PIECE(line_ahead)(&r->framing, w, at, how->lengths);
	if (!n)
		n = WEIR_PIECE(name_line_ahead)(r, how, w, at);
	return weir_framing_ahead(&r->framing, n);
}

/* Reads one line. 0: that is for the machine to do. */
WEIR_INLINE __u32 weir_response_line_ahead(struct weir_response *r, const struct weir_window *w, __u32 at)
{
	if (weir_response_fresh(r))
		return WEIR_PIECE(response_start_ahead)(r, w, at);
	if (!weir_framing_at_line(&r->framing))
		return 0;
	if (weir_line_is_last(w, at))
		return weir_head_ahead(&r->framing);
	return weir_framing_ahead(&r->framing, WEIR_PIECE(line_ahead)(&r->framing, w, at, 0));
}

#endif
