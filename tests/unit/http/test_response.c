/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Streams of responses and what the machine makes of them, written as one line of text each: `head` and `end` with the
 * offset behind their last byte, `lost` with the reason and the offset of the byte that did it, `more` when the stream
 * stops inside a response.
 */
#include "weir/http/response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../array_size.h"
#include "trace.h"

static const struct {
	__u8 flag;
	const char *text;
} flags[] = {
	{ WEIR_RESPONSE_HTTP10, "http10" },	   { WEIR_RESPONSE_CLOSE, "close" },
	{ WEIR_RESPONSE_CHUNKED, "chunked" },	   { WEIR_RESPONSE_INTERIM, "interim" },
	{ WEIR_RESPONSE_UNTIL_CLOSE, "to_close" },
};

static void say_head(struct trace *t, const struct weir_response *r)
{
	say(t, "%u", r->status);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (r->flags & flags[i].flag)
			say(t, " %s", flags[i].text);
	if (r->flags & WEIR_RESPONSE_HAS_LENGTH)
		say(t, " length=%llu", (unsigned long long)r->content_length);
	else
		assert_int_equal(r->content_length, 0);
}

/* Takes what needs no look byte by byte: how many bytes. */
static size_t take(struct weir_response *r, const char *stream, size_t length, enum weir_frame_event *event)
{
	__u64 skip = weir_response_skippable(r);

	*event = WEIR_FRAME_MORE;
	if (!skip)
		return weir_response_take(r, weir_run_word((const __u8 *)stream, length));
	skip = skip < length ? skip : length;
	*event = weir_response_skip(r, skip);
	return skip;
}

/* With `moved` the machine changes its place between any two bytes, and its old place is overwritten. */
static void feed(struct trace *t, enum weir_method request, const char *stream, size_t length, bool moved,
		 bool skipping)
{
	struct weir_response places[2], *r = &places[0];
	size_t start = 0, head = 0, at = 0;

	t->length = 0;
	t->text[0] = '\0';
	weir_response_start(r);
	while (at < length) {
		enum weir_frame_event event = WEIR_FRAME_MORE;
		size_t n;

		if (moved) {
			struct weir_response *other = &places[r == &places[0]];

			*other = *r;
			memset(r, 0xa5, sizeof(*r));
			r = other;
		}
		n = skipping ? take(r, stream + at, length - at, &event) : 0;
		if (!n)
			event = weir_response_byte(r, request, stream[at]);
		at += n ? n : 1;
		if (event == WEIR_FRAME_LOST) {
			say(t, "lost %s %zu", labels[r->lost], at - 1);
			assert_int_equal(weir_response_byte(r, request, 'H'), WEIR_FRAME_LOST);
			assert_int_equal(weir_response_skippable(r), 0);
			return;
		}
		if (event == WEIR_FRAME_HEAD) {
			assert_int_equal(r->head_length, at - head);
			say_head(t, r);
			say(t, " head %zu; ", at);
			head = at;
		}
		assert_int_equal(event == WEIR_FRAME_MESSAGE || (event == WEIR_FRAME_HEAD && weir_response_ended(r)),
				 weir_response_ended(r));
		if (event == WEIR_FRAME_MESSAGE)
			say(t, "end %zu; ", at);
		if (weir_response_ended(r)) {
			start = head = at;
			weir_response_start(r);
		}
	}
	if (start < at)
		say(t, "more");
	else if (t->length)
		t->text[t->length -= 2] = '\0';
}

/* Feeds a stream in every way, which must not make a difference. */
static void check(enum weir_method request, const char *stream, size_t length, const char *expected)
{
	struct trace t;

	for (int way = 0; way < 4; way++) {
		feed(&t, request, stream, length, way & 1, way & 2);
		if (strcmp(t.text, expected))
			print_error("stream: %.*s\n", length < 200 ? (int)length : 200, stream);
		assert_string_equal(t.text, expected);
	}
}

struct example {
	const char *stream;
	const char *trace;
};

static void check_examples(enum weir_method request, const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(request, examples[i].stream, strlen(examples[i].stream), examples[i].trace);
}

#define END "\r\n\r\n"
#define OK "HTTP/1.1 200 OK\r\n"

static const struct example status_lines[] = {
	{ OK "Content-Length: 0" END, "200 length=0 head 38" },
	{ "HTTP/1.1 204 No Content" END OK "\r\n", "204 head 27; 200 to_close head 46; more" },
	{ "HTTP/1.1 204 " END, "204 head 17" },
	{ "HTTP/1.1 204 \t\x80 x" END, "204 head 21" },
	{ "HTTP/1.1 204 \t\x80\x01" END, "lost bad_response 15" },
	{ "HTTP/1.1 204 x\x7f" END, "lost bad_response 14" },
	{ "HTTP/1.1 999 x\r\nContent-Length: 0" END, "999 length=0 head 37" },
	{ "HTTP/1.1 204" END, "lost bad_response 12" },
	{ "HTTP/1.1 204\t" END, "lost bad_response 12" },
	{ "HTTP/1.1  204 x" END, "lost bad_response 9" },
	{ "HTTP/1.1 20 x" END, "lost bad_response 11" },
	{ "HTTP/1.1 2000 x" END, "lost bad_response 12" },
	{ "HTTP/1.1 020 x" END, "lost bad_response 9" },
	{ "HTTP/1.1 2x4 x" END, "lost bad_response 10" },
	{ "HTTP/1.1 204 x\n\n", "lost bad_response 14" },
	{ "HTTP/1.1 204 x\rHost: x" END, "lost bad_response 15" },
	{ "HTTP/1.2 204 x" END, "lost bad_response 8" },
	{ "HTTP/2 204 x" END, "lost bad_response 6" },
	{ "HTTP/1.10 204 x" END, "lost bad_response 8" },
	{ "http/1.1 204 x" END, "lost bad_response 8" },
	{ " " OK, "lost bad_response 0" },
	{ "\r\n" OK, "lost bad_response 8" },
	{ "\x15\x03\x03", "more" },
};

static const struct example heads[] = {
	{ OK "Connection: close\r\nContent-Length: 0" END, "200 close length=0 head 57" },
	{ OK "Connection: x, CLOSE\r\nContent-Length: 0" END, "200 close length=0 head 60" },
	{ OK "Connection: closed\r\nContent-Length: 0" END, "200 length=0 head 58" },
	{ "HTTP/1.0 200 OK\r\nContent-Length: 0" END, "200 http10 close length=0 head 38" },
	{ "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0" END, "200 http10 length=0 head 62" },
	{ OK "A: x\r\n y" END, "lost bad_response 23" },
	{ OK "A : x" END, "lost bad_response 18" },
	{ OK "A: x\n\r\n", "lost bad_response 21" },
	{ OK "A: x\r\r\n", "lost bad_response 22" },
	{ OK "A: \x01" END, "lost bad_response 20" },
	{ OK "A" END, "lost bad_response 18" },
	{ OK ": x" END, "lost bad_response 17" },
	{ OK "X-Remote-User: a\r\nX-Remote-User: b\r\nContent-Length: 0" END, "200 length=0 head 74" },
};

static const struct example bodies[] = {
	{ OK "Content-Length: 5" END "hello" OK "content-length:0" END,
	  "200 length=5 head 38; end 43; 200 length=0 head 80" },
	{ OK "Content-Length: 5" END "he", "200 length=5 head 38; more" },
	{ OK "\r\nall the rest" END OK, "200 to_close head 19; more" },
	{ "HTTP/1.0 200 OK" END "x", "200 http10 close to_close head 19; more" },
	{ "HTTP/1.1 304 x\r\nContent-Length: 5" END OK "Content-Length: 0" END,
	  "304 length=5 head 37; 200 length=0 head 75" },
	{ "HTTP/1.1 304 x\r\nTransfer-Encoding: chunked" END "H", "304 chunked head 46; more" },
	{ "HTTP/1.1 204 x\r\nContent-Length: 5" END "H", "204 length=5 head 37; more" },
	{ OK "Transfer-Encoding: Chunked" END "5\r\nhello\r\n00" END "H", "200 chunked head 47; end 63; more" },
	{ OK "Transfer-Encoding: chunked" END "a;b\r\n0123456789\r\n0\r\nA: b\r\nContent-Length: 4" END "H",
	  "200 chunked head 47; end 94; more" },
	{ OK "Transfer-Encoding: chunked" END "x", "200 chunked head 47; lost bad_response 47" },
	{ OK "Transfer-Encoding: chunked" END "1\r\nab", "200 chunked head 47; lost bad_response 51" },
	{ OK "Transfer-Encoding: chunked" END "0\r\nA\r\n", "200 chunked head 47; lost bad_response 51" },
	{ OK "Transfer-Encoding: gzip" END, "lost bad_response 40" },
	{ OK "Transfer-Encoding: chunked, chunked" END, "lost bad_response 52" },
	{ OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" END, "lost bad_response 62" },
	{ OK "Transfer-Encoding: chunked\r\nContent-Length: 5" END, "lost bad_response 59" },
	{ OK "Content-Length: 5\r\nTransfer-Encoding: chunked" END, "lost bad_response 53" },
	{ OK "Content-Length: 5\r\nContent-Length: 5" END, "lost bad_response 50" },
	{ OK "Content-Length: 5, 5" END, "lost bad_response 34" },
	{ OK "Content-Length: -1" END, "lost bad_response 33" },
	{ OK "Content-Length:" END, "lost bad_response 32" },
	{ OK "Content-Length: 9223372036854775808" END, "lost bad_response 51" },
	{ "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked" END, "lost bad_response 34" },
};

static const struct example interim[] = {
	{ "HTTP/1.1 100 Continue" END OK "Content-Length: 1" END "x",
	  "100 interim head 25; 200 length=1 head 63; end 64" },
	{ "HTTP/1.1 103 Early Hints\r\nLink: <x>" END "HTTP/1.1 100 Continue" END "HTTP/1.1 204 x" END "H",
	  "103 interim head 39; 100 interim head 64; 204 head 82; more" },
	/* nothing that an interim head says holds for the final one */
	{ "HTTP/1.0 100 x\r\nContent-Length: 3\r\nConnection: close" END OK "\r\nabc",
	  "100 http10 close interim length=3 head 56; 200 to_close head 75; more" },
	{ "HTTP/1.1 199 x" END OK "Transfer-Encoding: chunked" END "0" END,
	  "199 interim head 18; 200 chunked head 65; end 70" },
	{ "HTTP/1.1 100 Continue" END, "100 interim head 25; more" },
	{ "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket" END, "lost upgrade 55" },
	{ "HTTP/1.1 100 Continue" END "HTTP/1.1 101 x" END, "100 interim head 25; lost upgrade 42" },
};

static const struct example to_head[] = {
	{ OK "Content-Length: 5" END OK "\r\n", "200 length=5 head 38; 200 head 57" },
	{ OK "Transfer-Encoding: chunked" END "H", "200 chunked head 47; more" },
	{ "HTTP/1.1 100 x" END OK "Content-Length: 5" END, "100 interim head 18; 200 length=5 head 56" },
	{ "HTTP/1.1 101 x" END, "lost upgrade 17" },
};

static const struct example to_connect[] = {
	{ OK "\r\n", "lost upgrade 18" },
	{ "HTTP/1.1 299 x\r\nContent-Length: 0" END, "lost upgrade 36" },
	{ "HTTP/1.1 300 x\r\nContent-Length: 0" END, "300 length=0 head 37" },
	{ "HTTP/1.1 407 x\r\nContent-Length: 1" END "x", "407 length=1 head 37; end 38" },
	{ "HTTP/1.1 100 x" END OK "\r\n", "100 interim head 18; lost upgrade 36" },
};

static void test_status_lines(void **state)
{
	(void)state;
	check_examples(WEIR_METHOD_GET, status_lines, ARRAY_SIZE(status_lines));
}

static void test_heads(void **state)
{
	(void)state;
	check_examples(WEIR_METHOD_GET, heads, ARRAY_SIZE(heads));
}

static void test_bodies(void **state)
{
	(void)state;
	check_examples(WEIR_METHOD_POST, bodies, ARRAY_SIZE(bodies));
}

static void test_interim(void **state)
{
	(void)state;
	check_examples(WEIR_METHOD_GET, interim, ARRAY_SIZE(interim));
}

static void test_to_head(void **state)
{
	(void)state;
	check_examples(WEIR_METHOD_HEAD, to_head, ARRAY_SIZE(to_head));
}

static void test_to_connect(void **state)
{
	(void)state;
	check_examples(WEIR_METHOD_CONNECT, to_connect, ARRAY_SIZE(to_connect));
}

/* A NUL anywhere in a head. */
static void test_nul(void **state)
{
	static const char valid[] = OK "Server: x\r\nContent-Length: 0" END;
	char stream[sizeof(valid)], expected[64];

	(void)state;
	for (size_t at = 9; at < sizeof(valid) - 1; at++) {
		memcpy(stream, valid, sizeof(valid));
		stream[at] = '\0';
		snprintf(expected, sizeof(expected), "lost bad_response %zu", at);
		check(WEIR_METHOD_GET, stream, sizeof(valid) - 1, expected);
	}
}

static void test_head_limit(void **state)
{
	static const char before[] = OK "A: ", after[] = "\r\nContent-Length: 0" END;
	size_t room = WEIR_HEAD_MAX - strlen(before) - strlen(after);
	char *stream = malloc(WEIR_HEAD_MAX + 2);
	char expected[64];

	(void)state;
	assert_non_null(stream);
	for (size_t more = 0; more < 2; more++) {
		strcpy(stream, before);
		memset(stream + strlen(before), 'x', room + more);
		strcpy(stream + strlen(before) + room + more, after);
		snprintf(expected, sizeof(expected), more ? "lost bad_response %d" : "200 length=0 head %d",
			 WEIR_HEAD_MAX);
		check(WEIR_METHOD_GET, stream, WEIR_HEAD_MAX + more, expected);
	}
	free(stream);
}

/* The rest of a connection may be skipped in any steps, and never ends. */
static void test_endless(void **state)
{
	static const char head[] = OK "\r\n";
	struct weir_response r;

	(void)state;
	weir_response_start(&r);
	for (size_t i = 0; i < sizeof(head) - 1; i++)
		weir_response_byte(&r, WEIR_METHOD_GET, head[i]);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(weir_response_skippable(&r), WEIR_BODY_ENDLESS);
		assert_int_equal(weir_response_skip(&r, WEIR_BODY_ENDLESS), WEIR_FRAME_MORE);
		assert_int_equal(weir_response_byte(&r, WEIR_METHOD_GET, 'x'), WEIR_FRAME_MORE);
		assert_false(weir_response_ended(&r));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status_lines), cmocka_unit_test(test_heads),
		cmocka_unit_test(test_bodies),	     cmocka_unit_test(test_interim),
		cmocka_unit_test(test_to_head),	     cmocka_unit_test(test_to_connect),
		cmocka_unit_test(test_nul),	     cmocka_unit_test(test_head_limit),
		cmocka_unit_test(test_endless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
