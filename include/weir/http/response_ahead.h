/* SPDX-License-Identifier: GPL-2.0 */
/* A response's head read where it stands in a window: as feeding the machine of response.h, which goes on with what is left. */
#ifndef WEIR_HTTP_RESPONSE_AHEAD_H
#define WEIR_HTTP_RESPONSE_AHEAD_H

#include "weir/http/line.h"
#include "weir/http/response.h"

/* Reads a status line, if it is a plain one. */
WEIR_INLINE void weir_response_start_ahead(struct weir_response *r, struct weir_window *w)
{
	__u32 at = w->line.at;
	__u64 word = weir_window_word(w, at + 8);
	__u16 status = weir_response_status_of(weir_run_behind(word, 1));

	if (weir_window_word(w, at) != WEIR_RUN_HTTP11 || weir_run_first(word) != ' ' || !status)
		return;
	weir_line_find_end(w, at + 13);
	if (!weir_line_ends(w, w->line.end))
		return;
	r->status = status;
	r->framing.state = WEIR_AT_LINE;
	weir_framing_ahead(&r->framing, w->line.end + 2 - w->line.at);
	weir_line_next(w);
}

#endif
