/* SPDX-License-Identifier: GPL-2.0 */
/* The work queue with one thread and a clock that is set by hand; with several threads: test_workqueue_threads.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metrics/metrics.h"
#include "model/backoff_text.h"
#include "queue/heap.h"
#include "queue/retries.h"
#include "queue/workqueue.h"
#include "workqueue_fixture.h"

static void test_length(void **state)
{
	struct workqueue *queue = *state;

	workqueue_add(queue, "foo");
	assert_int_equal(workqueue_length(queue), 1);
	workqueue_add(queue, "bar");
	assert_int_equal(workqueue_length(queue), 2);
	workqueue_add(queue, "foo");
	assert_int_equal(workqueue_length(queue), 2);
}

static void test_first_come_first_served(void **state)
{
	static const char *const keys[] = { "c", "a", "", "b", "A", "namespace/name", "a " };
	struct workqueue *queue = *state;

	for (size_t i = 0; i < 7; i++)
		assert_int_equal(workqueue_add(queue, keys[i]), 0);
	workqueue_add(queue, "c");
	for (size_t i = 0; i < 7; i++)
		work(queue, keys[i]);
	assert_int_equal(workqueue_length(queue), 0);
}

/* Keys are copied, and nobody else's text. */
static void test_keys_are_copied(void **state)
{
	struct workqueue *queue = *state;
	char key[] = "foo";

	workqueue_add(queue, key);
	memcpy(key, "bar", 3);
	work(queue, "foo");
}

static void test_added_while_in_work(void **state)
{
	struct workqueue *queue = *state;
	const char *key, *again;

	workqueue_add(queue, "foo");
	key = workqueue_get(queue);
	workqueue_add(queue, key);
	workqueue_add(queue, "foo");
	assert_int_equal(workqueue_length(queue), 0);
	workqueue_add(queue, "bar");
	workqueue_done(queue, key);
	assert_int_equal(workqueue_length(queue), 2);
	work(queue, "bar");
	again = workqueue_get(queue);
	assert_string_equal(again, "foo");
	assert_int_equal(workqueue_length(queue), 0);
	workqueue_done(queue, again);
	assert_int_equal(workqueue_length(queue), 0);
}

static void test_done_with_what_nobody_has(void **state)
{
	struct workqueue *queue = *state;

	workqueue_done(queue, "foo");
	workqueue_add(queue, "foo");
	workqueue_done(queue, "foo");
	assert_int_equal(workqueue_length(queue), 1);
	work(queue, "foo");
	assert_int_equal(workqueue_length(queue), 0);
	assert_int_equal(metrics_of(queue).work_duration.sum_ns, 0);
}

/* --- for later */

static void test_later(void **state)
{
	struct workqueue *queue = *state;

	workqueue_add_after(queue, "foo", 50 * MS);
	assert_int_equal(workqueue_length(queue), 0);
	now += 50 * MS - 1;
	assert_int_equal(workqueue_length(queue), 0);
	now += 1;
	assert_int_equal(workqueue_length(queue), 1);
	work(queue, "foo");
	now += 10 * SECOND;
	assert_int_equal(workqueue_length(queue), 0);
}

static void test_no_delay_is_at_once(void **state)
{
	struct workqueue *queue = *state;

	workqueue_add_after(queue, "foo", 0);
	assert_int_equal(workqueue_length(queue), 1);
}

static void test_the_earlier_time_counts(void **state)
{
	struct workqueue *queue = *state;

	workqueue_add_after(queue, "foo", 50 * MS);
	workqueue_add_after(queue, "foo", 70 * MS);
	now += 60 * MS;
	work(queue, "foo");
	now += 20 * MS;
	assert_int_equal(workqueue_length(queue), 0);

	workqueue_add_after(queue, "foo", 50 * MS);
	workqueue_add_after(queue, "foo", 30 * MS);
	now += 40 * MS;
	work(queue, "foo");
	now += 20 * MS;
	assert_int_equal(workqueue_length(queue), 0);
}

static void test_a_later_one_may_be_due_first(void **state)
{
	struct workqueue *queue = *state;

	workqueue_add_after(queue, "foo", SECOND);
	workqueue_add_after(queue, "bar", 50 * MS);
	assert_int_equal(workqueue_length(queue), 0);
	now += 60 * MS;
	assert_int_equal(workqueue_length(queue), 1);
	work(queue, "bar");
	workqueue_add_after(queue, "baz", 2 * SECOND);
	now += SECOND;
	assert_int_equal(workqueue_length(queue), 1);
	work(queue, "foo");
	now += 2 * SECOND;
	assert_int_equal(workqueue_length(queue), 1);
	work(queue, "baz");
}

static void test_due_at_once_in_order(void **state)
{
	struct workqueue *queue = *state;

	workqueue_add_after(queue, "first", SECOND);
	workqueue_add_after(queue, "second", 500 * MS);
	workqueue_add_after(queue, "third", 250 * MS);
	workqueue_add_after(queue, "second too", 500 * MS);
	now += 2 * SECOND;
	workqueue_add(queue, "last");
	assert_int_equal(workqueue_length(queue), 5);
	work(queue, "third");
	work(queue, "second");
	work(queue, "second too");
	work(queue, "first");
	work(queue, "last");
}

/* One that waits and is added now, too, is given out twice; one that is due while it is in work, afterwards. */
static void test_later_and_now(void **state)
{
	struct workqueue *queue = *state;
	const char *key;

	workqueue_add_after(queue, "foo", SECOND);
	workqueue_add(queue, "foo");
	key = workqueue_get(queue);
	now += SECOND;
	assert_int_equal(workqueue_length(queue), 0);
	workqueue_done(queue, key);
	work(queue, "foo");
	assert_int_equal(workqueue_length(queue), 0);
}

static void test_never(void **state)
{
	struct workqueue *queue = *state;

	workqueue_add_after(queue, "foo", WEIR_NEVER_NS);
	now += 1000000 * SECOND;
	assert_int_equal(workqueue_length(queue), 0);
	workqueue_add_after(queue, "foo", 1);
	now += 1;
	work(queue, "foo");
}

static int later_first(const void *a, const void *b)
{
	const struct workqueue_entry *const *x = a, *const *y = b;

	if ((*x)->ready_ns != (*y)->ready_ns)
		return (*x)->ready_ns < (*y)->ready_ns ? -1 : 1;
	return (*x)->order < (*y)->order ? -1 : (*x)->order > (*y)->order;
}

static void test_heap(void **state)
{
	enum {
		N = 500
	};
	struct workqueue_entry entries[N] = {}, *sorted[N], *first;
	struct workqueue_heap heap = {};
	__u64 random = 1;
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 3 * N; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		assert_int_equal(workqueue_heap_add(&heap, &entries[(random >> 33) % N], (random >> 40) % 1000), 0);
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		if (random >> 62 == 0 && workqueue_heap_has(&entries[(random >> 33) % N]))
			workqueue_heap_remove(&heap, &entries[(random >> 33) % N]);
	}
	for (size_t i = 0; i < N; i++)
		if (workqueue_heap_has(&entries[i]))
			sorted[n++] = &entries[i];
	qsort(sorted, n, sizeof(*sorted), later_first);
	assert_true(n > N / 2);
	for (size_t i = 0; i < n; i++) {
		first = workqueue_heap_first(&heap);
		assert_ptr_equal(first, sorted[i]);
		workqueue_heap_remove(&heap, first);
		assert_false(workqueue_heap_has(first));
	}
	assert_null(workqueue_heap_first(&heap));
	workqueue_heap_free(&heap);
}

/* --- after failures */

static void test_rate_limited(void **state)
{
	struct workqueue *queue = *state;

	workqueue_add_rate_limited(queue, "one");
	comes_after(queue, "one", MS);
	workqueue_add_rate_limited(queue, "one");
	comes_after(queue, "one", 2 * MS);
	assert_int_equal(workqueue_requeues(queue, "one"), 2);
	workqueue_add_rate_limited(queue, "two");
	comes_after(queue, "two", MS);
	workqueue_add_rate_limited(queue, "two");
	comes_after(queue, "two", 2 * MS);
	workqueue_forget(queue, "one");
	assert_int_equal(workqueue_requeues(queue, "one"), 0);
	assert_int_equal(workqueue_requeues(queue, "two"), 2);
	workqueue_add_rate_limited(queue, "one");
	comes_after(queue, "one", MS);
	workqueue_forget(queue, "unknown");
	assert_int_equal(workqueue_requeues(queue, "unknown"), 0);
}

/* What is forgotten while it waits comes all the same, and as one that has not failed. */
static void test_forgotten_while_it_waits(void **state)
{
	struct workqueue *queue = *state;

	for (int i = 0; i < 5; i++)
		workqueue_add_rate_limited(queue, "foo");
	workqueue_forget(queue, "foo");
	comes_after(queue, "foo", MS);
	workqueue_add_rate_limited(queue, "foo");
	comes_after(queue, "foo", MS);
}

/* The bucket is shared by all keys. */
static void test_rate_limited_by_a_bucket(void **state)
{
	struct workqueue_options options = { .now_ns = read_now, .context = &now };
	struct workqueue *queue;
	struct error err;

	(void)state;
	assert_int_equal(backoff_parse("exponential:1ms..1s+bucket:10/2", &options.policy, &err), 0);
	assert_int_equal(workqueue_open(&queue, &options), 0);
	workqueue_add_rate_limited(queue, "a");
	workqueue_add_rate_limited(queue, "b");
	workqueue_add_rate_limited(queue, "c");
	now += MS;
	work(queue, "a");
	work(queue, "b");
	comes_after(queue, "c", 99 * MS);
	workqueue_close(queue);
}

static void test_retry_or_drop(void **state)
{
	struct workqueue *queue = *state;
	static const int outcomes[] = { RETRIES_GIVEN_UP, RETRIES_GIVEN_UP, RETRIES_STILL_GIVEN_UP };
	struct error why = { .text = "no memory" };
	json_t *dropped, *entry;
	struct retries *retries;

	assert_int_equal(retries_open(&retries, queue, 3), 0);
	for (int round = 0; round < 3; round++) {
		workqueue_add(queue, "server/api");
		work(queue, "server/api");
		assert_int_equal(retries_failed(retries, "server/api", &why), RETRIES_AGAIN);
		comes_after(queue, "server/api", MS);
		assert_int_equal(retries_failed(retries, "server/api", &why), RETRIES_AGAIN);
		comes_after(queue, "server/api", 2 * MS);
		assert_int_equal(retries_failed(retries, "server/api", &why), outcomes[round]);
		assert_int_equal(workqueue_requeues(queue, "server/api"), 0);
		now += 10 * SECOND;
		assert_int_equal(workqueue_length(queue), 0);
		error_set(&why, 0, "no such map");
	}
	/* One that has succeeded meanwhile has all its tries again. */
	workqueue_add(queue, "server/late");
	work(queue, "server/late");
	assert_int_equal(retries_failed(retries, "server/late", &why), RETRIES_AGAIN);
	comes_after(queue, "server/late", MS);
	retries_succeeded(retries, "server/late");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(retries_failed(retries, "server/late", &why), RETRIES_AGAIN);
		comes_after(queue, "server/late", MS << i);
	}
	/* It is cut off within a character, say. */
	error_set(&why, 0, "no \xc3");
	assert_int_equal(retries_failed(retries, "server/late", &why), RETRIES_GIVEN_UP);
	dropped = retries_dropped(retries);
	entry = json_object_get(dropped, "server/late");
	assert_string_equal(json_string_value(json_object_get(entry, "error")), "no \\xc3");
	json_decref(dropped);
	retries_succeeded(retries, "server/late");

	dropped = retries_dropped(retries);
	assert_int_equal(json_object_size(dropped), 1);
	entry = json_object_get(dropped, "server/api");
	assert_int_equal(json_integer_value(json_object_get(entry, "tries")), 3);
	assert_string_equal(json_string_value(json_object_get(entry, "error")), "no such map");
	json_decref(dropped);

	retries_succeeded(retries, "server/other");
	retries_succeeded(retries, "server/api");
	dropped = retries_dropped(retries);
	assert_int_equal(json_object_size(dropped), 0);
	json_decref(dropped);
	retries_close(retries);
	retries_close(NULL);
}

/* --- the end */

static void test_shut_down(void **state)
{
	struct workqueue *queue = *state;
	const char *key;

	workqueue_add(queue, "foo");
	workqueue_add(queue, "bar");
	workqueue_add_after(queue, "later", MS);
	workqueue_add_rate_limited(queue, "failed");
	key = workqueue_get(queue);
	assert_false(workqueue_shutting_down(queue));
	workqueue_shut_down(queue);
	assert_true(workqueue_shutting_down(queue));

	assert_int_equal(workqueue_add(queue, "too late"), 0);
	assert_int_equal(workqueue_add_after(queue, "too late", MS), 0);
	assert_int_equal(workqueue_add_rate_limited(queue, "too late"), 0);
	assert_int_equal(workqueue_requeues(queue, "too late"), 0);
	now += 10 * SECOND;
	assert_int_equal(workqueue_length(queue), 1);
	work(queue, "bar");
	assert_null(workqueue_get(queue));
	workqueue_done(queue, key);
	assert_null(workqueue_get(queue));
	assert_int_equal(metrics_of(queue).retries, 2);
	workqueue_shut_down(queue);
	workqueue_shut_down_with_drain(queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_QUEUE(test_length),
		WITH_QUEUE(test_first_come_first_served),
		WITH_QUEUE(test_keys_are_copied),
		WITH_QUEUE(test_added_while_in_work),
		WITH_QUEUE(test_done_with_what_nobody_has),
		WITH_QUEUE(test_later),
		WITH_QUEUE(test_no_delay_is_at_once),
		WITH_QUEUE(test_the_earlier_time_counts),
		WITH_QUEUE(test_a_later_one_may_be_due_first),
		WITH_QUEUE(test_due_at_once_in_order),
		WITH_QUEUE(test_later_and_now),
		WITH_QUEUE(test_never),
		cmocka_unit_test(test_heap),
		WITH_QUEUE(test_rate_limited),
		WITH_QUEUE(test_forgotten_while_it_waits),
		cmocka_unit_test(test_rate_limited_by_a_bucket),
		WITH_QUEUE(test_retry_or_drop),
		WITH_QUEUE(test_shut_down),
	};

	return cmocka_run_group_tests_name("workqueue", tests, NULL, NULL);
}
