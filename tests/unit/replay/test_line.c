/* SPDX-License-Identifier: GPL-2.0 */
/* Lines of recordings: what is read of each, and that jansson reads the same in lines that were altered at random. */
#include "replay/line.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "replay/recording.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))
#define ALTERED 50000

static const char whole[] =
	"{\"time\": \"2026-11-20T13:14:15.5Z\", \"server\": \"web\", \"client\": \"10.0.0.1\", \"port\": 4,"
	"\"user\": \"al\\u00efce \xc3\xa9\\n\\ud83d\\ude00\", \"identified_by\": \"token\", \"method\": \"GET\","
	"\"target\": \"/api/pods...\", \"groups\": [\"ops\", \"de\\\"v\"], \"monotonic_ns\": 77,"
	"\"more\": {\"user\": \"x\", \"list\": [1, {\"user\": null}]}, \"decision\": \"shed\"}\n";

/* On the heap, for the sanitizers. */
static char *copy_of(const char *text, size_t length)
{
	char *copy = malloc(length + 1);

	assert_non_null(copy);
	memcpy(copy, text, length);
	copy[length] = 0;
	return copy;
}

static int read_line(const char *text, size_t length, struct recorded *out, char **line)
{
	struct error err;

	*line = copy_of(text, length);
	return recorded_read(*line, length, out, &err);
}

static void test_what_is_read(void **state)
{
	struct recorded r;
	char *line;

	(void)state;
	assert_int_equal(read_line(whole, strlen(whole), &r, &line), 0);
	assert_string_equal(r.server, "web");
	assert_string_equal(r.user, "al\xc3\xaf"
				    "ce \xc3\xa9\n\xf0\x9f\x98\x80");
	assert_string_equal(r.target, "/api/pods");
	assert_true(r.missing[RECORDED_CUT_TARGET]);
	assert_null(r.namespace);
	assert_int_equal(r.monotonic_ns, 77);
	assert_int_equal(r.time_ns % WEIR_NS_PER_S, WEIR_NS_PER_S / 2);
	assert_int_equal(r.decision, WEIR_SHED);
	assert_int_equal(json_array_size(r.groups), 2);
	assert_string_equal(json_string_value(json_array_get(r.groups, 1)), "de\"v");
	recorded_clear(&r);
	free(line);
}

/* `from` in the whole line becomes `to`: is it read? */
static void check_altered(const char *from, const char *to, int expected)
{
	const char *at = strstr(whole, from);
	struct recorded r;
	char *line, *text;

	assert_non_null(at);
	assert_true(asprintf(&text, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from)) > 0);
	assert_int_equal(read_line(text, strlen(text), &r, &line), expected);
	recorded_clear(&r);
	free(line);
	free(text);
}

static void test_members(void **state)
{
	(void)state;
	check_altered("\"server\": \"web\",", "", -EINVAL);
	check_altered("\"web\"", "null", -EINVAL);
	check_altered("\"web\"", "\"no\", \"server\": 1", -EINVAL);
	check_altered("77", "9223372036854775807", 0);
	check_altered("77", "9223372036854775808", -EINVAL);
	check_altered("77", "1000000000000000000000000", -EINVAL);
	check_altered("77", "-1", -EINVAL);
	check_altered("77", "7.5", -EINVAL);
	check_altered("77", "null", 0);
	check_altered("[\"ops\", \"de\\\"v\"]", "[]", 0);
	check_altered("[\"ops\", \"de\\\"v\"]", "null", 0);
	check_altered("\"ops\"", "tru", -EINVAL);
	check_altered("web", "w\\u0000b", -EINVAL);
	check_altered("}\n", "}", 0);
	check_altered("}\n", "} \t\r\n", 0);
	check_altered("}\n", "}}", -EINVAL);
	check_altered("}\n", "", -EINVAL);
	check_altered("{\"time\"", "[\"time\"", -EINVAL);
}

/* Wherever a line is cut it is no line. */
static void test_cut(void **state)
{
	struct recorded r;
	char *line;

	(void)state;
	for (size_t length = 0; length + 1 < strlen(whole); length++) {
		assert_int_equal(read_line(whole, length, &r, &line), -EINVAL);
		recorded_clear(&r);
		free(line);
	}
}

static void check_as_jansson(const struct line_member *member, json_t *object)
{
	json_t *value = json_object_get(object, member->name);

	if (json_is_string(value)) {
		assert_non_null(member->text);
		assert_string_equal(member->text, json_string_value(value));
		assert_null(member->value);
		return;
	}
	assert_null(member->text);
	assert_int_equal(!member->value, !value);
}

/* The first and the last character of each length. */
static void test_escaped_characters(void **state)
{
	static const char text[] =
		"{\"user\": \"\\u0001 \\u007f \\u0080 \\u07ff \\u0800 \\uffff \\ud800\\udc00 \\udbff\\udfff\"}";
	struct line_member user = LINE_MEMBER("user");
	char *line = copy_of(text, strlen(text));
	json_t *object = json_loads(text, 0, NULL);
	struct error err;

	(void)state;
	assert_non_null(object);
	assert_int_equal(line_read(line, strlen(text), &user, 1, &err), 0);
	check_as_jansson(&user, object);
	json_decref(object);
	free(line);
}

/* What jansson reads is read alike. Only of what nobody asks for may be read what it does not: words and numbers that are none. */
static void test_altered(void **state)
{
	static const char bits[] = "\"\\{}[]:,0u\xc3\xa9 n\x01\xff";
	int both = 0;

	(void)state;
	srandom(4);
	for (int n = 0; n < ALTERED; n++) {
		struct line_member members[] = { LINE_MEMBER("user"), LINE_MEMBER("groups"),
						 LINE_MEMBER("monotonic_ns") };
		size_t length = strlen(whole);
		char *line = copy_of(whole, length);
		struct error err;
		json_t *object;

		for (int left = 1 + random() % 3; left; left--)
			line[random() % length] = bits[random() % (sizeof(bits) - 1)];
		object = json_loadb(line, length, 0, NULL);
		if (!line_read(line, length, members, LENGTH(members), &err) && object)
			for (size_t i = 0; i < LENGTH(members); i++, both++)
				check_as_jansson(&members[i], object);
		else
			assert_null(object);
		json_decref(object);
		free(line);
	}
	assert_true(both > ALTERED / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_read),	   cmocka_unit_test(test_members), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_escaped_characters), cmocka_unit_test(test_altered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
