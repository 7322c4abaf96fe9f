/* SPDX-License-Identifier: GPL-2.0 */
/* Peers as Go writes them, UTF-8, and the verbs of Kubernetes: the addresses as inet_pton() has them. */
#include <arpa/inet.h>
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weir/inside/open.h"
#include "weir/inside/peer.h"
#include "weir/inside/seats.h"
#include "weir/inside/share.h"
#include "weir/inside/text.h"

#define LENGTH(list) (sizeof(list) / sizeof(*(list)))

static bool read_peer(const char *text, __u8 address[16], __u16 *port)
{
	struct weir_peer_reader reader;

	weir_peer_start(&reader);
	for (; *text; text++)
		weir_peer_byte(&reader, *text);
	return weir_peer_end(&reader, address, port);
}

static void test_constants(void **state)
{
	const struct weir_inside_layout layout = { .constants_from = 0x1000, .constants_to = 0x2000 };
	const struct weir_inside_layout none = { 0 }, high = { .constants_to = ~0ULL };
	__u64 word = weir_inside_verb_word(0x7fffffffffff, WEIR_INSIDE_CONSTANT_MAX, WEIR_VERB_GET);

	(void)state;
	assert_true(weir_inside_is_constant(&layout, 0x1000, 3));
	assert_true(weir_inside_is_constant(&layout, 0x1ffd, 3));
	assert_false(weir_inside_is_constant(&layout, 0x1ffe, 3));
	assert_false(weir_inside_is_constant(&layout, 0x1000, WEIR_INSIDE_CONSTANT_MAX + 1));
	assert_false(weir_inside_is_constant(&layout, 0x1000, ~0ULL));
	assert_false(weir_inside_is_constant(&layout, 0xfff, 3));
	assert_false(weir_inside_is_constant(&layout, 0x2000, 0));
	assert_false(weir_inside_is_constant(&none, 0, 0));
	assert_true(weir_inside_is_constant(&high, 0x7fffffffffff, 3));
	assert_false(weir_inside_is_constant(&high, 0x800000000000, 3));
	assert_true(word != weir_inside_verb_word(0x7fffffffffff, WEIR_INSIDE_CONSTANT_MAX - 1, WEIR_VERB_GET));
	assert_true(word != weir_inside_verb_word(0x7ffffffffffe, WEIR_INSIDE_CONSTANT_MAX, WEIR_VERB_GET));
	assert_true(word >> 16 == 0x7fffffffffff);
	assert_true(weir_inside_verb_is(word, 0x7fffffffffff, WEIR_INSIDE_CONSTANT_MAX));
	assert_false(weir_inside_verb_is(word, 0x17fffffffffff, WEIR_INSIDE_CONSTANT_MAX));
	assert_false(weir_inside_verb_is(word, 0x10007fffffffffff, WEIR_INSIDE_CONSTANT_MAX));
	assert_false(weir_inside_verb_is(word, 0x7fffffffffff, WEIR_INSIDE_CONSTANT_MAX + 256));
	assert_false(weir_inside_verb_is(0, 0, 0));
	/* A key's address is no verb, and no verb is a key. */
	assert_false(weir_inside_key_is(word, 0x7fffffffffff));
	assert_false(weir_inside_key_is(weir_inside_verb_word(0x7fffffffffff, 0xff, 1), 0x7fffffffffff));
	word = weir_inside_key_word(0x7fffffffffff);
	assert_true(weir_inside_key_is(word, 0x7fffffffffff));
	assert_false(weir_inside_key_is(word, 0x7ffffffffffe));
	assert_false(weir_inside_key_is(word, 0x17fffffffffff));
	assert_false(weir_inside_verb_is(word, 0x7fffffffffff, WEIR_INSIDE_CONSTANT_MAX));
	assert_false(weir_inside_key_is(0, 0));
}

static bool read_at_once(const char *text, __u8 address[16], __u16 *port)
{
	char there[WEIR_PEER_IPV4_MAX + 1] = "";

	strncpy(there, text, WEIR_PEER_IPV4_MAX);
	return weir_peer_ipv4_at_once(there, strlen(text), address, port);
}

/* Is it read at once, and as a byte at a time? */
static bool is_read_at_once(const char *text)
{
	__u8 address[16] = { 0 }, at_once[16] = { 0 };
	__u16 port = 0, port_at_once = 0;

	if (!read_at_once(text, at_once, &port_at_once))
		return false;
	assert_true(read_peer(text, address, &port));
	assert_memory_equal(at_once, address, sizeof(address));
	assert_int_equal(port_at_once, port);
	return true;
}

static void test_at_once(void **state)
{
	static const char *const those[] = { "127.0.0.1:443", "0.0.0.0:0", "255.255.255.255:65535", "192.0.2.10:40000",
					     "001.2.3.4:00080" };
	static const char *const others[] = { "",
					      "1.2.3.4",
					      "1.2.3.4:",
					      "1.2.3:4",
					      "1.2.3.4.5:6",
					      "1.2.3.256:1",
					      "1.2.3.4:65536",
					      "1.2.3.4:000001",
					      "1.2..4:1",
					      ".2.3.4:1",
					      "1.2.3.4:1:",
					      "1.2.3.4:1 ",
					      "1:2.3.4:5",
					      "1.2.3.4.5",
					      "0001.2.3.4:1",
					      "[::1]:80",
					      "255.255.255.255:655355",
					      "1.2.3.4:99999" };

	(void)state;
	for (size_t i = 0; i < LENGTH(those); i++)
		assert_true(is_read_at_once(those[i]));
	for (size_t i = 0; i < LENGTH(others); i++)
		assert_false(is_read_at_once(others[i]));
}

static void expect_peer(const char *text, const char *address, __u16 port)
{
	__u8 wanted[16] = { [10] = 0xff, [11] = 0xff }, found[16];
	__u16 found_port;

	if (!inet_pton(AF_INET, address, wanted + 12))
		assert_int_equal(inet_pton(AF_INET6, address, wanted), 1);
	assert_true(read_peer(text, found, &found_port));
	assert_memory_equal(found, wanted, sizeof(found));
	assert_int_equal(found_port, port);
}

static void test_peers(void **state)
{
	(void)state;
	expect_peer("127.0.0.1:443", "127.0.0.1", 443);
	expect_peer("0.0.0.0:0", "0.0.0.0", 0);
	expect_peer("255.255.255.255:65535", "255.255.255.255", 65535);
	expect_peer("[::]:1", "::", 1);
	expect_peer("[::1]:80", "::1", 80);
	expect_peer("[1::]:80", "1::", 80);
	expect_peer("[2001:db8::1]:443", "2001:db8::1", 443);
	expect_peer("[2001:db8:1:2:3:4:5:6]:443", "2001:db8:1:2:3:4:5:6", 443);
	expect_peer("[1:2:3:4:5:6:7::]:443", "1:2:3:4:5:6:7::", 443);
	expect_peer("[::2:3:4:5:6:7:8]:443", "::2:3:4:5:6:7:8", 443);
	expect_peer("[fe80::1%eth0]:443", "fe80::1", 443);
	expect_peer("[fe80:0:0:0:1:2:3:4%enp0s31f6]:9", "fe80::1:2:3:4", 9);
}

static void test_random_ipv6_peers(void **state)
{
	(void)state;
	srandom(1);
	for (int i = 0; i < 20000; i++) {
		char text[INET6_ADDRSTRLEN], peer[80];
		__u8 address[16];

		for (size_t byte = 0; byte < sizeof(address); byte++)
			address[byte] = random() % 3 ? 0 : random();
		address[0] |= 0x20; /* no address that is written with an IPv4 one at its end */
		inet_ntop(AF_INET6, address, text, sizeof(text));
		snprintf(peer, sizeof(peer), "[%s]:%d", text, i);
		expect_peer(peer, text, i);
	}
}

static void test_no_peers(void **state)
{
	static const char *const texts[] = {
		"",
		"@",
		"/run/x.sock",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0:1",
		"1.2.3.4.5:1",
		"256.0.0.1:1",
		"1.2.3.4:65536",
		"1.2.3.4:100000",
		"1.2.3.4:a",
		"1.2.3.4:-1",
		".1.2.3:1",
		"1..2.3:1",
		"[::1]",
		"[::1]80",
		"[::1:80",
		"[1:2]:80",
		"[:1::]:80",
		"[1:::2]:80",
		"[1::2::3]:80",
		"[12345::]:80",
		"[1:2:3:4:5:6:7:8:9]:1",
		"[1:2:3:4:5:6:7:8::]:1",
		"[G::]:1",
		"[::FF]:1",
		"[1:]:1",
		"a.b.c.d:1",
	};
	__u8 address[16] = { 42 };
	__u16 port = 4242;

	(void)state;
	for (size_t i = 0; i < LENGTH(texts); i++) {
		assert_false(read_peer(texts[i], address, &port));
		assert_int_equal(address[0], 42);
		assert_int_equal(port, 4242);
	}
}

static bool is_utf8(const char *text)
{
	struct weir_utf8 utf8 = { 0 };

	for (; *text; text++)
		weir_utf8_byte(&utf8, *text);
	return weir_utf8_ends(&utf8);
}

static void test_utf8(void **state)
{
	static const char *const good[] = { "",
					    "alice",
					    "Zo\xc3\xab",
					    "\xc2\x80",
					    "\xdf\xbf",
					    "\xe0\xa0\x80",
					    "\xed\x9f\xbf",
					    "\xee\x80\x80",
					    "\xef\xbf\xbf",
					    "\xf0\x90\x80\x80",
					    "\xf4\x8f\xbf\xbf",
					    "a\xe2\x82\xac\x62" };
	static const char *const bad[] = { "\x80",
					   "\xbf",
					   "\xc0\x80",
					   "\xc1\xbf",
					   "\xc2",
					   "\xc2\x41",
					   "\xe0\x9f\xbf",
					   "\xed\xa0\x80",
					   "\xe2\x82",
					   "\xf0\x8f\xbf\xbf",
					   "\xf4\x90\x80\x80",
					   "\xf5\x80\x80\x80",
					   "\xff",
					   "ok\xfe",
					   "\xf0\x90\x80" };

	(void)state;
	for (size_t i = 0; i < LENGTH(good); i++)
		assert_true(is_utf8(good[i]));
	for (size_t i = 0; i < LENGTH(bad); i++)
		assert_false(is_utf8(bad[i]));
}

static enum weir_verb verb_of(const char *text)
{
	__u64 words[2] = { 0 };

	memcpy(words, text, strlen(text));
	return weir_verb_of_text(words[0], words[1]);
}

static void test_verbs(void **state)
{
	static const char *const verbs[] = {
#define X(name, text) [WEIR_VERB_##name] = (text),
		WEIR_VERBS(X)
#undef X
	};

	(void)state;
	for (size_t verb = 0; verb < LENGTH(verbs); verb++)
		assert_int_equal(verb_of(verbs[verb]), verb);
	assert_int_equal(verb_of("gets"), WEIR_VERB_OTHER);
	assert_int_equal(verb_of("GET"), WEIR_VERB_OTHER);
	assert_int_equal(verb_of("deletecollectio"), WEIR_VERB_OTHER);
	assert_int_equal(verb_of("impersonate"), WEIR_VERB_OTHER);
}

static void words_of(const char *text, __u64 words[2])
{
	size_t n = strlen(text);

	words[0] = words[1] = 0;
	memcpy(words, text, n < WEIR_INSIDE_WORD_MAX ? n : WEIR_INSIDE_WORD_MAX);
}

static bool is_interactive(const char *text)
{
	__u64 words[2];

	words_of(text, words);
	return weir_text_is_interactive(words[0], words[1]);
}

static bool is_profile(const char *text)
{
	__u64 words[2];

	words_of(text, words);
	return weir_text_is_profile(words[0], words[1]);
}

static void test_long_running(void **state)
{
	static const char *const are[] = { "exec", "attach", "proxy", "log", "portforward" };
	static const char *const are_not[] = {
		"", "lo", "logs", "Log", "portforwar", "portforwards", "status", "scale"
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(are); i++)
		assert_true(is_interactive(are[i]));
	for (size_t i = 0; i < LENGTH(are_not); i++)
		assert_false(is_interactive(are_not[i]));
	assert_true(is_profile("/debug/pprof/"));
	assert_true(is_profile("/debug/pprof/heap?seconds=30"));
	assert_false(is_profile("/debug/pprof"));
	assert_false(is_profile("/debug/pproof/"));
	assert_false(is_profile("/debug"));
	assert_false(is_profile(""));
}

static bool is_health(const char *text)
{
	__u64 words[2];

	words_of(text, words);
	return weir_text_is_health(words[0], words[1]);
}

static void test_health(void **state)
{
	static const char *const are[] = { "/healthz", "/livez",	"/readyz",	 "/healthz/", "/livez/",
					   "/readyz/", "/healthz/ping", "/livez/etcd/x", "/readyz?a", "/healthz?" };
	static const char *const are_not[] = { "",	    "/",	  "/health",  "/live",	  "/ready",
					       "/healthzz", "/livezz",	  "/readyzz", "/livez;a", "healthz",
					       "/Livez",    "/readyz%2f", "/a/livez", "//livez",  "/healthz" };

	(void)state;
	for (size_t i = 0; i < LENGTH(are); i++)
		assert_true(is_health(are[i]));
	for (size_t i = 0; i < LENGTH(are_not); i++)
		assert_false(is_health(are_not[i]));
	for (int c = 0; c < 256; c++)
		assert_int_equal(weir_text_is_plain((__u8)c), c && c < 0x80 && (isalnum(c) || strchr("-_/", c)));
}

static void expect_cookie(__u32 generation, __u32 set, __u32 again, bool nested, bool grows)
{
	const struct weir_inside_cookie cookie = { generation, set, again, nested, grows };
	const struct weir_inside_cookie read = weir_inside_cookie_of(weir_inside_cookie_word(&cookie));

	assert_int_equal(read.generation, generation);
	assert_int_equal(read.set, set);
	assert_int_equal(read.again, again);
	assert_int_equal(read.nested, nested);
	assert_int_equal(read.grows, grows);
}

/* Nothing of a cookie runs over into its neighbour. */
static void test_cookies(void **state)
{
	const __u32 again = (1U << WEIR_INSIDE_COOKIE_AGAIN_BITS) - 1;

	(void)state;
	expect_cookie(0, 0, 0, false, false);
	expect_cookie(~0U, 0, 0, false, false);
	expect_cookie(0, WEIR_INSIDE_SETS_MAX, 0, false, false);
	expect_cookie(0, 0, again, false, false);
	expect_cookie(0, 0, 0, true, false);
	expect_cookie(0, 0, 0, false, true);
	expect_cookie(~0U, WEIR_INSIDE_SETS_MAX, again, true, true);
	expect_cookie(0x12345678, 1, 0x41, false, true);
}

/* An entry's memory may be another request's by the time that it is looked at. */
static void test_seats(void **state)
{
	struct weir_inside_key key = { .goroutine = 0xc000123000, .process = 4711 };
	struct weir_inside_key others[] = { { .goroutine = 0xc000123200, .process = 4711 },
					    { .goroutine = 0xc000123000, .process = 4712 } };
	__u64 word = weir_inside_seats_word(&key, 0);

	(void)state;
	assert_true(word != 0);
	assert_true(weir_inside_seats_are_of(word, &key));
	assert_true(weir_inside_seats_are_of(weir_inside_seats_word(&key, UINT64_MAX), &key));
	assert_false(weir_inside_seats_are_of(0, &key));
	for (size_t i = 0; i < LENGTH(others); i++)
		assert_false(weir_inside_seats_are_of(word, &others[i]));
	assert_true(word != weir_inside_seats_word(&key, 1 << 20));
}

/* Requests that a goroutine serves: is it the same one, and does it live? */
static void test_open(void **state)
{
	const struct weir_inside_goroutine running = { .state = 2, .number = 41 },
					   scanned = { .state = 0x1002, .number = 41 };
	const struct weir_inside_goroutine waiting = { .state = 4, .number = 41 }, dead = { .state = 6, .number = 41 };
	const struct weir_inside_goroutine next = { .state = 4, .number = 42 }, made = { .number = 41 };
	struct weir_inside_open open = { .number = 41 };

	(void)state;
	assert_int_equal(weir_inside_number(&running), 41);
	assert_int_equal(weir_inside_number(&scanned), 41);
	assert_int_equal(weir_inside_number(&waiting), 0);
	assert_false(weir_inside_has_ended(&open, &running));
	assert_false(weir_inside_has_ended(&open, &scanned));
	assert_false(weir_inside_has_ended(&open, &waiting));
	assert_true(weir_inside_has_ended(&open, &dead));
	assert_true(weir_inside_has_ended(&open, &made));
	assert_true(weir_inside_has_ended(&open, &next));
	assert_false(weir_inside_may_have_ended(&open));
	open.goes_on = 1;
	assert_true(weir_inside_may_have_ended(&open));
	open.end_known = 1;
	assert_false(weir_inside_may_have_ended(&open));
	open.number = 0;
	assert_false(weir_inside_has_ended(&open, &dead));
	assert_true(weir_inside_may_have_ended(&open));
}

#define PORTS 10000

static unsigned int shared(__u32 percent, const char *host)
{
	__u8 address[16] = { [10] = 0xff, [11] = 0xff };
	unsigned int n = 0;

	assert_int_equal(inet_pton(AF_INET, host, address + 12), 1);
	for (__u16 port = 20000; port < 20000 + PORTS; port++) {
		bool is = weir_inside_shares(percent, true, address, port);

		assert_true(!is || weir_inside_shares(percent + 1, true, address, port));
		n += is;
	}
	return n;
}

/* So many of a client's connections, and of all clients' as many. */
static void test_shares(void **state)
{
	const char *hosts[] = { "10.0.0.1", "10.0.0.2", "192.0.2.7", "127.0.0.1" };
	const __u8 address[16] = { 0x20, 0x01, 0x0d, 0xb8 };

	(void)state;
	for (size_t i = 0; i < LENGTH(hosts); i++) {
		assert_int_equal(shared(0, hosts[i]), 0);
		assert_int_equal(shared(100, hosts[i]), PORTS);
		for (__u32 percent = 3; percent < 100; percent += 7)
			assert_in_range(shared(percent, hosts[i]), percent * PORTS / 100 - 200,
					percent * PORTS / 100 + 200);
	}
	assert_false(weir_inside_shares(99, false, address, 80));
	assert_true(weir_inside_shares(100, false, address, 80));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants), cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_peers),	  cmocka_unit_test(test_random_ipv6_peers),
		cmocka_unit_test(test_no_peers),  cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_verbs),	  cmocka_unit_test(test_long_running),
		cmocka_unit_test(test_health),	  cmocka_unit_test(test_seats),
		cmocka_unit_test(test_shares),	  cmocka_unit_test(test_open),
		cmocka_unit_test(test_cookies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
