/* SPDX-License-Identifier: GPL-2.0 */
/* A response's head read where it stands in a window: as feeding the machine of response.h, which goes on with what is left. */
#ifndef WEIR_HTTP_RESPONSE_AHEAD_H
#define WEIR_HTTP_RESPONSE_AHEAD_H

#include "weir/http/line.h"
#include "weir/http/response.h"

/* Reads a status line at index `at`, if it is a plain one: how long it is; else 0. */
WEIR_INLINE __u32 weir_response_start_ahead(struct weir_response *r, const struct weir_window *w, __u32 at)
{
	__u64 word = weir_window_word(w, at + 8);
	__u16 status = weir_response_status_of(weir_run_behind(word, 1));
	__u32 n = 13;

	if (weir_window_word(w, at) != WEIR_RUN_HTTP11 || weir_run_first(word) != ' ' || !status)
		return 0;
	n += weir_line_text(w, at + n, 0, weir_line_nothing(word));
	if (!weir_line_ends(w, at + n))
		return 0;
	r->status = status;
	r->framing.state = WEIR_AT_LINE;
	return weir_framing_ahead(&r->framing, n + 2);
}

#endif
