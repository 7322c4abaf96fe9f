/* SPDX-License-Identifier: GPL-2.0 */
/* Whoever lets go of a text last frees it, whichever thread that is: limits are copied by one, and what they were is freed by others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/cleanup.h"
#include "model/limit.h"

#define THREADS 4
#define ROUNDS 500
#define SUBJECTS 20

/* What a thread has of its own: it copies that again and again, and frees what it copied from. */
static void *copy_on(void *context)
{
	struct limit *own = context;

	for (int i = 0; i < ROUNDS; i++) {
		struct limit copy = { 0 };

		if (limit_copy(own, &copy))
			return context;
		limit_clear(own);
		*own = copy;
	}
	for (size_t i = 0; i < own->n_overrides; i++)
		if (strncmp(own->overrides[i].subject, "user-", 5) != 0)
			return context;
	limit_clear(own);
	return NULL;
}

static void limit_of(struct limit *limit)
{
	CLEANUP_JSON json_t *overrides = json_array(), *json = NULL;
	struct error err;

	for (int i = 0; i < SUBJECTS; i++)
		json_array_append_new(overrides, json_pack("{s:o, s:s, s:i}", "subject", json_sprintf("user-%d", i),
							   "qps", "1", "burst", 1));
	json = json_pack("{s:s, s:O}", "name", "user", "overrides", overrides);
	if (limit_from_json(json, limit, &err))
		fail_msg("%s", err.text);
	assert_int_equal(limit->n_overrides, SUBJECTS);
}

/* None of the threads waits for another, and the first owner lets go while they run. */
static void copies_of_copies(void **state)
{
	struct limit first = { 0 }, own[THREADS] = { 0 };
	pthread_t threads[THREADS];

	(void)state;
	limit_of(&first);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(limit_copy(&first, &own[i]), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, copy_on, &own[i]), 0);
	limit_clear(&first);
	for (int i = 0; i < THREADS; i++) {
		void *failed = &own[i];

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_of_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
