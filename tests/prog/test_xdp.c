/* SPDX-License-Identifier: GPL-2.0 */
/* XDP drops the SYN of a connection that is refused, and nothing else: whatever is in front of it, and wherever it is cut off. */
#include "frames.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define ETHERNET 14

static const struct spec syn4 = { .seq = 1, .flags = WEIR_TCP_SYN },
			 syn6 = { .ipv6 = true, .seq = 1, .flags = WEIR_TCP_SYN };

/* A server that admits nobody. */
static int setup(void **state)
{
	struct datapath_limit limit = rate_of(0, 0, 0);
	int ret = attached_setup(state);

	limit.kind = WEIR_LIMIT_CONNECTION_RATE;
	slot_set(&limit);
	rules_set(&(struct rules_entry){ .limit = SLOT, .connections = true }, 1);
	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP, &error));
	device_add(0, 0);
	return ret;
}

static void build(struct packet *p, bool ipv6)
{
	packet_build(p, ipv6 ? &syn6 : &syn4);
}

static void assert_drops(const struct packet *p)
{
	__u64 before = counter(WEIR_XDP_DROPPED), attempts = counter(WEIR_ADMISSION_DROPPED);

	assert_int_equal(frame_verdict(p), XDP_DROP);
	assert_int_equal(counter(WEIR_XDP_DROPPED) - before, 2);
	assert_int_equal(counter(WEIR_ADMISSION_DROPPED) - attempts, 2);
}

static void assert_passes(const struct packet *p)
{
	__u64 before = counter(WEIR_XDP_DROPPED);

	assert_int_equal(frame_verdict(p), XDP_PASS);
	assert_int_equal(counter(WEIR_XDP_DROPPED), before);
}

static void test_headers(void **state)
{
	static const __u16 tags[] = { 0x88a8, 7, 0x8100, 5, 0x8100, 3 }, priority[] = { 0x8100, 0xe000 };
	__u32 five = weir_device_tags(0, 5, false), seven = weir_device_tags(0, 7, true);

	(void)state;
	device_add(five, 0);
	device_add(seven << 16 | five, 0);
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		build(&packet, ipv6);
		assert_drops(&packet);
		packet_lengthen_ip(&packet);
		assert_drops(&packet);
		frame_tag(&packet, tags + 2, 1);
		assert_drops(&packet);
		frame_tag(&packet, tags, 1);
		assert_drops(&packet);
		frame_tag(&packet, tags + 4, 1); /* a third */
		assert_passes(&packet);
		build(&packet, ipv6);
		frame_tag(&packet, priority, 1);
		assert_drops(&packet);
		build(&packet, ipv6);
		frame_tag(&packet, tags + 4, 1); /* of nobody here */
		assert_passes(&packet);
		build(&packet, ipv6);
		frame_tag(&packet, tags, 1);
		assert_passes(&packet);
	}
	build(&packet, true);
	packet_extend(&packet, 32, true);
	assert_drops(&packet);
	build(&packet, true);
	packet_extend(&packet, 33, true);
	assert_passes(&packet);
}

/* Cut off anywhere, it is no SYN any more: tc and the kernel see to it. */
static void test_every_truncation(void **state)
{
	static const __u16 tags[] = { 0x88a8, 7, 0x8100, 5 };
	static const __u8 options[] = { 2, 4, 5, 0xb4, 4, 2, 1, 1 };

	(void)state;
	device_add(weir_device_tags(weir_device_tags(0, 7, true), 5, false), 0);
	for (int kind = 0; kind < 8; kind++) {
		struct spec spec = {
			.ipv6 = kind & 1, .seq = 1, .flags = WEIR_TCP_SYN, .options = options, .n_options = 8
		};
		struct packet cut;

		packet_build(&packet, &spec);
		if (kind & 2)
			packet_lengthen_ip(&packet);
		if (kind & 4)
			frame_tag(&packet, tags, 2);
		assert_drops(&packet);
		cut = packet;
		for (cut.length = ETHERNET; cut.length < packet.length; cut.length++)
			assert_passes(&cut);
	}
}

static void test_what_tc_sees_to(void **state)
{
	static const __u8 flags[] = { WEIR_TCP_ACK,
				      WEIR_TCP_SYN | WEIR_TCP_ACK,
				      WEIR_TCP_SYN | WEIR_TCP_FIN,
				      WEIR_TCP_SYN | WEIR_TCP_RST,
				      WEIR_TCP_RST,
				      0 };
	struct spec spec = syn4;

	(void)state;
	for (size_t i = 0; i < sizeof(flags); i++) {
		spec.flags = flags[i];
		packet_build(&packet, &spec);
		assert_passes(&packet);
	}
	spec = (struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .bad_checksum = true };
	packet_build(&packet, &spec);
	assert_passes(&packet);
	spec = (struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .port = SERVER_PORT + 1 };
	packet_build(&packet, &spec);
	assert_passes(&packet);
	spec = (struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .protocol = IPPROTO_UDP };
	packet_build(&packet, &spec);
	assert_passes(&packet);

	spec = (struct spec){ .ipv6 = true, .mapped = true, .seq = 1, .flags = WEIR_TCP_SYN };
	packet_build(&packet, &spec); /* the kernel drops it */
	assert_passes(&packet);
	build(&packet, false);
	packet.bytes[5] = 9; /* for another host */
	assert_passes(&packet);
	build(&packet, false);
	packet.bytes[ETHERNET + 6] = 0x20; /* more fragments */
	packet_sum_ip(&packet);
	assert_passes(&packet);
	build(&packet, false);
	packet.bytes[ETHERNET + 7] = 1; /* a later fragment */
	packet_sum_ip(&packet);
	assert_passes(&packet);
	build(&packet, false);
	packet.bytes[ETHERNET + 11] ^= 1; /* its sum */
	assert_passes(&packet);
	build(&packet, false);
	packet.bytes[ETHERNET + 20 + 12] = 4 << 4; /* a TCP header of 16 bytes */
	assert_passes(&packet);
	build(&packet, false);
	packet.bytes[ETHERNET + 20 + 12] = 15 << 4; /* of 60 */
	assert_passes(&packet);
}

/* Off, paused, detached, without limits: XDP lets all pass. */
static void test_who_is_not_asked(void **state)
{
	static const __u32 flags[] = { WEIR_SERVER_ACTIVE, WEIR_SERVER_XDP,
				       WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP | WEIR_SERVER_PAUSED,
				       WEIR_SERVER_DRAINING | WEIR_SERVER_XDP,
				       WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP | WEIR_SERVER_DRY_RUN };

	(void)state;
	build(&packet, false);
	assert_drops(&packet);
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		done(datapath_server_flags(dp, 0, flags[i], &error));
		assert_passes(&packet);
	}
	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP, &error));
	assert_drops(&packet);
	done(datapath_limit_delete(dp, 0, SLOT, &error));
	assert_passes(&packet);
}

/* What is for an address of another host's, or of another namespace's, is none of this one's. */
static void test_other_addresses(void **state)
{
	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		build(&packet, ipv6);
		assert_drops(&packet);
		address_drop(ipv6);
		assert_passes(&packet);
		address_add(ipv6, 0);
		assert_drops(&packet);
	}
	assert_int_equal(counter(WEIR_ADMISSION_DROPPED), 8);
}

/* What passes has taken nothing, and is counted nowhere: nor what tc answers by a RST. */
static void test_what_passes_leaves_no_trace(void **state)
{
	struct datapath_limit limit = rate_of(WEIR_KEY_SOURCE, 0, 3);

	(void)state;
	limit.kind = WEIR_LIMIT_CONNECTION_RATE;
	slot_set(&limit);
	build(&packet, false);
	for (int i = 0; i < 20; i++)
		assert_passes(&packet);
	limit.amount.burst = 0;
	limit.flags = WEIR_LIMIT_RESET;
	slot_set(&limit);
	for (int i = 0; i < 20; i++)
		assert_passes(&packet);
	assert_int_equal(counts(SLOT).admitted + counts(SLOT).refused, 0);
	assert_int_equal(counter(WEIR_ADMITTED), 0);
	assert_int_equal(bpf_map_get_next_key(dp->maps.admitted, NULL, &(struct weir_flow){}), -ENOENT);
}

/* A jumbo frame is in pieces of a page. Each of its bytes is in the sum, and a frame that ends before its packet passes. */
static void test_several_pieces(void **state)
{
	static char data[3 * 4096];
	struct spec spec = { .seq = 1, .flags = WEIR_TCP_SYN, .text = data };

	(void)state;
	memset(data, 'x', sizeof(data));
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		spec.ipv6 = ipv6;
		for (spec.n_text = 1; spec.n_text < 9000; spec.n_text += 171) {
			struct packet other;

			packet_build(&packet, &spec);
			assert_int_equal(native_verdict(&packet), XDP_DROP);
			other = packet;
			other.bytes[packet.length - 1] ^= 1;
			assert_int_equal(native_verdict(&other), XDP_PASS);
			other = packet;
			other.length--;
			assert_int_equal(native_verdict(&other), XDP_PASS);
		}
	}
}

/* Nothing that the bytes say brings it out of order; and what it drops is a whole SYN to the server. */
static void test_any_bytes(void **state)
{
	(void)state;
	srandom(1);
	for (int i = 0; i < 4000; i++) {
		build(&packet, i & 1);
		for (long n = random() % 4; n >= 0; n--)
			packet.bytes[ETHERNET - 2 + random() % (packet.length - ETHERNET + 2)] ^= 1 << random() % 8;
		if (i % 3 == 0)
			packet.length = ETHERNET + random() % (packet.length - ETHERNET + 1);
		if (frame_verdict(&packet) == XDP_DROP)
			assert_true(packet.length >= ETHERNET + 40U);
	}
}

#define XDP_TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, attached_teardown)

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		XDP_TEST(headers),	    XDP_TEST(every_truncation), XDP_TEST(what_tc_sees_to),
		XDP_TEST(who_is_not_asked), XDP_TEST(other_addresses),	XDP_TEST(what_passes_leaves_no_trace),
		XDP_TEST(several_pieces),   XDP_TEST(any_bytes),
	};

	return cmocka_run_group_tests_name("xdp", tests, frames_open, frames_close);
}
