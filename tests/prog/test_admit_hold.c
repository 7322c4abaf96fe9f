/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Limits on connections where the socket is about to get their packets: of what ingress has asked the limits is not asked again; what may bring
 * back a SYN cookie takes nothing if the kernel makes no connection of it; and a connection by TCP Fast Open counts when its handshake ends.
 */
#include "weir/admission/admission.h"

#include "held.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BADGE 0x80000000U
#define OWN 0x10U /* it is a connection's */
#define ORPHAN 0x20U
#define ASKED 0x40U
#define DEST 0xffff00U /* the bits of the destination */
#define DEST_AT 8
#define ETHERNET 14
#define TRANSLATED_PORTS SERVER_PORT - 1, SERVER_PORT + 1, 1, 65535

static const unsigned int around[] = { HELD_LIMIT - 1, HELD_LIMIT, HELD_LIMIT + 1, 20 };

/* The server hears on all ports that a test sends something to. */
static void listens_set(__u32 flags)
{
	static const __u16 ports[] = { SERVER_PORT, TRANSLATED_PORTS };
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE | flags, .swallow_max = 65536 };
	struct datapath_listen listens[sizeof(ports) / sizeof(*ports)];

	for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++)
		listens[i] = (struct datapath_listen){ .any = true, .port = ports[i] };
	weir_reading_default(&server.reading);
	done(datapath_server_set(dp, 0, &server, listens, sizeof(ports) / sizeof(*ports), NULL, 0, &error));
}

static int setup(void **state)
{
	int ret = held_setup(state);

	listens_set(0);
	return ret;
}

/* What the latest packet has for its priority when ingress has let it by. */
static __u32 badge_of_packet(void)
{
	struct __sk_buff context;

	assert_int_equal(packet_run_in(ingress, &packet, &context), PASS);
	return context.priority;
}

static __u32 badge_of_syn(bool ipv6, __u16 port)
{
	packet_build(&packet, &(struct spec){ .ipv6 = ipv6, .seq = 7, .flags = WEIR_TCP_SYN, .port = port });
	return badge_of_packet();
}

/* Of a SYN for another address; source and destination together have the sum that they had. */
static __u32 badge_of_syn_for(const char *address)
{
	__u16 *ends = (__u16 *)(packet.bytes + ETHERNET + 12), dest[2];

	assert_int_equal(inet_pton(AF_INET, address, dest), 1);
	packet_build(&packet, &(struct spec){ .seq = 7, .flags = WEIR_TCP_SYN });
	for (int i = 0; i < 2; i++) {
		ends[i] = htons((ntohs(ends[i]) + ntohs(ends[2 + i]) + 0xffff - ntohs(dest[i])) % 0xffff);
		ends[2 + i] = dest[i];
	}
	return badge_of_packet();
}

static __u64 asked(void)
{
	return counter(WEIR_ADMITTED) + counter(WEIR_ADMISSION_DROPPED);
}

/* Nothing has been asked, or taken, yet: so the limit is there for those who come without a mark. */
static void assert_limit_is_whole(void)
{
	assert_int_equal(asked(), 0);
	assert_int_equal(held_visits(false, HELD_LIMIT + 1, 0), HELD_LIMIT);
	assert_int_equal(counter(WEIR_ADMITTED), HELD_LIMIT);
	assert_int_equal(counts(SLOT).admitted, HELD_LIMIT);
}

static void test_what_ingress_has_asked_is_not_asked_again(void **state)
{
	(void)state;
	needs_hold();
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		__u32 badge = badge_of_syn(ipv6, SERVER_PORT);

		assert_int_equal(badge & ~DEST, BADGE | ASKED);
		assert_int_equal(held_visits(ipv6, HELD_LIMIT + 2, badge), HELD_LIMIT + 2);
		assert_int_equal(held_taken(), 0);
	}
	assert_limit_is_whole();
}

static void test_nothing_is_marked_without_limits(void **state)
{
	(void)state;
	needs_hold();
	done(datapath_limit_delete(dp, 0, SLOT, &error));
	assert_int_equal(badge_of_syn(false, SERVER_PORT) & ~DEST, BADGE | ASKED);
	done(datapath_limit_delete(dp, 0, OPEN_SLOT, &error));
	assert_int_equal(badge_of_syn(false, SERVER_PORT), 0);
	assert_int_equal(held_visits(false, 2 * HELD_LIMIT, 0), 2 * HELD_LIMIT);
	assert_int_equal(asked(), 0);
}

/* The limits are asked for a client with this priority: so it is one of those that they admit, and not one of more. */
static void assert_asked(bool ipv6, __u32 priority)
{
	__u64 admitted = counter(WEIR_ADMITTED), dropped = counter(WEIR_ADMISSION_DROPPED);
	bool room = admitted < HELD_LIMIT;

	assert_int_equal(held_visits(ipv6, 1, priority), room);
	assert_int_equal(counter(WEIR_ADMITTED) - admitted, room);
	assert_int_equal(counter(WEIR_ADMISSION_DROPPED) > dropped, !room);
}

/* As DNAT and redirects have it: what ingress saw was for another port, or address. It lets none by, once the limits admit none. */
static void test_a_mark_is_void_behind_a_translation(void **state)
{
	static const char *const addresses[] = { "127.0.0.0", "127.0.0.2", "127.0.1.1", "126.0.0.1", "10.255.3.200" };
	static const __u16 ports[] = { TRANSLATED_PORTS };
	__u32 badges[32];
	size_t n = 0;

	(void)state;
	needs_hold();
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		badges[n++] = badge_of_syn(!ipv6, SERVER_PORT);
		for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++)
			badges[n++] = badge_of_syn(ipv6, ports[i]);
		for (size_t i = 0; !ipv6 && i < sizeof(addresses) / sizeof(*addresses); i++)
			badges[n++] = badge_of_syn_for(addresses[i]);
		assert_int_equal(badge_of_syn_for("127.0.0.1"), badge_of_syn(false, SERVER_PORT));
		while (n) {
			assert_int_equal(badges[--n] & ~DEST, BADGE | ASKED);
			assert_asked(ipv6, badges[n]);
		}
		held_teardown(state);
		setup(state);
	}
}

static void test_every_bit_of_a_mark_counts(void **state)
{
	__u32 badge;

	(void)state;
	needs_hold();
	badge = badge_of_syn(false, SERVER_PORT);
	for (int bit = 0; bit < 32; bit++) {
		if (1U << bit != OWN)
			assert_asked(false, badge ^ 1U << bit);
	}
	assert_int_equal(held_visits(false, 1, badge), 1);
}

/* A connection's own badge is put on behind that of a handshake, and says nothing of the destination: nobody else has it. */
static void test_other_badges(void **state)
{
	__u32 dest;

	(void)state;
	needs_hold();
	dest = badge_of_syn(false, SERVER_PORT) & DEST;
	assert_int_equal(held_visits(false, HELD_LIMIT + 1, BADGE | OWN), HELD_LIMIT + 1);
	assert_int_equal(held_visits(false, HELD_LIMIT + 1, 0xffffffffU), HELD_LIMIT + 1);
	assert_int_equal(asked(), 0);
	assert_int_equal(counter(WEIR_UNREADABLE), 0);
	assert_int_equal(held_visits(false, 1, BADGE), 0); /* ingress could not read it */
	assert_true(counter(WEIR_UNREADABLE) > 0);
	assert_int_equal(asked(), 0);
	for (__u32 priority = 0; priority <= HELD_LIMIT + 6; priority++)
		assert_asked(false, priority);
	assert_asked(false, BADGE | ORPHAN | dest);
	assert_asked(false, dest);
	assert_asked(false, ASKED | dest);
	assert_asked(false, OWN);
}

/* The clients' device. */
static void loopback_name(void)
{
	const __u32 ifindex = 1;
	const __u8 value = 0;

	assert_int_equal(bpf_map_update_elem(dp->maps.named_devices, &ifindex, &value, BPF_ANY), 0);
}

/* A badge tells what came by one of them from what did not, and so does the device itself if it is one that was named. */
static void test_some_interfaces(void **state)
{
	__u32 badge, other;

	(void)state;
	needs_hold();
	listens_set(WEIR_SERVER_SOME_INTERFACES);
	badge = badge_of_syn(false, SERVER_PORT);
	other = badge_of_syn(false, SERVER_PORT + 1);
	assert_int_equal(held_visits(false, HELD_LIMIT + 1, 0), HELD_LIMIT + 1);
	assert_int_equal(held_visits(false, HELD_LIMIT + 1, other & ~BADGE), HELD_LIMIT + 1);
	assert_int_equal(held_visits(false, HELD_LIMIT + 1, badge), HELD_LIMIT + 1);
	assert_int_equal(asked(), 0);
	for (int i = 0; i < HELD_LIMIT + 2; i++)
		assert_asked(false, other);
}

static void test_some_interfaces_without_a_program(void **state)
{
	(void)state;
	needs_hold();
	listens_set(WEIR_SERVER_SOME_INTERFACES);
	assert_int_equal(held_visits(false, HELD_LIMIT + 1, 0), HELD_LIMIT + 1);
	loopback_name();
	for (int i = 0; i < HELD_LIMIT + 2; i++)
		assert_asked(false, 0);
}

static int setup_cookies(void **state)
{
	int ret = setup(state);

	assert_int_equal(inside("sysctl -qw net.ipv4.tcp_syncookies=2"), 0);
	return ret;
}

static int teardown_cookies(void **state)
{
	assert_int_equal(inside("sysctl -qw net.ipv4.tcp_syncookies=1"), 0);
	return held_teardown(state);
}

#define COOKIES(name) cmocka_unit_test_setup_teardown(test_##name, setup_cookies, teardown_cookies)

/* The kernel has not sent it. */
static void bring_no_cookie(bool ipv6, unsigned int n)
{
	held_send(&(struct spec){ .ipv6 = ipv6,
				  .client_port = CLIENT_PORT + n,
				  .seq = CLIENT_NEXT,
				  .ack = 12345 * (n + 1),
				  .flags = ACK });
}

static void test_what_is_no_cookie_is_charged_until_the_next_packet(void **state)
{
	(void)state;
	needs_hold();
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		bring_no_cookie(ipv6, 0);
		assert_int_equal(tokens_left(SLOT), HELD_LIMIT - 1);
		assert_int_equal(held_taken(), 1);
		assert_int_equal(held_admitted(), 1);
		assert_int_equal(asked(), 0);
		held_send(&(struct spec){ .ipv6 = ipv6, .seq = CLIENT_NEXT, .flags = WEIR_TCP_RST });
		assert_int_equal(tokens_left(SLOT), HELD_LIMIT);
		assert_int_equal(held_taken(), 0);
		assert_int_equal(held_admitted(), 0);
		assert_int_equal(asked(), 0);
		assert_int_equal(counts(SLOT).admitted + counts(OPEN_SLOT).admitted, 0);
	}
}

static bool nothing_is_taken(void)
{
	return !held_taken();
}

/* However many there are of them, they take nothing: whoever has a cookie is admitted, as far as the limits go, and no further. */
static void test_what_is_no_cookie_takes_nothing(void **state)
{
	static const unsigned int many[] = { 0, 1, HELD_LIMIT - 1, HELD_LIMIT, HELD_LIMIT + 1, 200 };
	int clients[HELD_LIMIT], servers[HELD_LIMIT];

	(void)state;
	needs_hold();
	for (size_t i = 0; i < sizeof(many) / sizeof(*many); i++) {
		bool ipv6 = i % 2;

		for (int n = 0; n < HELD_LIMIT; n++) {
			for (unsigned int none = 0; none < many[i]; none++)
				bring_no_cookie(ipv6, none);
			clients[n] = held_connect(ipv6, 0);
			assert_true(clients[n] >= 0);
			servers[n] = held_accept();
		}
		assert_int_equal(held_connect(ipv6, 0), -1); /* and its SYN says of the last what became of that */
		assert_int_equal(counter(WEIR_ADMITTED), HELD_LIMIT);
		assert_int_equal(counts(SLOT).admitted, HELD_LIMIT);
		assert_int_equal(held_taken(), HELD_LIMIT);
		assert_int_equal(held_admitted(), HELD_LIMIT);
		for (int n = 0; n < HELD_LIMIT; n++) {
			held_reset(servers[n]);
			close(clients[n]);
		}
		eventually(nothing_is_taken);
		teardown_cookies(state);
		setup_cookies(state);
	}
}

/* As a SYN that is refused: it takes nothing, either. */
static void test_what_is_no_cookie_is_refused_where_nothing_is_left(void **state)
{
	__u64 dropped;

	(void)state;
	needs_hold();
	assert_int_equal(held_visits(false, HELD_LIMIT, 0), HELD_LIMIT);
	eventually(nothing_is_taken);
	assert_int_equal(held_connect(false, 0), -1);
	dropped = counter(WEIR_ADMISSION_DROPPED);
	for (unsigned int n = 0; n < 20; n++) {
		bring_no_cookie(n % 2, n);
		assert_int_equal(counter(WEIR_ADMISSION_DROPPED) - dropped, n + 1);
	}
	assert_int_equal(counter(WEIR_ADMITTED), HELD_LIMIT);
	assert_int_equal(held_taken(), 0);
	assert_int_equal(held_admitted(), 0);
}

/* The server answers each SYN with the option by a connection, and wants no cookie for that. */
static int setup_fast_open(void **state)
{
	int ret = setup(state);

	assert_int_equal(inside("sysctl -qw net.ipv4.tcp_fastopen=0x202"), 0);
	return ret;
}

static int teardown_fast_open(void **state)
{
	assert_int_equal(inside("sysctl -qw net.ipv4.tcp_fastopen=1"), 0);
	return held_teardown(state);
}

#define FAST_OPEN(name) cmocka_unit_test_setup_teardown(test_##name, setup_fast_open, teardown_fast_open)

struct opened {
	int server;
	__u16 client_port;
	__u32 next; /* of the server's bytes */
};

/* The connection is the server's before its handshake ends. */
static struct opened open_fast(unsigned int n)
{
	static const __u8 fast_open[] = { 34, 2, 1, 1 };
	int on = TCP_REPAIR_ON, off = TCP_REPAIR_OFF_NO_WP, queue = TCP_SEND_QUEUE;
	struct opened opened = { .client_port = CLIENT_PORT + n };
	socklen_t size = sizeof(opened.next);

	held_send(&(struct spec){ .ipv6 = true,
				  .client_port = opened.client_port,
				  .seq = CLIENT_NEXT - 1,
				  .flags = WEIR_TCP_SYN,
				  .options = fast_open,
				  .n_options = sizeof(fast_open) });
	opened.server = held_accept();
	assert_int_equal(setsockopt(opened.server, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(opened.server, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)), 0);
	assert_int_equal(getsockopt(opened.server, IPPROTO_TCP, TCP_QUEUE_SEQ, &opened.next, &size), 0);
	assert_int_equal(setsockopt(opened.server, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)), 0);
	return opened;
}

static bool is_established(const struct opened *opened)
{
	struct tcp_info info = {};
	socklen_t size = sizeof(info);

	assert_int_equal(getsockopt(opened->server, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
	return info.tcpi_state == TCP_ESTABLISHED;
}

/* Does the server get what ends its handshake? */
static bool end_handshake(const struct opened *opened)
{
	held_send(&(struct spec){ .ipv6 = true,
				  .client_port = opened->client_port,
				  .seq = CLIENT_NEXT,
				  .ack = opened->next,
				  .flags = ACK });
	return is_established(opened);
}

/* All of them are open before one of them counts. */
static void test_fast_open_counts_when_its_handshake_ends(void **state)
{
	struct opened opened[20];

	(void)state;
	needs_hold();
	for (size_t i = 0; i < sizeof(around) / sizeof(*around); i++) {
		unsigned int n = around[i], admitted = n < HELD_LIMIT ? n : HELD_LIMIT, got = 0;

		for (unsigned int each = 0; each < n; each++)
			opened[each] = open_fast(each);
		assert_int_equal(asked(), 0);
		assert_int_equal(held_taken(), 0);
		for (unsigned int each = 0; each < n; each++)
			got += end_handshake(&opened[each]);
		assert_int_equal(got, admitted);
		assert_int_equal(counter(WEIR_ADMITTED), admitted);
		assert_int_equal(counter(WEIR_ADMISSION_DROPPED), n - admitted);
		assert_int_equal(counts(SLOT).admitted, admitted);
		assert_int_equal(held_taken(), admitted);
		for (unsigned int each = 0; each < n; each++)
			held_reset(opened[each].server);
		eventually(nothing_is_taken);
		teardown_fast_open(state);
		setup_fast_open(state);
	}
}

/* The kernel has its socket already: nothing is given back as if it made none. */
static void test_fast_open_is_open_at_once(void **state)
{
	struct weir_admitted entry;
	struct weir_flow flow;
	struct opened opened;

	(void)state;
	needs_hold();
	packet_flow(true, &flow);
	opened = open_fast(0);
	assert_true(end_handshake(&opened));
	assert_int_equal(bpf_map_lookup_elem(dp->maps.admitted, &flow, &entry), 0);
	assert_int_equal(weir_admitted_state(entry.word), WEIR_ADMITTED_OPEN);
	assert_int_equal(entry.isn, opened.next - 1);
	for (int again = 0; again < 3; again++)
		assert_true(end_handshake(&opened));
	assert_int_equal(counter(WEIR_ADMITTED), 1);
	assert_int_equal(held_taken(), 1);
	held_reset(opened.server);
	eventually(nothing_is_taken);
}

/* Its SYN is one like any other. */
static void test_fast_open_is_refused_by_its_syn(void **state)
{
	static const __u8 fast_open[] = { 34, 2, 1, 1 };

	(void)state;
	needs_hold();
	assert_int_equal(held_visits(false, HELD_LIMIT, 0), HELD_LIMIT);
	held_send(&(struct spec){
		.ipv6 = true, .seq = CLIENT_NEXT - 1, .flags = WEIR_TCP_SYN, .options = fast_open, .n_options = 4 });
	assert_int_equal(counter(WEIR_ADMISSION_DROPPED), 1);
	assert_int_equal(counter(WEIR_ADMITTED), HELD_LIMIT);
}

#define MARKS(name) cmocka_unit_test_setup_teardown(test_##name, setup, held_teardown)

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		MARKS(what_ingress_has_asked_is_not_asked_again),
		MARKS(nothing_is_marked_without_limits),
		MARKS(a_mark_is_void_behind_a_translation),
		MARKS(every_bit_of_a_mark_counts),
		MARKS(other_badges),
		MARKS(some_interfaces),
		MARKS(some_interfaces_without_a_program),
		COOKIES(what_is_no_cookie_is_charged_until_the_next_packet),
		COOKIES(what_is_no_cookie_takes_nothing),
		COOKIES(what_is_no_cookie_is_refused_where_nothing_is_left),
		FAST_OPEN(fast_open_counts_when_its_handshake_ends),
		FAST_OPEN(fast_open_is_open_at_once),
		FAST_OPEN(fast_open_is_refused_by_its_syn),
	};

	return cmocka_run_group_tests_name("admit_hold", tests, held_open, held_close);
}
