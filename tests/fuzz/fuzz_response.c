/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server's stream, responses one after the other: byte by byte, and again with everything skipped that may be. The
 * input's first byte says which requests are answered: bit n % 8 set, request n was HEAD.
 */
#include "weir/http/lines_ahead.h"

#include "../window.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define CUTS 64 /* of a longer stream, not at each byte */

/* What came out of a stream, and where. */
struct outcome {
	struct weir_response response;
	uint64_t events;
	size_t used;
};

static void note(struct outcome *o, enum weir_frame_event event)
{
	o->events = (o->events ^ (o->used * 4 + event)) * 0x9e3779b97f4a7c15ULL;
}

static void check_head(const struct weir_response *r, bool head_request, size_t fed)
{
	bool no_body = head_request || r->status == 204 || r->status == 304;

	assert(r->head_length == fed && fed <= WEIR_HEAD_MAX);
	assert(r->status >= 100 && r->status <= 999 && r->status != 101);
	assert(!(r->flags & WEIR_RESPONSE_INTERIM) == (r->status >= 200));
	assert((r->flags & WEIR_RESPONSE_HAS_LENGTH) || !r->content_length);
	assert(!(r->flags & WEIR_RESPONSE_HAS_LENGTH) || !(r->flags & WEIR_RESPONSE_CHUNKED));
	if (r->flags & WEIR_RESPONSE_INTERIM)
		assert(!weir_response_ended(r) && !weir_response_skippable(r));
	else if (no_body)
		assert(weir_response_ended(r) && !(r->flags & WEIR_RESPONSE_UNTIL_CLOSE));
	else if (r->flags & WEIR_RESPONSE_UNTIL_CLOSE)
		assert(weir_response_skippable(r) == WEIR_BODY_ENDLESS);
	else if (r->flags & WEIR_RESPONSE_HAS_LENGTH)
		assert(weir_response_ended(r) == !r->content_length && weir_response_skippable(r) == r->content_length);
	else
		assert(r->flags & WEIR_RESPONSE_CHUNKED);
}

static void restart(struct weir_response *r)
{
	struct weir_response clean;

	memset(&clean, 0xa5, sizeof(clean));
	weir_response_start(&clean);
	weir_response_start(r);
	assert(!memcmp(r, &clean, sizeof(clean)));
}

/* Takes what needs no look byte by byte, at most `most` bytes: how many. */
static size_t take(struct weir_response *r, const uint8_t *data, size_t most, enum weir_frame_event *event)
{
	uint64_t skip = weir_response_skippable(r);

	if (!skip)
		return weir_response_take(r, weir_run_word(data, most));
	skip = skip < most ? skip : most;
	*event = weir_response_skip(r, skip);
	return skip;
}

/* Reads a line where it stands in a window, which ends at `end`. */
static size_t take_line(struct weir_response *r, struct weir_window *window, const uint8_t *data, size_t at, size_t end)
{
	__u32 index = window_over(window, data, at, end);
	size_t n = weir_response_lines_ahead(r, window, index);

	assert(n <= window->length - index);
	return n;
}

/* step 0: never skips; cut: no line is read in place that lies on both sides of it, 0: none at all */
static void run(struct outcome *o, uint8_t heads, const uint8_t *data, size_t size, size_t step, size_t cut)
{
	struct weir_response *r = &o->response;
	enum weir_frame_event event = WEIR_FRAME_MORE;
	struct weir_window window = { 0 };
	size_t start = 0, responses = 0;

	memset(o, 0, sizeof(*o));
	restart(r);
	while (o->used < size && event != WEIR_FRAME_LOST) {
		size_t left = size - o->used, n;
		bool head_request = heads >> (responses % 8) & 1;

		event = WEIR_FRAME_MORE;
		n = cut ? take_line(r, &window, data, o->used, o->used < cut ? cut : size) : 0;
		if (!n && step)
			n = take(r, data + o->used, left < step ? left : step, &event);
		if (!n)
			event = weir_response_byte(r, head_request, data[o->used]);
		o->used += n ? n : 1;
		if (event == WEIR_FRAME_HEAD) {
			check_head(r, head_request, o->used - start);
			start = o->used;
		}
		assert(event != WEIR_FRAME_MESSAGE || weir_response_ended(r));
		assert(event != WEIR_FRAME_MORE || !weir_response_ended(r));
		if (event != WEIR_FRAME_MORE)
			note(o, event);
		if (weir_response_ended(r)) {
			restart(r);
			start = o->used;
			responses++;
		}
	}
	if (event == WEIR_FRAME_LOST) {
		assert(r->lost == WEIR_BAD_RESPONSE || r->lost == WEIR_UPGRADE);
		assert(!weir_response_skippable(r) && !weir_response_take(r, ~0ULL >> 1));
		assert(weir_response_byte(r, false, 'H') == WEIR_FRAME_LOST);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = { 1, 3, SIZE_MAX };
	struct outcome one, other;

	if (!size)
		return 0;
	run(&one, data[0], data + 1, size - 1, 0, 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		run(&other, data[0], data + 1, size - 1, steps[i], 0);
		assert(!memcmp(&one, &other, sizeof(one)));
	}
	for (size_t cut = 1; cut < size; cut += 1 + size / CUTS) {
		run(&other, data[0], data + 1, size - 1, cut % 2 ? 0 : SIZE_MAX, cut);
		assert(!memcmp(&one, &other, sizeof(one)));
	}
	return 0;
}
