/* SPDX-License-Identifier: GPL-2.0 */
#include "request_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace.h"

struct weir_reading request_reading = { .seed = { 0x1122334455667788ULL, 0x99aabbccddeeff00ULL } };

__attribute__((constructor)) static void set_reading(void)
{
	weir_reading_default(&request_reading);
}

static const char *const methods[] = { "GET",	 "HEAD",    "POST",    "PUT",	"PATCH",
				       "DELETE", "OPTIONS", "CONNECT", "OTHER", "PRI" };

static const struct {
	__u16 flag;
	const char *text;
} flags[] = {
	{ WEIR_REQUEST_HTTP10, "http10" },   { WEIR_REQUEST_CLOSE, "close" },	  { WEIR_REQUEST_EXPECT, "expect" },
	{ WEIR_REQUEST_UPGRADE, "upgrade" }, { WEIR_REQUEST_CHUNKED, "chunked" }, { WEIR_REQUEST_HAS_LENGTH, "length" },
	{ WEIR_REQUEST_HEALTH, "health" },
};

__u64 request_subject(__u8 kind, const char *name, size_t length)
{
	struct weir_subject_hash h;

	weir_subject_start(&h, request_reading.seed, kind);
	for (size_t i = 0; i < length; i++)
		weir_subject_byte(&h, name[i]);
	return weir_subject_end(&h);
}

__u64 request_namespace(const struct weir_request *r)
{
	struct weir_attributes a;

	weir_attributes_of(r, &request_reading, &a);
	return a.namespace;
}

static void say_namespace(struct trace *t, const struct weir_request *r, const char *message)
{
	const struct weir_path_segment *segment;
	struct weir_attributes a;

	weir_attributes_of(r, &request_reading, &a);
	if (!a.namespace)
		return;
	assert_true(a.namespace_at < WEIR_PATH_SEGMENTS);
	segment = &r->path.segments[a.namespace_at];
	say(t, " ns=%.*s", segment->length, message + segment->offset);
}

static void say_head(struct trace *t, const struct weir_request *r, const char *message)
{
	say(t, "%s", methods[r->method]);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (r->flags & flags[i].flag)
			say(t, " %s", flags[i].text);
	if (weir_request_repeats(r, WEIR_HEADER_USER))
		say(t, " repeated");
	if (r->flags & WEIR_REQUEST_HAS_LENGTH)
		say(t, "=%llu", (unsigned long long)r->content_length);
	say_namespace(t, r, message);
	if (r->user_subject)
		say(t, " user=%.*s", r->user_length, message + r->user_offset);
	else
		assert_true(!r->user_length && !r->user_offset);
}

/* What a head said, without where the machine is. */
static struct weir_request said(const struct weir_request *r)
{
	struct weir_request copy = *r;

	memset(&copy.framing, 0, sizeof(copy.framing));
	return copy;
}

/* Where a stream is read, and how far. */
struct reading {
	struct weir_request places[2], *r;
	const char *stream;
	size_t length, start, at; /* start: of the message */
};

/* The machine changes its place, and its old one is overwritten. */
static void move(struct reading *reading)
{
	struct weir_request *old = reading->r;

	reading->r = &reading->places[old == &reading->places[0]];
	*reading->r = *old;
	memset(old, 0xa5, sizeof(*old));
}

/* As many bytes as the machine takes at once; without `skipping`, or where it takes none, the next byte. */
static enum weir_frame_event advance(struct reading *reading, bool skipping)
{
	struct weir_request *r = reading->r;
	const char *next = reading->stream + reading->at;
	size_t left = reading->length - reading->at;
	__u64 skip = skipping ? weir_request_skippable(r) : 0;
	size_t run = skipping ? weir_request_take(r, weir_run_word((const __u8 *)next, left)) : 0;

	if (run) {
		reading->at += run;
		return WEIR_FRAME_MORE;
	}
	if (!skip) {
		reading->at++;
		return weir_request_byte(r, &request_reading, *next);
	}
	if (skip > left)
		skip = left;
	reading->at += skip;
	return weir_request_skip(r, skip);
}

/* Says what has ended, and begins the next message behind the latest. */
static void note(struct trace *t, struct reading *reading, enum weir_frame_event event, struct weir_request *last)
{
	struct weir_request *r = reading->r;

	if (event == WEIR_FRAME_HEAD) {
		assert_int_equal(r->head_length, reading->at - reading->start);
		say_head(t, r, reading->stream + reading->start);
		say(t, " head %zu; ", reading->at);
		*last = said(r);
	}
	assert_int_equal(event == WEIR_FRAME_MESSAGE || (event == WEIR_FRAME_HEAD && weir_request_ended(r)),
			 weir_request_ended(r));
	if (event == WEIR_FRAME_MESSAGE) {
		struct weir_request now = said(r);

		assert_memory_equal(&now, last, sizeof(now));
		say(t, "end %zu; ", reading->at);
	}
	if (weir_request_ended(r)) {
		reading->start = reading->at;
		weir_request_start(r);
	}
}

/*
 * Feeds a stream. With `moved` the machine changes its place between any two bytes. With `skipping` whatever may be skipped or
 * passed over is. last: what the latest head said, which a body must not change.
 */
static void feed(struct trace *t, const char *stream, size_t length, bool moved, bool skipping,
		 struct weir_request *last)
{
	struct reading reading = { .stream = stream, .length = length };

	reading.r = &reading.places[0];
	t->length = 0;
	t->text[0] = '\0';
	weir_request_start(reading.r);
	assert_true(weir_request_fresh(reading.r));
	while (reading.at < length) {
		enum weir_frame_event event;

		if (moved)
			move(&reading);
		event = advance(&reading, skipping);
		assert_false(weir_request_fresh(reading.r));
		if (event == WEIR_FRAME_LOST) {
			say(t, "lost %s %zu", labels[reading.r->lost], reading.at - 1);
			assert_int_equal(weir_request_byte(reading.r, &request_reading, 'G'), WEIR_FRAME_LOST);
			assert_int_equal(weir_request_skippable(reading.r), 0);
			return;
		}
		note(t, &reading, event, last);
	}
	if (reading.start < reading.at)
		say(t, "more");
	else if (t->length)
		t->text[t->length -= 2] = '\0';
}

void request_check(const char *stream, size_t length, const char *expected, struct weir_request *last)
{
	struct trace whole, other;
	struct weir_request request = { .lost = 0 };

	feed(&whole, stream, length, false, false, last);
	if (strcmp(whole.text, expected))
		print_error("stream: %.*s\n", length < 200 ? (int)length : 200, stream);
	assert_string_equal(whole.text, expected);
	for (int way = 1; way < 4; way++) {
		request = *last;
		feed(&other, stream, length, way & 1, way & 2, &request);
		assert_string_equal(other.text, whole.text);
		assert_memory_equal(&request, last, sizeof(request));
	}
}

void request_check_examples(const struct request_example *examples, size_t count, __u8 kind)
{
	for (size_t i = 0; i < count; i++) {
		struct weir_request last = { .lost = 0 };
		__u64 subject = 0;

		request_check(examples[i].stream, strlen(examples[i].stream), examples[i].trace, &last);
		if (examples[i].name)
			subject = request_subject(kind, examples[i].name, strlen(examples[i].name));
		if (kind == WEIR_NAME_NAMESPACE)
			assert_int_equal(request_namespace(&last), subject);
		else
			assert_int_equal(last.user_subject, subject);
	}
}

void request_check_long(const char *before, char c, size_t length, const char *after, const char *expected,
			struct weir_request *last)
{
	size_t size = strlen(before) + length + strlen(after);
	char *stream = malloc(size + 1);

	assert_non_null(stream);
	strcpy(stream, before);
	memset(stream + strlen(before), c, length);
	strcpy(stream + strlen(before) + length, after);
	request_check(stream, size, expected, last);
	free(stream);
}
