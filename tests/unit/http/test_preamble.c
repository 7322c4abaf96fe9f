/* SPDX-License-Identifier: GPL-2.0 */
/* PROXY protocol preambles: whom they name, where they end, and what is none; the addresses as inet_pton() has them. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weir/http/preamble.h"

#define LENGTH(list) (sizeof(list) / sizeof(*(list)))
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

/* Feeds bytes until something happens; *used: how many it took. */
static enum weir_frame_event feed(struct weir_preamble *p, const void *bytes, size_t n, size_t *used)
{
	enum weir_frame_event event = WEIR_FRAME_MORE;

	weir_preamble_start(p);
	for (*used = 0; *used < n && event == WEIR_FRAME_MORE; ++*used)
		event = weir_preamble_byte(p, ((const __u8 *)bytes)[*used]);
	return event;
}

static void mapped(const char *text, __u8 address[16])
{
	static const __u8 prefix[12] = { [10] = 0xff, 0xff };

	memcpy(address, prefix, sizeof(prefix));
	if (!inet_pton(AF_INET, text, address + 12))
		assert_int_equal(inet_pton(AF_INET6, text, address), 1);
}

/* All of the bytes are a preamble; address NULL: it names nobody. */
static void names(const char *address, const void *bytes, size_t n)
{
	struct weir_preamble p;
	__u8 want[16];
	size_t used;

	assert_int_equal(feed(&p, bytes, n, &used), WEIR_FRAME_MESSAGE);
	assert_int_equal(used, n);
	assert_false(weir_preamble_awaited(&p));
	assert_int_equal(p.given, address != NULL);
	if (!address)
		return;
	mapped(address, want);
	assert_memory_equal(p.address, want, sizeof(want));
}

static void line_names(const char *address, const char *line)
{
	names(address, line, strlen(line));
}

/* The bytes but for the last are the beginning of one; the last is wrong. */
static void is_none(const void *bytes, size_t n)
{
	struct weir_preamble p;
	size_t used;

	assert_int_equal(feed(&p, bytes, n, &used), WEIR_FRAME_LOST);
	assert_int_equal(used, n);
	assert_false(weir_preamble_awaited(&p));
	assert_false(p.given);
}

static void test_lines(void **state)
{
	(void)state;
	line_names("192.0.2.1", "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n");
	line_names("0.0.0.0", "PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n");
	line_names("2001:db8::1", "PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n");
	line_names("::", "PROXY TCP6 :: ::1 1 1\r\n");
	line_names("192.0.2.1", "PROXY TCP6 ::ffff:192.0.2.1 ::1 1 1\r\n");
	line_names("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		   "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 "
		   "65535\r\n");
	line_names(NULL, "PROXY UNKNOWN\r\n");
	line_names(NULL, "PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n");
}

static void test_bad_lines(void **state)
{
	static const char *const lines[] = {
		"G",
		"PROXY  ",
		"PROXY t",
		"PROXY TCP5",
		"PROXY TCP4  ",
		"PROXY TCP4 1.2.3 ",
		"PROXY TCP4 1.2.3.4.",
		"PROXY TCP4 1..",
		"PROXY TCP4 .",
		"PROXY TCP4 1.2.3.256 ",
		"PROXY TCP4 01.",
		"PROXY TCP4 1.2.3.a ",
		"PROXY TCP4 1:",
		"PROXY TCP4 1.2.3.4\r",
		"PROXY TCP4 1.2.3.4 1.2.3.4  ",
		"PROXY TCP4 1.2.3.4 1.2.3.4 65536 ",
		"PROXY TCP4 1.2.3.4 1.2.3.4 080 ",
		"PROXY TCP4 1.2.3.4 1.2.3.4 -",
		"PROXY TCP4 1.2.3.4 1.2.3.4 123456",
		"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 ",
		"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
		"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\r",
		"PROXY TCP4 1.2.3.4 1.2.3.400 ",
		"PROXY TCP6 1.2.3.4 ",
		"PROXY TCP6 1::2::",
		"PROXY TCP6 :1",
		"PROXY TCP6 :::",
		"PROXY TCP6 1: ",
		"PROXY TCP6  ",
		"PROXY TCP6 12345",
		"PROXY TCP6 1:2:3:4:5:6:7 ",
		"PROXY TCP6 1:2:3:4:5:6:7:8:",
		"PROXY TCP6 1:2:3:4:5:6:7::8 ",
		"PROXY TCP6 1:2:3:4:5:6:7:1.2.3.",
		"PROXY TCP6 ::1.2.3:",
		"PROXY TCP6 ::1%",
		"PROXY UNKNOWNS",
		"PROXY UNKNOWN\n",
		"PROXY UNKNOWN a\n",
		"PROXY UNKNOWN a\rb",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(lines); i++)
		is_none(lines[i], strlen(lines[i]));
}

/* 107 bytes with its CRLF, and not one more. */
static void test_longest_line(void **state)
{
	char line[128];

	(void)state;
	snprintf(line, sizeof(line), "PROXY UNKNOWN %0*d\r\n", 107 - 16, 0);
	assert_int_equal(strlen(line), 107);
	line_names(NULL, line);
	snprintf(line, sizeof(line), "PROXY UNKNOWN %0*d\r\n", 107 - 15, 0);
	is_none(line, 108);
}

static const char ends4[] = "\xc0\0\x02\x01\xc6\x33\x64\x07\xdc\x04\x01\xbb";
static const char ends6[] =
	"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02\0\1\0\2";

/* Writes a binary header; its length is that of the ends and of `more` bytes. */
static size_t put_binary(__u8 *to, __u8 command, __u8 family, const void *ends, size_t n, size_t more)
{
	memcpy(to, SIGNATURE, 12);
	to[12] = command;
	to[13] = family;
	to[14] = (n + more) >> 8;
	to[15] = n + more;
	memcpy(to + 16, ends, n);
	memset(to + 16 + n, 0xa5, more);
	return 16 + n + more;
}

static void binary_names(const char *address, __u8 command, __u8 family, const void *ends, size_t n, size_t more)
{
	__u8 *bytes = malloc(16 + n + more);

	names(address, bytes, put_binary(bytes, command, family, ends, n, more));
	free(bytes);
}

static void test_binary(void **state)
{
	(void)state;
	for (size_t more = 0; more < 2000; more += 1 + more / 2) {
		binary_names("192.0.2.1", 0x21, 0x11, ends4, 12, more);
		binary_names("2001:db8::1", 0x21, 0x21, ends6, 36, more);
		binary_names(NULL, 0x20, 0x11, ends4, 12, more); /* LOCAL */
		binary_names(NULL, 0x20, 0, "", 0, more);
		binary_names(NULL, 0x21, 0, "", 0, more);
		binary_names(NULL, 0x21, 0x12, ends4, 12, more); /* datagrams */
		binary_names(NULL, 0x21, 0x31, ends6, 36, more); /* AF_UNIX */
	}
	binary_names("192.0.2.1", 0x21, 0x11, ends4, 12, 65535 - 12);
}

static void test_bad_binary(void **state)
{
	static const __u8 commands[] = { 0x22, 0x2f, 0x10, 0x11, 0x31, 0 };
	static const __u8 families[] = { 0x41, 0x13, 0xff };
	__u8 bytes[64];

	(void)state;
	for (size_t i = 0; i < 12; i++) {
		memcpy(bytes, SIGNATURE, 12);
		bytes[i] ^= 0x20;
		is_none(bytes, i + 1);
	}
	for (size_t i = 0; i < LENGTH(commands); i++) {
		put_binary(bytes, commands[i], 0x11, ends4, 12, 0);
		is_none(bytes, 13);
	}
	for (size_t i = 0; i < LENGTH(families); i++) {
		put_binary(bytes, 0x21, families[i], ends4, 12, 0);
		is_none(bytes, 14);
	}
	put_binary(bytes, 0x21, 0x11, ends4, 11, 0);
	is_none(bytes, 16);
	put_binary(bytes, 0x21, 0x21, ends6, 35, 0);
	is_none(bytes, 16);
}

/* What is skipped, in one step or in several, ends at the same byte. */
static void test_skipping(void **state)
{
	__u8 bytes[16 + 12 + 300];
	size_t n = put_binary(bytes, 0x21, 0x11, ends4, 12, 300), used;
	struct weir_preamble p;

	(void)state;
	for (__u32 step = 1; step < 320; step++) {
		__u32 left = 308;

		assert_int_equal(feed(&p, bytes, 16 + 4, &used), WEIR_FRAME_MORE);
		while (left) {
			__u32 skip = step < left ? step : left;

			assert_int_equal(weir_preamble_skippable(&p), left);
			left -= skip;
			assert_int_equal(weir_preamble_skip(&p, skip), left ? WEIR_FRAME_MORE : WEIR_FRAME_MESSAGE);
		}
		assert_false(weir_preamble_awaited(&p));
		assert_true(p.given);
	}
	assert_int_equal(n, 16 + 12 + 300);
}

/* Texts of all kinds of addresses, right ones and wrong ones, are taken for what inet_pton() takes them. */
static void test_addresses_as_libc_has_them(void **state)
{
	static const char letters[] = "0123456789abcdefABCDEF::::....";
	unsigned int good = 0;

	(void)state;
	srandom(1);
	for (int round = 0; round < 300000; round++) {
		char text[INET6_ADDRSTRLEN + 8], line[128];
		struct weir_preamble p;
		__u8 want[16];
		size_t used;
		bool right;

		for (int i = 0; i < 16; i++)
			want[i] = random() % 3 ? 0 : random();
		inet_ntop(AF_INET6, want, text, sizeof(text));
		for (int changes = random() % 3; changes; changes--)
			text[random() % strlen(text)] = letters[random() % (sizeof(letters) - 1)];
		right = inet_pton(AF_INET6, text, want) == 1;
		snprintf(line, sizeof(line), "PROXY TCP6 %s ::1 1 1\r\n", text);
		if ((feed(&p, line, strlen(line), &used) == WEIR_FRAME_MESSAGE) != right)
			fail_msg("%s: libc says %d", text, right);
		if (right)
			assert_memory_equal(p.address, want, sizeof(want));
		good += right;
	}
	assert_in_range(good, 100000, 290000);
}

static void test_none_awaited(void **state)
{
	struct weir_preamble none = { 0 };

	(void)state;
	assert_false(weir_preamble_awaited(&none));
	assert_int_equal(weir_preamble_skippable(&none), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_longest_line),
		cmocka_unit_test(test_binary),
		cmocka_unit_test(test_bad_binary),
		cmocka_unit_test(test_skipping),
		cmocka_unit_test(test_addresses_as_libc_has_them),
		cmocka_unit_test(test_none_awaited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
