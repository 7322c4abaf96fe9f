/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "model/identity.h"
#include "model/parse.h"

static void ports(void **state)
{
	static const char *const wrong[] = {
		"", "0", "65536", "80x", "-1", "+80", " 80", "80 ", "8e1", "0x50", "99999999999999999999"
	};
	struct error err;
	__u16 port = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(parse_port(wrong[i], &port, &err), -EINVAL);
		assert_int_equal(port, 7);
		assert_non_null(strstr(err.text, wrong[i]));
	}
	assert_int_equal(parse_port("1", &port, &err), 0);
	assert_int_equal(port, 1);
	assert_int_equal(parse_port("65535", &port, &err), 0);
	assert_int_equal(port, 65535);
}

static void numbers(void **state)
{
	__u64 value = 7;

	(void)state;
	assert_int_equal(parse_number("18446744073709551615", ~0ULL, &value, NULL), 0);
	assert_true(value == ~0ULL);
	assert_int_equal(parse_number("18446744073709551616", ~0ULL, &value, NULL), -EINVAL);
	assert_int_equal(parse_number("100", 99, &value, NULL), -EINVAL);
	assert_int_equal(parse_number("1.5", 99, &value, NULL), -EINVAL);
	assert_true(value == ~0ULL);
}

/* given, and as it is written back; NULL: refused */
static void listens(void **state)
{
	static const struct {
		const char *given, *written;
	} cases[] = {
		{ "*:80", "*:80" },
		{ "0.0.0.0:80", "*:80" },
		{ "[::]:80", "*:80" },
		{ "10.0.0.1:8080", "10.0.0.1:8080" },
		{ "[2001:DB8::1]:80", "[2001:db8::1]:80" },
		{ "[::ffff:10.0.0.1]:80", "10.0.0.1:80" },
		{ "80", NULL },
		{ ":80", NULL },
		{ "10.0.0.1", NULL },
		{ "10.0.0.1:", NULL },
		{ "10.0.0.1:0", NULL },
		{ "10.0.0:80", NULL },
		{ "localhost:80", NULL },
		{ "2001:db8::1:80", NULL },
		{ "[10.0.0.1]:80", NULL },
		{ "[]:80", NULL },
		{ "[*]:80", NULL },
		{ "[2001:db8::1:80", NULL },
		{ "[2001:db8::1]80", NULL },
		{ "1111111111111111111111111111111111111111111111111111111111:80", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct datapath_listen listen;
		char text[PARSE_LISTEN_TEXT];
		struct error err;
		int ret = parse_listen(cases[i].given, &listen, &err);

		assert_int_equal(ret, cases[i].written ? 0 : -EINVAL);
		if (ret)
			continue;
		format_listen(&listen, text);
		assert_string_equal(text, cases[i].written);
	}
}

static void listen_layout(void **state)
{
	static const __u8 mapped[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	static const __u8 zero[16];
	struct datapath_listen listen;

	(void)state;
	assert_int_equal(parse_listen("10.0.0.1:8080", &listen, NULL), 0);
	assert_memory_equal(listen.address, mapped, 16);
	assert_int_equal(listen.port, 8080);
	assert_false(listen.any);
	assert_int_equal(parse_listen("0.0.0.0:1", &listen, NULL), 0);
	assert_memory_equal(listen.address, zero, 16);
	assert_true(listen.any);
}

static void cidrs(void **state)
{
	static const struct {
		const char *given, *written;
		int ret, bits;
	} cases[] = {
		{ "10.1.2.3/8", "10.0.0.0/8", 0, 104 },
		{ "10.1.2.3/31", "10.1.2.2/31", 0, 127 },
		{ "10.1.2.3", "10.1.2.3/32", 0, 128 },
		{ "0.0.0.0/0", "0.0.0.0/0", 0, 96 },
		{ "2001:db8:1:2:3::/64", "2001:db8:1:2::/64", 0, 64 },
		{ "2001:db8::1", "2001:db8::1/128", 0, 128 },
		{ "::/0", "::/0", 0, 0 },
		{ "10.0.0.0/33", NULL, -ERANGE, 0 },
		{ "10.0.0.0/", NULL, -ERANGE, 0 },
		{ "10.0.0.0/-1", NULL, -ERANGE, 0 },
		{ "::/129", NULL, -ERANGE, 0 },
		{ "10.0.0/8", NULL, -EINVAL, 0 },
		{ "alice", NULL, -EINVAL, 0 },
		{ "", NULL, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct datapath_cidr cidr;
		char text[PARSE_LISTEN_TEXT];
		int ret = parse_cidr(cases[i].given, &cidr, NULL);

		assert_int_equal(ret, cases[i].ret);
		if (ret)
			continue;
		format_cidr(&cidr, text);
		assert_string_equal(text, cases[i].written);
		assert_int_equal(cidr.bits, cases[i].bits);
	}
}

static void server_names(void **state)
{
	static const char *const right[] = {
		"a",
		"api",
		"api-1.example",
		"0",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", /* 63 */
	};
	static const char *const wrong[] = {
		"",    "-a",  "a-",	  ".a",
		"a.",  "A",   "a_b",	  "a b",
		"a/b", "a\n", "\xc3\xa4", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++)
		assert_int_equal(parse_server_name(right[i], NULL), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(parse_server_name(wrong[i], NULL), -EINVAL);
}

static void interfaces(void **state)
{
	static const char *const wrong[] = { "", ".", "..", "a/b", "a b", "a:1", "abcdefghijklmnop", "a\n" };

	(void)state;
	assert_int_equal(parse_interface("eth0.100", NULL), 0);
	assert_int_equal(parse_interface("abcdefghijklmno", NULL), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(parse_interface(wrong[i], NULL), -EINVAL);
}

static void subjects(void **state)
{
	static const struct {
		enum weir_key_part part;
		int kind;
		const char *given, *text; /* NULL: refused */
	} cases[] = {
		{ WEIR_KEY_USER, WEIR_NAME_USER, "alice", "alice" },
		{ WEIR_KEY_USER, WEIR_NAME_USER, "system:serviceaccount:a:b", "system:serviceaccount:a:b" },
		{ WEIR_KEY_USER, WEIR_NAME_USER, "Alice Smith", "Alice Smith" },
		{ WEIR_KEY_USER, WEIR_NAME_USER, "a/64", "a/64" },
		{ WEIR_KEY_USER, WEIR_NAME_ADDRESS, "10.0.0.1", "10.0.0.1" },
		{ WEIR_KEY_USER, WEIR_NAME_ADDRESS, "10.0.0.1/32", "10.0.0.1" },
		{ WEIR_KEY_USER, WEIR_NAME_ADDRESS, "::ffff:10.0.0.1", "10.0.0.1" },
		{ WEIR_KEY_USER, WEIR_NAME_ADDRESS, "2001:DB8::1", "2001:db8::/64" },
		{ WEIR_KEY_USER, WEIR_NAME_ADDRESS, "2001:db8::/64", "2001:db8::/64" },
		{ WEIR_KEY_USER, 0, "10.0.0.0/8", NULL },
		{ WEIR_KEY_USER, 0, "10.0.0.0/99", NULL },
		{ WEIR_KEY_USER, 0, "2001:db8::/48", NULL },
		{ WEIR_KEY_USER, 0, "", NULL },
		{ WEIR_KEY_USER, 0, "a\nb", NULL },
		{ WEIR_KEY_NAMESPACE, WEIR_NAME_NAMESPACE, "kube-system", "kube-system" },
		{ WEIR_KEY_NAMESPACE, WEIR_NAME_NAMESPACE, "10.0.0.1", "10.0.0.1" },
		{ WEIR_KEY_NAMESPACE, 0, "a/b", NULL },
		{ WEIR_KEY_NAMESPACE, 0, "a b", NULL },
		{ WEIR_KEY_GROUP, WEIR_NAME_GROUP, "10.0.0.1", "10.0.0.1" },
		{ WEIR_KEY_SOURCE, WEIR_NAME_ADDRESS, "10.0.0.1", "10.0.0.1" },
		{ WEIR_KEY_SOURCE, WEIR_NAME_ADDRESS, "2001:db8::9", "2001:db8::/64" },
		{ WEIR_KEY_SOURCE, 0, "10.0.0.0/8", NULL },
		{ WEIR_KEY_SOURCE, 0, "alice", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct subject subject, again;
		int ret = parse_subject(cases[i].part, cases[i].given, &subject, NULL);

		assert_int_equal(ret != 0, cases[i].text == NULL);
		if (ret)
			continue;
		assert_string_equal(subject.text, cases[i].text);
		assert_int_equal(subject.kind, cases[i].kind);
		assert_int_equal(parse_subject(cases[i].part, subject.text, &again, NULL), 0);
		assert_string_equal(again.text, subject.text);
		if (subject.kind == WEIR_NAME_ADDRESS)
			assert_memory_equal(again.address, subject.address, 16);
	}
}

static void subject_length(void **state)
{
	char text[PARSE_SUBJECT_MAX + 2];
	struct subject subject;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[PARSE_SUBJECT_MAX + 1] = '\0';
	assert_int_equal(parse_subject(WEIR_KEY_USER, text, &subject, NULL), -EINVAL);
	text[PARSE_SUBJECT_MAX] = '\0';
	assert_int_equal(parse_subject(WEIR_KEY_USER, text, &subject, NULL), 0);
	assert_string_equal(subject.text, text);
}

static void limit_names(void **state)
{
	static const char *const wrong[] = { "", "A", "a b", "-a", "a/b", "a_b" };

	(void)state;
	assert_int_equal(parse_limit_name("list-secrets.v2", NULL), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(parse_limit_name(wrong[i], NULL), -EINVAL);
}

/* A rate alone has what it gains in ten seconds for its burst, and no more than the largest. */
static void newcomers(void **state)
{
	static const struct {
		const char *text;
		__u64 per_ns;
		__u32 burst;
	} good[] = {
		{ "0", 0, 0 },
		{ "0.1", WEIR_QPS / 10, 10 },
		{ "5", 5 * WEIR_QPS, 50 },
		{ "99999999", 99999999 * WEIR_QPS, 999999990 },
		{ "100000000", 100000000 * WEIR_QPS, WEIR_BURST_MAX },
		{ "1000000000", WEIR_TOKEN, WEIR_BURST_MAX },
		{ "5:7", 5 * WEIR_QPS, 7 },
		{ "5:1000000000", 5 * WEIR_QPS, WEIR_BURST_MAX },
	};
	static const char *const wrong[] = { "", ":", ":5", "5:", "x", "5:x", "5:1000000001", "1000000001", "5:7:9" };
	struct error err;
	__u64 per_ns;
	__u32 burst;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(newcomers_parse(good[i].text, &per_ns, &burst, &err), 0);
		assert_int_equal(per_ns, good[i].per_ns);
		assert_int_equal(burst, good[i].burst);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(newcomers_parse(wrong[i], &per_ns, &burst, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports),	 cmocka_unit_test(numbers),   cmocka_unit_test(listens),
		cmocka_unit_test(listen_layout), cmocka_unit_test(cidrs),     cmocka_unit_test(server_names),
		cmocka_unit_test(interfaces),	 cmocka_unit_test(subjects),  cmocka_unit_test(subject_length),
		cmocka_unit_test(limit_names),	 cmocka_unit_test(newcomers),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
