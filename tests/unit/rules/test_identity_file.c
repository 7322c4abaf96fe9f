/* SPDX-License-Identifier: GPL-2.0 */
/* The files of tokens and addresses, and what they come to. */
#include "model/identity_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../agent/fake_datapath.h"
#include "base/cleanup.h"
#include "rules/identity.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static char path[] = P_tmpdir "/weir-test-XXXXXX";

static int make_file(void **state)
{
	int fd;

	(void)state;
	strcpy(path, P_tmpdir "/weir-test-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int say_token(const struct token_row *row, void *out)
{
	fprintf(out, "%s=%s(%s);", row->token, row->user, row->groups);
	return 0;
}

static int say_address(const struct address_row *row, void *out)
{
	char cidr[PARSE_LISTEN_TEXT];

	format_cidr(&row->cidr, cidr);
	fprintf(out, "%s=%s(%s)@%s;", cidr, row->user, row->groups, row->namespace);
	return 0;
}

/* What is read of a file: rows, or with `!` in front what is wrong with it, without its path. */
static char *read_text(const char *text, bool addresses)
{
	char *said = NULL, *wrong;
	struct error err = { 0 };
	size_t size;
	FILE *out = open_memstream(&said, &size);
	int ret;

	write_file(text);
	ret = addresses ? address_file_read(path, say_address, out, &err) : token_file_read(path, say_token, out, &err);
	fclose(out);
	if (!ret)
		return said;
	free(said);
	assert_int_equal(ret, -EINVAL);
	wrong = malloc(sizeof(err.text) + 1);
	assert_non_null(wrong);
	strcpy(wrong, "!");
	for (const char *at = err.text; *at;) {
		if (strncmp(at, path, strlen(path)) == 0)
			at += strlen(path) + 1;
		else
			strncat(wrong, at++, 1);
	}
	return wrong;
}

static void check(const char *text, bool addresses, const char *expected)
{
	CLEANUP_FREE char *said = read_text(text, addresses);

	if (strcmp(said, expected) != 0)
		fail_msg("%s: %s instead of %s", text, said, expected);
}

static void test_tokens(void **state)
{
	(void)state;
	check("t1,alice,1,\"dev,ops\"\nt2,bob,2\nt3,carol,3,dev,more,columns\n", false,
	      "t1=alice(dev,ops);t2=bob();t3=carol(dev);");
	check("\"a,\"\"b\",alice,1\n", false, "a,\"b=alice();");
	check(",nobody,1\nt,alice,\n", false, "t=alice();");
	check("", false, "");
}

#define NAME " a name is 1 to 1024 bytes without control characters"

static void test_wrong_tokens(void **state)
{
	(void)state;
	check("t,alice\n", false, "!1:1: a token, a user and a uid are needed, and 2 columns are there");
	check("# tokens\n", false, "!1:1: a token, a user and a uid are needed, and 1 column is there");
	check("t,,1\nu,\"a\nb\",2,\"x,\t\"\n", false,
	      "!1:3: the user:" NAME "; 2:3: the user:" NAME "; 3:6: the groups:" NAME);
	check("t,alice,1\nt,alice\"x,2\n", false, "!2:8: a quote in a field that does not begin with a quote");
}

static void test_addresses(void **state)
{
	(void)state;
	check("10.0.0.0/8,alice\n2001:db8::/32,bob,\"dev,ops\",shop\n192.0.2.1,carol,,shop\n", true,
	      "10.0.0.0/8=alice()@;2001:db8::/32=bob(dev,ops)@shop;192.0.2.1/32=carol()@shop;");
}

/* The text is not repeated: the file may be one of tokens. */
static void test_wrong_addresses(void **state)
{
	(void)state;
	check("secret,alice,1\n", true, "!1:1: this is not an IP address or CIDR");
	check("10.0.0.0/33,alice\n10.0.0.0,\n10.0.0.1,a,b,c/d\n10.0.0.2\n1,2,3,4,5\n", true,
	      "!1:1: this is not an IP address or CIDR; 2:10: the user:" NAME "; 3:14: this is not a namespace; "
	      "4:1: CIDR,user,\"groups\",namespace are 2 to 4 columns, and 1 is there; "
	      "5:1: CIDR,user,\"groups\",namespace are 2 to 4 columns, and 5 are there");
}

static void test_many_errors_end_somewhere(void **state)
{
	char text[4096] = "";
	CLEANUP_FREE char *said = NULL;

	(void)state;
	for (int i = 0; i < 500; i++)
		strcat(text, "t\n");
	said = read_text(text, false);
	assert_memory_equal(said, "!1:1: ", 6);
	assert_true(strlen(said) < 512);
}

static void test_no_file(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(token_file_read("/nonexistent/file", say_token, NULL, &err), -ENOENT);
	assert_string_equal(err.text, "/nonexistent/file: No such file or directory");
	assert_int_equal(token_file_read("/tmp", say_token, NULL, &err), -EINVAL);
	assert_int_equal(token_file_read("/dev/zero", say_token, NULL, &err), -EINVAL);
}

static int out_of_room(const struct token_row *row, void *context)
{
	(void)row;
	++*(int *)context;
	return -ENOMEM;
}

static void test_a_reader_may_fail(void **state)
{
	struct error err;
	int calls = 0;

	(void)state;
	write_file("t,alice,1\nu,bob,2\n");
	assert_int_equal(token_file_read(path, out_of_room, &calls, &err), -ENOMEM);
	assert_int_equal(calls, 1);
}

static void settings_of(const char *json, struct identity_settings *settings)
{
	CLEANUP_JSON json_t *object = json_loads(json, 0, NULL);

	assert_non_null(object);
	assert_int_equal(identity_settings_from_json(object, settings, NULL), 0);
}

/* Explicit groups, and those that follow from how a user is identified and from his name. */
static void test_groups_of_principals(void **state)
{
	static const char *const users[] = { "a", "system:serviceaccount:dev:b", "system:serviceaccount:prod:b",
					     "system:serviceaccount:dev:b:c", "system:serviceaccount:dev:" };
	static const __u64 groups[] = { 1 << 0 | 1 << 1 | 1 << 3, 1 << 1 | 1 << 4 | 1 << 5, 1 << 1 | 1 << 4, 1 << 1,
					1 << 1 };
	struct identity_settings settings = { 0 };
	struct datapath_token *tokens = NULL;
	struct datapath *dp = &fake_nets[1];
	struct error err;

	(void)state;
	settings_of("{\"exempt_groups\":[\"ops\",\"system:authenticated\",\"system:unauthenticated\",\"dev\","
		    "\"system:serviceaccounts\",\"system:serviceaccounts:dev\"]}",
		    &settings);
	settings.token_file = strdup(path);
	write_file("t0,a,1,\"ops,other,dev\"\nt1,system:serviceaccount:dev:b,1\nt2,system:serviceaccount:prod:b,1\n"
		   "t3,system:serviceaccount:dev:b:c,1\nt4,system:serviceaccount:dev:,1\n");
	assert_int_equal(identity_tokens(&settings, dp, &tokens, &err), 5);
	for (int i = 0; i < 5; i++) {
		char token[] = { 't', '0' + i };
		const struct weir_principal *principal = &tokens[i].principal;

		assert_true(tokens[i].subject == datapath_subject(dp, WEIR_NAME_TOKEN, token, 2));
		assert_true(principal->user == datapath_subject(dp, WEIR_NAME_USER, users[i], strlen(users[i])));
		for (__u32 group = 0; group < 64; group++)
			assert_int_equal(weir_groups_have(&principal->groups, WEIR_GROUPS_MAX - 1 - group),
					 groups[i] >> group & 1);
		assert_memory_equal(principal->user_name.text, users[i], strlen(users[i]));
		assert_int_equal(principal->user_name.whole, strlen(users[i]));
		assert_int_equal(principal->namespace, 0);
	}
	free(tokens);
	identity_settings_clear(&settings);
}

static void test_addresses_of_rows_and_file(void **state)
{
	struct identity_settings settings = { 0 };
	struct datapath_address *addresses = NULL;
	struct datapath *dp = &fake_nets[1];
	struct error err;

	(void)state;
	settings_of("{\"addresses\":[\"10.0.0.0/8,alice,,shop\"]}", &settings);
	settings.address_file = strdup(path);
	write_file("192.0.2.0/24,bob\n");
	assert_int_equal(identity_addresses(&settings, dp, &addresses, &err), 2);
	assert_int_equal(addresses[0].cidr.bits, 96 + 24);
	assert_int_equal(addresses[0].principal.namespace, 0);
	assert_int_equal(addresses[1].cidr.bits, 96 + 8);
	assert_true(addresses[1].principal.namespace == datapath_subject(dp, WEIR_NAME_NAMESPACE, "shop", 4));
	assert_int_equal(addresses[1].principal.namespace_name.kind, WEIR_NAME_NAMESPACE);
	free(addresses);
	write_file("192.0.2.0/24\n");
	assert_int_equal(identity_addresses(&settings, dp, &addresses, &err), -EINVAL);
	identity_settings_clear(&settings);
}

static void test_keys_of_groups(void **state)
{
	static const struct {
		enum weir_name_kind kind;
		const char *name;
		__u32 bit;
	} wanted[] = {
		{ WEIR_NAME_GROUP, "ops", 127 },
		{ WEIR_NAME_GROUP, "system:serviceaccounts:dev", 126 },
		{ WEIR_NAME_USER, "system:serviceaccount:dev", 126 },
		{ WEIR_NAME_GROUP, "system:serviceaccounts:", 125 },
		{ WEIR_NAME_USER, "root", 0 },
	};
	struct identity_settings settings = { 0 };
	struct datapath_group *keys = NULL;
	struct datapath *dp = &fake_nets[1];

	(void)state;
	settings_of("{\"exempt_groups\":[\"ops\",\"system:serviceaccounts:dev\",\"system:serviceaccounts:\"],"
		    "\"exempt_users\":[\"root\"]}",
		    &settings);
	assert_int_equal(identity_group_keys(&settings, dp, &keys), LENGTH(wanted));
	for (size_t i = 0; i < LENGTH(wanted); i++) {
		assert_true(keys[i].subject ==
			    datapath_subject(dp, wanted[i].kind, wanted[i].name, strlen(wanted[i].name)));
		assert_int_equal(keys[i].bit, wanted[i].bit);
	}
	free(keys);
	identity_settings_clear(&settings);
}

/* A group whose name has another length than all that are named is not looked up: so the length of each must be there. */
static void test_lengths_of_groups(void **state)
{
	struct identity_settings settings = { 0 }, before = { 0 };
	struct weir_known_groups known;
	char longest[80] = "", text[160];

	(void)state;
	identity_known_groups(&settings, &known);
	assert_true(known.lengths == 0);
	memset(longest, 'g', 70);
	snprintf(text, sizeof(text), "{\"exempt_groups\":[\"ops\",\"%s\"],\"exempt_users\":[\"root\"]}", longest);
	settings_of(text, &settings);
	settings_of("{\"exempt_groups\":[\"system:masters\"]}", &before);
	identity_known_groups(&settings, &known);
	assert_true(known.lengths == (1ULL << 3 | 1ULL << (70 - 64)));
	identity_exempt_join(&known, &before);
	assert_true(known.lengths == (1ULL << 3 | 1ULL << (70 - 64) | 1ULL << 14));
	identity_settings_clear(&settings);
	identity_settings_clear(&before);
}

static void test_too_many_groups(void **state)
{
	struct identity_settings settings = { 0 };
	CLEANUP_JSON json_t *json = json_pack("{s:[]}", "exempt_groups");
	struct error err = { 0 };

	(void)state;
	for (int i = 0; i < 127; i++)
		json_array_append_new(json_object_get(json, "exempt_groups"), json_string("g"));
	assert_int_equal(identity_settings_from_json(json, &settings, &err), 0);
	identity_settings_clear(&settings);
	json_array_append_new(json_object_get(json, "exempt_groups"), json_string("g"));
	assert_int_equal(identity_settings_from_json(json, &settings, &err), -E2BIG);
	assert_non_null(strstr(err.text, "at most 127"));
	identity_settings_clear(&settings);
}

static void test_bad_settings(void **state)
{
	static const char *const cases[][2] = {
		{ "{\"user_header\":\"\"}", "user_header" },
		{ "{\"user_header\":\"X-Remote-Group\"}", "both" },
		{ "{\"token_file\":\"relative\"}", "absolute" },
		{ "{\"addresses\":[\"10.0.0.0/40,a\"]}", "CIDR" },
		{ "{\"addresses\":\"10.0.0.0/8,a\"}", "list" },
		{ "{\"exempt_users\":[\"10.0.0.0/8\"]}", "exempt_users" },
		{ "{\"exempt_users\":[1]}", "strings" },
		{ "{\"exempt_groups\":[\"\"]}", "exempt_groups" },
		{ "{\"colour\":1}", "identity" },
		{ "[]", "identity" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		CLEANUP_JSON json_t *json = json_loads(cases[i][0], 0, NULL);
		struct identity_settings settings = { 0 };
		struct error err = { 0 };

		assert_true(identity_settings_from_json(json, &settings, &err) < 0);
		if (!strstr(err.text, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], err.text);
		identity_settings_clear(&settings);
	}
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, make_file, remove_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILE(test_tokens),
		WITH_FILE(test_wrong_tokens),
		WITH_FILE(test_addresses),
		WITH_FILE(test_wrong_addresses),
		WITH_FILE(test_many_errors_end_somewhere),
		WITH_FILE(test_a_reader_may_fail),
		WITH_FILE(test_groups_of_principals),
		WITH_FILE(test_addresses_of_rows_and_file),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_keys_of_groups),
		cmocka_unit_test(test_lengths_of_groups),
		cmocka_unit_test(test_too_many_groups),
		cmocka_unit_test(test_bad_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
