/* SPDX-License-Identifier: GPL-2.0 */
/* SYNs that are answered at XDP by the kernel's cookie: when, by which frame, and that all others are left as they are. */
#include "frames.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ETHERNET 14
#define SYN_ACK 24 /* bytes of the answer's TCP header: it has the option MSS */
#define MTU 65536  /* of the loopback, which lends its name to the test's frames */

static const __u8 options[] = { 2, 4, 5, 0xb4, 4, 2, 1, 1 }; /* MSS 1460, SACK */
static const struct spec syn4 = { .seq = 7, .flags = WEIR_TCP_SYN, .options = options, .n_options = 8 },
			 syn6 = { .ipv6 = true, .seq = 7, .flags = WEIR_TCP_SYN, .options = options, .n_options = 8 };

static void ask_for_cookies(__u32 flags)
{
	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP | flags, &error));
}

static void setting(int cookies)
{
	assert_int_equal(inside("sysctl -qw net.ipv4.tcp_syncookies=%d", cookies), 0);
}

/* By which the kernel marks the listener, where it sends cookies. */
static int connect_once(void *unused)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(SERVER_PORT) };
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;

	(void)unused;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ret = connect(client, (struct sockaddr *)&to, sizeof(to)) ? -errno : 0;
	close(client);
	return ret;
}

/* To be done after a command is run: in a guest whose clock jumps that may take as long as a mark lasts. */
static void mark_again(void)
{
	assert_int_equal(call_inside(connect_once, NULL), 0);
}

static int setup(void **state)
{
	int ret = attached_setup(state);

	ask_for_cookies(WEIR_SERVER_XDP_COOKIES);
	device_add(0, 0);
	setting(2);
	frames_listen_anew(); /* nobody accepts the connections of before */
	return ret ?: call_inside(connect_once, NULL);
}

static void build(struct packet *p, bool ipv6)
{
	packet_build(p, ipv6 ? &syn6 : &syn4);
}

static void assert_passes(const struct packet *p)
{
	__u64 before = counter(WEIR_ADMISSION_XDP_COOKIE);
	static struct packet copy;

	copy = *p;
	assert_int_equal(frame_run(&copy), XDP_PASS);
	assert_int_equal(copy.length, p->length);
	assert_memory_equal(copy.bytes, p->bytes, p->length);
	assert_int_equal(counter(WEIR_ADMISSION_XDP_COOKIE), before);
}

/* An Ethernet frame has 60 bytes at least: what is behind the packet is 0. */
static void trim(struct packet *p, bool ipv6)
{
	size_t length = ETHERNET + (ipv6 ? 40 : 20) + SYN_ACK;

	assert_int_equal(p->length, ipv6 ? length : length + 2);
	for (; p->length > length; p->length--)
		assert_int_equal(p->bytes[p->length - 1], 0);
}

/* *p becomes the answer, without its tags. */
static void answer_of(struct packet *p, size_t tags, struct seen *seen)
{
	__u64 before = counter(WEIR_ADMISSION_XDP_COOKIE);
	__u8 macs[12];
	bool ipv6;

	memcpy(macs, p->bytes, 12);
	assert_int_equal(frame_run(p), XDP_TX);
	assert_int_equal(counter(WEIR_ADMISSION_XDP_COOKIE) - before, frame_runs);
	assert_memory_equal(p->bytes, macs + 6, 6);
	assert_memory_equal(p->bytes + 6, macs, 6);
	p->length -= 4 * tags;
	memmove(p->bytes + 12, p->bytes + 12 + 4 * tags, p->length - 12);
	ipv6 = p->bytes[12] == 0x86;
	trim(p, ipv6);
	packet_see(p, seen);
	assert_true(seen->from_server);
	assert_int_equal(seen->flags, WEIR_TCP_SYN | WEIR_TCP_ACK);
	assert_int_equal(seen->n_options, 4);
	assert_int_equal(seen->options[0], 2);
	assert_int_equal(seen->options[1], 4);
	assert_int_equal(seen->options[2] << 8 | seen->options[3], MTU - 20 - (ipv6 ? 40 : 20));
	assert_true(seen->window > 1000);
}

static void assert_answers(struct packet *p, size_t tags)
{
	__u32 seq = syn4.seq;
	struct seen seen;

	answer_of(p, tags, &seen);
	assert_int_equal(seen.ack, seq + 1);
}

static void test_headers(void **state)
{
	static const __u16 tags[] = { 0x88a8, 7, 0x8100, 5 };
	__u32 five = weir_device_tags(0, 5, false), seven = weir_device_tags(0, 7, true);

	(void)state;
	device_add(five, 0);
	device_add(seven << 16 | five, 0);
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		build(&packet, ipv6);
		packet.bytes[11] = 9; /* whom it is from */
		assert_answers(&packet, 0);
		build(&packet, ipv6);
		frame_tag(&packet, tags + 2, 1);
		assert_answers(&packet, 1);
		build(&packet, ipv6);
		frame_tag(&packet, tags, 2);
		assert_answers(&packet, 2);
		build(&packet, ipv6);
		packet_lengthen_ip(&packet); /* IP options, or an extension header */
		assert_passes(&packet);
	}
}

/* A header of any length, padding, and data, which counts for nothing. */
static void test_lengths(void **state)
{
	static const __u8 nops[40] = { [0 ... 39] = 1 };
	static char data[1400];

	(void)state;
	memset(data, 'x', sizeof(data));
	for (size_t n = 0; n <= 40; n += 4) {
		for (int ipv6 = 0; ipv6 < 2; ipv6++) {
			struct spec spec = {
				.ipv6 = ipv6, .seq = 7, .flags = WEIR_TCP_SYN, .options = nops, .n_options = n
			};

			packet_build(&packet, &spec);
			assert_answers(&packet, 0);
			packet_build(&packet, &spec);
			packet.length += 6;
			assert_answers(&packet, 0);
			spec.text = data;
			spec.n_text = n ? 1400 : 1;
			packet_build(&packet, &spec);
			assert_answers(&packet, 0);
		}
	}
}

/* Cut off anywhere, it is no SYN any more. */
static void test_every_truncation(void **state)
{
	static const __u16 tags[] = { 0x88a8, 7, 0x8100, 5 };

	(void)state;
	device_add(weir_device_tags(weir_device_tags(0, 7, true), 5, false), 0);
	for (int kind = 0; kind < 4; kind++) {
		static struct packet cut;

		build(&packet, kind & 1);
		if (kind & 2)
			frame_tag(&packet, tags, 2);
		for (size_t length = ETHERNET; length < packet.length; length++) {
			cut = packet;
			cut.length = length;
			assert_passes(&cut);
		}
		assert_answers(&packet, kind & 2);
	}
}

/* The same SYN gets the same cookie; that of any other end or number is another one. */
static void test_numbers(void **state)
{
	struct spec spec = syn4;
	struct seen first, other;

	(void)state;
	spec.seq = 0xffffffff;
	packet_build(&packet, &spec);
	answer_of(&packet, 0, &first);
	assert_int_equal(first.ack, 0);
	packet_build(&packet, &spec);
	answer_of(&packet, 0, &other);
	/* Unless a minute has begun meanwhile. */
	assert_true(other.seq == first.seq || other.seq >> 24 != first.seq >> 24);
	spec.seq = 1000;
	packet_build(&packet, &spec);
	answer_of(&packet, 0, &other);
	assert_int_not_equal(other.seq, first.seq);
}

static void test_what_the_kernel_answers(void **state)
{
	static const __u8 flags[] = { WEIR_TCP_ACK,
				      WEIR_TCP_SYN | WEIR_TCP_ACK,
				      WEIR_TCP_SYN | WEIR_TCP_FIN,
				      WEIR_TCP_SYN | WEIR_TCP_RST,
				      WEIR_TCP_RST,
				      0 };
	static const __u8 signature[20] = { 19, 18, [18] = 1, [19] = 1 };
	struct spec spec = syn4;

	(void)state;
	for (size_t i = 0; i < sizeof(flags); i++) {
		spec.flags = flags[i];
		packet_build(&packet, &spec);
		assert_passes(&packet);
	}
	spec = syn4;
	spec.bad_checksum = true;
	packet_build(&packet, &spec);
	assert_passes(&packet);
	spec = syn4;
	spec.port = SERVER_PORT + 1;
	packet_build(&packet, &spec);
	assert_passes(&packet);
	spec = syn4;
	spec.options = signature;
	spec.n_options = sizeof(signature);
	packet_build(&packet, &spec);
	assert_passes(&packet);
	spec = syn6;
	spec.mapped =
		true; /* the kernel drops it, and whose IPv4 address it is would be charged for what it brings back */
	packet_build(&packet, &spec);
	assert_passes(&packet);

	build(&packet, false);
	packet.bytes[5] = 9; /* for another host */
	assert_passes(&packet);
	build(&packet, false);
	packet.bytes[ETHERNET + 6] = 0x20; /* a fragment */
	packet_sum_ip(&packet);
	assert_passes(&packet);
	build(&packet, false);
	packet.bytes[ETHERNET + 11] ^= 1; /* its sum */
	assert_passes(&packet);
}

static void test_who_is_not_asked(void **state)
{
	static const __u32 flags[] = { 0, WEIR_SERVER_XDP_COOKIES | WEIR_SERVER_PAUSED,
				       WEIR_SERVER_XDP_COOKIES | WEIR_SERVER_DRY_RUN };

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		ask_for_cookies(flags[i]);
		build(&packet, false);
		assert_passes(&packet);
	}
	done(datapath_server_flags(dp, 0, WEIR_SERVER_DRAINING | WEIR_SERVER_XDP | WEIR_SERVER_XDP_COOKIES, &error));
	assert_passes(&packet);
	ask_for_cookies(WEIR_SERVER_XDP_COOKIES);
	assert_answers(&packet, 0);
}

/* Only where the kernel sends cookies, too. */
static void test_the_kernels_setting(void **state)
{
	(void)state;
	for (int cookies = 0; cookies < 2; cookies++) {
		setting(cookies);
		build(&packet, false);
		assert_passes(&packet);
	}
	setting(2);
	mark_again();
	assert_answers(&packet, 0);
}

/* The kernel drops what would complete a handshake while nobody accepts connections. */
static void test_a_full_queue_of_connections(void **state)
{
	(void)state;
	for (int i = 1; i < 9; i++)
		mark_again();
	build(&packet, false);
	assert_passes(&packet);
}

/* A device that would lose the answer gives none. */
static void test_devices(void **state)
{
	const struct weir_device_key key = { .ifindex = 1 };
	const struct weir_device mute = { .ifindex = 1 };

	(void)state;
	device_put(&key, &mute);
	build(&packet, false);
	assert_passes(&packet);
}

/* Nor does one that has not the address: whose it is, or which tag was taken off, is not known. */
static void test_addresses(void **state)
{
	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		address_add(ipv6, 7);
		build(&packet, ipv6);
		assert_passes(&packet);
		address_add(ipv6, 0);
		assert_passes(&packet);
		address_drop(ipv6);
		assert_passes(&packet);
		address_add(ipv6, 1);
		assert_answers(&packet, 0);
	}
}

static const __u8 client[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 9 };

/* Who has a connection open is known. */
static void test_known_sources(void **state)
{
	__u32 at = datapath_subject(dp, WEIR_NAME_ADDRESS, client, sizeof(client)) % WEIR_HOLDERS, n;

	(void)state;
	for (n = 2; n; n--) {
		assert_int_equal(bpf_map_update_elem(dp->maps.holders, &at, &n, BPF_ANY), 0);
		build(&packet, false);
		assert_passes(&packet);
		build(&packet, true); /* is another one */
		assert_answers(&packet, 0);
	}
	assert_int_equal(bpf_map_update_elem(dp->maps.holders, &at, &n, BPF_ANY), 0);
	build(&packet, false);
	assert_answers(&packet, 0);
}

/* Limits refuse first; it takes nothing of them, and leaves nothing in any table. */
static void test_limits(void **state)
{
	struct datapath_limit limit = rate_of(WEIR_KEY_SOURCE, 0, 1);
	struct weir_conn conn;
	struct weir_flow flow;

	(void)state;
	limit.kind = WEIR_LIMIT_CONNECTION_RATE;
	slot_set(&limit);
	rules_set(&(struct rules_entry){ .limit = SLOT, .connections = true }, 1);
	for (int i = 0; i < 20; i++) {
		build(&packet, false);
		assert_answers(&packet, 0);
	}
	assert_int_equal(counts(SLOT).admitted + counts(SLOT).refused + counter(WEIR_ADMITTED), 0);
	assert_int_equal(bpf_map_get_next_key(dp->maps.admitted, NULL, &(struct weir_flow){}), -ENOENT);
	packet_flow(false, &flow);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &flow, &conn), -ENOENT);
	limit.amount.burst = 0;
	slot_set(&limit);
	build(&packet, false);
	assert_int_equal(frame_verdict(&packet), XDP_DROP);
	limit.flags = WEIR_LIMIT_RESET; /* tc answers */
	slot_set(&limit);
	assert_passes(&packet);
}

static void test_exempt_sources(void **state)
{
	CLEANUP_RULE struct rule rule = rule_of("{\"sources\":[\"127.0.0.9\"]}");

	(void)state;
	rules_set(&(struct rules_entry){ .rules = &rule, .n = 1, .limit = WEIR_RULE_EXEMPT }, 1);
	build(&packet, false);
	assert_passes(&packet);
	build(&packet, true);
	assert_answers(&packet, 0);
}

/* Whatever a SYN's header says, its answer is right, or it passes as it is. */
static void test_any_header(void **state)
{
	(void)state;
	srandom(1);
	for (int i = 0; i < 4000; i++) {
		static struct packet before;
		__u8 bytes[40];
		struct spec spec = { .ipv6 = i & 1,
				     .seq = random() << 1,
				     .ack = random(),
				     .window = random(),
				     .flags = WEIR_TCP_SYN | (random() & 0xf8 & ~WEIR_TCP_ACK),
				     .options = bytes,
				     .n_options = random() % 11 * 4,
				     .text = "data",
				     .n_text = 4 };
		struct seen seen;

		for (size_t n = 0; n < sizeof(bytes); n++)
			bytes[n] = random() % (i % 2 ? 256 : 32);
		packet_build(&packet, &spec);
		before = packet;
		if (frame_run(&packet) != XDP_TX) {
			assert_memory_equal(packet.bytes, before.bytes, before.length);
			continue;
		}
		trim(&packet, spec.ipv6);
		packet_see(&packet, &seen);
		assert_int_equal(seen.ack, spec.seq + 1);
	}
}

/* --- as a driver sends it */

static int capture_begin(void *device)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	at.sll_ifindex = ifindex_of(device);
	return bind(fd, (struct sockaddr *)&at, sizeof(at)) ? -errno : fd;
}

/* The next frame with a TCP header to the client's port. */
static void capture_next(int fd, struct packet *p)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	do {
		assert_int_equal(poll(&ready, 1, 30000), 1);
		p->length = recv(fd, p->bytes, sizeof(p->bytes), 0);
	} while (p->length < ETHERNET + 20 + SYN_ACK || p->bytes[12] != 8 || p->bytes[23] != 6);
}

/* By XDP_TX of a veth whose other end takes it: the whole frame, with whole checksums. */
static void test_live_frames(void **state)
{
	struct weir_device device = { .answers = 1 };
	struct weir_device_key key = {};
	struct seen seen;
	int fd;

	(void)state;
	assert_int_equal(inside("ip link add t0 type veth peer name t1 && ip link set t0 up && ip link set t1 up && "
				"ethtool -K t0 gro on && ethtool -K t1 gro on"),
			 0);
	key.ifindex = device.ifindex = ifindex_of("t0");
	device_put(&key, &device);
	address_add(false, device.ifindex);
	mark_again();
	fd = call_inside(capture_begin, "t1");
	assert_true(fd >= 0);
	for (int i = 0; i < 20; i++) {
		build(&packet, false);
		packet.bytes[11] = 9;
		frame_live("t0", &packet);
		capture_next(fd, &packet);
		trim(&packet, false);
		packet_see(&packet, &seen);
		assert_true(seen.from_server);
		assert_int_equal(seen.ack, syn4.seq + 1);
		assert_int_equal(packet.bytes[5], 9);
		assert_int_equal(seen.options[2] << 8 | seen.options[3], 1500 - 40);
	}
	assert_int_equal(counter(WEIR_ADMISSION_XDP_COOKIE), 20);
	close(fd);
	assert_int_equal(inside("ip link del t0"), 0);
}

/* A listener that has sent no cookie of late takes none: the kernel sends one first. */
static void test_marks(void **state)
{
	(void)state;
	frames_listen_anew();
	build(&packet, false);
	assert_passes(&packet);
	assert_int_equal(call_inside(connect_once, NULL), 0);
	assert_answers(&packet, 0);
	/* And so for listeners that share their port. */
	frames_listen_shared();
	build(&packet, false);
	assert_passes(&packet);
	assert_int_equal(call_inside(connect_once, NULL), 0);
	assert_answers(&packet, 0);
}

static int close_all(void **state)
{
	setting(1);
	return frames_close(state);
}

#define COOKIE_TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, attached_teardown)

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		COOKIE_TEST(headers),
		COOKIE_TEST(lengths),
		COOKIE_TEST(every_truncation),
		COOKIE_TEST(numbers),
		COOKIE_TEST(what_the_kernel_answers),
		COOKIE_TEST(who_is_not_asked),
		COOKIE_TEST(the_kernels_setting),
		COOKIE_TEST(a_full_queue_of_connections),
		COOKIE_TEST(devices),
		COOKIE_TEST(addresses),
		COOKIE_TEST(known_sources),
		COOKIE_TEST(limits),
		COOKIE_TEST(exempt_sources),
		COOKIE_TEST(any_header),
		COOKIE_TEST(live_frames),
		COOKIE_TEST(marks),
	};

	return cmocka_run_group_tests_name("xdp cookie", tests, frames_open, close_all);
}
