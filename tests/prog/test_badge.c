/* SPDX-License-Identifier: GPL-2.0 */
/* Which packets bear their connection's badge: those that were read. Only such a packet is taken at the socket. */
#include "attached.h"

#include <bpf/bpf.h>
#include <string.h>

#define BADGE 0x80001234U
#define UNREAD 0x80000000U /* it came by a device with the program, but could not be read */
#define EXTENSIONS_READ 32

static void connect_with_badge(bool ipv6)
{
	struct weir_flow flow;
	struct weir_conn c;

	connect_ends(ipv6);
	packet_flow(ipv6, &flow);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &flow, &c), 0);
	c.badge = BADGE;
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &c, BPF_ANY), 0);
}

/* The badge with which the latest packet passes. */
static __u32 badge_of_packet(void)
{
	struct __sk_buff context;

	assert_int_equal(packet_run_in(ingress, &packet, &context), PASS);
	return context.priority;
}

static __u32 badge_of(const struct spec *spec)
{
	packet_build(&packet, spec);
	return badge_of_packet();
}

static void test_what_is_read_has_it(void **state)
{
	struct spec spec = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a };

	(void)state;
	connect_with_badge(false);
	assert_int_equal(badge_of(&spec), BADGE);
	assert_int_equal(badge_of(&spec), BADGE); /* again */
	connect_with_badge(false);
	spec.text = "GET / HT";
	assert_int_equal(badge_of(&spec), BADGE);
	spec = (struct spec){ .seq = CLIENT_NEXT + 8, .ack = SERVER_NEXT, .flags = ACK };
	assert_int_equal(badge_of(&spec), 0); /* it brings nothing */
}

static void test_a_fin_has_it(void **state)
{
	(void)state;
	connect_with_badge(true);
	assert_int_equal(
		badge_of(&(struct spec){ .ipv6 = true, .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = FIN_ACK }),
		BADGE);
}

static void test_what_is_not_read_has_none(void **state)
{
	struct spec spec = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a };

	(void)state;
	assert_int_equal(badge_of(&spec), UNREAD); /* no connection: what the hold makes of it is not known here */
	connect_with_badge(false);
	spec.port = SERVER_PORT + 1;
	assert_int_equal(badge_of(&spec), 0);
	spec.port = 0;
	/* The second of two tags that name no VLAN: the kernel takes it off behind tc. */
	packet_build(&packet, &spec);
	memmove(packet.bytes + 16, packet.bytes + 12, packet.length - 12);
	memcpy(packet.bytes + 12, "\x81\0\0\0", 4);
	packet.length += 4;
	assert_int_equal(badge_of_packet(), UNREAD);
	assert_int_equal(counter(WEIR_PASSED), 0);
}

static void test_extension_headers(void **state)
{
	static const unsigned int read[] = { 1, 4, 5, EXTENSIONS_READ - 1, EXTENSIONS_READ },
				  too_many[] = { EXTENSIONS_READ + 1, 64, 400 };
	const struct spec spec = {
		.ipv6 = true, .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a
	};

	(void)state;
	for (size_t i = 0; i < sizeof(read) / sizeof(*read); i++) {
		connect_with_badge(true);
		packet_build(&packet, &spec);
		packet_extend(&packet, read[i], true);
		assert_int_equal(badge_of_packet(), BADGE);
		assert_int_equal(counter(WEIR_PASSED), i + 1);
	}
	connect_with_badge(true);
	for (size_t i = 0; i < sizeof(too_many) / sizeof(*too_many); i++) {
		packet_build(&packet, &spec);
		packet_extend(&packet, too_many[i], true);
		assert_int_equal(badge_of_packet(), 0);
	}
	packet_build(&packet, &spec);
	packet_extend(&packet, 1, false);
	assert_int_equal(badge_of_packet(), 0);
	assert_int_equal(counter(WEIR_PASSED), sizeof(read) / sizeof(*read));
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_read_has_it),
		TEST(a_fin_has_it),
		TEST(what_is_not_read_has_none),
		TEST(extension_headers),
	};

	return cmocka_run_group_tests_name("badge", tests, attached_open, attached_close);
}
