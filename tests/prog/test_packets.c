/* SPDX-License-Identifier: GPL-2.0 */
/* The tc programs, packet by packet: what goes in, the verdict, and every byte that comes out. */
#include "attached.h"

#include <bpf/bpf.h>
#include <string.h>

static const char get_a[] = "GET /api/v1/namespaces/a/pods HTTP/1.1\r\nHost: x\r\n\r\n";
static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/* The latest packet is an answer of weir's with this Retry-After. */
static void assert_answer(struct seen *seen, const char *retry, bool body)
{
	char want[64];

	packet_see(&packet, seen);
	assert_true(seen->from_server);
	snprintf(want, sizeof(want), "\r\nRetry-After: %s\r\n", retry);
	assert_memory_equal(seen->text, "HTTP/1.1 429 Too Many Requests\r\n", 32);
	assert_non_null(memmem(seen->text, seen->n_text, want, strlen(want)));
	if (body)
		assert_memory_equal(seen->text + seen->n_text - 12, "\"code\":429}\n", 12);
	else
		assert_memory_equal(seen->text + seen->n_text - 4, "\r\n\r\n", 4);
}

static void test_foreign_packets_are_untouched(void **state)
{
	(void)state;
	limit(WEIR_LIMIT_TOTAL, "0", 0);
	assert_untouched(ingress, &(struct spec){ .port = 8081, .flags = PSH_ACK, .text = get_a });
	assert_untouched(egress, &(struct spec){ .port = 8081, .flags = PSH_ACK, .text = ok, .from_server = true });
	assert_untouched(ingress, &(struct spec){ .protocol = 17, .flags = PSH_ACK, .text = get_a });
	assert_untouched(ingress, &(struct spec){ .ipv6 = true, .protocol = 44, .flags = PSH_ACK, .text = get_a });
	/* no socket, no connection: not even of an attached server */
	assert_untouched(ingress, &(struct spec){ .flags = PSH_ACK, .text = get_a });
	assert_untouched(ingress, &(struct spec){ .flags = WEIR_TCP_SYN });
	assert_int_equal(counter(WEIR_CONN_OPENED), 0);
}

static void pass_one(bool ipv6)
{
	size_t n = strlen(get_a);

	connect_ends(ipv6);
	limit(WEIR_LIMIT_USER, "0.5", 1);
	assert_untouched(ingress, &(struct spec){ .ipv6 = ipv6,
						  .seq = CLIENT_NEXT,
						  .ack = SERVER_NEXT,
						  .flags = PSH_ACK,
						  .window = 99,
						  .ts = true,
						  .tsval = 7,
						  .tsecr = 70,
						  .text = get_a });
	assert_untouched(egress, &(struct spec){ .ipv6 = ipv6,
						 .from_server = true,
						 .seq = SERVER_NEXT,
						 .ack = CLIENT_NEXT + n,
						 .flags = PSH_ACK,
						 .window = 502,
						 .ts = true,
						 .tsval = 75,
						 .tsecr = 7,
						 .text = ok });
}

static void answer_one(bool ipv6, bool ts)
{
	size_t n = strlen(get_a), m = strlen(ok);
	struct spec request = { .ipv6 = ipv6,
				.seq = CLIENT_NEXT + n,
				.ack = SERVER_NEXT + m,
				.flags = PSH_ACK,
				.window = 99,
				.ts = ts,
				.tsval = 9,
				.tsecr = 75,
				.text = get_a };
	struct packet first;
	struct seen seen;

	pass_one(ipv6);
	/* The response's acknowledgement comes by itself, so that the next request has nothing new to say to the server. */
	assert_untouched(ingress, &(struct spec){ .ipv6 = ipv6,
						  .seq = CLIENT_NEXT + n,
						  .ack = SERVER_NEXT + m,
						  .flags = ACK,
						  .window = 99,
						  .ts = ts,
						  .tsval = 8,
						  .tsecr = 75 });
	assert_int_equal(run(ingress, &request), PASS);
	assert_answer(&seen, "2", true);
	assert_int_equal(seen.seq, SERVER_NEXT + m);
	assert_int_equal(seen.ack, CLIENT_NEXT + 2 * n);
	assert_int_equal(seen.flags, PSH_ACK);
	assert_int_equal(seen.window, 502);
	assert_int_equal(seen.ts, ts);
	if (ts) {
		assert_int_equal(seen.tsval, 75);
		assert_int_equal(seen.tsecr, 9);
	}
	first = packet;

	/* The same bytes again for a retransmission. */
	assert_int_equal(run(ingress, &request), PASS);
	assert_int_equal(packet.length, first.length);
	assert_memory_equal(packet.bytes, first.bytes, first.length);
	assert_int_equal(counter(WEIR_SHED), 1);
	assert_int_equal(counter(WEIR_SHED_USER), 1);
	assert_int_equal(counter(WEIR_ANSWERED), 2);
	assert_int_equal(counter(WEIR_ANSWERED_AGAIN), 1);
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(counter(WEIR_SPLICE_OPENED), 1);
}

static void test_answer_ipv4(void **state)
{
	(void)state;
	answer_one(false, true);
}

static void test_answer_ipv4_without_timestamps(void **state)
{
	(void)state;
	answer_one(false, false);
}

static void test_answer_ipv6(void **state)
{
	(void)state;
	answer_one(true, true);
}

static void test_answer_to_head_has_no_body(void **state)
{
	struct seen seen;

	(void)state;
	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0", 0);
	assert_int_equal(run(ingress, &(struct spec){ .seq = CLIENT_NEXT,
						      .ack = SERVER_NEXT,
						      .flags = PSH_ACK,
						      .text = "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" }),
			 PASS);
	assert_answer(&seen, "3600", false);
	assert_int_equal(seen.window, 501);
}

static void test_longest_wait_is_told(void **state)
{
	struct seen seen;

	(void)state;
	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0.01", 0);
	limit(WEIR_LIMIT_NAMESPACE, "0", 0);
	limit(WEIR_LIMIT_USER, "1", 0);
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a }),
			 PASS);
	assert_answer(&seen, "3600", true);
	assert_int_equal(counter(WEIR_SHED_TOTAL), 1);
	assert_int_equal(counter(WEIR_SHED_NAMESPACE), 1);
	assert_int_equal(counter(WEIR_SHED_USER), 1);
}

/* A refused request takes nothing from the other limits: total still has its one token. */
static void test_refused_consumes_nothing(void **state)
{
	(void)state;
	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0", 1);
	limit(WEIR_LIMIT_NAMESPACE, "0", 0);
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a }),
			 PASS);
	assert_int_equal(counter(WEIR_SHED), 1);
	assert_int_equal(counter(WEIR_SHED_TOTAL), 0);

	connect_ends(true);
	assert_untouched(ingress, &(struct spec){ .ipv6 = true,
						  .seq = CLIENT_NEXT,
						  .ack = SERVER_NEXT,
						  .flags = PSH_ACK,
						  .text = "GET / HTTP/1.1\r\nHost: x\r\n\r\n" });
	assert_int_equal(counter(WEIR_PASSED), 1);
}

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
	limit(WEIR_LIMIT_TOTAL, "0", 0);
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

	limit(WEIR_LIMIT_TOTAL, "1000000", 1000000);
	done(datapath_limit_delete(dp, 0, WEIR_LIMIT_TOTAL, &error));
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

static void test_small_body_is_swallowed(void **state)
{
	static const char head[] = "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234";
	size_t n = strlen(head);
	struct seen seen;

	(void)state;
	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0", 0);
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = ACK, .text = head }),
			 PASS);
	packet_see(&packet, &seen);
	assert_true(seen.from_server);
	assert_int_equal(seen.n_text, 0);
	assert_int_equal(seen.ack, CLIENT_NEXT + n);

	assert_int_equal(
		run(ingress,
		    &(struct spec){ .seq = CLIENT_NEXT + n, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = "56789" }),
		PASS);
	assert_answer(&seen, "3600", true);
	assert_int_equal(seen.ack, CLIENT_NEXT + n + 5);
	assert_int_equal(seen.seq, SERVER_NEXT);
	assert_int_equal(counter(WEIR_SHED), 1);
	assert_int_equal(counter(WEIR_ANSWERED_CLOSE), 0);
}

/* On loopback the packet that comes back is what goes on to the server: its RST. The answer went out as a copy. */
static void closes(const char *text)
{
	struct seen seen;

	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0", 0);
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = ACK, .text = text }),
			 PASS);
	packet_see(&packet, &seen);
	assert_false(seen.from_server);
	assert_int_equal(seen.flags, WEIR_TCP_RST);
	assert_int_equal(seen.seq, CLIENT_NEXT);
	assert_int_equal(seen.n_text, 0);
	assert_int_equal(counter(WEIR_ANSWERED_CLOSE), 1);

	/* the client's FIN is acknowledged, the server says no more */
	assert_int_equal(
		run(ingress,
		    &(struct spec){ .seq = CLIENT_NEXT + strlen(text), .ack = SERVER_NEXT + 4096, .flags = FIN_ACK }),
		PASS);
	packet_see(&packet, &seen);
	assert_true(seen.from_server);
	assert_true(seen.flags & WEIR_TCP_ACK);
	assert_int_equal(seen.ack, CLIENT_NEXT + strlen(text) + 1);
	assert_int_equal(
		run(egress,
		    &(struct spec){ .from_server = true, .seq = SERVER_NEXT, .ack = CLIENT_NEXT, .flags = ACK }),
		DROP);
}

static void test_long_body_closes(void **state)
{
	(void)state;
	closes("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n01234");
}

static void test_expect_closes(void **state)
{
	(void)state;
	closes("POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
}

static void test_connection_close_closes(void **state)
{
	(void)state;
	closes("GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

/* A shed request that acknowledges news goes on to the server without its bytes. */
static void test_news_goes_on(void **state)
{
	size_t n = strlen(get_a), m = strlen(ok);
	struct seen seen;

	(void)state;
	pass_one(false);
	assert_int_equal(run(ingress, &(struct spec){ .seq = CLIENT_NEXT + n,
						      .ack = SERVER_NEXT + m,
						      .flags = PSH_ACK,
						      .window = 99,
						      .ts = true,
						      .tsval = 9,
						      .tsecr = 75,
						      .text = get_a }),
			 PASS);
	packet_see(&packet, &seen);
	assert_false(seen.from_server);
	assert_int_equal(seen.flags, ACK);
	assert_int_equal(seen.seq, CLIENT_NEXT + n);
	assert_int_equal(seen.ack, SERVER_NEXT + m);
	assert_int_equal(seen.window, 99);
	assert_int_equal(seen.n_text, 0);
	assert_int_equal(seen.tsval, 9);
	assert_int_equal(counter(WEIR_ANSWERED), 1);
}

static void test_bad_checksum_is_dropped(void **state)
{
	(void)state;
	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0", 0);
	assert_int_equal(run(ingress, &(struct spec){ .seq = CLIENT_NEXT,
						      .ack = SERVER_NEXT,
						      .flags = PSH_ACK,
						      .text = get_a,
						      .bad_checksum = true }),
			 DROP);
	assert_int_equal(counter(WEIR_BAD_CHECKSUM), 1);
	assert_int_equal(counter(WEIR_SHED), 0);
}

/* Payload that the server would not take must not be read here, either. */
static void test_unacceptable_is_dropped(void **state)
{
	(void)state;
	connect_ends(false);
	assert_int_equal(run(ingress, &(struct spec){ .seq = CLIENT_NEXT, .flags = WEIR_TCP_PSH, .text = get_a }),
			 DROP);
	assert_int_equal(counter(WEIR_UNACCEPTABLE), 1);
	assert_int_equal(counter(WEIR_PASSED), 0);
}

static void test_nothing_is_urgent(void **state)
{
	struct seen seen;

	(void)state;
	connect_ends(false);
	assert_int_equal(run(ingress, &(struct spec){ .seq = CLIENT_NEXT,
						      .ack = SERVER_NEXT,
						      .flags = PSH_ACK | WEIR_TCP_URG,
						      .urgent = 5,
						      .text = get_a }),
			 PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.flags, PSH_ACK);
	assert_int_equal(seen.urgent, 0);
	assert_int_equal(counter(WEIR_URGENT_REMOVED), 1);
	assert_int_equal(counter(WEIR_PASSED), 1);
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

/* Of a connection that cannot be read, the hold program would take it for the client's before the socket drops it. */
static void test_bad_checksum_of_an_opaque_connection(void **state)
{
	const struct spec hello = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = "\x16\x03\x01" };
	struct spec bad = hello;

	(void)state;
	connect_ends(false);
	assert_untouched(ingress, &hello);
	assert_int_equal(counter(WEIR_TLS), 1);
	assert_untouched(ingress, &hello);
	bad.bad_checksum = true;
	assert_int_equal(run(ingress, &bad), DROP);
	assert_int_equal(counter(WEIR_BAD_CHECKSUM), 1);
}

struct unharmed {
	const char *text;
	size_t n_text;
	enum weir_reason why;
};

/* What cannot be followed passes bit for bit and is counted, whatever the limits are. */
static void test_unread_passes_unharmed(void **state)
{
	static const struct unharmed cases[] = {
		{ "\x16\x03\x01\x02\x00\x01", 6, WEIR_TLS },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, WEIR_HTTP2 },
		{ "\x01\x02\x03", 0, WEIR_NOT_HTTP },
		{ "GET / HTTP/1.1\nHost: x\n\n", 0, WEIR_BARE_LF },
		{ "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 0,
		  WEIR_LENGTH_CONFLICT },
	};
	struct weir_flow flow;

	(void)state;
	packet_flow(false, &flow);
	limit(WEIR_LIMIT_TOTAL, "0", 0);
	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_PASS_AMBIGUOUS, &error));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct unharmed *c = &cases[i];

		connect_ends(false);
		assert_untouched(ingress, &(struct spec){ .seq = CLIENT_NEXT,
							  .ack = SERVER_NEXT,
							  .flags = PSH_ACK,
							  .text = c->text,
							  .n_text = c->n_text });
		assert_int_equal(counter(c->why), 1);
		assert_int_equal(bpf_map_delete_elem(dp->maps.conns, &flow), 0);
	}
	assert_int_equal(counter(WEIR_SHED), 0);
}

/* A request in such a packet is like any other; what is said to the client, and to the server, has a plain header. */
static void lengthened(bool ipv6)
{
	struct packet before;
	struct spec request = { .ipv6 = ipv6, .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a };
	struct seen seen;

	connect_ends(ipv6);
	limit(WEIR_LIMIT_TOTAL, "0", 1);
	packet_build(&before, &request);
	packet_lengthen_ip(&before);
	packet = before;
	assert_int_equal(packet_run(ingress, &packet), PASS);
	assert_int_equal(packet.length, before.length);
	assert_memory_equal(packet.bytes, before.bytes, before.length);
	assert_int_equal(counter(WEIR_PASSED), 1);

	connect_ends(ipv6);
	packet = before;
	assert_int_equal(packet_run(ingress, &packet), PASS);
	assert_answer(&seen, "3600", true);
	assert_int_equal(seen.seq, SERVER_NEXT);
	assert_int_equal(seen.ack, CLIENT_NEXT + strlen(get_a));

	connect_ends(ipv6);
	request.text = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
	packet_build(&packet, &request);
	packet_lengthen_ip(&packet);
	assert_int_equal(packet_run(ingress, &packet), PASS);
	packet_see(&packet, &seen);
	assert_false(seen.from_server);
	assert_int_equal(seen.flags, WEIR_TCP_RST);
	assert_int_equal(counter(WEIR_PACKET_SURGERY), 0);
}

static void test_ip_options(void **state)
{
	(void)state;
	lengthened(false);
}

static void test_ipv6_extension_header(void **state)
{
	(void)state;
	lengthened(true);
}

static const char two[] = "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n";
#define ONE ((sizeof(two) - 1) / 2)

static void test_split_head_passes(void **state)
{
	(void)state;
	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0", 1);
	assert_untouched(
		ingress,
		&(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = "GET / HT" });
	assert_untouched(ingress, &(struct spec){ .seq = CLIENT_NEXT + 8,
						  .ack = SERVER_NEXT,
						  .flags = PSH_ACK,
						  .text = "TP/1.1\r\nHost: x\r\n\r\n" });
	assert_int_equal(counter(WEIR_PASSED), 1);
}

/* The server has the first part of the head already: the answer ends the connection. */
static void test_refused_split_head_closes(void **state)
{
	struct seen seen;

	(void)state;
	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0", 0);
	assert_untouched(
		ingress,
		&(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = "GET / HT" });
	assert_int_equal(run(ingress, &(struct spec){ .seq = CLIENT_NEXT + 8,
						      .ack = SERVER_NEXT,
						      .flags = PSH_ACK,
						      .text = "TP/1.1\r\nHost: x\r\n\r\n" }),
			 DROP); /* not before the server has acknowledged the first part */
	assert_int_equal(counter(WEIR_SPLIT_HEAD), 1);
	assert_untouched(
		egress,
		&(struct spec){ .from_server = true, .seq = SERVER_NEXT, .ack = CLIENT_NEXT + 8, .flags = ACK });
	assert_int_equal(run(ingress, &(struct spec){ .seq = CLIENT_NEXT + 8,
						      .ack = SERVER_NEXT,
						      .flags = PSH_ACK,
						      .text = "TP/1.1\r\nHost: x\r\n\r\n" }),
			 PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.flags, WEIR_TCP_RST);
	assert_int_equal(seen.seq, CLIENT_NEXT + 8);
	assert_int_equal(counter(WEIR_ANSWERED_CLOSE), 1);
	assert_int_equal(counter(WEIR_SHED), 1);
	assert_int_equal(counter(WEIR_PASSED), 0);
}

static void test_pipelined_passes(void **state)
{
	(void)state;
	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0", 2);
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
	limit(WEIR_LIMIT_TOTAL, "0", 1);
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

static void test_mptcp_is_taken_off_the_syn(void **state)
{
	static const __u8 even[] = { 30, 4, 1, 0, 2, 4, 5, 0xb4 }, odd[] = { 1, 30, 4, 1, 0, 2, 4, 5, 0xb4, 1, 1, 1 };
	struct seen seen;

	(void)state;
	assert_int_equal(
		run(ingress, &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = even, .n_options = 8 }), PASS);
	packet_see(&packet, &seen);
	assert_memory_equal(seen.options, "\1\1\1\1\2\4\5\xb4", 8);
	assert_int_equal(
		run(ingress, &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = odd, .n_options = 12 }), PASS);
	packet_see(&packet, &seen);
	assert_memory_equal(seen.options, "\1\1\1\1\1\2\4\5\xb4\1\1\1", 12);
	assert_int_equal(counter(WEIR_MPTCP_REMOVED), 2);
}

static void test_fast_open_is_taken_off_the_syn(void **state)
{
	static const __u8 both[] = { 30, 4, 1, 0, 34, 2, 1, 1 };
	struct seen seen;

	(void)state;
	assert_int_equal(
		run(ingress, &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = both, .n_options = 8 }), PASS);
	packet_see(&packet, &seen);
	assert_memory_equal(seen.options, "\1\1\1\1\1\1\1\1", 8);
	assert_int_equal(counter(WEIR_TFO_REMOVED), 1);
	assert_int_equal(counter(WEIR_MPTCP_REMOVED), 1);
}

static void test_health_is_exempt(void **state)
{
	(void)state;
	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0", 0);
	assert_untouched(ingress, &(struct spec){ .seq = CLIENT_NEXT,
						  .ack = SERVER_NEXT,
						  .flags = PSH_ACK,
						  .text = "GET /readyz/etcd HTTP/1.1\r\nHost: x\r\n\r\n" });
	assert_int_equal(counter(WEIR_EXEMPT), 1);
}

static void test_dry_run_and_pause(void **state)
{
	size_t n = strlen(get_a);

	(void)state;
	connect_ends(false);
	limit(WEIR_LIMIT_TOTAL, "0", 0);
	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_DRY_RUN, &error));
	assert_untouched(ingress,
			 &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a });
	assert_int_equal(counter(WEIR_DRY_RUN_SHED), 1);
	assert_int_equal(counter(WEIR_PASSED), 0);
	assert_untouched(egress, &(struct spec){ .from_server = true,
						 .seq = SERVER_NEXT,
						 .ack = CLIENT_NEXT + n,
						 .flags = PSH_ACK,
						 .text = ok });
	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_PAUSED, &error));
	assert_untouched(ingress, &(struct spec){ .seq = CLIENT_NEXT + n,
						  .ack = SERVER_NEXT + strlen(ok),
						  .flags = PSH_ACK,
						  .text = get_a });
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(counter(WEIR_SHED), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, attached_setup, datapath_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(foreign_packets_are_untouched),
		TEST(answer_ipv4),
		TEST(answer_ipv4_without_timestamps),
		TEST(answer_ipv6),
		TEST(answer_to_head_has_no_body),
		TEST(longest_wait_is_told),
		TEST(refused_consumes_nothing),
		TEST(translation),
		TEST(small_body_is_swallowed),
		TEST(long_body_closes),
		TEST(expect_closes),
		TEST(connection_close_closes),
		TEST(news_goes_on),
		TEST(bad_checksum_is_dropped),
		TEST(unacceptable_is_dropped),
		TEST(nothing_is_urgent),
		TEST(too_many_pipelined_wait),
		TEST(bad_checksum_of_an_opaque_connection),
		TEST(unread_passes_unharmed),
		TEST(ip_options),
		TEST(ipv6_extension_header),
		TEST(split_head_passes),
		TEST(refused_split_head_closes),
		TEST(pipelined_passes),
		TEST(refused_second_is_cut_off),
		TEST(refused_second_is_cut_off_ipv6),
		TEST(mptcp_is_taken_off_the_syn),
		TEST(fast_open_is_taken_off_the_syn),
		TEST(health_is_exempt),
		TEST(dry_run_and_pause),
	};

	return cmocka_run_group_tests_name("packets", tests, namespaces_setup, NULL);
}
