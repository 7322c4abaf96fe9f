/* SPDX-License-Identifier: GPL-2.0 */
/* The cache of heads: what has a key, and that a head that is kept is the one that was read. */
#include "../../array_size.h"
#include "../../corpus/stream.h"
#include "../../digest_keys.h"
#include "weir/http/head_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIRECTORY "tests/corpus/streams"
#define KEPT_MIN 100 /* heads of the corpus: fewer, and the rest says little */
#define ROOM 512

static struct weir_reading how = { .seed = { 0x1122334455667788ULL, 0x99aabbccddeeff00ULL } };

static __u64 key_of(const __u8 *bytes, __u32 n)
{
	return weir_cache_key(&digest_keys, 7, bytes, bytes + n, n);
}

static void test_bounds(void **state)
{
	static const __u8 bytes[ROOM];

	(void)state;
	assert_int_equal(key_of(bytes, 0), 0);
	assert_int_equal(key_of(bytes, WEIR_CACHE_MIN - 1), 0);
	assert_int_not_equal(key_of(bytes, WEIR_CACHE_MIN), 0);
	assert_int_not_equal(key_of(bytes, WEIR_CACHE_MAX), 0);
	assert_int_equal(key_of(bytes, WEIR_CACHE_MAX + 1), 0);
	assert_int_equal(weir_cache_key(&digest_keys, 7, bytes, bytes + ROOM, 65535), 0);
	/* Where they are not all there, they have none. */
	assert_int_equal(weir_cache_key(&digest_keys, 7, bytes, bytes + 63, 64), 0);
	assert_int_equal(weir_cache_key(&digest_keys, 7, bytes, bytes, 64), 0);
	assert_int_not_equal(weir_cache_key(&digest_keys, 7, bytes, bytes + 65, 64), 0);
}

/* Each bit of each byte counts, and nothing that stands behind them. */
static void test_each_bit_counts(void **state)
{
	static const __u32 lengths[] = { 32, 33, 39, 40, 63, 64, 65, 96, 127, 300, 447, 448 };
	__u8 bytes[ROOM];
	__u64 key;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(bytes, 'a', sizeof(bytes));
		key = key_of(bytes, lengths[i]);
		for (__u32 bit = 0; bit < 8 * lengths[i]; bit++) {
			bytes[bit / 8] ^= 1 << bit % 8;
			assert_int_not_equal(key_of(bytes, lengths[i]), key);
			bytes[bit / 8] ^= 1 << bit % 8;
		}
		bytes[lengths[i]] ^= 1;
		assert_int_equal(key_of(bytes, lengths[i]), key);
	}
}

/* Bytes of 0 add nothing to a sum: how many there are counts all the same, and so do the reading and the keys. */
static void test_what_else_counts(void **state)
{
	static const __u64 seed[2] = { 3, 4 };
	static const __u8 bytes[ROOM];
	struct weir_digest_keys other;

	(void)state;
	weir_digest_keys_make(&other, seed);
	for (__u32 n = WEIR_CACHE_MIN; n < WEIR_CACHE_MAX; n++)
		assert_int_not_equal(key_of(bytes, n), key_of(bytes, n + 1));
	assert_int_not_equal(key_of(bytes, 64), weir_cache_key(&digest_keys, 8, bytes, bytes + 64, 64));
	assert_int_not_equal(key_of(bytes, 64), weir_cache_key(&other, 7, bytes, bytes + 64, 64));
}

static void test_reading_has_a_seal(void **state)
{
	struct weir_reading one, other;

	(void)state;
	weir_reading_default(&how);
	one = other = how;
	assert_int_not_equal(weir_reading_seal(&one), 0);
	other.seal = 5;
	assert_int_equal(weir_reading_seal(&one), weir_reading_seal(&other));
	for (size_t i = 0; i < offsetof(struct weir_reading, seal); i++) {
		((__u8 *)&other)[i] ^= 1;
		assert_int_not_equal(weir_reading_seal(&one), weir_reading_seal(&other));
		((__u8 *)&other)[i] ^= 1;
	}
}

/* Reads to the first head's last LF: how many bytes come before it; 0: there is none. */
static size_t read_head(struct weir_request *r, const __u8 *bytes, size_t size)
{
	weir_request_start(r);
	for (size_t at = 0; at < size; at++) {
		if (r->framing.state == WEIR_AT_END_LF && bytes[at] == '\n')
			return at;
		if (weir_request_byte(r, &how, bytes[at]) == WEIR_FRAME_LOST)
			return 0;
	}
	return 0;
}

static bool takes(const char *text)
{
	struct weir_request r;
	size_t n = read_head(&r, (const __u8 *)text, strlen(text));

	assert_int_not_equal(n, 0);
	return weir_cache_takes_request(&r, 1000, 1000 + n);
}

/* What is kept in the place of another head ends as what was read does. */
static void test_heads_of_the_corpus(void **state)
{
	struct weir_request r, cached, recalled;
	struct stream *streams;
	size_t kept = 0, n, count = streams_load(&streams, DIRECTORY);

	(void)state;
	weir_reading_default(&how);
	memset(&cached, 0xa5, sizeof(cached));
	for (size_t i = 0; i < count; i++) {
		n = read_head(&r, streams[i].bytes, streams[i].length);
		if (n && n < WEIR_CACHE_MAX && weir_cache_takes_request(&r, 5, 5 + n)) {
			weir_cache_copy_request(&cached, &r);
			weir_request_start(&recalled);
			weir_cache_copy_request(&recalled, &cached);
			assert_int_equal(recalled.framing.position, n);
			assert_int_equal(weir_request_byte(&recalled, &how, '\n'), weir_request_byte(&r, &how, '\n'));
			assert_memory_equal(&recalled, &r, sizeof(r));
			kept++;
		}
		stream_free(&streams[i]);
	}
	free(streams);
	assert_true(kept >= KEPT_MIN);
}

/* Groups are looked up while a head is read: it is read each time. */
static void test_groups_are_not_kept(void **state)
{
	(void)state;
	weir_reading_default(&how);
	assert_true(takes("GET / HTTP/1.1\r\nX-Remote-User: alice\r\n\r\n"));
	assert_true(takes("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"));
	assert_false(takes("GET / HTTP/1.1\r\nX-Remote-User: alice\r\nX-Remote-Group: a\r\n\r\n"));
	assert_false(takes("GET / HTTP/1.1\r\nX-Remote-User: system:serviceaccount:a:b\r\n\r\n"));
}

/* Trailers end as a head does, but their bytes are counted anew; a head behind another one is not the payload's first. */
static void test_trailers_are_not_kept(void **state)
{
	static const char text[] = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n";
	struct weir_request r;
	int ends = 0;

	(void)state;
	weir_reading_default(&how);
	weir_request_start(&r);
	for (size_t at = 0; at < sizeof(text) - 1; at++) {
		if (r.framing.state == WEIR_AT_END_LF) {
			assert_int_equal(weir_cache_takes_request(&r, 0, at), !ends);
			/* Wherever the payload is said to begin. */
			for (size_t begin = 0; begin < at; begin++)
				assert_int_equal(weir_cache_takes_request(&r, begin, at), !ends && !begin);
			ends++;
		}
		weir_request_byte(&r, &how, text[at]);
	}
	assert_int_equal(ends, 2);
}

/* Ever fewer are looked for while nothing is found, and at once all when something is. */
static void test_wait(void **state)
{
	static const __u32 waits[] = { 0, 1, 3, 7, 15, 31, 63, 63, 63 };
	struct weir_cache_wait wait = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		weir_cache_missed(&wait);
		for (__u32 k = 0; k < waits[i]; k++)
			assert_true(weir_cache_waits(&wait));
		assert_false(weir_cache_waits(&wait));
	}
	weir_cache_hit(&wait);
	assert_false(weir_cache_waits(&wait));
	weir_cache_missed(&wait);
	assert_false(weir_cache_waits(&wait));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_each_bit_counts),
		cmocka_unit_test(test_what_else_counts),
		cmocka_unit_test(test_reading_has_a_seal),
		cmocka_unit_test(test_heads_of_the_corpus),
		cmocka_unit_test(test_groups_are_not_kept),
		cmocka_unit_test(test_trailers_are_not_kept),
		cmocka_unit_test(test_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
