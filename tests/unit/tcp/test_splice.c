/* SPDX-License-Identifier: GPL-2.0 */
/* What a splice knows of its connection. The packet player asks what it does to packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/tcp/splice_cut.h"
#include "weir/tcp/splice_judge.h"

#define BOTH (WEIR_SPLICE_CLIENT_FIN | WEIR_SPLICE_SERVER_FIN)

/* It is over when each side has closed, and has acknowledged the other's end: in its own numbers. */
static void test_closed(void **state)
{
	const struct weir_splice over = { .fins = BOTH,
					  .client_fin = 1000,
					  .server_fin = 5000,
					  .in_off = 100,
					  .out_off = 300,
					  .client_acked = 5300,
					  .server_acked = 900 };
	struct weir_splice s = over;

	(void)state;
	assert_true(weir_splice_closed(&s));
	s.fins = WEIR_SPLICE_CLIENT_FIN;
	assert_false(weir_splice_closed(&s));
	s.fins = WEIR_SPLICE_SERVER_FIN;
	assert_false(weir_splice_closed(&s));
	s = over;
	s.client_acked--;
	assert_false(weir_splice_closed(&s));
	s = over;
	s.server_acked--;
	assert_false(weir_splice_closed(&s));
}

/* What is swallowed counts as gone on to the server: nothing of it may be sent there later. */
static void test_swallowed(void **state)
{
	const struct weir_segment g = { .seq = 1000 };
	struct weir_splice s = { .client_end = 1000, .passed_end = 1000 };

	(void)state;
	weir_splice_cut(&s, &g);
	weir_splice_swallow(&s, 50);
	weir_splice_swallow(&s, 20);
	assert_int_equal(s.cut_start, 1000);
	assert_int_equal(s.cut_end, 1070);
	assert_int_equal(s.in_off, 70);
	assert_int_equal(s.client_end, 1070);
	assert_int_equal(s.passed_end, 1070);
}

/* One cut and its answer, of a connection that has come to 1000 and 5000: 70 bytes, and 30. */
static struct weir_splice answered(void)
{
	const struct weir_segment g = { .seq = 1000 };
	struct weir_splice s;

	weir_splice_open(&s, 1000, 5000, 400);
	weir_splice_cut(&s, &g);
	weir_splice_swallow(&s, 70);
	weir_splice_answer(&s, 30);
	return s;
}

/* What is left of a segment whose bytes were cut stands at the cut, also where it brought the last of them alone. */
static void test_stripped(void **state)
{
	const struct weir_splice s = answered();

	(void)state;
	for (__u32 seq = 1000; seq <= 1070; seq++) {
		struct weir_segment g = {
			.seq = seq, .len = 1070 - seq, .flags = WEIR_TCP_PSH | WEIR_TCP_ACK, .sacks = 2
		};

		weir_splice_strip(&s, &g);
		assert_int_equal(g.seq, 1000);
		assert_int_equal(g.len, 0);
		assert_int_equal(g.sacks, 0);
		assert_int_equal(g.flags, WEIR_TCP_ACK);
	}
}

/* An answer is pushed; a bare acknowledgement has nothing to push. */
static void test_reply(void **state)
{
	const struct weir_segment g = { .seq = 1000 };
	struct weir_splice s = answered();
	struct weir_segment reply;

	(void)state;
	weir_splice_reply(&s, &g, &reply);
	assert_int_equal(reply.flags, WEIR_TCP_ACK | WEIR_TCP_PSH);
	assert_int_equal(reply.seq, 5000);
	assert_int_equal(reply.ack, 1070);
	assert_int_equal(reply.len, 30);
	s.answer_length = 0;
	weir_splice_reply(&s, &g, &reply);
	assert_int_equal(reply.flags, WEIR_TCP_ACK);
	assert_int_equal(reply.len, 0);
}

/* The server's acknowledgements before the cut, at it (before and when the client has the answer), and behind it. */
static void test_acknowledgements_around_the_cut(void **state)
{
	struct weir_splice s = answered();

	(void)state;
	assert_int_equal(weir_splice_ack_to_client(&s, 999), 999);
	assert_int_equal(weir_splice_ack_to_client(&s, 1000), 1000);
	assert_int_equal(weir_splice_ack_to_client(&s, 1001), 1071);
	s.client_acked = 5030;
	assert_int_equal(weir_splice_ack_to_client(&s, 999), 999);
	assert_int_equal(weir_splice_ack_to_client(&s, 1000), 1070);
}

/* Marks are moved up when they are further behind than the bound, and not at it: to half of it behind the end. */
static void test_trail(void **state)
{
	struct weir_splice s = answered();

	(void)state;
	s.client_acked = 5030;
	s.client_end = s.cut_end + WEIR_SPLICE_TRAIL;
	s.server_end = 5000 + WEIR_SPLICE_TRAIL;
	weir_splice_trail(&s);
	assert_int_equal(s.cut_start, 1000);
	assert_int_equal(s.cut_end, 1070);
	assert_int_equal(s.answer_start, 5000);
	assert_int_equal(s.answer_length, 30);
	s.client_end++;
	s.server_end++;
	weir_splice_trail(&s);
	assert_int_equal(s.cut_start, 1071 + WEIR_SPLICE_TRAIL / 2);
	assert_int_equal(s.cut_end, 1071 + WEIR_SPLICE_TRAIL / 2);
	assert_int_equal(s.answer_start, 5031 + WEIR_SPLICE_TRAIL / 2);
	assert_int_equal(s.answer_length, 0);
}

/* Blocks that a segment has are rewritten, and no other. */
static void test_blocks(void **state)
{
	const struct weir_splice s = answered();

	(void)state;
	for (__u8 n = 0; n <= WEIR_SACK_BLOCKS; n++) {
		struct weir_segment client = { .sacks = n }, server = { .sacks = n };

		for (int i = 0; i < WEIR_SACK_BLOCKS; i++) {
			client.sack[i].start = 5100;
			server.sack[i].start = 1100;
			client.sack[i].end = 5200;
			server.sack[i].end = 1200;
		}
		weir_splice_to_server(&s, &client);
		weir_splice_to_client(&s, &server);
		for (int i = 0; i < WEIR_SACK_BLOCKS; i++) {
			assert_int_equal(client.sack[i].start, i < n ? 5070 : 5100);
			assert_int_equal(client.sack[i].end, i < n ? 5170 : 5200);
			assert_int_equal(server.sack[i].start, i < n ? 1170 : 1100);
			assert_int_equal(server.sack[i].end, i < n ? 1270 : 1200);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_swallowed),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_reply),
		cmocka_unit_test(test_acknowledgements_around_the_cut),
		cmocka_unit_test(test_trail),
		cmocka_unit_test(test_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
