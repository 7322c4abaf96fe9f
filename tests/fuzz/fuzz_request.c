/* SPDX-License-Identifier: GPL-2.0 */
/* A client's stream, requests one after the other: byte by byte, and again with everything skipped that may be. */
#include "weir/http/head_cache.h"
#include "weir/http/lines_ahead.h"

#include "../window.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define CUTS 64 /* of a longer stream, not at each byte */

static struct weir_reading reading = { .seed = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL } };

/* What came out of a stream, and where. */
struct outcome {
	struct weir_request request;
	uint64_t events;
	size_t used;
};

static void note(struct outcome *o, enum weir_frame_event event)
{
	o->events = (o->events ^ (o->used * 8 + event)) * 0x9e3779b97f4a7c15ULL;
}

static void check_head(const struct weir_request *r, size_t fed)
{
	assert(r->head_length == fed && fed <= WEIR_HEAD_MAX);
	for (size_t i = 0; i < WEIR_PATH_SEGMENTS && i < r->path.count; i++) {
		const struct weir_path_segment *segment = &r->path.segments[i];

		assert((size_t)segment->offset + segment->length < fed);
		assert(!segment->subject == !segment->length);
	}
	assert((size_t)r->user_offset + r->user_length < fed);
	assert(!r->user_subject == !r->user_length);
	assert(!r->user_subject || weir_request_says(r, WEIR_HEADER_USER));
	assert((r->flags & WEIR_REQUEST_HAS_LENGTH) || !r->content_length);
	assert(!(r->flags & WEIR_REQUEST_HAS_LENGTH) || !(r->flags & WEIR_REQUEST_CHUNKED));
	assert(!(r->flags & WEIR_REQUEST_HEALTH) || !weir_path_is_of_api(&r->path));
	if (r->flags & WEIR_REQUEST_CHUNKED)
		assert(!weir_request_ended(r));
	else
		assert(weir_request_ended(r) == !r->content_length && weir_request_skippable(r) == r->content_length);
}

static void restart(struct weir_request *r)
{
	struct weir_request clean;

	memset(&clean, 0xa5, sizeof(clean));
	weir_request_start(&clean);
	weir_request_start(r);
	assert(!memcmp(r, &clean, sizeof(clean)) && weir_request_fresh(r));
}

/* Takes what needs no look byte by byte, at most `most` bytes: how many. */
static size_t take(struct weir_request *r, const uint8_t *data, size_t most, enum weir_frame_event *event)
{
	uint64_t skip = weir_request_skippable(r);

	if (!skip)
		return weir_request_take(r, weir_run_word(data, most));
	skip = skip < most ? skip : most;
	*event = weir_request_skip(r, skip);
	return skip;
}

/* Reads a line where it stands in a window, which ends at `end`. */
static size_t take_line(struct weir_request *r, struct weir_window *window, const uint8_t *data, size_t at, size_t end)
{
	__u32 index = window_over(window, data, at, end);
	size_t n = weir_request_line_ahead(r, &reading, window, index);

	assert(n <= window->length - index);
	return n;
}

/* The head's last LF is next: reads the head from the cache, if that takes it. What is there already is another head's. */
static void recall(struct weir_request *r, size_t start, size_t used)
{
	static struct weir_request cached;

	if (r->framing.state != WEIR_AT_END_LF || used - start >= WEIR_CACHE_MAX ||
	    !weir_cache_takes_request(r, start, used))
		return;
	weir_cache_copy_request(&cached, r);
	restart(r);
	weir_cache_copy_request(r, &cached);
	assert(r->framing.position == used - start);
}

/* step 0: never skips; cut: no line is read in place that lies on both sides of it, 0: none at all */
static void run(struct outcome *o, const uint8_t *data, size_t size, size_t step, size_t cut)
{
	struct weir_request *r = &o->request;
	enum weir_frame_event event = WEIR_FRAME_MORE;
	struct weir_window window = { 0 };
	size_t start = 0;

	memset(o, 0, sizeof(*o));
	restart(r);
	while (o->used < size && event != WEIR_FRAME_LOST) {
		size_t left = size - o->used, n;

		event = WEIR_FRAME_MORE;
		n = cut ? take_line(r, &window, data, o->used, o->used < cut ? cut : size) : 0;
		if (!n && step)
			n = take(r, data + o->used, left < step ? left : step, &event);
		if (!n && cut && data[o->used] == '\n')
			recall(r, start, o->used);
		if (!n)
			event = weir_request_byte(r, &reading, data[o->used]);
		o->used += n ? n : 1;
		if (event == WEIR_FRAME_HEAD)
			check_head(r, o->used - start);
		assert(event != WEIR_FRAME_MESSAGE || weir_request_ended(r));
		assert(event != WEIR_FRAME_MORE || !weir_request_ended(r));
		if (event != WEIR_FRAME_MORE)
			note(o, event);
		if (weir_request_ended(r)) {
			restart(r);
			start = o->used;
		}
	}
	if (event == WEIR_FRAME_LOST) {
		assert(r->lost && r->lost < WEIR_REASON_COUNT);
		assert(!weir_request_skippable(r) && !weir_request_take(r, ~0ULL >> 1));
		assert(weir_request_byte(r, &reading, 'G') == WEIR_FRAME_LOST);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = { 1, 3, SIZE_MAX };
	struct outcome one, other;

	weir_reading_default(&reading);
	run(&one, data, size, 0, 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		run(&other, data, size, steps[i], 0);
		assert(!memcmp(&one, &other, sizeof(one)));
	}
	for (size_t cut = 1; cut <= size; cut += 1 + size / CUTS) {
		run(&other, data, size, cut % 2 ? 0 : SIZE_MAX, cut);
		assert(!memcmp(&one, &other, sizeof(one)));
	}
	return 0;
}
