/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/output.h"

static void formats(void **state)
{
	enum output_format format;

	(void)state;
	assert_int_equal(output_format_parse("yaml", &format, NULL), 0);
	assert_int_equal(format, OUTPUT_YAML);
	assert_true(output_format_parse("xml", &format, NULL) < 0);
	assert_int_equal(format, OUTPUT_YAML);
}

/* What a function prints, which the caller frees. */
static char *printed(int (*print)(FILE *file, json_t *value), json_t *value)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_int_equal(print(file, value), 0);
	fclose(file);
	return text;
}

static void visible(void **state)
{
	static const struct {
		const char *given, *shown;
	} cases[] = {
		{ "alice", "alice" },
		{ "a\nb\x1b[2J", "a\\x0ab\\x1b[2J" },
		{ "\x7f", "\\x7f" },
		{ "m\xc3\xbc", "m\xc3\xbc" },
		{ "\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xc2\x9b", "\\xc2\\x9b" }, /* CSI of 8 bits */
		{ "\xff"
		  "a",
		  "\\xffa" },
		{ "\xe2\x82", "\\xe2\\x82" },	       /* cut off */
		{ "\xc0\xaf", "\\xc0\\xaf" },	       /* overlong */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* surrogate */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_FREE char *text = output_visible(cases[i].given);

		assert_string_equal(text, cases[i].shown);
	}
}

static void json(void **state)
{
	CLEANUP_JSON json_t *value = json_pack("{s:f, s:i, s:n}", "qps", 0.1, "burst", 3, "subject");
	CLEANUP_FREE char *text = printed(output_json, value);

	(void)state;
	assert_string_equal(text, "{\n  \"qps\": 0.1,\n  \"burst\": 3,\n  \"subject\": null\n}\n");
}

static void yaml(void **state)
{
	CLEANUP_JSON json_t *value = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:I, s:b, s:n, s:[i, s], s:[], s:{}}",
					       "plain", "eth0", "number", "80", "yes", "yes", "listen", "*:80", "text",
					       "a: b\n#c", "qps", 0.5, "big", (json_int_t)1 << 53, "flag", 1, "nothing",
					       "list", 1, "two", "empty", "none");
	CLEANUP_FREE char *text = printed(output_yaml, value);

	(void)state;
	assert_string_equal(text, "plain: eth0\n"
				  "number: \"80\"\n"
				  "\"yes\": \"yes\"\n"
				  "listen: \"*:80\"\n"
				  "text: \"a: b\\n#c\"\n"
				  "qps: 0.5\n"
				  "big: 9007199254740992\n"
				  "flag: true\n"
				  "nothing: null\n"
				  "list:\n"
				  "- 1\n"
				  "- two\n"
				  "empty: []\n"
				  "none: {}\n");
}

static void tables(void **state)
{
	static const char *const heads[] = { "NAME", "N" };
	CLEANUP_TABLE struct table *table = table_new(heads, 2);
	CLEANUP_FREE char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(table_rows(table), 0);
	table_cell(table, "%s", "a");
	table_cell(table, "%d", 1);
	table_cell(table, "%s", "l\xc3\xa4nger\n");
	table_cell(table, "%d", 22);
	assert_int_equal(table_rows(table), 2);
	assert_int_equal(table_print(table, file), 0);
	fclose(file);
	assert_string_equal(text, "NAME        N\n"
				  "a           1\n"
				  "l\xc3\xa4nger\\x0a  22\n");
}

#define LONG_TEXT 100000 /* more than any buffer */

/* Why it could not be written is told, wherever that shows. */
static void full_disk(void **state)
{
	static int (*const prints[])(FILE * file, json_t * value) = { output_json, output_json_line, output_yaml,
								      output_yaml_more };
	static const char *const heads[] = { "NAME" };
	CLEANUP_TABLE struct table *table = table_new(heads, 1);
	CLEANUP_FREE char *text = calloc(1, LONG_TEXT + 1);
	CLEANUP_FCLOSE FILE *full = NULL;

	(void)state;
	memset(text, 'x', LONG_TEXT);
	for (size_t length = 1; length <= LONG_TEXT; length += LONG_TEXT - 1) {
		CLEANUP_JSON json_t *value = json_pack("[s#]", text, (int)length);

		for (size_t i = 0; i < sizeof(prints) / sizeof(*prints); i++) {
			CLEANUP_FCLOSE FILE *file = fopen("/dev/full", "w");

			assert_int_equal(prints[i](file, value) ?: output_flush(file), -ENOSPC);
		}
	}
	for (int i = 0; i < LONG_TEXT / 10; i++)
		table_cell(table, "row %d", i);
	full = fopen("/dev/full", "w");
	assert_int_equal(table_print(table, full), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats), cmocka_unit_test(visible), cmocka_unit_test(json),
		cmocka_unit_test(yaml),	   cmocka_unit_test(tables),  cmocka_unit_test(full_disk),
	};

	return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
