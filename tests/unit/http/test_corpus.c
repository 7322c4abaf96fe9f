/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The streams of tests/corpus: each is read as its file says when it comes in one piece, and in the same way however it is
 * cut, and in whatever order its segments come.
 */
#include "../../corpus/wire.h"
#include "../../window.h"
#include "weir/http/lines_ahead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIRECTORY "tests/corpus/streams"
#define STREAMS_MIN 500 /* fewer: some have got lost */
#define SHORT 1000	/* bytes of a stream that is cut everywhere; a longer one is at its ends, and in places */
#define ENDS 100
#define RANDOM_CUTS 40
#define PLAYS 12

static struct stream *streams;
static size_t count;
static struct reading *readings;
static struct weir_reading how = { .seed = { 0x1122334455667788ULL, 0x99aabbccddeeff00ULL } };

static int load(void **state)
{
	(void)state;
	weir_reading_default(&how);
	count = streams_load(&streams, DIRECTORY);
	readings = calloc(count, sizeof(*readings));
	for (size_t i = 0; i < count; i++)
		reading_make(&readings[i], &streams[i], &how);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	for (size_t i = 0; i < count; i++) {
		reading_free(&readings[i]);
		stream_free(&streams[i]);
	}
	free(readings);
	free(streams);
	return 0;
}

static void test_as_the_files_say(void **state)
{
	(void)state;
	assert_true(count >= STREAMS_MIN);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(readings[i].text, streams[i].expected))
			print_error("%s\n", streams[i].name);
		assert_string_equal(readings[i].text, streams[i].expected);
	}
}

/* What a head says, and what was seen in it, without where the machine was when it ended. */
static bool same_head(const struct weir_request *a, const struct weir_request *b)
{
	struct weir_request one = *a, other = *b;

	one.framing = (struct weir_framing){ .seen = a->framing.seen };
	other.framing = (struct weir_framing){ .seen = b->framing.seen };
	return !memcmp(&one, &other, sizeof(one));
}

static bool same(const struct reading *a, const struct reading *b)
{
	if (a->messages != b->messages || a->lost != b->lost)
		return false;
	for (unsigned int i = 0; i < a->messages; i++) {
		const struct message *m = &a->message[i], *n = &b->message[i];

		if (m->start != n->start || m->head_end != n->head_end || m->end != n->end ||
		    !same_head(&m->head, &n->head))
			return false;
	}
	return true;
}

static size_t lines; /* that were read in place */

/* In place, or by words. */
static size_t read_ahead(struct weir_request *r, struct weir_window *window, const struct stream *s, size_t at,
			 size_t to)
{
	size_t n = weir_request_line_ahead(r, &how, window, window_over(window, s->bytes, at, to));

	lines += n > 0;
	return n ? n : weir_request_take(r, weir_run_word(s->bytes + at, to - at));
}

/* Reads on from `at` to `to`, and no byte further. */
static void read_on(struct weir_request *r, const struct stream *s, size_t *at, size_t to, struct reading *read)
{
	struct weir_window window = { 0 };

	while (*at < to && read->lost == WEIR_REASON_NONE) {
		__u64 skip = weir_request_skippable(r);
		enum weir_frame_event event = WEIR_FRAME_MORE;
		size_t n = skip < to - *at ? skip : to - *at;

		if (n)
			event = weir_request_skip(r, n);
		else
			n = read_ahead(r, &window, s, *at, to);
		if (!n) {
			event = weir_request_byte(r, &how, s->bytes[*at]);
			n = 1;
		}
		*at += n;
		if (event == WEIR_FRAME_LOST)
			read->lost = r->lost;
		if (event == WEIR_FRAME_HEAD)
			read->message[read->messages++] =
				(struct message){ .start = read->rest, .head_end = *at, .head = *r };
		if (event == WEIR_FRAME_HEAD && r->method == WEIR_METHOD_CONNECT)
			read->lost = WEIR_CONNECT;
		if (read->lost == WEIR_REASON_NONE && weir_request_ended(r)) {
			read->message[read->messages - 1].end = read->rest = *at;
			weir_request_start(r);
		}
	}
}

static void check_cut(size_t i, size_t cut)
{
	static struct reading read;
	struct weir_request places[2];
	size_t at = 0;

	read.messages = 0;
	read.rest = 0;
	read.lost = WEIR_REASON_NONE;
	weir_request_start(&places[0]);
	read_on(&places[0], &streams[i], &at, cut, &read);
	places[1] = places[0];
	memset(&places[0], 0xa5, sizeof(places[0]));
	read_on(&places[1], &streams[i], &at, streams[i].length, &read);
	if (!same(&read, &readings[i]))
		fail_msg("%s is read differently when it is cut at %zu", streams[i].name, cut);
}

static void test_cut_in_two(void **state)
{
	__u64 random = 1;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		size_t length = streams[i].length;

		for (size_t cut = 0; cut <= length; cut++) {
			if (length > SHORT && cut == ENDS)
				cut = length - ENDS;
			check_cut(i, cut);
		}
		for (unsigned int n = 0; n < RANDOM_CUTS && length > SHORT; n++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			check_cut(i, (random >> 33) % length);
		}
	}
	assert_true(lines > count);
}

static void play_all(const struct wire_options *options)
{
	static struct reading read;
	struct wire_options o = *options;

	for (size_t i = 0; i < count; i++) {
		for (o.seed = 1; o.seed <= PLAYS; o.seed++) {
			/* Thousands of small segments would show no more than hundreds. */
			o.largest = options->largest * (1 + streams[i].length / 2000);
			if (!wire_play(&streams[i], &readings[i], &how, &o, &read))
				fail_msg("%s never arrives (seed %llu)", streams[i].name, (unsigned long long)o.seed);
			if (!same(&read, &readings[i]))
				fail_msg("%s is read differently on the way (seed %llu)", streams[i].name,
					 (unsigned long long)o.seed);
		}
	}
}

static void test_in_order(void **state)
{
	(void)state;
	play_all(&(struct wire_options){ .largest = 40 });
}

static void test_byte_by_byte(void **state)
{
	(void)state;
	play_all(&(struct wire_options){ .largest = 1 });
}

static void test_hostile_network(void **state)
{
	(void)state;
	play_all(&(struct wire_options){ .largest = 60, .loss = 200, .repeat = 150, .reorder = 400, .overlap = 300 });
}

/* The stream and what is read of it, with something before both. */
static void put_before(const void *bytes, size_t n, const struct stream *s, const struct reading *whole,
		       struct stream *behind, struct reading *moved)
{
	*behind = (struct stream){ .bytes = malloc(n + s->length), .length = n + s->length };
	memcpy(behind->bytes, bytes, n);
	memcpy(behind->bytes + n, s->bytes, s->length);
	*moved = *whole;
	for (unsigned int i = 0; i < whole->messages; i++) {
		struct message *m = &moved->message[i];

		m->start += n;
		m->head_end += n;
		m->end += m->end ? n : 0;
	}
}

static void play_behind(const void *preamble, size_t n, const __u8 address[16])
{
	struct wire_options o = {
		.largest = 40, .loss = 100, .repeat = 150, .reorder = 300, .overlap = 300, .preamble = true
	};
	static struct reading read, moved;
	struct stream behind;

	for (size_t i = 0; i < count; i++) {
		if (streams[i].length > SHORT)
			continue;
		put_before(preamble, n, &streams[i], &readings[i], &behind, &moved);
		for (o.seed = 1; o.seed <= PLAYS; o.seed++) {
			o.largest = o.seed % 3 ? 40 : 1;
			if (!wire_play(&behind, &moved, &how, &o, &read) || !same(&read, &moved))
				fail_msg("%s is read differently behind a preamble (seed %llu)", streams[i].name,
					 (unsigned long long)o.seed);
			assert_true(read.preamble.given);
			assert_memory_equal(read.preamble.address, address, 16);
		}
		free(behind.bytes);
	}
}

static void test_behind_a_preamble(void **state)
{
	static const char line[] = "PROXY TCP6 2001:db8::1 ::2 40000 80\r\n";
	static const __u8 line_address[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };
	static const char binary[] = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x10\xc0\0\x02\x01\xc0\0\x02\x02\x9c\x40\0\x50more";
	static const __u8 binary_address[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };

	(void)state;
	play_behind(line, sizeof(line) - 1, line_address);
	play_behind(binary, sizeof(binary) - 1, binary_address);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_files_say), cmocka_unit_test(test_cut_in_two),
		cmocka_unit_test(test_in_order),	 cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_hostile_network),	 cmocka_unit_test(test_behind_a_preamble),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
