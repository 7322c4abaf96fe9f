/* SPDX-License-Identifier: GPL-2.0 */
/* The first text that is like one before it, as looking at all pairs finds it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../random.h"
#include "base/twice.h"

#define MANY 600

static const char *by_pairs(const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (strcmp(texts[i], texts[j]) == 0)
				return texts[i];
	return NULL;
}

static void check(const char *const *texts, size_t n)
{
	const char *found = "nothing was set";

	assert_int_equal(twice_find(texts, n, &found), 0);
	assert_ptr_equal(found, by_pairs(texts, n));
}

static void few(void **state)
{
	static const char first[] = "a", again[] = "a";
	const char *const texts[] = { "", "b", first, "ab", again, "b" };

	(void)state;
	for (size_t n = 0; n <= sizeof(texts) / sizeof(*texts); n++)
		check(texts, n);
}

/* Of few texts that there are: some twice soon, some late, some never. */
static void many(void **state)
{
	static char rooms[MANY][16];
	const char *texts[MANY];
	struct random r = { 1 };

	(void)state;
	for (int round = 0; round < 50; round++) {
		size_t n = random_below(&r, MANY);

		for (size_t i = 0; i < n; i++) {
			snprintf(rooms[i], sizeof(rooms[i]), "user-%d", (int)random_below(&r, 100000));
			texts[i] = rooms[i];
		}
		check(texts, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(few), cmocka_unit_test(many) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
