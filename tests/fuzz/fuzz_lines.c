/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lines of what is held, read by eight bytes at once: as feeding each byte. The input's first byte says where the reader stands, and the
 * second how long the windows are.
 */
#include "weir/conn/hold_ahead.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define STARTS 2 /* bytes of the input before the stream */

static struct weir_hold_reader starts_at(__u8 bits)
{
	struct weir_hold_reader r = { .by_lines = bits & 1, .line = bits >> 1 & 1, .open = bits >> 2 & 1 };

	r.head = bits >> 3 & 1;
	r.bare = bits >> 4 & 1;
	r.grants = bits >> 5 & 1;
	r.preface = bits >> 6 & 1 ? WEIR_HOLD_NO_PREFACE : bits >> 7 & 1 ? WEIR_HOLD_PREFACE : 0;
	return r;
}

static void window_read(struct weir_window *w, const uint8_t *data, size_t size, size_t length)
{
	memset(w, 0xee, sizeof(*w));
	w->length = size < length ? size : length;
	memcpy(w->bytes, data, w->length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_hold_reader by_words, by_bytes;
	size_t length;

	if (size < STARTS)
		return 0;
	by_words = by_bytes = starts_at(data[0]);
	length = data[STARTS - 1] ? data[STARTS - 1] : WEIR_WINDOW;
	data += STARTS;
	size -= STARTS;
	while (size) {
		struct weir_window w;

		window_read(&w, data, size, length);
		for (__u32 at = 0; at < w.length;) {
			__u32 n = weir_hold_reader_ahead(&by_words, &w, at);

			assert(n % 8 == 0 && at + n <= w.length);
			if (!n)
				weir_hold_reader_line(&by_words, w.bytes[at]);
			n = n ? n : 1;
			while (n--)
				weir_hold_reader_line(&by_bytes, w.bytes[at++]);
			assert(!memcmp(&by_words, &by_bytes, sizeof(by_words)));
		}
		data += w.length;
		size -= w.length;
	}
	return 0;
}
