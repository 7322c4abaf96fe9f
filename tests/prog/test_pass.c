/* SPDX-License-Identifier: GPL-2.0 */
/* What passes without being refused, packet by packet; what is taken off it, and what is dropped. */
#include "attached.h"

#include <bpf/bpf.h>
#include <string.h>

static void test_foreign_packets_are_untouched(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	assert_untouched(ingress, &(struct spec){ .port = 8081, .flags = PSH_ACK, .text = get_a });
	assert_untouched(egress, &(struct spec){ .port = 8081, .flags = PSH_ACK, .text = ok, .from_server = true });
	assert_untouched(ingress, &(struct spec){ .protocol = 17, .flags = PSH_ACK, .text = get_a });
	assert_untouched(ingress, &(struct spec){ .ipv6 = true, .protocol = 44, .flags = PSH_ACK, .text = get_a });
	/* no socket, no connection: not even of an attached server */
	assert_untouched(ingress, &(struct spec){ .flags = PSH_ACK, .text = get_a });
	assert_untouched(ingress, &(struct spec){ .flags = WEIR_TCP_SYN });
	assert_int_equal(counter(WEIR_CONN_OPENED), 0);
}

static void test_bad_checksum_is_dropped(void **state)
{
	(void)state;
	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
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
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
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

static void test_split_head_passes(void **state)
{
	(void)state;
	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 1);
	assert_untouched(
		ingress,
		&(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = "GET / HT" });
	assert_untouched(ingress, &(struct spec){ .seq = CLIENT_NEXT + 8,
						  .ack = SERVER_NEXT,
						  .flags = PSH_ACK,
						  .text = "TP/1.1\r\nHost: x\r\n\r\n" });
	assert_int_equal(counter(WEIR_PASSED), 1);
}

/* A head with a value of n letters, the one at `bad` not allowed; bad >= n: all are. */
static const char *head_with_value(const char *line, size_t n, size_t bad)
{
	static char head[1024];
	char *to = stpcpy(stpcpy(head, line), "\r\nA: ");

	memset(to, 'x', n);
	if (bad < n)
		to[bad] = 1;
	strcpy(to + n, "\r\nContent-Length: 0\r\n\r\n");
	return head;
}

/* Values are passed over by words, as far as the window goes: no length of them is read otherwise than another. */
static void test_values_of_any_length_are_read(void **state)
{
	struct weir_conn c;

	(void)state;
	for (size_t n = 0; n < 600; n += n < 300 ? 1 : 7) {
		const char *head = head_with_value("GET /a HTTP/1.1\r\nHost: x", n, n);

		connect_ends(false);
		assert_untouched(
			ingress,
			&(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = head });
		c = conn_look(false);
		assert_int_equal(c.requests, 1);
		assert_int_equal(c.request_next, CLIENT_NEXT + strlen(head));
		head = head_with_value("HTTP/1.1 200 OK", n, n);
		assert_untouched(egress, &(struct spec){ .from_server = true,
							 .seq = SERVER_NEXT,
							 .ack = c.request_next,
							 .flags = PSH_ACK,
							 .text = head });
		c = conn_look(false);
		assert_int_equal(c.responses, 1);
		assert_int_equal(c.response_next, SERVER_NEXT + strlen(head));
	}
}

static void test_no_place_in_a_value_is_overlooked(void **state)
{
	(void)state;
	for (size_t bad = 0; bad < 300; bad++) {
		connect_ends(false);
		run(ingress, &(struct spec){ .seq = CLIENT_NEXT,
					     .ack = SERVER_NEXT,
					     .flags = PSH_ACK,
					     .text = head_with_value("GET /a HTTP/1.1\r\nHost: x", 300, bad) });
		assert_int_equal(counter(WEIR_PASSED), 0);
		assert_int_equal(conn_look(false).requests, 0);
	}
}

static void test_health_is_exempt(void **state)
{
	(void)state;
	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
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
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
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

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(foreign_packets_are_untouched),
		TEST(bad_checksum_is_dropped),
		TEST(unacceptable_is_dropped),
		TEST(nothing_is_urgent),
		TEST(bad_checksum_of_an_opaque_connection),
		TEST(unread_passes_unharmed),
		TEST(split_head_passes),
		TEST(values_of_any_length_are_read),
		TEST(no_place_in_a_value_is_overlooked),
		TEST(health_is_exempt),
		TEST(dry_run_and_pause),
	};

	return cmocka_run_group_tests_name("pass", tests, attached_open, attached_close);
}
