/* SPDX-License-Identifier: GPL-2.0 */
/* What is plain is what jansson reads, too, and comes to the same value; whatever is not is left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../random.h"
#include "base/cleanup.h"
#include "base/plain_json.h"

#define TEXTS 300000

/* Of a copy that ends where the text does. */
static json_t *plain(const char *text)
{
	size_t length = strlen(text);
	CLEANUP_FREE char *copy = memcpy(malloc(length + !length), text, length);

	return plain_to_json(copy, length);
}

static void check(const char *text)
{
	CLEANUP_JSON json_t *value = plain(text), *wanted = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(wanted);
	assert_true(plain_whole(text, strlen(text)));
	if (!json_equal(value, wanted))
		fail_msg("%s", text);
}

static void values(void **state)
{
	(void)state;
	check("{}");
	check(" \n [ ] \n");
	check("{\"\": [1, -2, 0, -0, 123456789012345678], \"b\" : {\"c\":true,\"d\":false},\n\"e\":\n null, \"f\": \"/ ~!{}[]:,\"}");
	check("[[[[]], {}], \"1\", {\"a\": {\"a\": {}}}]");
}

static void others(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"1",
		"\"a\"",
		"true",
		"{",
		"[",
		"[1",
		"[1,",
		"[1,]",
		"[,1]",
		"[1 2]",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\" 1}",
		"{1:2}",
		"{\"a\":1,}",
		"{\"a\":1]",
		"[1}",
		"[]]",
		"[] []",
		"{}x",
		"[tru]",
		"[trues]",
		"[nullx]",
		"[-]",
		"[01]",
		"[1.]",
		"[.5]",
		"[1e3]",
		"[+1]",
		"[1234567890123456789]",
		"[\"a]",
		"[\"\\n\"]",
		"[\"\\u0041\"]",
		"[\"\t\"]",
		"[\"\xc3\xa4\"]",
		"[\"\x7f\"]",
		"[\r]",
		"[\t]",
		"[1]#",
		"{\"a\"  : 1}",
		"{\"a\"\n: 1}",
		"\xef\xbb\xbf[]",
		"[--1]",
		"[1-]",
		"[\"a\"\"b\"]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		CLEANUP_JSON json_t *value = plain(texts[i]);

		if (value || plain_whole(texts[i], strlen(texts[i])))
			fail_msg("%s", texts[i]);
	}
	/* These are plain; what they come to is jansson's to say. */
	assert_true(plain_whole("[1.5]", 5) && plain_whole("{\"a\":1,\"a\":2}", 13));
	assert_null(plain("[1.5]"));
	assert_null(plain("{\"a\":1,\"a\":2}"));
}

static void bounds(void **state)
{
	char text[PLAIN_TEXT_MAX + 16];

	(void)state;
	for (int over = 0; over < 2; over++) {
		CLEANUP_JSON json_t *value = NULL;

		memset(text, 'x', sizeof(text));
		memcpy(text, "{\"", 2);
		strcpy(&text[2 + PLAIN_TEXT_MAX + over], "\":1}");
		value = plain(text);
		assert_int_equal(value == NULL, over);
		value = (json_decref(value), NULL);
		memset(text, '[', PLAIN_DEPTH_MAX + over);
		memset(text + PLAIN_DEPTH_MAX + over, ']', PLAIN_DEPTH_MAX + over);
		text[2 * (PLAIN_DEPTH_MAX + over)] = '\0';
		value = plain(text);
		assert_int_equal(value == NULL, over);
	}
}

/* Pieces in any order: some of them come to something. */
static void any_text(void **state)
{
	static const char *const pieces[] = {
		"{",  "}",   "[",    "]",    ",",      ":",  "\"a\"", "\"b\"",	 "\"a\":",	 "1",
		"-2", "0.5", "true", "null", " ",      "\n", "e1",    "\"\\n\"", "\"\xc3\xa4\"", "\"",
		"x",  "00",  "{}",   "[]",   ",\"c\":"
	};
	struct random r = { 1 };
	size_t n = 0;

	(void)state;
	for (int i = 0; i < TEXTS; i++) {
		char text[128] = "";
		json_t *value, *wanted;

		strcat(text, random_below(&r, 2) ? "[" : "{");
		for (unsigned int left = random_below(&r, 9); left-- > 0;)
			strcat(text, pieces[random_below(&r, sizeof(pieces) / sizeof(*pieces))]);
		strcat(text, *text == '[' ? "]" : "}");
		value = plain(text);
		wanted = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
		if (value && !json_equal(value, wanted))
			fail_msg("%s", text);
		n += value != NULL;
		json_decref(value);
		json_decref(wanted);
	}
	assert_true(n > TEXTS / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(others),
		cmocka_unit_test(bounds),
		cmocka_unit_test(any_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
