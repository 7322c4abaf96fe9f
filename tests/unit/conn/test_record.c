/* SPDX-License-Identifier: GPL-2.0 */
/* TLS records: what each costs, the handshakes of both versions, and the same stream cut at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weir/conn/record.h"

#define DATA WEIR_RECORD_DATA
#define SHORTEST (WEIR_RECORD_OVERHEAD + WEIR_RECORD_FREE + 1) /* that costs something, in TLS 1.3 */

/* One record of a stream, and what it is to cost. */
struct expected {
	__u8 type;
	__u32 length, weight;
};

#define LENGTH(list) (sizeof(list) / sizeof(*(list)))

static enum weir_frame_event feed_header(struct weir_record *r, __u8 type, __u8 minor, __u32 length)
{
	const __u8 header[] = { type, 3, minor, length >> 8, length };
	enum weir_frame_event event = WEIR_FRAME_MORE;

	for (size_t i = 0; i < sizeof(header) && event == WEIR_FRAME_MORE; i++)
		event = weir_record_byte(r, header[i]);
	return event;
}

/* Feeds each record, and skips its body in two steps, of which the first has `skip` bytes. */
static void feed(struct weir_record *r, const struct expected *records, size_t n, __u32 skip)
{
	for (size_t i = 0; i < n; i++) {
		__u32 first = skip < records[i].length ? skip : records[i].length;

		assert_int_equal(feed_header(r, records[i].type, 3, records[i].length), WEIR_FRAME_HEAD);
		assert_int_equal(r->type, records[i].type);
		assert_int_equal(weir_record_skippable(r), records[i].length);
		assert_int_equal(weir_record_weight(r), records[i].weight);
		if (first)
			assert_int_equal(weir_record_skip(r, first),
					 first == records[i].length ? WEIR_FRAME_MESSAGE : WEIR_FRAME_MORE);
		for (__u32 left = records[i].length - first; left; left--)
			assert_int_equal(weir_record_byte(r, 0x17), left == 1 ? WEIR_FRAME_MESSAGE : WEIR_FRAME_MORE);
		assert_int_equal(weir_record_skippable(r), 0);
	}
}

static void test_weights(void **state)
{
	static const struct expected records[] = {
		{ DATA, 0, 0 },
		{ DATA, SHORTEST - 1, 0 },
		{ DATA, SHORTEST, 1 },
		{ DATA, WEIR_RECORD_SHARE, 1 },
		{ DATA, WEIR_RECORD_SHARE + 1, 2 },
		{ DATA, 1 << 14, 16 },
		{ DATA, WEIR_RECORD_MAX, 18 },
		{ WEIR_RECORD_CIPHER, 1, 0 },
		{ WEIR_RECORD_ALERT, 500, 1 },
		{ WEIR_RECORD_HANDSHAKE, WEIR_RECORD_MAX, 18 },
		{ WEIR_RECORD_HEARTBEAT, 500, 1 },
		{ DATA, SHORTEST, 1 },
	};
	struct weir_record r;

	(void)state;
	weir_record_start_midway(&r);
	feed(&r, records, LENGTH(records), 0);
	weir_record_start_midway(&r);
	feed(&r, records, LENGTH(records), 7);
}

/* Go's and curl's control frames in a record each, without TLS's overhead; and a GET whose headers are all indexed. */
static void test_http2_frames(void **state)
{
	static const struct {
		__u32 bytes, weight;
	} frames[] = {
		{ 9 /* SETTINGS acknowledged */, 0 },
		{ 13 /* WINDOW_UPDATE, RST_STREAM */, 0 },
		{ 16 /* GET, 4 pseudo headers and 3 others */, 1 },
		{ 17 /* PING, and a GET with one header more */, 1 },
	};
	struct weir_record r;

	(void)state;
	weir_record_start_midway(&r);
	for (size_t i = 0; i < LENGTH(frames); i++) {
		struct expected record = { DATA, frames[i].bytes + WEIR_RECORD_OVERHEAD, frames[i].weight };

		feed(&r, &record, 1, record.length);
	}
}

/* A request may be cut into such records. */
static void test_short_ones_are_not_free_without_end(void **state)
{
	struct weir_record r;

	(void)state;
	weir_record_start_midway(&r);
	for (int i = 1; i <= 3 * WEIR_RECORD_SPARED; i++) {
		struct expected record = { DATA, SHORTEST - 1, i % WEIR_RECORD_SPARED == 0 },
				other = { DATA, SHORTEST, 1 };

		feed(&r, &record, 1, record.length);
		feed(&r, &other, 1, other.length);
	}
}

static void check_start(const struct expected *records, size_t n)
{
	struct weir_record r;

	weir_record_start(&r);
	feed(&r, records, n, 0);
}

#define CHECK_START(...) \
	check_start((const struct expected[]){ __VA_ARGS__ }, LENGTH(((const struct expected[]){ __VA_ARGS__ })))

static void test_handshake_13(void **state)
{
	(void)state;
	CHECK_START({ WEIR_RECORD_HANDSHAKE, 512, 0 }, { WEIR_RECORD_CIPHER, 1, 0 },
		    { DATA, WEIR_RECORD_FINISHED_384, 0 }, { DATA, SHORTEST, 1 },
		    { DATA, WEIR_RECORD_FINISHED_384, 1 });
	CHECK_START({ WEIR_RECORD_HANDSHAKE, 512, 0 }, { DATA, WEIR_RECORD_FINISHED_256, 0 }, { DATA, SHORTEST, 1 });
	/* With a client's certificate. */
	CHECK_START({ WEIR_RECORD_HANDSHAKE, 512, 0 }, { WEIR_RECORD_CIPHER, 1, 0 }, { DATA, 1100, 0 },
		    { DATA, 281, 0 }, { DATA, WEIR_RECORD_FINISHED_256, 0 }, { DATA, SHORTEST, 1 });
	/* The server did not like the first hello. */
	CHECK_START({ WEIR_RECORD_HANDSHAKE, 512, 0 }, { WEIR_RECORD_CIPHER, 1, 0 }, { WEIR_RECORD_HANDSHAKE, 512, 0 },
		    { DATA, WEIR_RECORD_FINISHED_384, 0 }, { DATA, SHORTEST, 1 });
}

/* No more than three records may pass for a handshake, nor more than 2,040 bytes. */
static void test_handshake_without_end(void **state)
{
	(void)state;
	CHECK_START({ WEIR_RECORD_HANDSHAKE, 512, 0 }, { DATA, 679, 0 }, { DATA, 100, 0 }, { DATA, 679, 0 },
		    { DATA, 1000, 1 }, { DATA, WEIR_RECORD_FINISHED_384, 1 });
	CHECK_START({ DATA, 2040, 0 }, { DATA, SHORTEST, 1 });
	CHECK_START({ DATA, 2041, 1 }, { DATA, SHORTEST, 1 });
	CHECK_START({ DATA, 2040 + 1024, 1 }, { DATA, SHORTEST - 1, 0 });
	CHECK_START({ DATA, 2040 + 1025, 2 }, { DATA, SHORTEST - 1, 0 });
	CHECK_START({ DATA, WEIR_RECORD_MAX, 17 }, { DATA, SHORTEST, 1 });
	CHECK_START({ DATA, 10, 0 }, { DATA, 10, 0 }, { DATA, 680, 0 }, { DATA, SHORTEST, 1 });
	CHECK_START({ DATA, 10, 0 }, { DATA, 10, 0 }, { DATA, 681, 1 }, { DATA, SHORTEST, 1 });
	/* The Finished costs nothing as long as anything may be handshake. */
	CHECK_START({ DATA, 1350, 0 }, { DATA, 281, 0 }, { DATA, WEIR_RECORD_FINISHED_256, 0 }, { DATA, SHORTEST, 1 });
	CHECK_START({ DATA, 2031, 0 }, { DATA, WEIR_RECORD_FINISHED_384, 0 }, { DATA, SHORTEST, 1 });
	CHECK_START({ DATA, 2032, 0 }, { DATA, WEIR_RECORD_FINISHED_384, 1 });
}

/* The Finished tells what the cipher adds: 24 bytes, as AES-GCM does, or 16, as ChaCha20-Poly1305. */
static void test_handshake_12(void **state)
{
	(void)state;
	CHECK_START({ WEIR_RECORD_HANDSHAKE, 512, 0 }, { WEIR_RECORD_HANDSHAKE, 37, 0 }, { WEIR_RECORD_CIPHER, 1, 0 },
		    { WEIR_RECORD_HANDSHAKE, 40, 0 }, { DATA, 24 + 14, 1 }, { DATA, 24 + 13, 0 }, { DATA, 53, 1 });
	CHECK_START({ WEIR_RECORD_HANDSHAKE, 512, 0 }, { WEIR_RECORD_CIPHER, 1, 0 }, { WEIR_RECORD_HANDSHAKE, 32, 0 },
		    { DATA, 16 + 14, 1 }, { DATA, 16 + 13, 0 });
	/* A short one costs a token if nothing did before it. */
	CHECK_START({ WEIR_RECORD_CIPHER, 1, 0 }, { WEIR_RECORD_HANDSHAKE, 32, 0 }, { DATA, 16 + 13, 1 },
		    { DATA, 16 + 13, 0 });
	/* A goodbye costs nothing, but what comes behind it does. */
	CHECK_START({ WEIR_RECORD_CIPHER, 1, 0 }, { WEIR_RECORD_HANDSHAKE, 32, 0 }, { DATA, 16 + 2, 0 },
		    { DATA, 16 + 2, 1 }, { DATA, 16 + 2, 0 });
	CHECK_START({ WEIR_RECORD_CIPHER, 1, 0 }, { WEIR_RECORD_HANDSHAKE, 32, 0 }, { DATA, 16 + 3, 1 },
		    { DATA, 16 + 2, 0 });
	/* Later handshake records change nothing, and cost what data does. */
	CHECK_START({ WEIR_RECORD_CIPHER, 1, 0 }, { WEIR_RECORD_HANDSHAKE, 40, 0 },
		    { WEIR_RECORD_HANDSHAKE, 16 + 96, 1 }, { DATA, 24 + 14, 1 });
	/* With CBC, or padded, or a piece of TLS 1.3's second hello: no more than AES-GCM's is believed, or requests would pass for short ones. */
	CHECK_START({ WEIR_RECORD_CIPHER, 1, 0 }, { WEIR_RECORD_HANDSHAKE, 16 + 96, 0 }, { DATA, 24 + 14, 1 },
		    { DATA, 24 + 13, 0 });
	CHECK_START({ WEIR_RECORD_CIPHER, 1, 0 }, { WEIR_RECORD_HANDSHAKE, 16 + 48, 0 }, { DATA, 48 + 2, 1 },
		    { DATA, 48 + 13, 1 });
	/* Shorter than any Finished, and longer. */
	CHECK_START({ WEIR_RECORD_CIPHER, 1, 0 }, { WEIR_RECORD_HANDSHAKE, 15, 0 },
		    { WEIR_RECORD_HANDSHAKE, 16 + 97, 0 }, { DATA, 1000, 0 });
}

static void test_what_is_no_record(void **state)
{
	struct weir_record r;

	(void)state;
	for (int type = 0; type < 256; type++) {
		weir_record_start(&r);
		assert_int_equal(weir_record_byte(&r, type),
				 type >= 20 && type <= 24 ? WEIR_FRAME_MORE : WEIR_FRAME_LOST);
	}
	for (int major = 0; major < 256; major++) {
		weir_record_start(&r);
		assert_int_equal(weir_record_byte(&r, DATA), WEIR_FRAME_MORE);
		assert_int_equal(weir_record_byte(&r, major), major == 3 ? WEIR_FRAME_MORE : WEIR_FRAME_LOST);
	}
	for (int minor = 0; minor < 256; minor++) {
		weir_record_start(&r);
		assert_int_equal(feed_header(&r, DATA, minor, 100), minor <= 4 ? WEIR_FRAME_HEAD : WEIR_FRAME_LOST);
	}
	weir_record_start(&r);
	assert_int_equal(feed_header(&r, DATA, 3, WEIR_RECORD_MAX), WEIR_FRAME_HEAD);
	weir_record_start(&r);
	assert_int_equal(feed_header(&r, DATA, 3, WEIR_RECORD_MAX + 1), WEIR_FRAME_LOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_http2_frames),
		cmocka_unit_test(test_short_ones_are_not_free_without_end),
		cmocka_unit_test(test_handshake_13),
		cmocka_unit_test(test_handshake_without_end),
		cmocka_unit_test(test_handshake_12),
		cmocka_unit_test(test_what_is_no_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
