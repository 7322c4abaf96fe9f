/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A target, in each of the ways to read paths: byte by byte, and again as many bytes at once as may be. The segments
 * must be those that a second reader finds in the whole path, and the attributes must follow from them.
 */
#include "weir/http/attributes.h"
#include "weir/http/request.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../path_reference.h"

static struct weir_reading reading = { .seed = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL } };

static __u64 subject(const char *text, size_t length)
{
	struct weir_subject_hash h;

	weir_subject_start(&h, reading.seed, WEIR_NAME_NAMESPACE);
	for (size_t i = 0; i < length; i++)
		weir_subject_byte(&h, text[i]);
	return length ? weir_subject_end(&h) : 0;
}

static enum weir_frame_event run(struct weir_request *r, const char *head, size_t size, size_t step)
{
	enum weir_frame_event event = WEIR_FRAME_MORE;
	size_t at = 0;

	memset(r, 0, sizeof(*r));
	weir_request_start(r);
	while (at < size && event == WEIR_FRAME_MORE) {
		size_t most = size - at < step ? size - at : step;
		size_t n = most ? weir_request_take(r, weir_run_word((const __u8 *)head + at, most)) : 0;

		if (!n)
			event = weir_request_byte(r, &reading, head[at]);
		at += n ? n : 1;
	}
	return event;
}

static void check_index(const struct weir_path *p, __u8 at, __u64 found)
{
	assert(at == WEIR_SEGMENT_NONE || at < p->count);
	assert(found == (at == WEIR_SEGMENT_NONE ? 0 : p->segments[at].subject));
}

static void check_attributes(const struct weir_request *r)
{
	struct weir_attributes a;

	weir_attributes_of(r, &reading, &a);
	assert(a.verb < WEIR_VERB_COUNT);
	assert(!(a.flags & WEIR_ATTRIBUTE_RESOURCE) == (a.version_at == WEIR_SEGMENT_NONE));
	assert((a.list == WEIR_LIST_NONE) == (a.verb != WEIR_VERB_LIST));
	check_index(&r->path, a.namespace_at, a.namespace);
	check_index(&r->path, a.group_at, a.group);
	check_index(&r->path, a.resource_at, a.resource);
	check_index(&r->path, a.subresource_at, a.subresource);
	if (a.name_at != WEIR_PATH_SELECTED)
		check_index(&r->path, a.name_at, a.name);
	else
		assert(a.verb == WEIR_VERB_LIST || a.verb == WEIR_VERB_WATCH);
}

static void check_segments(const struct weir_path *p, const struct path_segments *expected)
{
	assert(p->count == expected->count);
	for (size_t i = 0; i < p->count && i < WEIR_PATH_SEGMENTS; i++) {
		assert(p->segments[i].subject == subject(expected->texts[i], expected->lengths[i]));
		assert(p->segments[i].length >= expected->lengths[i]);
		assert(p->segments[i].offset + p->segments[i].length <= p->offset + p->length);
	}
}

/* The path's length, as far as it is visible. */
static size_t path_length(const char *path, size_t size)
{
	size_t length = 0;

	while (length < size && path[length] != '?' && weir_is_visible(path[length]))
		length++;
	return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = { 1, 5, 8 };
	static struct path_segments expected;
	char head[PATH_REFERENCE_MAX + 32] = "GET /";
	struct weir_request r, other;
	size_t length, end;

	if (size > PATH_REFERENCE_MAX - 1)
		return 0;
	memcpy(head + 5, data, size);
	strcpy(head + 5 + size, " HTTP/1.1\r\n\r\n");
	length = 1 + path_length(head + 5, size);
	end = 5 + size + strlen(" HTTP/1.1\r\n\r\n");
	for (reading.paths = 0; reading.paths < WEIR_PATHS_COUNT; reading.paths++) {
		enum weir_frame_event event = run(&r, head, end, 0);
		bool good = path_reference((enum weir_paths)reading.paths, head + 4, length, &expected);

		for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
			assert(run(&other, head, end, steps[i]) == event);
			assert(!memcmp(&r, &other, sizeof(r)));
		}
		assert(good || event == WEIR_FRAME_LOST);
		if (event != WEIR_FRAME_HEAD)
			continue;
		check_segments(&r.path, &expected);
		check_attributes(&r);
	}
	return 0;
}
