/* SPDX-License-Identifier: GPL-2.0 */
/* What is known of a work queue: its metrics. */
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

static void assert_only_bucket(const struct workqueue_histogram *histogram, int bucket, __u64 count)
{
	for (int i = 0; i < WORKQUEUE_BUCKETS; i++)
		assert_int_equal(histogram->counts[i], i == bucket ? count : 0);
}

static void test_metrics(void **state)
{
	struct workqueue *queue = *state;
	struct workqueue_metrics metrics;
	const char *key;

	workqueue_add(queue, "foo");
	metrics = metrics_of(queue);
	assert_int_equal(metrics.adds, 1);
	assert_int_equal(metrics.depth, 1);
	now += 50 * US;
	key = workqueue_get(queue);
	metrics = metrics_of(queue);
	assert_int_equal(metrics.depth, 0);
	assert_int_equal(metrics.queue_duration.sum_ns, 50 * US);
	assert_only_bucket(&metrics.queue_duration, 4, 1);

	for (int i = 0; i < 5; i++)
		workqueue_add(queue, key);
	metrics = metrics_of(queue);
	assert_int_equal(metrics.adds, 2);
	assert_int_equal(metrics.depth, 1);
	now += 25 * US;
	workqueue_done(queue, key);
	metrics = metrics_of(queue);
	assert_int_equal(metrics.work_duration.sum_ns, 25 * US);
	assert_only_bucket(&metrics.work_duration, 4, 1);
	assert_int_equal(metrics.depth, 1);

	key = workqueue_get(queue);
	metrics = metrics_of(queue);
	assert_int_equal(metrics.queue_duration.sum_ns, 75 * US);
	assert_only_bucket(&metrics.queue_duration, 4, 2);
	assert_int_equal(metrics.unfinished_work_ns, 0);
	now += MS;
	workqueue_add(queue, "bar");
	workqueue_get(queue);
	now += MS;
	metrics = metrics_of(queue);
	assert_int_equal(metrics.unfinished_work_ns, 3 * MS);
	assert_int_equal(metrics.longest_running_ns, 2 * MS);
	workqueue_done(queue, key);
	workqueue_done(queue, "bar");
	metrics = metrics_of(queue);
	assert_int_equal(metrics.unfinished_work_ns, 0);
	assert_int_equal(metrics.longest_running_ns, 0);
	assert_int_equal(metrics.work_duration.sum_ns, 25 * US + 3 * MS);
	assert_int_equal(metrics.retries, 0);
}

static void test_metrics_of_later_adds(void **state)
{
	struct workqueue *queue = *state;

	workqueue_add_after(queue, "foo", 0);
	workqueue_add_after(queue, "bar", MS);
	workqueue_add_rate_limited(queue, "bar");
	assert_int_equal(metrics_of(queue).retries, 3);
	assert_int_equal(metrics_of(queue).adds, 1);
	now += MS;
	assert_int_equal(metrics_of(queue).adds, 2);
	now += MS;
	work(queue, "foo");
	work(queue, "bar");
	/* It was in the queue from when somebody could tell that it was due. */
	assert_int_equal(metrics_of(queue).queue_duration.sum_ns, 3 * MS);
}

static void test_histogram(void **state)
{
	static const struct {
		__u64 ns;
		int bucket;
	} cases[] = {
		{ 0, 0 },
		{ 10, 0 },
		{ 11, 1 },
		{ 100, 1 },
		{ SECOND, 8 },
		{ SECOND + 1, 9 },
		{ 1000 * SECOND, 11 },
		{ 1000 * SECOND + 1, 12 },
		{ ~0ULL, 12 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct workqueue_histogram histogram = {};

		workqueue_histogram_observe(&histogram, cases[i].ns);
		assert_only_bucket(&histogram, cases[i].bucket, 1);
		assert_int_equal(histogram.sum_ns, cases[i].ns);
	}
}

static void assert_line(const char *text, const char *line)
{
	const char *found = strstr(text, line);

	if (!found || (found != text && found[-1] != '\n') || found[strlen(line)] != '\n')
		fail_msg("no line \"%s\" in:\n%s", line, text);
}

static void test_metrics_text(void **state)
{
	static const char *const lines[] = {
		"# TYPE workqueue_depth gauge",
		"workqueue_depth{name=\"policy\"} 2",
		"# TYPE workqueue_adds_total counter",
		"workqueue_adds_total{name=\"policy\"} 3",
		"# TYPE workqueue_queue_duration_seconds histogram",
		"workqueue_queue_duration_seconds_bucket{name=\"policy\",le=\"1e-08\"} 1",
		"workqueue_queue_duration_seconds_bucket{name=\"policy\",le=\"0.0001\"} 1",
		"workqueue_queue_duration_seconds_bucket{name=\"policy\",le=\"0.001\"} 2",
		"workqueue_queue_duration_seconds_bucket{name=\"policy\",le=\"1000\"} 2",
		"workqueue_queue_duration_seconds_bucket{name=\"policy\",le=\"+Inf\"} 3",
		"workqueue_queue_duration_seconds_sum{name=\"policy\"} 2000.000250005",
		"workqueue_queue_duration_seconds_count{name=\"policy\"} 3",
		"workqueue_work_duration_seconds_count{name=\"policy\"} 0",
		"workqueue_work_duration_seconds_sum{name=\"policy\"} 0.000000000",
		"workqueue_unfinished_work_seconds{name=\"policy\"} 1.500",
		"workqueue_longest_running_processor_seconds{name=\"policy\"} 0.025",
		"workqueue_retries_total{name=\"policy\"} 7",
	};
	struct workqueue_metrics metrics = {
		.depth = 2,
		.adds = 3,
		.retries = 7,
		.unfinished_work_ns = 1500 * MS,
		.longest_running_ns = 25 * MS,
	};
	json_t *families = json_array();
	char *text;

	(void)state;
	workqueue_histogram_observe(&metrics.queue_duration, 5);
	workqueue_histogram_observe(&metrics.queue_duration, 250 * US);
	workqueue_histogram_observe(&metrics.queue_duration, 2000 * SECOND);
	workqueue_metrics_families(families, "policy", &metrics);
	text = metrics_text(families);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_line(text, lines[i]);
	free(text);
	json_decref(families);
}

#define WITH_QUEUE(test) cmocka_unit_test_setup_teardown(test, open_queue, close_queue)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_QUEUE(test_metrics),
		WITH_QUEUE(test_metrics_of_later_adds),
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_metrics_text),
	};

	return cmocka_run_group_tests_name("workqueue_metrics", tests, NULL, NULL);
}
