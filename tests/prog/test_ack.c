/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Acknowledgements that go by before they are parsed: what has its checksum left to the device. The same segment with a checksum of its own is parsed.
 * Whatever it is, both have the same verdict, and leave the same of the connection.
 */
#include "ends.h"
#include "limited.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <string.h>

#define STATED 1000 /* by earlier timestamps */

static const __u8 sack[12] = { 1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2 }, nops[12] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

struct outcome {
	int verdict;
	struct weir_conn conn;
	__u64 bad_checksum;
};

/* How the connection is before the segment comes. */
struct scene {
	__u8 ended, client_reset, dying, opaque_why, phase, fins;
	bool no_ts;
};

/* From these numbers on. */
static void connect_at(const struct scene *scene, bool ipv6, __u32 client_next, __u32 server_next)
{
	struct weir_conn c = {};
	struct weir_flow flow;

	weir_conn_open(&c, 0, WEIR_PHASE_FOLLOWED, client_next, server_next, 501);
	c.splice.told = server_next;
	c.phase = scene->phase ? scene->phase : WEIR_PHASE_FOLLOWED;
	c.ended = scene->ended;
	c.client_reset = scene->client_reset;
	c.dying = scene->dying;
	c.opaque_why = scene->opaque_why;
	c.splice.fins = scene->fins;
	c.splice.server_end = server_next + 100;
	c.splice.has_ts = c.splice.client_has_ts = !scene->no_ts;
	c.splice.client_tsval = STATED;
	packet_flow(ipv6, &flow);
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &c, BPF_ANY), 0);
}

static void connect_in(const struct scene *scene, bool ipv6)
{
	connect_at(scene, ipv6, CLIENT_NEXT, SERVER_NEXT);
}

static struct outcome outcome_of(struct spec spec, const struct scene *scene, bool begun)
{
	struct outcome o = { 0 };
	struct weir_flow flow;

	connect_in(scene, spec.ipv6);
	packet_flow(spec.ipv6, &flow);
	spec.begun_checksum = begun;
	o.bad_checksum = counter(WEIR_BAD_CHECKSUM);
	o.verdict = run(ingress, &spec);
	o.bad_checksum = counter(WEIR_BAD_CHECKSUM) - o.bad_checksum;
	if (bpf_map_lookup_elem(dp->maps.conns, &flow, &o.conn))
		memset(&o.conn, 0, sizeof(o.conn));
	/* What is parsed has times and random numbers noted. */
	o.conn.last_ns = 0;
	memset(&o.conn.unconfirmed, 0, sizeof(o.conn.unconfirmed));
	o.conn.busy = !!o.conn.busy;
	o.conn.badge = !!o.conn.badge;
	return o;
}

static void assert_same(const struct spec *spec, const struct scene *scene)
{
	struct outcome at_once = outcome_of(*spec, scene, true), parsed = outcome_of(*spec, scene, false);

	assert_int_equal(at_once.verdict, parsed.verdict);
	assert_int_equal(at_once.bad_checksum, parsed.bad_checksum);
	assert_memory_equal(&at_once.conn, &parsed.conn, sizeof(parsed.conn));
}

static const struct scene plain = { 0 };

/* In the order of the numbers: behind, at and beyond what was seen. */
static const __u32 seqs[] = { CLIENT_NEXT - 1, CLIENT_NEXT, CLIENT_NEXT + 1, CLIENT_NEXT + 0x80000000U };
static const __u32 acks[] = { SERVER_NEXT - 1,	 SERVER_NEXT,	    SERVER_NEXT + 1,
			      SERVER_NEXT + 100, SERVER_NEXT + 101, SERVER_NEXT + 0x80000000U };

static void test_numbers(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof(seqs) / sizeof(*seqs); s++)
		for (size_t a = 0; a < sizeof(acks) / sizeof(*acks); a++)
			assert_same(&(struct spec){ .ipv6 = a & 1, .seq = seqs[s], .ack = acks[a], .flags = ACK },
				    &plain);
}

static void test_timestamps(void **state)
{
	(void)state;
	for (__u32 tsval = STATED - 1; tsval <= STATED + 1; tsval++)
		for (int no_ts = 0; no_ts <= 1; no_ts++)
			assert_same(&(struct spec){ .seq = CLIENT_NEXT,
						    .ack = SERVER_NEXT + 1,
						    .flags = ACK,
						    .ts = true,
						    .tsval = tsval },
				    &(struct scene){ .no_ts = no_ts });
}

/* Where what is urgent is made ordinary, the checksum is changed: a test run's packet has none that is left to the device then. */
static void test_every_flag(void **state)
{
	(void)state;
	for (__u32 flags = 0; flags <= 0xff; flags++)
		if (!(flags & WEIR_TCP_URG))
			assert_same(&(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT + 1, .flags = flags },
				    &plain);
	run(ingress,
	    &(struct spec){
		    .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = ACK | WEIR_TCP_URG, .begun_checksum = true });
	assert_int_equal(counter(WEIR_URGENT_REMOVED), 1);
}

/* With options, or bytes (of a head that goes on), it is none that goes by. */
static void test_what_else_it_has(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	const struct spec ack = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT + 1, .flags = ACK };
	struct spec spec;

	(void)state;
	for (int ts = 0; ts <= 1; ts++) {
		spec = ack;
		spec.ts = ts;
		spec.options = sack;
		spec.n_options = sizeof(sack);
		assert_same(&spec, &plain);
		spec.options = nops;
		for (spec.n_options = 4; spec.n_options <= sizeof(nops); spec.n_options += 4)
			assert_same(&spec, &plain);
		spec = ack;
		spec.ts = ts;
		spec.text = text;
		for (spec.n_text = 1; spec.n_text < sizeof(text) - 1; spec.n_text++)
			assert_same(&spec, &plain);
	}
}

static void test_connections(void **state)
{
	static const struct scene scenes[] = {
		{ .ended = WEIR_ENDED },
		{ .client_reset = 1 },
		{ .dying = 1 },
		{ .phase = WEIR_PHASE_OPAQUE, .opaque_why = WEIR_TLS },
		{ .phase = WEIR_PHASE_OPAQUE, .opaque_why = WEIR_SIGNED },
		{ .phase = WEIR_PHASE_HUNTING },
		{ .phase = WEIR_PHASE_CLOSED },
		{ .fins = WEIR_SPLICE_CLIENT_FIN },
		{ .fins = WEIR_SPLICE_SERVER_FIN },
		{ .fins = WEIR_SPLICE_CLIENT_FIN | WEIR_SPLICE_SERVER_FIN },
	};
	const struct spec ack = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT + 1, .flags = ACK };

	(void)state;
	for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
		assert_same(&ack, &scenes[i]);
}

/* It goes by, and what it acknowledges is noted; what has another checksum is dropped, and is not. */
static void test_checksum(void **state)
{
	const struct spec ack = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT + 1, .flags = ACK };
	struct spec bad = ack;
	struct outcome o;

	(void)state;
	for (int begun = 0; begun <= 1; begun++) {
		o = outcome_of(ack, &plain, begun);
		assert_int_equal(o.verdict, PASS);
		assert_int_equal(o.conn.splice.client_acked, SERVER_NEXT + 1);
		bad.bad_checksum = true;
		o = outcome_of(bad, &plain, begun);
		assert_int_equal(o.verdict, DROP);
		assert_int_equal(o.bad_checksum, 1);
		assert_int_equal(o.conn.splice.client_acked, SERVER_NEXT);
	}
}

/* Without room for a TCP header, with one that says it is longer than the packet, and with bytes behind the packet. */
static void test_lengths(void **state)
{
	const struct spec ack = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT + 1, .flags = ACK, .begun_checksum = true };
	const size_t header = sizeof(struct ethhdr) + sizeof(struct iphdr);

	(void)state;
	for (__u8 words = 0; words <= 15; words++) {
		connect_in(&plain, false);
		packet_build(&packet, &ack);
		packet.bytes[header + 12] = words << 4;
		assert_int_equal(packet_run(ingress, &packet), PASS);
		assert_int_equal(conn_look(false).splice.client_acked, SERVER_NEXT + (words == 5));
	}
	connect_in(&plain, false);
	packet_build(&packet, &ack);
	packet.length += 6; /* Ethernet's padding */
	assert_int_equal(packet_run(ingress, &packet), PASS);
	assert_int_equal(conn_look(false).splice.client_acked, SERVER_NEXT + 1);
}

static int teardown_ends(void **state)
{
	ends_close();
	return attached_teardown(state);
}

#define ENDS(name) cmocka_unit_test_setup_teardown(test_##name, attached_setup, teardown_ends)

/* The server's socket has ended, or may have by then: the segment brings a SYN cookie back, and limits on connections are asked. */
static void test_cookies(void **state)
{
	static const struct scene over[] = {
		{ .ended = WEIR_ENDED_ANSWERS },
		{ .ended = WEIR_ENDED },
		{ .client_reset = 1 },
		{ .dying = 1 },
		{ .phase = WEIR_PHASE_CLOSED },
		{ .fins = WEIR_SPLICE_CLIENT_FIN },
		{ .fins = WEIR_SPLICE_SERVER_FIN },
	};
	static const struct datapath_limit none = {
		.kind = WEIR_LIMIT_CONNECTION_RATE, .reason = WEIR_SHED_COMBINED, .epoch = 1, .amount = { .set = true }
	};
	struct spec ack = { .flags = ACK, .begun_checksum = true };

	(void)state;
	assert_int_equal(inside("sysctl -qw net.ipv4.tcp_syncookies=2"), 0);
	assert_int_equal(call_inside(ends_make, NULL), 0);
	assert_int_equal(inside("sysctl -qw net.ipv4.tcp_syncookies=1"), 0);
	ack.seq = ends_queue(TCP_RECV_QUEUE);
	ack.ack = ends_queue(TCP_SEND_QUEUE);
	ends_part();
	slot_set(&none);
	rule_set("{}");
	for (size_t i = 0; i < sizeof(over) / sizeof(*over); i++) {
		connect_at(&over[i], false, ack.seq, ack.ack);
		assert_int_equal(run(ingress, &ack), DROP);
		assert_int_equal(counter(WEIR_ADMISSION_DROPPED), i + 1);
	}
	connect_at(&plain, false, ack.seq, ack.ack);
	assert_int_equal(run(ingress, &ack), PASS);
}

/* The server drops what is not signed: so it acknowledges nothing. */
static void test_unsigned(void **state)
{
	const struct scene is_signed = { .phase = WEIR_PHASE_OPAQUE, .opaque_why = WEIR_SIGNED };
	struct spec ack = { .flags = ACK, .begun_checksum = true };
	int ret;

	(void)state;
	assert_int_equal(call_inside(ends_make, NULL), 0);
	ack.seq = ends_queue(TCP_RECV_QUEUE);
	ack.ack = ends_queue(TCP_SEND_QUEUE);
	ret = ends_sign();
	if (ret == -ENOPROTOOPT)
		skip();
	assert_int_equal(ret, 0);
	connect_at(&is_signed, false, ack.seq, ack.ack - 1);
	assert_int_equal(run(ingress, &ack), DROP);
	assert_int_equal(counter(WEIR_UNACCEPTABLE), 1);
	assert_int_equal(conn_look(false).splice.client_acked, ack.ack - 1);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(numbers),	TEST(timestamps), TEST(every_flag), TEST(what_else_it_has), TEST(connections),
		TEST(checksum), TEST(lengths),	  ENDS(cookies),    ENDS(unsigned),
	};

	return cmocka_run_group_tests(tests, attached_open, attached_close);
}
