/* SPDX-License-Identifier: GPL-2.0 */
/* Withholding: a stream of records cut everywhere, refused, sent again, out of order, lost, and joined in the middle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weir/hold.h"

#define START 0xfffffff0U /* the stream wraps around */
#define ROOM 8192

/* A connection, the client's stream, and what came of it. */
struct scene {
	struct weir_conn conn;
	struct weir_socket socket;
	__u8 stream[ROOM];
	__u32 size;
	__u64 now_ns, held_ns;
	__u32 records, weight;
	enum weir_reason why;
};

static void add_record(struct scene *s, __u8 type, __u32 length)
{
	const __u8 header[] = { type, 3, 3, length >> 8, length };

	assert_true(s->size + sizeof(header) + length <= ROOM);
	memcpy(s->stream + s->size, header, sizeof(header));
	memset(s->stream + s->size + sizeof(header), 0xee, length);
	s->size += sizeof(header) + length;
}

static void open_scene(struct scene *s, enum weir_phase phase)
{
	memset(s, 0, sizeof(*s));
	weir_conn_open(&s->conn, 0, phase, START, 1, 1000);
	s->now_ns = WEIR_NS_PER_S;
	s->socket = (struct weir_socket){ .next = START, .edge = START + ROOM };
}

static void open_tls(struct scene *s)
{
	open_scene(s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s->conn, START, WEIR_TLS);
}

/* Records of a whole connection: 4 that cost something, 1 + 2 + 1 + 1 tokens. */
static void add_session(struct scene *s)
{
	add_record(s, WEIR_RECORD_HANDSHAKE, 300);
	add_record(s, WEIR_RECORD_CIPHER, 1);
	add_record(s, WEIR_RECORD_DATA, WEIR_RECORD_FINISHED_256);
	add_record(s, WEIR_RECORD_DATA, 100);
	add_record(s, WEIR_RECORD_DATA, 1500);
	add_record(s, WEIR_RECORD_DATA, 30);
	add_record(s, WEIR_RECORD_DATA, 31);
	add_record(s, WEIR_RECORD_DATA, 200);
	add_record(s, WEIR_RECORD_DATA, 19);
}

static struct weir_segment segment(__u32 at, __u32 length)
{
	return (struct weir_segment){ .seq = START + at, .len = length, .flags = WEIR_TCP_ACK };
}

/* One segment on its way to the socket; `refuse`: the limits do so if it weighs anything. */
static enum weir_action offer(struct scene *s, __u32 at, __u32 length, bool refuse)
{
	struct weir_segment g = segment(at, length);
	struct weir_hold_reader r;
	enum weir_action action;
	__u64 held_ns = 0;

	s->why = WEIR_REASON_COUNT;
	s->now_ns++;
	action = weir_hold_begin(&s->conn, &s->socket, &g, &r, &s->why);
	if (action != WEIR_FRAME)
		return action;
	while (r.by_records && r.next - g.seq < g.len) {
		if (weir_hold_reader_feed(&r, s->stream[r.next - START]) == WEIR_FRAME_LOST)
			break;
	}
	for (__u32 at = r.news; r.by_lines && (!r.by_records || r.seeking) && at != g.seq + g.len; at++)
		weir_hold_reader_line(&r, s->stream[at - START]);
	weir_hold_reader_end(&r, &g);
	if (refuse && r.weight) {
		weir_hold_refuse(&s->conn, &r, s->now_ns);
		return WEIR_HOLD;
	}
	action = weir_hold_commit(&s->conn, &r, s->now_ns, &held_ns, &s->why);
	if (action == WEIR_PASS) {
		s->records += r.records;
		s->weight += r.weight;
		s->held_ns += held_ns;
	}
	return action;
}

static void check(const struct scene *s, __u32 records, __u32 weight)
{
	assert_int_equal(s->records, records);
	assert_int_equal(s->weight, weight);
}

static void test_cut_at_every_byte(void **state)
{
	struct scene s;

	(void)state;
	open_tls(&s);
	add_session(&s);
	for (__u32 cut = 0, size = s.size; cut <= size; cut++) {
		open_tls(&s);
		add_session(&s);
		if (cut)
			assert_int_equal(offer(&s, 0, cut, false), WEIR_PASS);
		if (cut < size)
			assert_int_equal(offer(&s, cut, size - cut, false), WEIR_PASS);
		check(&s, 4, 5);
		assert_int_equal(s.conn.hold.next, START + size);
	}
}

static void test_a_byte_at_a_time(void **state)
{
	struct scene s;

	(void)state;
	open_tls(&s);
	add_session(&s);
	for (__u32 i = 0; i < s.size; i++)
		assert_int_equal(offer(&s, i, 1, false), WEIR_PASS);
	check(&s, 4, 5);
}

/* What is refused is asked again as often as it comes, costs nothing until it passes, and then once. */
static void test_refused(void **state)
{
	struct scene s;

	(void)state;
	open_tls(&s);
	add_record(&s, WEIR_RECORD_HANDSHAKE, 300);
	add_record(&s, WEIR_RECORD_DATA, WEIR_RECORD_FINISHED_256);
	assert_int_equal(offer(&s, 0, s.size, true), WEIR_PASS);
	add_record(&s, WEIR_RECORD_DATA, 100);
	for (int i = 0; i < 3; i++)
		assert_int_equal(offer(&s, s.size - 105, 105, true), WEIR_HOLD);
	check(&s, 0, 0);
	s.now_ns += 5000;
	assert_int_equal(offer(&s, s.size - 105, 105, false), WEIR_PASS);
	check(&s, 1, 1);
	assert_int_equal(s.held_ns, 5003);
	/* Known by its numbers, it passes whatever the limits say. */
	assert_int_equal(offer(&s, s.size - 105, 105, true), WEIR_PASS);
	assert_int_equal(offer(&s, 0, s.size, true), WEIR_PASS);
	check(&s, 1, 1);
	add_record(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(offer(&s, s.size - 105, 105, false), WEIR_PASS);
	check(&s, 2, 2);
	assert_int_equal(s.held_ns, 5003);
}

/* A segment that joins what passed with what did not costs what is new. */
static void test_repeated_with_more(void **state)
{
	struct scene s;

	(void)state;
	open_tls(&s);
	weir_record_start_midway(&s.conn.hold.record);
	add_record(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(offer(&s, 0, s.size, false), WEIR_PASS);
	add_record(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(offer(&s, 0, s.size, true), WEIR_HOLD);
	assert_int_equal(offer(&s, 0, s.size, false), WEIR_PASS);
	check(&s, 2, 2);
}

static void test_out_of_order(void **state)
{
	struct scene s;

	(void)state;
	open_tls(&s);
	weir_record_start_midway(&s.conn.hold.record);
	add_record(&s, WEIR_RECORD_DATA, 1000);
	add_record(&s, WEIR_RECORD_DATA, 100);
	/* Where a record begins cannot be known before the one in front of it has. */
	assert_int_equal(offer(&s, 1005, 105, false), WEIR_HOLD);
	assert_int_equal(s.why, WEIR_OUT_OF_ORDER);
	assert_int_equal(offer(&s, 2, 100, false), WEIR_HOLD);
	check(&s, 0, 0);
	/* A known body may come as it likes. */
	assert_int_equal(offer(&s, 0, 10, false), WEIR_PASS);
	assert_int_equal(offer(&s, 500, 505, true), WEIR_PASS);
	assert_int_equal(offer(&s, 10, 490, true), WEIR_PASS);
	assert_int_equal(offer(&s, 1005, 105, false), WEIR_PASS);
	check(&s, 2, 2);
}

/* What the server has although it was never seen here does not come again: the next segment may begin with a record. */
static void test_missed(void **state)
{
	struct scene s;

	(void)state;
	open_tls(&s);
	weir_record_start_midway(&s.conn.hold.record);
	add_record(&s, WEIR_RECORD_DATA, 1000);
	add_record(&s, WEIR_RECORD_DATA, 100);
	add_record(&s, WEIR_RECORD_DATA, 100);
	s.socket.next = START + 1005;
	assert_int_equal(offer(&s, 1005, 50, false), WEIR_PASS);
	assert_true(s.conn.hold.by_records);
	assert_int_equal(offer(&s, 1055, 160, false), WEIR_PASS);
	check(&s, 2, 2);
}

/* No record where one should be: from there on each segment is one, until one begins as a record does. */
static void test_lost(void **state)
{
	struct scene s;

	(void)state;
	open_tls(&s);
	weir_record_start_midway(&s.conn.hold.record);
	add_record(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(offer(&s, 0, 105, false), WEIR_PASS);
	memset(s.stream + s.size, 'x', 2000);
	s.size += 2000;
	assert_int_equal(offer(&s, 105, 1025, true), WEIR_HOLD);
	assert_int_equal(offer(&s, 105, 1025, false), WEIR_PASS);
	check(&s, 2, 3);
	assert_int_equal(offer(&s, 105 + 1025, 975, false), WEIR_PASS);
	check(&s, 3, 4);
	assert_false(s.conn.hold.by_records);
	add_record(&s, WEIR_RECORD_DATA, 2000);
	add_record(&s, WEIR_RECORD_DATA, 100);
	/* Not ahead of a gap, or what fills it would pass for old. */
	assert_int_equal(offer(&s, 4110, 105, false), WEIR_PASS);
	assert_false(s.conn.hold.by_records);
	check(&s, 4, 5);
	assert_int_equal(offer(&s, 2105, 1000, false), WEIR_PASS);
	assert_true(s.conn.hold.by_records);
	assert_int_equal(offer(&s, 3105, 1005, true), WEIR_PASS);
	check(&s, 5, 7);
}

/* Not TLS: by segments. */
static void test_by_segments(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START + 10, WEIR_HTTP2);
	add_record(&s, WEIR_RECORD_DATA, 4000);
	assert_int_equal(offer(&s, 0, 10, true), WEIR_PASS);
	assert_int_equal(offer(&s, 0, 23, true), WEIR_PASS);
	check(&s, 0, 0);
	assert_int_equal(offer(&s, 23, 14, true), WEIR_HOLD);
	assert_int_equal(offer(&s, 23, 14, false), WEIR_PASS);
	assert_int_equal(offer(&s, 37, 1025, false), WEIR_PASS);
	check(&s, 2, 3);
	/* What is ahead of a gap does not make the gap old. */
	assert_int_equal(offer(&s, 2000, 100, false), WEIR_PASS);
	check(&s, 3, 4);
	assert_int_equal(offer(&s, 1062, 938, true), WEIR_HOLD);
	assert_int_equal(offer(&s, 1062, 938, false), WEIR_PASS);
	check(&s, 4, 5);
	/* The server has what was ahead. */
	s.socket.next = START + 2100;
	assert_int_equal(offer(&s, 2100, 100, false), WEIR_PASS);
	assert_int_equal(s.conn.hold.next, START + 2200);
	check(&s, 5, 6);
}

static void test_joined(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_PHASE_HUNTING);
	memset(s.stream, 'x', 1000);
	s.size = 1000;
	assert_int_equal(offer(&s, 0, 996, true), WEIR_PASS);
	assert_int_equal(offer(&s, 996, 4, true), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
	add_record(&s, WEIR_RECORD_DATA, 100);
	add_record(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(offer(&s, 1000, 210, true), WEIR_HOLD);
	assert_int_equal(offer(&s, 1000, 210, false), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	check(&s, 2, 2);
	assert_int_equal(offer(&s, 1000, 210, true), WEIR_PASS);
	/* It was chance: the hunt goes on, and then it is joined again. */
	memset(s.stream + s.size, 'x', 100);
	s.size += 100;
	assert_int_equal(offer(&s, 1210, 100, false), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
	add_record(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(offer(&s, 1310, 105, false), WEIR_PASS);
	assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
	check(&s, 4, 4);
}

/* Only a record of application data, of version 3.3, and only where a segment begins. */
static void test_not_joined(void **state)
{
	static const __u8 starts[][5] = {
		{ 22, 3, 3, 0, 50 }, { 23, 3, 1, 0, 50 }, { 23, 3, 3, 0x60, 0 }, { 'G', 'E', 'T' }
	};
	struct scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		open_scene(&s, WEIR_PHASE_HUNTING);
		memcpy(s.stream, starts[i], sizeof(starts[i]));
		assert_int_equal(offer(&s, 0, 55, true), WEIR_PASS);
		assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
		check(&s, 0, 0);
	}
}

static void add_text(struct scene *s, const char *text)
{
	memcpy(s->stream + s->size, text, strlen(text));
	s->size += strlen(text);
}

#define GET "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
#define GET_BYTES (sizeof(GET) - 1)

/* Of a connection that is hunting each head that was not decided before costs a token, and what is withheld comes again. */
static void test_hunting_by_lines(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_PHASE_HUNTING);
	memset(s.stream, 'x', 4000);
	s.size = 4000;
	add_text(&s, GET GET GET GET);
	/* A body that was under way. */
	assert_int_equal(offer(&s, 0, 4000, true), WEIR_PASS);
	check(&s, 0, 0);
	assert_int_equal(offer(&s, 4000, GET_BYTES, true), WEIR_HOLD);
	s.now_ns += 10;
	assert_int_equal(offer(&s, 4000, GET_BYTES, false), WEIR_PASS);
	check(&s, 1, 1);
	assert_int_equal(s.held_ns, 11);
	/* What the server has is not charged again. */
	s.socket.next = START + 4000 + GET_BYTES;
	assert_int_equal(offer(&s, 4000, GET_BYTES, true), WEIR_PASS);
	assert_int_equal(offer(&s, 4000, 3 * GET_BYTES, false), WEIR_PASS);
	check(&s, 2, 3);
	/* Of two that come together, one was decided on its way. */
	s.conn.hold.decided = 1;
	assert_int_equal(offer(&s, 4000 + 2 * GET_BYTES, 2 * GET_BYTES, true), WEIR_HOLD);
	assert_int_equal(s.conn.hold.decided, 1);
	assert_int_equal(offer(&s, 4000 + 2 * GET_BYTES, 2 * GET_BYTES, false), WEIR_PASS);
	assert_int_equal(s.conn.hold.decided, 0);
	check(&s, 3, 4);
	assert_int_equal(s.conn.phase, WEIR_PHASE_HUNTING);
}

/* The end of a head costs a token wherever it is cut, and one more where a piece begins with the end of a line. */
static void test_hunting_cut_at_every_byte(void **state)
{
	struct scene s;

	(void)state;
	for (__u32 cut = 1; cut < GET_BYTES; cut++) {
		open_scene(&s, WEIR_PHASE_HUNTING);
		add_text(&s, GET);
		assert_int_equal(offer(&s, 0, cut, false), WEIR_PASS);
		s.socket.next = START + cut;
		assert_int_equal(offer(&s, cut, GET_BYTES - cut, false), WEIR_PASS);
		assert_in_range(s.weight, 1, 2);
	}
}

/* Where the server answers what could not be read, that was no body: it is charged as what is not seen. */
static void test_hunting_what_is_not_http(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_PHASE_HUNTING);
	memset(s.stream, 'x', 4000);
	s.conn.hold.answers = 1;
	assert_int_equal(offer(&s, 0, 1500, true), WEIR_HOLD);
	assert_int_equal(offer(&s, 0, 1500, false), WEIR_PASS);
	check(&s, 1, 2);
	/* A body that was announced in a head that was read is one. */
	s.conn.request_next = START + 3000;
	assert_int_equal(offer(&s, 1500, 1500, true), WEIR_PASS);
	check(&s, 1, 2);
	assert_int_equal(offer(&s, 3000, 10, false), WEIR_PASS);
	check(&s, 2, 3);
}

/* Two segments at once, on two CPUs: what one of them has used of what was decided, the other one must pay for. */
static void test_hunting_contended(void **state)
{
	struct weir_hold_reader first, second;
	enum weir_reason why = WEIR_REASON_COUNT;
	struct weir_segment g = segment(0, 2);
	struct scene s;
	__u64 held_ns = 0;

	(void)state;
	open_scene(&s, WEIR_PHASE_HUNTING);
	s.conn.hold.decided = 1;
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, &first, &why), WEIR_FRAME);
	weir_hold_reader_line(&first, '\n');
	weir_hold_reader_end(&first, &g);
	second = first;
	assert_int_equal(first.weight, 0);
	assert_int_equal(weir_hold_commit(&s.conn, &first, 1, &held_ns, &why), WEIR_PASS);
	assert_int_equal(weir_hold_commit(&s.conn, &second, 1, &held_ns, &why), WEIR_HOLD);
	assert_int_equal(why, WEIR_CONTENDED);
}

/* Two segments at once, on two CPUs: the second comes again. */
static void test_contended(void **state)
{
	struct weir_hold_reader first, second;
	enum weir_reason why = WEIR_REASON_COUNT;
	struct weir_segment g;
	struct scene s;
	__u64 held_ns = 0;

	(void)state;
	open_tls(&s);
	add_record(&s, WEIR_RECORD_HANDSHAKE, 100);
	g = segment(0, 3);
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, &first, &why), WEIR_FRAME);
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, &second, &why), WEIR_FRAME);
	for (int i = 0; i < 3; i++)
		weir_hold_reader_feed(&first, s.stream[i]);
	assert_int_equal(weir_hold_commit(&s.conn, &first, 1, &held_ns, &why), WEIR_PASS);
	assert_int_equal(weir_hold_commit(&s.conn, &second, 1, &held_ns, &why), WEIR_HOLD);
	assert_int_equal(why, WEIR_CONTENDED);
	assert_int_equal(s.conn.hold.next, START + 3);
	assert_int_equal(s.conn.hold.record.header, 3);
}

/* What the socket drops is not followed: the stream may go on with something else in its place. */
static void test_what_the_socket_drops(void **state)
{
	struct weir_hold_reader r;
	enum weir_reason why = WEIR_REASON_COUNT;
	struct weir_segment g;
	struct scene s;

	(void)state;
	open_tls(&s);
	add_record(&s, WEIR_RECORD_HANDSHAKE, 100);
	s.socket.edge = START + 104;
	assert_int_equal(offer(&s, 0, 105, false), WEIR_HOLD);
	assert_int_equal(s.why, WEIR_OUT_OF_WINDOW);
	s.socket.edge = START;
	assert_int_equal(offer(&s, 0, 105, false), WEIR_PASS);
	s.socket.edge = START - 5;
	assert_int_equal(offer(&s, 0, 105, false), WEIR_PASS);
	assert_int_equal(s.conn.hold.next, START);

	s.socket = (struct weir_socket){ .next = START, .edge = START + 105, .ts_recent = 5 };
	g = segment(0, 105);
	g.has_ts = 1;
	g.tsval = 3;
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, &r, &why), WEIR_HOLD);
	assert_int_equal(why, WEIR_OUT_OF_WINDOW);
	g.tsval = 4;
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, &r, &why), WEIR_FRAME);
	g.tsval = 0x80000000;
	s.socket.ts_recent = 0;
	assert_int_equal(weir_hold_begin(&s.conn, &s.socket, &g, &r, &why), WEIR_FRAME);
	s.socket = (struct weir_socket){ .listens = 1 };
	assert_int_equal(offer(&s, 0, 105, false), WEIR_PASS);
	assert_int_equal(s.conn.hold.next, START + 105);
}

/* What came to the socket by a way that is not seen makes its connection opaque, from where the server stands. */
static void test_unseen(void **state)
{
	struct weir_segment seen = segment(0, 500), unseen = segment(300, 400), g;
	struct scene s;

	(void)state;
	for (enum weir_phase phase = WEIR_PHASE_FOLLOWED; phase <= WEIR_PHASE_HUNTING; phase++) {
		open_scene(&s, phase);
		weir_splice_pass(&s.conn.splice, &seen);
		assert_false(weir_hold_overlooked(&s.conn, &s.socket, &seen));
		assert_true(weir_hold_overlooked(&s.conn, &s.socket, &unseen));
		s.socket.next = START + 200;
		weir_hold_unseen(&s.conn, &s.socket, &unseen);
		assert_int_equal(s.conn.phase, WEIR_PHASE_OPAQUE);
		assert_int_equal(s.conn.opaque_why, WEIR_UNSEEN);
		assert_int_equal(s.conn.hold.next, START + 200);
		assert_false(weir_hold_overlooked(&s.conn, &s.socket, &unseen));
		add_record(&s, WEIR_RECORD_HANDSHAKE, 700);
		assert_int_equal(offer(&s, 200, 500, true), WEIR_HOLD);
		assert_int_equal(offer(&s, 200, 500, false), WEIR_PASS);
		check(&s, 1, 1);
	}
	/* In a translated connection, by the server's numbers. */
	open_scene(&s, WEIR_PHASE_FOLLOWED);
	s.conn.splice.in_off = 100;
	weir_splice_pass(&s.conn.splice, &seen);
	g = segment(0, 400);
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	g.len++;
	assert_true(weir_hold_overlooked(&s.conn, &s.socket, &g));
}

/* Each segment costs something there, and each empty line. */
static void test_unseen_requests(void **state)
{
	static const char *const texts[] = { "G", "GET / HTTP/1.1\r\n", "\r\n", "\n",
					     "GET /\n\n\r\nGET / HTTP/1.1\r\n\r\n" };
	static const __u32 weights[] = { 1, 1, 1, 1, 3 };
	__u32 weight = 0, at = 0;
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s.conn, START, WEIR_UNSEEN);
	for (int i = 0; i < 5; i++) {
		memcpy(s.stream + at, texts[i], strlen(texts[i]));
		assert_int_equal(offer(&s, at, strlen(texts[i]), false), WEIR_PASS);
		at += strlen(texts[i]);
		weight += weights[i];
		check(&s, i + 1, weight);
	}
	memset(s.stream + at, '\n', 3000);
	assert_int_equal(offer(&s, at, 3000, false), WEIR_PASS);
	check(&s, 6, weight + 3000);
}

/* What the socket has or will not take is nothing new to it. */
static void test_not_unseen(void **state)
{
	struct weir_segment g = segment(0, 100);
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_PHASE_FOLLOWED);
	s.socket.next = START + 100;
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	s.socket.listens = 1;
	assert_true(weir_hold_overlooked(&s.conn, &s.socket, &g));
	s.socket = (struct weir_socket){ .next = START, .edge = START + 99 };
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	s.socket.edge = START;
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	s.socket.edge = START + 100;
	assert_true(weir_hold_overlooked(&s.conn, &s.socket, &g));
	g.flags |= WEIR_TCP_RST;
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	g = segment(0, 0);
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
	g = segment(0, 100);
	s.conn.phase = WEIR_PHASE_CLOSED;
	assert_false(weir_hold_overlooked(&s.conn, &s.socket, &g));
}

/* Connections that can be read are the answer lane's, and bare acknowledgements nobody's. */
static void test_not_ours(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, WEIR_PHASE_FOLLOWED);
	add_record(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(offer(&s, 0, 105, true), WEIR_PASS);
	open_tls(&s);
	add_record(&s, WEIR_RECORD_DATA, 100);
	assert_int_equal(offer(&s, 0, 0, true), WEIR_PASS);
	assert_int_equal(offer(&s, 50, 0, true), WEIR_PASS);
	check(&s, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_a_byte_at_a_time),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_repeated_with_more),
		cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_missed),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_by_segments),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_not_joined),
		cmocka_unit_test(test_hunting_by_lines),
		cmocka_unit_test(test_hunting_cut_at_every_byte),
		cmocka_unit_test(test_hunting_what_is_not_http),
		cmocka_unit_test(test_hunting_contended),
		cmocka_unit_test(test_contended),
		cmocka_unit_test(test_what_the_socket_drops),
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_unseen_requests),
		cmocka_unit_test(test_not_unseen),
		cmocka_unit_test(test_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
