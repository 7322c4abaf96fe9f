/* SPDX-License-Identifier: GPL-2.0 */
/* Where something was refused, packet by packet: both directions in new numbers, and packets of which a part goes on. */
#include "attached.h"

#include <string.h>

/* After one shed: both directions translated, SACK too, wherever its option stands. */
static void test_translation(void **state)
{
	static const __u8 sack_even[] = { 1, 1, 5, 10, 0, 7, 0xa1, 0x20, 0, 7, 0xa1, 0x84 };
	static const __u8 sack_odd[] = { 1, 5, 10, 0, 7, 0xa1, 0x20, 0, 7, 0xa1, 0x84, 1 };
	size_t n = strlen(get_a), m = strlen(ok);
	__u32 client, server, answer;
	struct seen seen;

	(void)state;
	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a }),
			 PASS);
	packet_see(&packet, &seen);
	answer = seen.n_text;
	client = CLIENT_NEXT + n;
	server = SERVER_NEXT + answer;

	/* until the answer is acknowledged, what follows is held and the server's acknowledgement shows nothing of it */
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = client, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a }),
			 DROP);
	assert_int_equal(counter(WEIR_HELD), 1);
	assert_int_equal(
		run(egress,
		    &(struct spec){ .from_server = true, .seq = SERVER_NEXT, .ack = CLIENT_NEXT, .flags = ACK }),
		PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.ack, CLIENT_NEXT);

	assert_int_equal(run(ingress, &(struct spec){ .seq = client, .ack = server - 5, .flags = ACK, .window = 77 }),
			 PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.seq, CLIENT_NEXT);
	assert_int_equal(seen.ack, SERVER_NEXT);
	assert_int_equal(seen.window, 77);

	limit(WEIR_BUILTIN_TOTAL, "1000000", 1000000);
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_TOTAL, &error));
	assert_int_equal(run(ingress, &(struct spec){ .seq = client, .ack = server, .flags = PSH_ACK, .text = get_a }),
			 PASS);
	packet_see(&packet, &seen);
	assert_false(seen.from_server);
	assert_int_equal(seen.seq, CLIENT_NEXT);
	assert_int_equal(seen.ack, SERVER_NEXT);
	assert_int_equal(seen.n_text, n);

	assert_int_equal(run(egress, &(struct spec){ .from_server = true,
						     .seq = SERVER_NEXT,
						     .ack = CLIENT_NEXT + n,
						     .flags = PSH_ACK,
						     .text = ok }),
			 PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.seq, server);
	assert_int_equal(seen.ack, client + n);
	assert_memory_equal(seen.text, ok, m);

	for (int odd = 0; odd < 2; odd++) {
		const __u8 *sack = odd ? sack_odd : sack_even;

		assert_int_equal(run(ingress, &(struct spec){ .seq = client + n,
							      .ack = server,
							      .flags = ACK,
							      .ts = true,
							      .options = sack,
							      .n_options = 12 }),
				 PASS);
		packet_see(&packet, &seen);
		assert_int_equal(seen.ack, SERVER_NEXT);
		/* 0x7a120 is SERVER_NEXT, at or before the answer's start; 0x7a184 lies inside the answer */
		assert_memory_equal(seen.options + (odd ? 3 : 4), "\0\7\xa1\x20\0\7\xa1\x20", 8);
	}
}

/* The 65th request without an answer waits, whatever it asks for. */
static void test_too_many_pipelined_wait(void **state)
{
	static const char one[] = "GET /healthz HTTP/1.1\r\n\r\n";
	char text[66 * sizeof(one)] = "";
	struct seen seen;

	(void)state;
	connect_ends(false);
	for (int i = 0; i < 66; i++)
		strcat(text, one);
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = text }),
			 PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.n_text, 64 * strlen(one));
	assert_int_equal(counter(WEIR_EXEMPT), 64);
	assert_int_equal(counter(WEIR_TOO_MANY_PIPELINED), 1);
	assert_int_equal(counter(WEIR_CUT_SHORT), 1);
}

static const char two[] = "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n";
#define ONE ((sizeof(two) - 1) / 2)

static void test_pipelined_passes(void **state)
{
	(void)state;
	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 2);
	assert_untouched(ingress,
			 &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = two });
	assert_int_equal(counter(WEIR_PASSED), 2);
}

/* Of two requests in one packet the second is refused: it is cut off, and answered when it comes again in its turn. */
static void refused_second(bool ipv6)
{
	struct spec second = {
		.ipv6 = ipv6, .seq = CLIENT_NEXT + ONE, .ack = SERVER_NEXT, .flags = FIN_ACK, .text = two + ONE
	};
	size_t m = strlen(ok);
	struct seen seen;

	connect_ends(ipv6);
	limit(WEIR_BUILTIN_TOTAL, "0", 1);
	assert_int_equal(run(ingress, &(struct spec){ .ipv6 = ipv6,
						      .seq = CLIENT_NEXT,
						      .ack = SERVER_NEXT,
						      .flags = FIN_ACK | PSH_ACK,
						      .ts = true,
						      .tsval = 3,
						      .text = two }),
			 PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.n_text, ONE);
	assert_memory_equal(seen.text, two, ONE);
	assert_int_equal(seen.flags, PSH_ACK);
	assert_int_equal(counter(WEIR_PIPELINED), 1);
	assert_int_equal(counter(WEIR_CUT_SHORT), 1);

	/* not before the first one is answered */
	assert_int_equal(run(ingress, &second), DROP);
	assert_untouched(egress, &(struct spec){ .ipv6 = ipv6,
						 .from_server = true,
						 .seq = SERVER_NEXT,
						 .ack = CLIENT_NEXT + ONE,
						 .flags = PSH_ACK,
						 .text = ok });
	assert_int_equal(run(ingress, &second), DROP);
	assert_untouched(
		ingress,
		&(struct spec){ .ipv6 = ipv6, .seq = CLIENT_NEXT + ONE, .ack = SERVER_NEXT + m, .flags = ACK });
	second.ack = SERVER_NEXT + m;
	assert_int_equal(run(ingress, &second), PASS);
	assert_answer(&seen, "3600", true);
	assert_int_equal(seen.seq, SERVER_NEXT + m);
	assert_int_equal(seen.ack, CLIENT_NEXT + 2 * ONE);
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(counter(WEIR_SHED), 1);
}

static void test_refused_second_is_cut_off(void **state)
{
	(void)state;
	refused_second(false);
}

static void test_refused_second_is_cut_off_ipv6(void **state)
{
	(void)state;
	refused_second(true);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(translation),
		TEST(too_many_pipelined_wait),
		TEST(pipelined_passes),
		TEST(refused_second_is_cut_off),
		TEST(refused_second_is_cut_off_ipv6),
	};

	return cmocka_run_group_tests_name("translate", tests, attached_open, attached_close);
}
