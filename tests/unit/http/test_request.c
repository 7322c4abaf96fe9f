/* SPDX-License-Identifier: GPL-2.0 */
/* Where requests end, and what is refused on the way. */
#include "request_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../digest_keys.h"

static const struct request_example lines[] = {
	{ G "\r\n", "GET head 18", NULL },
	{ "\r\n\r\n\r\n\r\n" G "\r\n", "GET head 26", NULL },
	{ "\r\n\r\n\r\n\r\n\r\n" G "\r\n", "lost bad_request_line 8", NULL },
	{ "\rG", "lost bare_cr 1", NULL },
	{ "\n" G, "lost bare_lf 0", NULL },
	{ " " G, "lost not_http 0", NULL },
	{ "\x16\x03\x01", "lost tls 0", NULL },
	{ "\x80", "lost not_http 0", NULL },
	{ "{\"a\":1}", "lost not_http 0", NULL },
	{ "GET", "more", NULL },
	{ "get / HTTP/1.1" END, "OTHER head 18", NULL },
	{ "PATCH / HTTP/1.1" END "PUT / HTTP/1.1" END "DELETE / HTTP/1.1" END,
	  "PATCH head 20; PUT head 38; DELETE head 59", NULL },
	{ "GETS / HTTP/1.1" END, "OTHER head 19", NULL },
	{ "ABCDEFGHIJKLMNOPQRSTUVWX / HTTP/1.1" END, "OTHER head 39", NULL },
	{ "ABCDEFGHIJKLMNOPQRSTUVWXY / HTTP/1.1" END, "lost bad_request_line 24", NULL },
	{ "G:T / HTTP/1.1" END, "lost bad_request_line 1", NULL },
	{ "SSH-2.0-x\r\n", "lost bad_request_line 9", NULL },
	{ "GET\n", "lost bare_lf 3", NULL },
	{ "GET\t/ HTTP/1.1" END, "lost bad_request_line 3", NULL },
	{ "GET  / HTTP/1.1" END, "lost bad_request_line 4", NULL },
	{ "GET /  HTTP/1.1" END, "lost bad_request_line 6", NULL },
	{ "GET / x HTTP/1.1" END, "lost bad_request_line 7", NULL },
	{ "GET / HTTP/1.1 " END, "lost bad_request_line 14", NULL },
	{ "GET /\r\n", "lost bad_request_line 5", NULL },
	{ "GET /\n", "lost bare_lf 5", NULL },
	{ "GET /\t HTTP/1.1" END, "lost bad_request_line 5", NULL },
	{ "GET /\x7f HTTP/1.1" END, "lost bad_request_line 5", NULL },
	{ "GET /?\x01 HTTP/1.1" END, "lost bad_request_line 6", NULL },
	{ "GET / HTTP/1.1\n", "lost bare_lf 14", NULL },
	{ "GET / HTTP/1.1\rX", "lost bare_cr 15", NULL },
	{ "GET / HTTP/1.2" END, "lost bad_version 14", NULL },
	{ "GET / HTTP/2.0" END, "lost bad_version 14", NULL },
	{ "GET / HTTP/1.10" END, "lost bad_version 14", NULL },
	{ "GET / HTTP/1." END, "lost bad_version 13", NULL },
	{ "GET / http/1.1" END, "lost bad_version 14", NULL },
	{ "GET / \r\n", "lost bad_version 6", NULL },
	{ "PRI * HTTP/2.0" END "SM" END, "lost http2 14", NULL },
	{ "PRI * HTTP/1.1" END, "PRI head 18", NULL },
	{ "GET / HTTP/1.0" END, "GET http10 close head 18", NULL },
};

static void test_request_lines(void **state)
{
	(void)state;
	request_check_examples(lines, ARRAY_SIZE(lines), WEIR_NAME_NAMESPACE);
}

static const struct request_example headers[] = {
	{ G "Host: x\r\nA:\r\nB: \r\nC:c" END, "GET head 41", NULL },
	{ G "A: \t\x80\xff!~" END, "GET head 28", NULL },
	{ G "A: x" END G "B: y" END, "GET head 24; GET head 48", NULL },
	{ G ": x" END, "lost bad_header 16", NULL },
	{ G "A : x" END, "lost bad_header 17", NULL },
	{ G "A\t: x" END, "lost bad_header 17", NULL },
	{ G " A: x" END, "lost folded_header 16", NULL },
	{ G "A: x\r\n y" END, "lost folded_header 22", NULL },
	{ G "A: x\r\n\ty" END, "lost folded_header 22", NULL },
	{ G "A(b): x" END, "lost bad_header 17", NULL },
	{ G "\x80: x" END, "lost bad_header 16", NULL },
	{ G "A" END, "lost bad_header 17", NULL },
	{ G "A\n", "lost bare_lf 17", NULL },
	{ G "\n", "lost bare_lf 16", NULL },
	{ G "A: x\n\r\n", "lost bare_lf 20", NULL },
	{ G "A: x\rB: y" END, "lost bare_cr 21", NULL },
	{ G "A: x\r\r\n", "lost bare_cr 21", NULL },
	{ G "\rx", "lost bare_cr 17", NULL },
	{ G "A: \x1f" END, "lost bad_header 19", NULL },
	{ G "A: \x7f" END, "lost bad_header 19", NULL },
	{ G "Connection: \x02" END, "lost bad_header 28", NULL },
	/* connection options, expectations */
	{ G "Connection: close" END, "GET close head 37", NULL },
	{ G "CONNECTION:CLOSE" END, "GET close head 36", NULL },
	{ G "Connection: a, close , b" END, "GET close head 44", NULL },
	{ G "Connection: ,,\tclose" END, "GET close head 40", NULL },
	{ G "Connection: a\r\nConnection: close" END, "GET close head 52", NULL },
	{ G "Connection: closed, xclose, clo se, close x, \"close\"" END, "GET head 72", NULL },
	{ G "Connection: closeabcdefghijklmnopqrstuvwxyz" END, "GET head 63", NULL },
	{ G "Connections: close" END, "GET head 38", NULL },
	{ G "Connection: keep-alive" END, "GET head 42", NULL },
	{ "GET / HTTP/1.0\r\nConnection: Keep-Alive" END, "GET http10 head 42", NULL },
	{ "GET / HTTP/1.0\r\nConnection: keep-alive, close" END, "GET http10 close head 49", NULL },
	{ G "Connection: Upgrade\r\nUpgrade: websocket" END, "GET upgrade head 59", NULL },
	{ G "Upgrade: h2c\r\nConnection: HTTP2-Settings, upgrade" END, "GET upgrade head 69", NULL },
	{ G "Connection: upgrade" END, "GET head 39", NULL },
	{ G "Upgrade: websocket" END, "GET head 38", NULL },
	{ P "Expect: 100-Continue\r\nContent-Length: 1" END, "POST expect length=1 head 60; more", NULL },
	{ P "Expect: 200-ok" END, "POST head 35", NULL },
};

static void test_headers(void **state)
{
	(void)state;
	request_check_examples(headers, ARRAY_SIZE(headers), WEIR_NAME_NAMESPACE);
}

#define CL P "Content-Length:"
#define TE P "Transfer-Encoding: chunked" END

static const struct request_example bodies[] = {
	{ CL " 5" END "hello" G "\r\n", "POST length=5 head 38; end 43; GET head 61", NULL },
	{ CL "5\t " END "\r\n\r\n\n" G "\r\n", "POST length=5 head 39; end 44; GET head 62", NULL },
	{ CL " 0" END G "\r\n", "POST length=0 head 38; GET head 56", NULL },
	{ CL " 0005" END "helloG", "POST length=5 head 41; end 46; more", NULL },
	{ CL " 000000000000000000000000000000000000000003" END "abc", "POST length=3 head 79; end 82", NULL },
	{ CL " 9223372036854775807" END "x", "POST length=9223372036854775807 head 56; more", NULL },
	{ CL " 9223372036854775808" END, "lost bad_content_length 51", NULL },
	{ CL " 18446744073709551621" END, "lost bad_content_length 52", NULL },
	{ CL " 92233720368547758070" END, "lost bad_content_length 52", NULL },
	{ CL END, "lost bad_content_length 32", NULL },
	{ CL " " END, "lost bad_content_length 33", NULL },
	{ CL " +5" END, "lost bad_content_length 33", NULL },
	{ CL " -5" END, "lost bad_content_length 33", NULL },
	{ CL " 0x5" END, "lost bad_content_length 34", NULL },
	{ CL " 1 2" END, "lost bad_content_length 35", NULL },
	{ CL " 5,5" END, "lost bad_content_length 34", NULL },
	{ CL " 5\x0b" END, "lost bad_header 34", NULL },
	{ CL " 5\r\n\t5" END, "lost folded_header 36", NULL },
	{ CL " 5\r\nContent-Length: 5" END, "lost length_conflict 50", NULL },
	{ CL " 5\r\nTransfer-Encoding: chunked" END, "lost length_conflict 53", NULL },
	{ P "Transfer-Encoding: chunked\r\nContent-Length: 5" END, "lost length_conflict 59", NULL },
	{ P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" END, "lost bad_transfer_encoding 62", NULL },
	{ P "Transfer-Encoding: gzip, chunked" END, "lost bad_transfer_encoding 49", NULL },
	{ P "Transfer-Encoding: chunked," END, "lost bad_transfer_encoding 44", NULL },
	{ P "Transfer-Encoding: xchunked" END, "lost bad_transfer_encoding 44", NULL },
	{ P "Transfer-Encoding: chunke" END, "lost bad_transfer_encoding 42", NULL },
	{ P "Transfer-Encoding: chunked chunked" END, "lost bad_transfer_encoding 51", NULL },
	{ P "Transfer-Encoding: \"chunked\"" END, "lost bad_transfer_encoding 45", NULL },
	{ P "Transfer-Encoding: \x0b"
	    "chunked" END,
	  "lost bad_header 36", NULL },
	{ P "Transfer-Encoding:" END, "lost bad_transfer_encoding 35", NULL },
	{ P "Transfer-Encoding: identity" END, "lost bad_transfer_encoding 44", NULL },
	{ "POST / HTTP/1.0\r\nTransfer-Encoding: chunked" END, "lost bad_transfer_encoding 34", NULL },
	{ P "transfer-ENCODING:\t CHUNKED \t" END "0" END, "POST chunked head 50; end 55", NULL },
	{ TE "5\r\nhello\r\n0" END G "\r\n", "POST chunked head 47; end 62; GET head 80", NULL },
	{ TE "a;x=\"y\"\t;z\r\n0123456789\r\n1\r\n\n\r\n000;q" END "G", "POST chunked head 47; end 86; more", NULL },
	{ TE "00000000000000A\r\n0123456789\r\n0" END, "POST chunked head 47; end 81", NULL },
	{ TE "000000000000000A\r\n", "POST chunked head 47; lost bad_chunk 62", NULL },
	{ TE "fffffffffffffff\r\nx", "POST chunked head 47; more", NULL },
	{ TE "\r\n", "POST chunked head 47; lost bad_chunk 47", NULL },
	{ TE ";x\r\n", "POST chunked head 47; lost bad_chunk 47", NULL },
	{ TE "g\r\n", "POST chunked head 47; lost bad_chunk 47", NULL },
	{ TE "-1\r\n", "POST chunked head 47; lost bad_chunk 47", NULL },
	{ TE "0x1\r\n", "POST chunked head 47; lost bad_chunk 48", NULL },
	{ TE " 1\r\n", "POST chunked head 47; lost bad_chunk 47", NULL },
	{ TE "1 \r\n", "POST chunked head 47; lost bad_chunk 48", NULL },
	{ TE "1\n", "POST chunked head 47; lost bad_chunk 48", NULL },
	{ TE "1\rx", "POST chunked head 47; lost bad_chunk 49", NULL },
	{ TE "1;a\nb\r\n", "POST chunked head 47; lost bad_chunk 50", NULL },
	{ TE "1;a\x01\r\n", "POST chunked head 47; lost bad_chunk 50", NULL },
	{ TE "1\r\nxy", "POST chunked head 47; lost bad_chunk 51", NULL },
	{ TE "1\r\nx\n", "POST chunked head 47; lost bad_chunk 51", NULL },
	{ TE "1\r\nx\r\r", "POST chunked head 47; lost bad_chunk 52", NULL },
	{ TE "0\r\nA: x\r\nContent-Length: 7\r\nTransfer-Encoding: y" END G "\r\n",
	  "POST chunked head 47; end 99; GET head 117", NULL },
	{ TE "0\r\n: x", "POST chunked head 47; lost bad_chunk 50", NULL },
	{ TE "0\r\nA: x\n", "POST chunked head 47; lost bad_chunk 54", NULL },
	{ TE "0\r\n A: x", "POST chunked head 47; lost bad_chunk 50", NULL },
	{ TE "0\r\n\rx", "POST chunked head 47; lost bad_chunk 51", NULL },
};

static void test_bodies(void **state)
{
	(void)state;
	request_check_examples(bodies, ARRAY_SIZE(bodies), WEIR_NAME_NAMESPACE);
}

/* Bytes that C strings can not hold, at every place of a request. */
static void test_nul(void **state)
{
	static const char valid[] = "GET /api/v1/namespaces/a?b HTTP/1.1\r\nX-Remote-User: c\r\nConnection: d" END;
	char stream[sizeof(valid)];

	(void)state;
	for (size_t at = 0; at < sizeof(valid) - 1; at++) {
		struct weir_request last = { .lost = 0 };
		const char *reason = !at ? "not_http" : valid[at - 1] == '\r' ? "bare_cr" : "nul_byte";
		char expected[64];

		memcpy(stream, valid, sizeof(valid));
		stream[at] = '\0';
		snprintf(expected, sizeof(expected), "lost %s %zu", reason, at);
		request_check(stream, sizeof(valid) - 1, expected, &last);
	}
}

static void test_head_limit(void **state)
{
	static const struct {
		const char *before, *after;
	} places[] = {
		{ "GET /", V11 }, { "GET /?", V11 }, { "GET /api/v1/", V11 },
		{ G, ":" END },	  { G "A: ", END },  { G "Connection: ", END },
	};
	char expected[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		size_t room = WEIR_HEAD_MAX - strlen(places[i].before) - strlen(places[i].after);
		struct weir_request last = { .lost = 0 };

		snprintf(expected, sizeof(expected), "GET head %d", WEIR_HEAD_MAX);
		request_check_long(places[i].before, 'x', room, places[i].after, expected, &last);
		snprintf(expected, sizeof(expected), "lost head_too_long %d", WEIR_HEAD_MAX);
		request_check_long(places[i].before, 'x', room + 1, places[i].after, expected, &last);
		request_check_long(places[i].before, 'x', 2 * WEIR_HEAD_MAX, places[i].after, expected, &last);
	}
}

static void test_chunk_limits(void **state)
{
	struct weir_request last = { .lost = 0 };
	char expected[64];

	(void)state;
	snprintf(expected, sizeof(expected), "POST chunked head 47; end %d", 47 + 2 + WEIR_CHUNK_EXTENSION_MAX + 4);
	request_check_long(TE "0;", 'x', WEIR_CHUNK_EXTENSION_MAX, END, expected, &last);
	snprintf(expected, sizeof(expected), "POST chunked head 47; lost bad_chunk %d",
		 47 + 2 + WEIR_CHUNK_EXTENSION_MAX);
	request_check_long(TE "0;", 'x', WEIR_CHUNK_EXTENSION_MAX + 1, END, expected, &last);
	snprintf(expected, sizeof(expected), "POST chunked head 47; lost bad_chunk %d", 47 + 3 + WEIR_HEAD_MAX);
	request_check_long(TE "0\r\nA: ", 'x', WEIR_HEAD_MAX, END, expected, &last);
	snprintf(expected, sizeof(expected), "POST chunked head 47; end %d", 47 + 9 + WEIR_HEAD_MAX);
	request_check_long(TE "0;chunk\r\nA: ", 'x', WEIR_HEAD_MAX - 7, END, expected, &last);
}

/* A byte that follows a message without a new start belongs to none. */
static __u64 digest_under(const struct weir_request *r, __u64 one, __u64 other)
{
	const __u64 seed[2] = { one, other };
	struct weir_digest_keys keys;

	weir_digest_keys_make(&keys, seed);
	return weir_request_digest(r, &keys);
}

/* Of one request under one seed there is one digest; under another seed, another one. */
static void test_digest_is_keyed(void **state)
{
	struct weir_request r;

	(void)state;
	weir_request_start(&r);
	assert_int_equal(digest_under(&r, 1, 2), 0);
	r.framing.position = 1;
	assert_int_equal(digest_under(&r, 1, 2), digest_under(&r, 1, 2));
	assert_int_not_equal(digest_under(&r, 1, 2), digest_under(&r, 3, 2));
	assert_int_not_equal(digest_under(&r, 1, 2), digest_under(&r, 1, 4));
}

/* No two bits make up for each other, whatever the rest is: a highest bit goes through sums and products unmixed. */
static void test_digest_of_two_bits(void **state)
{
	__u64 word[sizeof(struct weir_request) / 8];
	struct weir_request r;
	__u64 plain;

	(void)state;
	memset(&r, 0x5a, sizeof(r));
	r.head_length = 0;
	memcpy(word, &r, sizeof(r));
	plain = weir_request_digest(&r, &digest_keys);
	for (unsigned int i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		for (unsigned int j = i; j < sizeof(word) / sizeof(word[0]); j++) {
			word[i] ^= 1ULL << 63;
			word[j] ^= i == j ? 1 : 1ULL << 63;
			memcpy(&r, word, sizeof(r));
			assert_int_not_equal(weir_request_digest(&r, &digest_keys), plain);
			word[i] ^= 1ULL << 63;
			word[j] ^= i == j ? 1 : 1ULL << 63;
		}
	}
}

/* Of two requests that differ in one bit, wherever it is, 57 bits of their digests' difference are the key's at least (digest.h). */
static void test_digest_of_one_bit(void **state)
{
	const size_t bits = 8 * sizeof(struct weir_request);
	struct weir_request r, other;
	__u64 first, varies;

	(void)state;
	for (size_t bit = 0; bit < bits; bit += 7) {
		memset(&r, 0x5a, sizeof(r));
		r.head_length = 0;
		other = r;
		((__u8 *)&other)[bit / 8] ^= 1 << bit % 8;
		first = digest_under(&r, 0, bit) ^ digest_under(&other, 0, bit);
		varies = 0;
		for (__u64 one = 1; one <= 64; one++)
			varies |= digest_under(&r, one, bit) ^ digest_under(&other, one, bit) ^ first;
		assert_true(__builtin_popcountll(varies) >= 57);
	}
}

/* What a path had and has no more is not in it, nor a name of the head once that has ended. */
static void test_digest_of_what_is_behind(void **state)
{
	struct weir_request r;
	__u64 plain;

	(void)state;
	weir_request_start(&r);
	r.framing.state = WEIR_AT_ENDED;
	r.head_length = 40;
	r.path.count = 2;
	plain = weir_request_digest(&r, &digest_keys);
	r.path.segments[2].subject = 5;
	r.hash.tail = 5;
	assert_int_equal(weir_request_digest(&r, &digest_keys), plain);
	r.path.segments[1].subject = 5;
	assert_int_not_equal(weir_request_digest(&r, &digest_keys), plain);
	r.path.segments[1].subject = 0;
	r.path.segments[WEIR_PATH_SELECTED].subject = 5;
	assert_int_not_equal(weir_request_digest(&r, &digest_keys), plain);
}

static void test_no_start(void **state)
{
	static const char head[] = G "\r\n";
	struct weir_request r;

	(void)state;
	weir_request_start(&r);
	for (size_t i = 0; i < sizeof(head) - 1; i++)
		weir_request_byte(&r, &request_reading, head[i]);
	assert_true(weir_request_ended(&r));
	assert_int_equal(weir_request_byte(&r, &request_reading, 'G'), WEIR_FRAME_LOST);
	assert_int_equal(r.lost, WEIR_MID_STREAM);
}

/* The same word at another place is another request's. */
static void test_digest_of_places(void **state)
{
	__u64 words[sizeof(struct weir_request) / 8], digests[sizeof(words) / 8];
	struct weir_request r;

	(void)state;
	for (size_t i = 1; i < sizeof(words) / 8; i++) {
		memset(words, 0, sizeof(words));
		words[i] = 1;
		memcpy(&r, words, sizeof(r));
		r.framing.state = WEIR_AT_ENDED;
		r.path.count = WEIR_PATH_SEGMENTS;
		digests[i] = weir_request_digest(&r, &digest_keys);
		for (size_t j = 1; j < i; j++)
			assert_int_not_equal(digests[i], digests[j]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_lines),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_head_limit),
		cmocka_unit_test(test_chunk_limits),
		cmocka_unit_test(test_no_start),
		cmocka_unit_test(test_digest_is_keyed),
		cmocka_unit_test(test_digest_of_two_bits),
		cmocka_unit_test(test_digest_of_one_bit),
		cmocka_unit_test(test_digest_of_what_is_behind),
		cmocka_unit_test(test_digest_of_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
