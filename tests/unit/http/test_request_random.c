/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random requests, most of them damaged, read by the machine and by the second reader. Where both have read a head they
 * must agree on what it says, and on where the message ends; what one refuses the other must refuse.
 */
#include "../../array_size.h"
#include "request_reader.h"
#include "request_trace.h"
#include "weir/http/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 60000

static const char *const methods[] = { "GET",	 "HEAD",    "POST",    "PUT", "PATCH",
				       "DELETE", "OPTIONS", "CONNECT", NULL,  "PRI" };

static __u64 subject_of(__u8 kind, const char *name)
{
	struct weir_subject_hash h;

	if (!*name)
		return 0;
	weir_subject_start(&h, request_reading.seed, kind);
	while (*name)
		weir_subject_byte(&h, *name++);
	return weir_subject_end(&h);
}

static enum weir_method method_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (methods[i] && !strcmp(methods[i], name))
			return i;
	return WEIR_METHOD_OTHER;
}

static unsigned int flags_of(const struct request_reading *r)
{
	return (r->http10 ? WEIR_REQUEST_HTTP10 : 0) |
	       (r->close || (r->http10 && !r->keep_alive) ? WEIR_REQUEST_CLOSE : 0) |
	       (r->expect ? WEIR_REQUEST_EXPECT : 0) | (r->upgrade && r->upgrade_option ? WEIR_REQUEST_UPGRADE : 0) |
	       (r->chunked ? WEIR_REQUEST_CHUNKED : 0) | (r->has_length ? WEIR_REQUEST_HAS_LENGTH : 0) |
	       (r->health ? WEIR_REQUEST_HEALTH : 0);
}

static void compare_head(const struct request_reading *expected, const struct weir_request *r, const char *stream)
{
	char namespace[STREAM_MAX];
	struct weir_path_segment segment = { .length = 0 };
	struct weir_attributes a;
	ssize_t length;

	weir_attributes_of(r, &request_reading, &a);
	if (a.namespace)
		segment = r->path.segments[a.namespace_at];
	length = request_reader_decode(stream + segment.offset, segment.length, namespace);
	assert_int_equal(r->head_length, expected->head_length);
	assert_int_equal(r->method, method_of(expected->method));
	assert_int_equal(r->flags, flags_of(expected));
	assert_int_equal(r->content_length, expected->content_length);
	assert_int_equal(a.namespace, subject_of(WEIR_NAME_NAMESPACE, expected->namespace));
	assert_int_equal(r->user_subject, subject_of(WEIR_NAME_USER, expected->user));
	assert_int_equal(weir_request_repeats(r, WEIR_HEADER_USER), expected->user_repeated);
	assert_int_equal(length, strlen(expected->namespace));
	assert_memory_equal(namespace, expected->namespace, length);
	assert_int_equal(r->user_length, strlen(expected->user));
	assert_memory_equal(stream + r->user_offset, expected->user, r->user_length);
}

static void compare(const struct request_reading *expected, const char *stream, size_t size)
{
	enum weir_frame_event event = WEIR_FRAME_MORE;
	bool head = false, ended = false;
	struct weir_request r;
	size_t at = 0;

	weir_request_start(&r);
	while (at < size && event != WEIR_FRAME_LOST && !ended) {
		event = weir_request_byte(&r, &request_reading, stream[at++]);
		ended = weir_request_ended(&r);
		if (event != WEIR_FRAME_HEAD)
			continue;
		assert_false(head);
		head = true;
		assert_int_equal(expected->head, GOOD);
		compare_head(expected, &r, stream);
	}
	assert_int_equal(head, expected->head == GOOD);
	if (expected->head == BAD || (expected->head == GOOD && expected->body == BAD))
		assert_int_equal(event, WEIR_FRAME_LOST);
	assert_int_equal(ended, expected->head == GOOD && expected->body == GOOD);
	if (ended)
		assert_int_equal(at, expected->length);
}

static __u64 random_state;

static unsigned int random_below(unsigned int n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 32) % n;
}

static const char *const starts[] = { "GET ",	  "GET ", "GET ", "POST ",    "HEAD ", "OPTIONS ",
				      "CONNECT ", "PRI ", "get ", "\r\nPUT ", "X-Y ",  "DELETE " };
static const char *const forms[] = {
	"/", "/", "/", "/", "/", "//", "http://h/", "a+b://h:1/", "http://h?", "*", "h:1"
};
static const char *const parts[] = { "api",
				     "api",
				     "apis",
				     "v1",
				     "v1",
				     "namespaces",
				     "namespaces",
				     "watch",
				     "proxy",
				     "a",
				     "",
				     "%61pi",
				     "n%61mespaces",
				     "a%2Fb",
				     "b%20",
				     "healthz",
				     "livez",
				     ".",
				     "..",
				     "x\\y",
				     "p\xc3\xb6",
				     "name-of-some-length-that-is-not-short" };
static const char *const ends[] = { " HTTP/1.1\r\n", " HTTP/1.1\r\n", "/ HTTP/1.1\r\n", "?a=%zz/b HTTP/1.1\r\n",
				    " HTTP/1.0\r\n" };
static const char *const lines[] = { "Host: x\r\n",
				     "A:\r\n",
				     "Accept: */*\r\n",
				     "X-Remote-User: ci\r\n",
				     "x-remote-user:  a b\t c \t\r\n",
				     "X-Remote-User: \r\n",
				     "X-Remote-Users: x\r\n",
				     "Content-Length: 5\r\n",
				     "Content-Length: 5\r\n",
				     "content-length:\t007 \r\n",
				     "Content-Length: 0\r\n",
				     "Transfer-Encoding: chunked\r\n",
				     "Transfer-Encoding: chunked\r\n",
				     "Transfer-Encoding: \tCHUNKED \r\n",
				     "Transfer-Encoding: gzip\r\n",
				     "Connection: close\r\n",
				     "Connection: keep-alive, Upgrade\r\n",
				     "Connection: a b, clos e,close\t,\r\n",
				     "Upgrade: x\r\n",
				     "Expect: 100-continue\r\n",
				     "Expect: x, 100-Continue\r\n" };
static const char *const bodies[] = { "",
				      "hello",
				      "hello, world",
				      "0\r\n\r\n",
				      "5\r\nhello\r\n0\r\n\r\n",
				      "a;x=\"y\"\r\n0123456789\r\n00\r\nA: b\r\nContent-Length: 5\r\n\r\nGET",
				      "1\r\nx\r\nfff\r\ny" };

/* A list's random entry, at the stream's end. */
#define APPEND(list) (size += sprintf(stream + size, "%s", (list)[random_below(ARRAY_SIZE(list))]))

static size_t make_stream(char *stream)
{
	size_t size = 0;

	APPEND(starts);
	APPEND(forms);
	for (unsigned int n = random_below(7); n; n--) {
		APPEND(parts);
		if (n > 1)
			stream[size++] = '/';
	}
	APPEND(ends);
	for (unsigned int n = random_below(5); n; n--)
		APPEND(lines);
	size += sprintf(stream + size, "\r\n");
	APPEND(bodies);
	return size;
}

/* A Kubernetes path with some noise, so that namespaces are frequent. */
static size_t make_namespaced(char *stream)
{
	static const char *const roots[] = { "GET /api/v1/",	     "GET /apis/apps/v1/", "GET /api/v1/watch/",
					     "GET /apis/a/b/proxy/", "GET ///api//",	   "GET /%61pi/%761%2F" };
	static const char *const middles[] = { "namespaces/", "namespaces/", "namespace%73/", "namespaces%2f",
					       "namespaces//" };
	size_t size = 0;

	APPEND(roots);
	APPEND(middles);
	for (unsigned int n = 1 + random_below(3); n; n--)
		APPEND(parts);
	APPEND(ends);
	for (unsigned int n = random_below(4); n; n--)
		APPEND(lines);
	return size + sprintf(stream + size, "\r\n");
}

static char random_byte(void)
{
	static const char special[] = "\r\n\r\n\t  :/?%,;.0159afgGX-_\"\x01\x16\x7f\x80\xff";

	return random_below(8) ? special[random_below(sizeof(special))] : (char)random_below(256);
}

/* Overwrites, inserts, removes or repeats something. */
static size_t damage(char *stream, size_t size)
{
	size_t at = random_below(size), n = 1 + random_below(size - at < 12 ? size - at : 12);

	switch (random_below(4)) {
	case 0:
		stream[at] = random_byte();
		return size;
	case 1:
		memmove(stream + at + 1, stream + at, size - at);
		stream[at] = random_byte();
		return size + 1;
	case 2:
		n = 1 + random_below(2);
		if (n >= size - at)
			return size;
		memmove(stream + at, stream + at + n, size - at - n);
		return size - n;
	default:
		memmove(stream + at + n, stream + at, size - at);
		return size + n;
	}
}

/* %00 is for test_request.c: the second reader's names are C strings. */
static bool has_encoded_nul(const char *stream, size_t size)
{
	return memmem(stream, size, "%00", 3);
}

static void test_random_requests(void **state)
{
	static char stream[STREAM_MAX];
	unsigned int good = 0, bad = 0, namespaces = 0, users = 0, chunked = 0, ended = 0, bad_bodies = 0;
	static struct request_reading expected;

	(void)state;
	random_state = 0x5eed5eed5eed5eedULL;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		size_t size = round % 2 ? make_stream(stream) : make_namespaced(stream);

		for (unsigned int n = random_below(4); n; n--)
			size = damage(stream, size);
		if (has_encoded_nul(stream, size))
			continue;
		request_reader_read(&expected, stream, size);
		compare(&expected, stream, size);
		good += expected.head == GOOD;
		bad += expected.head == BAD;
		if (expected.head != GOOD)
			continue;
		namespaces += *expected.namespace != '\0';
		users += *expected.user != '\0';
		chunked += expected.chunked;
		ended += expected.body == GOOD;
		bad_bodies += expected.body == BAD;
	}
	/* The generator must reach what it is for. */
	assert_true(good > ROUNDS / 10 && bad > ROUNDS / 10 && namespaces > ROUNDS / 20 && users > ROUNDS / 50);
	assert_true(chunked > ROUNDS / 100 && ended > ROUNDS / 20 && bad_bodies > ROUNDS / 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_requests),
	};

	return cmocka_run_group_tests(tests, request_reader_start, request_reader_stop);
}
