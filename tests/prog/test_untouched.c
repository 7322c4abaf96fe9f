/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet of a connection that was never answered leaves bit for bit as it came, whatever it looks like. The exceptions,
 * each of which changes what it says and the checksum, and nothing else, are at the end: MPTCP's and TCP Fast Open's options
 * of a SYN, the flag of one that asks for accurate ECN, and the urgent mark.
 */
#include "attached.h"

#include <bpf/bpf.h>
#include <string.h>

/* Where the TCP header begins. */
static __u8 *tcp_of(struct packet *p)
{
	return p->bytes + 14 + (p->bytes[12] == 0x86 ? 40 : (p->bytes[14] & 15) * 4);
}

/* --- what can be different about a packet; the TCP checksum is made right afterwards by difference */

static void as_it_is(struct packet *p)
{
	(void)p;
}

static void change_16(struct packet *p, __u8 *at, __u16 to)
{
	__u8 *check = tcp_of(p) + 16;
	__u32 sum = (__u16) ~(check[0] << 8 | check[1]) + (__u16) ~(at[0] << 8 | at[1]) + to;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	at[0] = to >> 8;
	at[1] = to;
	check[0] = sum >> 8;
	check[1] = sum;
}

static void reserved_bits_and_ecn(struct packet *p)
{
	__u8 *at = tcp_of(p) + 12;

	change_16(p, at, at[0] << 8 | 0x0f00 | at[1] | 0xc0); /* AE and the reserved three, CWR, ECE */
}

static void no_window(struct packet *p)
{
	change_16(p, tcp_of(p) + 14, 0);
}

static void urgent_pointer_without_its_flag(struct packet *p)
{
	change_16(p, tcp_of(p) + 18, 7);
}

static void traffic_class(struct packet *p)
{
	if (p->bytes[12] == 0x86) {
		p->bytes[14] = 0x6b;
		memset(p->bytes + 15, 0xff, 3); /* flow label */
	} else {
		p->bytes[15] = 0xbb; /* DSCP, and congestion experienced */
	}
	packet_sum_ip(p);
}

static void last_hop(struct packet *p)
{
	p->bytes[p->bytes[12] == 0x86 ? 21 : 22] = 1;
	packet_sum_ip(p);
}

static void may_be_fragmented(struct packet *p)
{
	if (p->bytes[12] != 0x86)
		memset(p->bytes + 18, 0, 4); /* no identification, no DF */
	packet_sum_ip(p);
}

static void ethernet_addresses(struct packet *p)
{
	memcpy(p->bytes, "\x02\x01\x02\x03\x04\x05\x02\x11\x12\x13\x14\x15", 12);
}

static void ethernet_trailer(struct packet *p)
{
	memcpy(p->bytes + p->length, "GET / HTTP/1.1\r\n\r\n", 18);
	p->length += 18;
}

static void (*const differences[])(struct packet *p) = {
	as_it_is,	    reserved_bits_and_ecn,
	no_window,	    urgent_pointer_without_its_flag,
	traffic_class,	    last_hop,
	may_be_fragmented,  ethernet_addresses,
	packet_lengthen_ip, ethernet_trailer,
};

/* --- what it says */

static const __u8 sack_1[12] = { 1, 1, 5, 10, 0, 7, 0xa1, 0x21, 0, 7, 0xa1, 0x22 };
static const __u8 sack_3[28] = { 5, 26, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7 };
static const __u8 unknown[8] = { 254, 6, 0xf9, 0x89, 1, 2, 0, 0xff };
static const __u8 malformed[4] = { 77, 99, 1, 1 };
static const __u8 no_meaning[4] = { 1, 1, 1, 1 };

static const struct spec from_client[] = {
	{ .flags = ACK },
	{ .flags = PSH_ACK, .text = get_a },
	{ .flags = ACK, .text = "GET /only/the/beginn" },
	{ .flags = FIN_ACK },
	{ .flags = FIN_ACK, .text = get_a },
	{ .flags = WEIR_TCP_RST },
	{ .flags = WEIR_TCP_RST | ACK },
	{ .flags = PSH_ACK, .text = get_a, .ts = true, .tsval = 7, .tsecr = 70 },
	{ .flags = ACK, .ts = true, .tsval = 7, .tsecr = 70, .options = sack_1, .n_options = sizeof(sack_1) },
	{ .flags = ACK, .options = sack_3, .n_options = sizeof(sack_3) },
	{ .flags = PSH_ACK, .text = get_a, .options = unknown, .n_options = sizeof(unknown) },
	{ .flags = PSH_ACK, .text = get_a, .options = malformed, .n_options = sizeof(malformed) },
	{ .flags = PSH_ACK, .text = get_a, .options = no_meaning, .n_options = sizeof(no_meaning), .window = 0xffff },
	{ .flags = PSH_ACK, .text = "\x16\x03\x01\x00\xa5\x01", .n_text = 6 },
};

static const struct spec from_server[] = {
	{ .flags = ACK },
	{ .flags = PSH_ACK, .text = ok },
	{ .flags = FIN_ACK, .text = ok },
	{ .flags = FIN_ACK },
	{ .flags = WEIR_TCP_RST },
	{ .flags = PSH_ACK, .text = ok, .ts = true, .tsval = 70, .tsecr = 7 },
	{ .flags = ACK, .ts = true, .tsval = 70, .tsecr = 7, .options = sack_1, .n_options = sizeof(sack_1) },
	{ .flags = ACK, .options = sack_3, .n_options = sizeof(sack_3) },
	{ .flags = PSH_ACK, .text = ok, .options = unknown, .n_options = sizeof(unknown) },
	{ .flags = PSH_ACK, .text = "nobody asked for this" },
};

static void same(int program, const struct packet *before, __u32 gso_size)
{
	struct __sk_buff context = {};

	packet = *before;
	if (gso_size)
		assert_int_equal(packet_run_gro(program, &packet, gso_size), PASS);
	else
		assert_int_equal(packet_run_in(program, &packet, &context), PASS);
	assert_int_equal(packet.length, before->length);
	assert_memory_equal(packet.bytes, before->bytes, before->length);
	assert_int_equal(context.mark, 0);
	assert_int_equal(context.priority, 0); /* connect_ends() gives no badge: test_badge.c */
	assert_int_equal(context.tstamp, 0);
}

static void all_same(const struct spec *specs, size_t n, bool server, bool ipv6)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < sizeof(differences) / sizeof(*differences); j++) {
			struct spec spec = specs[i];
			struct packet before;

			spec.ipv6 = ipv6;
			spec.from_server = server;
			spec.seq = server ? SERVER_NEXT : CLIENT_NEXT;
			spec.ack = server ? CLIENT_NEXT : SERVER_NEXT;
			packet_build(&before, &spec);
			differences[j](&before);
			connect_ends(ipv6);
			same(server ? egress : ingress, &before, 0);
		}
	}
}

static void test_from_client(void **state)
{
	(void)state;
	all_same(from_client, sizeof(from_client) / sizeof(*from_client), false, false);
	all_same(from_client, sizeof(from_client) / sizeof(*from_client), false, true);
}

static void test_from_server(void **state)
{
	(void)state;
	all_same(from_server, sizeof(from_server) / sizeof(*from_server), true, false);
	all_same(from_server, sizeof(from_server) / sizeof(*from_server), true, true);
}

/* As large as a test run takes; packets of 64 KiB and BIG TCP: tests/e2e/test_tcp.py. */
static void test_gro(void **state)
{
	static char text[3000];
	const size_t n = strlen(get_a);

	(void)state;
	for (size_t at = 0; at + n < sizeof(text); at += n)
		memcpy(text + at, get_a, n);
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct packet before;

		packet_build(
			&before,
			&(struct spec){
				.ipv6 = ipv6, .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = text });
		connect_ends(ipv6);
		same(ingress, &before, 500);
		packet_build(&before, &(struct spec){ .ipv6 = ipv6,
						      .from_server = true,
						      .seq = SERVER_NEXT,
						      .ack = CLIENT_NEXT,
						      .flags = PSH_ACK,
						      .text = text });
		connect_ends(ipv6);
		same(egress, &before, 500);
	}
}

/* --- the exceptions */

/* Nothing changes but `n` bytes from `at` on, and the TCP checksum. */
static void changes_only(const struct spec *spec, size_t at, size_t n)
{
	struct packet before;
	__u8 *tcp;

	packet_build(&before, spec);
	assert_int_equal(run(ingress, spec), PASS);
	packet_see(&packet, &(struct seen){});
	tcp = tcp_of(&packet);
	assert_int_equal(packet.length, before.length);
	assert_memory_not_equal(tcp + at, tcp_of(&before) + at, n);
	memcpy(tcp + at, tcp_of(&before) + at, n);
	memcpy(tcp + 16, tcp_of(&before) + 16, 2);
	assert_memory_equal(packet.bytes, before.bytes, before.length);
}

static void test_exceptions(void **state)
{
	static const __u8 mptcp[4] = { 30, 4, 0, 1 }, tfo[4] = { 34, 2, 1, 1 };

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct spec syn = { .ipv6 = ipv6, .seq = CLIENT_NEXT - 1, .flags = WEIR_TCP_SYN, .n_options = 4 };
		struct spec urgent = { .ipv6 = ipv6,
				       .seq = CLIENT_NEXT,
				       .ack = SERVER_NEXT,
				       .flags = PSH_ACK | WEIR_TCP_URG,
				       .urgent = 3,
				       .text = get_a };

		syn.options = mptcp;
		changes_only(&syn, 20, 4);
		syn.options = tfo;
		changes_only(&syn, 20, 2);
		connect_ends(ipv6);
		changes_only(&urgent, 13, 7);
	}
}

#define ACCURATE_ECN 0x1c0 /* AE, CWR and ECE */
#define ECN 0xc0	   /* the same as RFC 3168 asks for it: CWR and ECE */

/* A packet to the server, with these flags of ECN. */
static void build_with_ecn(struct packet *p, const struct spec *spec, __u16 flags)
{
	packet_build(p, spec);
	change_16(p, tcp_of(p) + 12, (tcp_of(p)[12] << 8 | tcp_of(p)[13]) | flags);
}

/* Also of one that has MPTCP's option, which is taken off, and of one with data. */
static void test_accurate_ecn(void **state)
{
	static const __u8 mptcp[4] = { 30, 4, 0, 1 }, nops[4] = { 1, 1, 1, 1 };
	struct packet expected;

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (int n_options = 0; n_options <= 4; n_options += 4) {
			struct spec syn = { .ipv6 = ipv6, .seq = 1, .flags = WEIR_TCP_SYN, .n_options = n_options };

			syn.options = nops;
			build_with_ecn(&expected, &syn, ECN);
			same(ingress, &expected, 0);
			syn.options = mptcp;
			build_with_ecn(&packet, &syn, ACCURATE_ECN);
			assert_int_equal(packet_run(ingress, &packet), PASS);
			assert_memory_equal(packet.bytes, expected.bytes, expected.length);
			syn.text = get_a;
			build_with_ecn(&packet, &syn, ACCURATE_ECN);
			assert_int_equal(packet_run(ingress, &packet), PASS);
			assert_memory_equal(tcp_of(&packet) + 12, tcp_of(&expected) + 12, 2);
			packet_see(&packet, &(struct seen){});
		}
	}
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(from_client), TEST(from_server), TEST(gro), TEST(exceptions), TEST(accurate_ecn),
	};

	return cmocka_run_group_tests_name("untouched", tests, attached_open, attached_close);
}
