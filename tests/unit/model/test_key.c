/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../agent/fake_datapath.h"
#include "model/key.h"

#define NAMESPACE WEIR_KEY_NAMESPACE
#define USER WEIR_KEY_USER
#define GROUP WEIR_KEY_GROUP
#define SOURCE WEIR_KEY_SOURCE

static void keys(void **state)
{
	static const struct {
		const char *given, *text; /* NULL: refused */
		__u8 key;
	} cases[] = {
		{ "total", "total", 0 },
		{ "user", "user", USER },
		{ "user,namespace", "namespace,user", NAMESPACE | USER },
		{ "object,source,group,user,namespace", "namespace,user,group,source,object",
		  NAMESPACE | USER | GROUP | SOURCE | WEIR_KEY_OBJECT },
		{ "", NULL, 0 },
		{ "users", NULL, 0 },
		{ "use", NULL, 0 },
		{ "user,", NULL, 0 },
		{ "user,user", NULL, 0 },
		{ "total,user", NULL, 0 },
		{ "user, namespace", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[KEY_TEXT];
		struct error err;
		__u8 key = 0xff;
		int ret = key_parse(cases[i].given, &key, &err);

		assert_int_equal(ret != 0, !cases[i].text);
		assert_int_equal(key, ret ? 0xff : cases[i].key);
		if (ret)
			continue;
		key_format(key, text);
		assert_string_equal(text, cases[i].text);
	}
}

/* Parts are joined by slashes, which users, groups and IPv6 networks may have inside. */
static void subjects(void **state)
{
	static const struct {
		__u8 key;
		const char *given, *text; /* NULL: refused */
	} cases[] = {
		{ USER, "a/b/c", "a/b/c" },
		{ GROUP, "cn=a/b", "cn=a/b" },
		{ SOURCE, "2001:db8::7", "2001:db8::/64" },
		{ NAMESPACE | USER, "ns1/alice", "ns1/alice" },
		{ NAMESPACE | USER, "ns1/a/b", "ns1/a/b" },
		{ NAMESPACE | USER, "ns1/2001:db8::7", "ns1/2001:db8::/64" },
		{ NAMESPACE | USER, "ns1/2001:db8::/64", "ns1/2001:db8::/64" },
		{ NAMESPACE | SOURCE, "ns1/10.0.0.1/32", NULL },
		{ NAMESPACE | SOURCE, "ns1/10.0.0.1", "ns1/10.0.0.1" },
		{ NAMESPACE | SOURCE, "ns1/2001:db8::/64", "ns1/2001:db8::/64" },
		{ USER | SOURCE, "a/b/10.0.0.1", "a/b/10.0.0.1" },
		{ USER | SOURCE, "a/64", NULL },
		{ USER | SOURCE, "2001:db8::1/2001:db8::2", "2001:db8::/64/2001:db8::/64" },
		{ USER | SOURCE, "2001:db8::/64/2001:db8::/64", "2001:db8::/64/2001:db8::/64" },
		{ USER | GROUP, "a/b", "a/b" },
		{ USER | GROUP, "a/b/c", NULL },
		{ USER | GROUP, "a", NULL },
		{ USER | GROUP, "2001:db8::1/ops", "2001:db8::/64/ops" },
		{ USER | GROUP, "2001:db8::/64/ops", "2001:db8::/64/ops" },
		{ NAMESPACE | USER | GROUP | SOURCE, "n/u/g/10.0.0.1", "n/u/g/10.0.0.1" },
		{ NAMESPACE | USER | GROUP | SOURCE, "n/u/10.0.0.1", NULL },
		{ NAMESPACE | USER, "ns1", NULL },
		{ NAMESPACE | USER, "ns1/", NULL },
		{ NAMESPACE | USER, "/alice", NULL },
		{ NAMESPACE, "a/b", NULL },
		{ 0, "alice", NULL },
		{ WEIR_KEY_OBJECT, "web-1", NULL },
		{ USER | WEIR_KEY_OBJECT, "alice/web-1", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[KEY_SUBJECT_TEXT] = "", again[KEY_SUBJECT_TEXT];
		struct error err = { 0 };
		int ret = key_subject_parse(cases[i].key, cases[i].given, text, &err);

		if (!ret != !!cases[i].text)
			fail_msg("%s: %s", cases[i].given, ret ? err.text : text);
		assert_string_equal(text, cases[i].text ?: "");
		if (ret)
			continue;
		assert_int_equal(key_subject_parse(cases[i].key, text, again, NULL), 0);
		assert_string_equal(again, text);
	}
}

/* What may be a network at either end, and is too long for one. */
static void no_network(void **state)
{
	static const size_t lengths[] = { PARSE_SUBJECT_MAX, PARSE_SUBJECT_MAX + 1, 100 * PARSE_SUBJECT_MAX };
	static char first[101 * PARSE_SUBJECT_MAX], last[sizeof(first)];
	char text[KEY_SUBJECT_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		snprintf(first, sizeof(first), "%0*d:/64/ops", (int)lengths[i] - 1, 0);
		snprintf(last, sizeof(last), "alice/%0*d:/64", (int)lengths[i] - 1, 0);
		assert_int_equal(key_subject_parse(USER | GROUP, first, text, NULL), -EINVAL);
		assert_int_equal(key_subject_parse(USER | SOURCE, last, text, NULL), -EINVAL);
	}
}

static void errors_say_the_form(void **state)
{
	char text[KEY_SUBJECT_TEXT];
	struct error err;

	(void)state;
	assert_true(key_subject_parse(NAMESPACE | USER, "ns1", text, &err) < 0);
	assert_non_null(strstr(err.text, "\"ns1\" is not namespace/user"));
	assert_true(key_subject_parse(USER | GROUP, "a/b/c", text, &err) < 0);
	assert_non_null(strstr(err.text, "user/group"));
}

/* The kernel makes it of the parts' subjects, in their order. */
static void to_the_kernel(void **state)
{
	static const __u8 cut[16] = { 0x20, 0x01, 0x0d, 0xb8 };
	const struct datapath *dp = &fake_nets[1];
	__u64 ns = datapath_subject(dp, WEIR_NAME_NAMESPACE, "ns1", 3);
	__u64 alice = datapath_subject(dp, WEIR_NAME_USER, "alice", 5);
	__u64 network = datapath_subject(dp, WEIR_NAME_ADDRESS, cut, sizeof(cut));

	(void)state;
	assert_true(key_subject(dp, USER, "alice") == alice);
	assert_true(key_subject(dp, SOURCE, "2001:db8::/64") == network);
	assert_true(key_subject(dp, NAMESPACE | USER, "ns1/alice") == weir_pair(ns, alice));
	assert_true(key_subject(dp, NAMESPACE | USER | SOURCE, "ns1/alice/2001:db8::/64") ==
		    weir_pair(weir_pair(ns, alice), network));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),		 cmocka_unit_test(subjects),
		cmocka_unit_test(no_network),	 cmocka_unit_test(errors_say_the_form),
		cmocka_unit_test(to_the_kernel),
	};

	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
