/* SPDX-License-Identifier: GPL-2.0 */
/* Paths for which packets are too big: ICMP errors quote the server's packets in its own numbers, and answers may be fragmented. */
#include "attached.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <string.h>

#define ETHERNET 14
#define ICMP 1
#define ICMPV6 58
#define ICMP_HEAD 8
#define QUOTED_TCP 8 /* no router has to quote more */
#define UNREACHABLE 3
#define TOO_BIG 2 /* ICMPv6 */
#define ECHO 8
#define ECHO6 128
#define ANSWER_END (SERVER_NEXT + 300)

static size_t ip_length(bool ipv6)
{
	return ipv6 ? 40 : 20;
}

static __u16 icmp_sum(const struct packet *p, bool ipv6)
{
	size_t at = ETHERNET + ip_length(ipv6), n = p->length - at;
	__u32 sum = ipv6 ? ICMPV6 + n : 0;

	for (size_t i = ipv6 ? ETHERNET + 8 : at; i < p->length; i++)
		sum += i % 2 ? p->bytes[i] : p->bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* A message of this type, which quotes a packet of the server's with this number. */
static void quote(struct packet *p, bool ipv6, __u8 type, __u32 seq, __u16 port)
{
	size_t at = ETHERNET + ip_length(ipv6), n = ip_length(ipv6) + QUOTED_TCP;
	struct packet quoted;
	__u16 check;

	packet_build(&quoted,
		     &(struct spec){ .ipv6 = ipv6, .from_server = true, .seq = seq, .flags = ACK, .port = port });
	packet_build(p, &(struct spec){ .ipv6 = ipv6, .protocol = ipv6 ? ICMPV6 : ICMP });
	p->length = at + ICMP_HEAD + n;
	memset(p->bytes + at, 0, ICMP_HEAD);
	p->bytes[at] = type;
	memcpy(p->bytes + at + ICMP_HEAD, quoted.bytes + ETHERNET, n);
	check = htons(ICMP_HEAD + n);
	if (ipv6)
		memcpy(p->bytes + ETHERNET + 4, &check, 2);
	else
		p->bytes[ETHERNET + 3] = p->length - ETHERNET;
	packet_sum_ip(p);
	check = htons(~icmp_sum(p, ipv6));
	memcpy(p->bytes + at + 2, &check, 2);
	assert_int_equal(icmp_sum(p, ipv6), 0xffff);
}

/* What the server is told when this number of its packet is quoted. */
static void check_quote(bool ipv6, __u8 type, __u32 seq, __u16 port, __u32 want)
{
	struct packet before;

	quote(&packet, ipv6, type, seq, port);
	quote(&before, ipv6, type, want, port);
	assert_int_equal(packet_run(ingress, &packet), PASS);
	assert_int_equal(icmp_sum(&packet, ipv6), 0xffff);
	assert_int_equal(packet.length, before.length);
	assert_memory_equal(packet.bytes, before.bytes, before.length);
}

static void cut(bool ipv6)
{
	struct weir_conn c;
	struct weir_flow flow;

	connect_ends(ipv6);
	c = conn_look(ipv6);
	c.splice.cuts = 2;
	c.splice.answer_start = SERVER_NEXT + 200;
	c.splice.answer_length = 100;
	c.splice.out_off = 150;
	packet_flow(ipv6, &flow);
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &c, BPF_ANY), 0);
}

static void test_numbers(void **state)
{
	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		__u8 type = ipv6 ? TOO_BIG : UNREACHABLE;

		cut(ipv6);
		check_quote(ipv6, type, ANSWER_END + 1000, SERVER_PORT, ANSWER_END + 1000 - 150);
		check_quote(ipv6, type, ANSWER_END, SERVER_PORT, ANSWER_END - 150);
		check_quote(ipv6, type, ANSWER_END - 1, SERVER_PORT, ANSWER_END - 150);
		check_quote(ipv6, type, SERVER_NEXT + 200, SERVER_PORT, SERVER_NEXT + 150);
		check_quote(ipv6, type, SERVER_NEXT + 100, SERVER_PORT, SERVER_NEXT + 50);
	}
}

static void test_others_are_left_alone(void **state)
{
	__u32 seq = ANSWER_END + 1000;

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		connect_ends(ipv6);
		check_quote(ipv6, ipv6 ? TOO_BIG : UNREACHABLE, seq, SERVER_PORT, seq);
		cut(ipv6);
		check_quote(ipv6, ipv6 ? ECHO6 : ECHO, seq, SERVER_PORT, seq);
		check_quote(ipv6, ipv6 ? TOO_BIG : UNREACHABLE, seq, SERVER_PORT + 1, seq);
	}
}

/* Nobody makes an answer smaller when a router says that it is too big. */
static void test_answers_may_be_fragmented(void **state)
{
	struct seen seen;

	(void)state;
	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a }),
			 PASS);
	assert_answer(&seen, "3600", true);
	assert_int_equal(packet.bytes[ETHERNET + 6] | packet.bytes[ETHERNET + 7], 0);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(numbers),
		TEST(others_are_left_alone),
		TEST(answers_may_be_fragmented),
	};

	return cmocka_run_group_tests_name("quoted", tests, attached_open, attached_close);
}
