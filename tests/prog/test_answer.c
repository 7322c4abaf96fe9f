/* SPDX-License-Identifier: GPL-2.0 */
/* Requests that are refused, packet by packet: the answer, byte by byte, and what the server hears of it. */
#include "attached.h"

#include <string.h>

static void pass_one(bool ipv6)
{
	size_t n = strlen(get_a);

	connect_ends(ipv6);
	limit(WEIR_BUILTIN_USER, "0.5", 1);
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
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
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
	limit(WEIR_BUILTIN_TOTAL, "0.01", 0);
	limit(WEIR_BUILTIN_NAMESPACE, "0", 0);
	limit(WEIR_BUILTIN_USER, "1", 0);
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
	limit(WEIR_BUILTIN_TOTAL, "0", 1);
	limit(WEIR_BUILTIN_NAMESPACE, "0", 0);
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

static void test_small_body_is_swallowed(void **state)
{
	static const char head[] = "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234";
	size_t n = strlen(head);
	struct seen seen;

	(void)state;
	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
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
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
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

/* A request in such a packet is like any other; what is said to the client, and to the server, has a plain header. */
static void lengthened(bool ipv6)
{
	struct packet before;
	struct spec request = { .ipv6 = ipv6, .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a };
	struct seen seen;

	connect_ends(ipv6);
	limit(WEIR_BUILTIN_TOTAL, "0", 1);
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

/* The server has the first part of the head already: the answer ends the connection. */
static void test_refused_split_head_closes(void **state)
{
	struct seen seen;

	(void)state;
	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
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

static bool says(const struct seen *seen, const char *words)
{
	return memmem(seen->text, seen->n_text, words, strlen(words));
}

static struct datapath_limit denying(const char *name)
{
	struct datapath_limit limit = { .reason = WEIR_SHED_TOTAL, .amount = { .set = true, .deny = true } };

	strcpy(limit.name, name);
	return limit;
}

static void ask(struct seen *seen)
{
	connect_ends(false);
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a }),
			 PASS);
	packet_see(&packet, seen);
	assert_true(seen->from_server);
}

/* As long as a text can be: the checksum, which packet_see() verifies, is made of two parts. */
static void test_limit_is_named(void **state)
{
	struct datapath_limit total = { .reason = WEIR_SHED_TOTAL, .amount = { .set = true } };
	struct seen seen;

	(void)state;
	memset(total.name, 'n', sizeof(total.name) - 1);
	for (size_t length = 1; length < sizeof(total.name); length += 3) {
		total.name[sizeof(total.name) - 1 - length] = 0;
		done(datapath_limit_set(dp, 0, WEIR_BUILTIN_TOTAL, &total, &error));
		ask(&seen);
		assert_answer(&seen, "3600", true);
		assert_true(says(&seen, "\r\nWeir-Limit: nn"));
		assert_true(says(&seen, ": try again in 3600 s\""));
		total.name[sizeof(total.name) - 1 - length] = 'n';
	}
	*total.name = 0;
	done(datapath_limit_set(dp, 0, WEIR_BUILTIN_TOTAL, &total, &error));
	ask(&seen);
	assert_false(says(&seen, "eir"));
}

/* Of several, the one that takes longest. */
static void test_slowest_is_named(void **state)
{
	struct datapath_limit total = { .reason = WEIR_SHED_TOTAL,
					.name = "total",
					.amount = { .set = true, .per_ns = WEIR_QPS / 100, .burst = 1 } };
	struct datapath_limit user = { .reason = WEIR_SHED_USER,
				       .key = WEIR_KEY_USER,
				       .name = "user",
				       .amount = { .set = true, .per_ns = WEIR_QPS / 10, .burst = 1 } };
	struct seen seen;

	(void)state;
	done(datapath_limit_set(dp, 0, WEIR_BUILTIN_TOTAL, &total, &error));
	done(datapath_limit_set(dp, 0, WEIR_BUILTIN_USER, &user, &error));
	connect_ends(false);
	assert_untouched(ingress,
			 &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a });
	ask(&seen);
	assert_true(says(&seen, "\r\nWeir-Limit: total\r\n"));
}

static void test_denied(void **state)
{
	struct datapath_limit deny = denying("total");
	struct seen seen;

	(void)state;
	limit(WEIR_BUILTIN_USER, "0", 0);
	done(datapath_limit_set(dp, 0, WEIR_BUILTIN_TOTAL, &deny, &error));
	ask(&seen);
	assert_memory_equal(seen.text, "HTTP/1.1 403 Forbidden\r\n", 24);
	assert_true(says(&seen, "\r\nWeir-Limit: total\r\n"));
	assert_false(says(&seen, "Retry-After"));
	assert_int_equal(counter(WEIR_SHED), 1);
	assert_int_equal(counter(WEIR_SHED_DENIED), 1);
	assert_int_equal(counter(WEIR_SHED_TOTAL), 0);
}

static void test_retry_after_has_a_cap(void **state)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE, .swallow_max = 65536, .retry_max_s = 60 };
	struct seen seen;

	(void)state;
	weir_reading_default(&server.reading);
	done(datapath_server_set(dp, 0, &server, &listen, 1, NULL, 0, &error));
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	ask(&seen);
	assert_answer(&seen, "60", true);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(answer_ipv4),
		TEST(answer_ipv4_without_timestamps),
		TEST(answer_ipv6),
		TEST(answer_to_head_has_no_body),
		TEST(longest_wait_is_told),
		TEST(refused_consumes_nothing),
		TEST(small_body_is_swallowed),
		TEST(long_body_closes),
		TEST(expect_closes),
		TEST(connection_close_closes),
		TEST(news_goes_on),
		TEST(ip_options),
		TEST(ipv6_extension_header),
		TEST(refused_split_head_closes),
		TEST(limit_is_named),
		TEST(slowest_is_named),
		TEST(denied),
		TEST(retry_after_has_a_cap),
	};

	return cmocka_run_group_tests_name("answer", tests, attached_open, attached_close);
}
