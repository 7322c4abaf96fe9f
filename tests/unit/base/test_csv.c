/* SPDX-License-Identifier: GPL-2.0 */
#include "base/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

/* Records as "a|b;c|d", and at the end what is wrong: "!line:column". The text is on the heap, for the sanitizers. */
static char *read_all(const char *text, size_t length)
{
	char *copy = malloc(length + 1), *said = NULL;
	struct csv_record record;
	struct error err;
	struct csv csv;
	size_t size;
	FILE *out = open_memstream(&said, &size);
	int ret;

	assert_non_null(copy);
	memcpy(copy, text, length);
	csv_start(&csv, copy, length);
	for (int n = 0; (ret = csv_next(&csv, &record, &err)) > 0; n++) {
		fputs(n ? ";" : "", out);
		for (size_t i = 0; i < record.n && i < CSV_FIELDS; i++)
			fprintf(out, "%s%s", i ? "|" : "", record.fields[i]);
		if (record.n > CSV_FIELDS)
			fprintf(out, "+%zu", record.n - CSV_FIELDS);
	}
	if (ret)
		fprintf(out, "!%u:%u", csv.place.line, csv.place.column);
	fclose(out);
	free(copy);
	return said;
}

static void check(const char *text, size_t length, const char *expected)
{
	char *said = read_all(text, length);

	if (strcmp(said, expected) != 0)
		fail_msg("%s: %s instead of %s", text, said, expected);
	free(said);
}

static void test_records(void **state)
{
	static const struct {
		const char *text, *records;
	} cases[] = {
		{ "", "" },
		{ "\n\r\n\n", "" },
		{ "a", "a" },
		{ "a,b\n", "a|b" },
		{ "a,b\r\nc,d\r\n", "a|b;c|d" },
		{ "a\n\n\nb", "a;b" },
		{ "a,\n,b\n", "a|;|b" },
		{ ",", "|" },
		{ " a , b ", " a | b " },
		{ "a\rb\r", "a\rb" },
		{ "# no comment", "# no comment" },
		{ "\"a,b\",c", "a,b|c" },
		{ "\"a \"\"b\"\"\"", "a \"b\"" },
		{ "\"\"", "" },
		{ "\"\",\"\"\n\"\"", "|;" },
		{ "\"a\nb\r\nc\",d", "a\nb\nc|d" },
		{ "\"a\rb\"", "a\rb" },
		{ "1,2,3,4,5,6,7,8,9,10\n1", "1|2|3|4|5|6|7|8+2;1" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++)
		check(cases[i].text, strlen(cases[i].text), cases[i].records);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *records;
	} cases[] = {
		{ "a\"b", "!1:2" },	      { "a,b\n c,\"d", "a|b!2:5" }, { "\"a\"b,c", "!1:4" },
		{ "\"a\" ,c", "!1:4" },	      { "x,\"\n\n\ny", "!1:4" },    { "\"", "!1:2" },
		{ "\"a\n\"\"b", "!1:2" },     { "\"a\nb\"c", "!2:3" },	    { "a\nb,c\"\n", "a!2:4" },
		{ "ok\n\n\"\"\"", "ok!3:2" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++)
		check(cases[i].text, strlen(cases[i].text), cases[i].records);
	check("a,b\0c\n", 6, "!1:3");
	check("a,\"\0\"\n", 6, "!1:3");
}

static void test_places(void **state)
{
	char text[] = "\n a,\"b\nc\",d\r\n\r\n\"e\"";
	struct csv_record record;
	struct error err;
	struct csv csv;

	(void)state;
	csv_start(&csv, text, strlen(text));
	assert_int_equal(csv_next(&csv, &record, &err), 1);
	assert_int_equal(record.n, 3);
	assert_int_equal(record.places[0].line, 2);
	assert_int_equal(record.places[0].column, 1);
	assert_int_equal(record.places[1].column, 4);
	assert_int_equal(record.places[2].line, 3);
	assert_int_equal(record.places[2].column, 4);
	assert_int_equal(csv_next(&csv, &record, &err), 1);
	assert_int_equal(record.place.line, 5);
	assert_int_equal(csv_next(&csv, &record, &err), 0);
	assert_int_equal(csv_next(&csv, &record, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
