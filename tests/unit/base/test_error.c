/* SPDX-License-Identifier: GPL-2.0 */
/* Errors that name a field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

/* The names stand in the text as far as it is told that they do. */
static void fields(void **state)
{
	struct error err = { 0 };

	(void)state;
	assert_int_equal(error_set_field(&err, -EINVAL, "limits", "a \"b\"", "is %d", 7), -EINVAL);
	assert_string_equal(err.text, "limits: \"a \"b\"\": is 7");
	assert_int_equal(err.field, 6);
	assert_int_equal(err.item, 5);
	error_write_field(&err, "limits", NULL, "are %d", 7);
	assert_string_equal(err.text, "limits: are 7");
	assert_int_equal(err.field, 6);
	assert_int_equal(err.item, 0);
	error_write(&err, "limits: %d", 7);
	assert_string_equal(err.text, "limits: 7");
	assert_int_equal(err.field, 0);
	error_write_field(NULL, "limits", NULL, "are %d", 7);
}

static void names_without_room(void **state)
{
	struct error err = { 0 };
	char name[sizeof(err.text)];

	(void)state;
	memset(name, 'a', sizeof(name));
	for (size_t n = sizeof(name) - 12; n < sizeof(name); n++) {
		name[n] = '\0';
		error_write_field(&err, "f", name, "wrong");
		name[n] = 'a';
		assert_true(strlen(err.text) < sizeof(err.text));
		assert_true(!err.item || err.text[err.field + 3 + err.item] == '"');
		assert_int_equal(!err.field, !err.item);
	}
	assert_int_equal(err.field, 0);
}

/* What is too long is cut off between two characters, wherever that is. */
static void cut_off(void **state)
{
	static const char *const characters[] = { "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
	char name[2 * sizeof(((struct error *)0)->text)];
	struct error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(characters) / sizeof(*characters); i++) {
		size_t size = strlen(characters[i]);

		for (size_t before = 0; before < 5; before++) {
			memset(name, 'a', before);
			name[before] = '\0';
			while (strlen(name) + size < sizeof(name))
				strcat(name, characters[i]);
			error_write(&err, "%s", name);
			assert_int_equal(strlen(err.text),
					 sizeof(err.text) - 1 - (sizeof(err.text) - 1 - before) % size);
			error_write_field(&err, "f", NULL, "%s", name);
			assert_int_equal(strlen(err.text),
					 sizeof(err.text) - 1 - (sizeof(err.text) - 4 - before) % size);
			assert_memory_equal(err.text + 3, name, strlen(err.text) - 3);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(fields), cmocka_unit_test(names_without_room),
					    cmocka_unit_test(cut_off) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
