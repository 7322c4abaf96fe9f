/* SPDX-License-Identifier: GPL-2.0 */
/* A window over a stream, as bpf/window.h has one over a packet's payload. */
#ifndef WEIR_TESTS_WINDOW_H
#define WEIR_TESTS_WINDOW_H

#include "weir/http/window.h"

#include <stdint.h>
#include <string.h>

/* Has offset `at` of the stream in the window, which ends at `end` at the latest: its index. */
static inline __u32 window_over(struct weir_window *w, const uint8_t *stream, size_t at, size_t end)
{
	size_t n = end - at < WEIR_WINDOW ? end - at : WEIR_WINDOW;

	if (at < w->at || at - w->at >= w->length) {
		memset(w->bytes, '\r', sizeof(w->bytes)); /* what lies beyond is anything, and this would end a line */
		memcpy(w->bytes, stream + at, n);
		w->at = at;
		w->length = n;
	}
	return at - w->at;
}

#endif
