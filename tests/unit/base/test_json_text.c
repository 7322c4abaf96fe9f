/* SPDX-License-Identifier: GPL-2.0 */
/* A JSON value's text is what jansson writes, and is read as the same value again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../random.h"
#include "base/cleanup.h"
#include "base/json_text.h"

static void check(json_t *value)
{
	CLEANUP_JSON json_t *owned = value, *back = NULL;
	CLEANUP_FREE char *text = json_text(value), *dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	assert_non_null(text);
	assert_string_equal(text, dumped);
	back = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	if (!json_equal(value, back))
		fail_msg("%s", text);
}

static void values(void **state)
{
	static const char *const texts[] = { "", "a", "\"\\/\b\f\n\r\t\x01\x1f\x7f",
					     "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" };
	static const json_int_t numbers[] = { 0, 1, -1, 9, 10, -10, INT64_MAX, INT64_MIN };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		check(json_string(texts[i]));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		check(json_integer(numbers[i]));
	check(json_real(0.1));
	check(json_real(-1e300));
	check(json_pack("{s:s, s:[i, f, b, n, {}, []], s:{s:s, s:i}}", "b", "x y", "a", -12, 2.5, 1, "c", "d", "\"e\\",
			"f", 0));
	check(json_pack("[b, b, n, [], {}, {s:[i]}]", 0, 1, "\"", 3));
	assert_null(json_text(NULL));
}

static json_t *any(struct random *r, int depth)
{
	json_t *value = NULL;
	char text[8] = "";

	for (size_t i = random_below(r, 7); i-- > 0;)
		text[i] = random_between(r, 1, 127);
	switch (random_below(r, depth ? 6 : 4)) {
	case 0:
		return json_string(text);
	case 1:
		return json_integer((json_int_t)random_next(r));
	case 2:
		return json_boolean(random_below(r, 2));
	case 3:
		return json_null();
	case 4:
		value = json_array();
		for (size_t n = random_below(r, 5); n > 0; n--)
			json_array_append_new(value, any(r, depth - 1));
		return value;
	default:
		value = json_object();
		for (size_t n = random_below(r, 5); n > 0; n--) {
			text[0] = 'a' + n;
			json_object_set_new(value, text, any(r, depth - 1));
		}
		return value;
	}
}

static void random_values(void **state)
{
	struct random random = { .state = 7 };

	(void)state;
	for (int i = 0; i < 5000; i++)
		check(any(&random, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(random_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
