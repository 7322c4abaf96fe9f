/* SPDX-License-Identifier: GPL-2.0 */
#include <stdio.h>

#include "metrics/metrics.h"
#include "queue/metrics.h"

#define SMALLEST_NS 10

void workqueue_histogram_observe(struct workqueue_histogram *histogram, __u64 ns)
{
	__u64 bound_ns = SMALLEST_NS;
	int i;

	for (i = 0; i < WORKQUEUE_BUCKETS - 1 && ns > bound_ns; i++)
		bound_ns *= 10;
	histogram->counts[i]++;
	histogram->sum_ns += ns;
}

static double seconds(__u64 ns)
{
	return (double)ns / WEIR_NS_PER_S;
}

static void add_value(json_t *families, const char *queue, const char *name, const char *type, const char *help,
		      json_t *value)
{
	metrics_add_sample(metrics_add_family(families, name, type, help), json_pack("{s:s}", "name", queue), value);
}

static void add_histogram(json_t *families, const char *queue, const char *name, const char *help,
			  const struct workqueue_histogram *histogram)
{
	json_t *samples = metrics_add_family(families, name, "histogram", help);
	__u64 count = 0, bound_ns = SMALLEST_NS;
	char bound[16];

	for (int i = 0; i < WORKQUEUE_BUCKETS; i++, bound_ns *= 10) {
		count += histogram->counts[i];
		snprintf(bound, sizeof(bound), i == WORKQUEUE_BUCKETS - 1 ? "+Inf" : "%g", seconds(bound_ns));
		metrics_add_part(samples, "_bucket", json_pack("{s:s, s:s}", "name", queue, "le", bound),
				 json_integer(count));
	}
	metrics_add_part(samples, "_sum", json_pack("{s:s}", "name", queue), json_real(seconds(histogram->sum_ns)));
	metrics_add_part(samples, "_count", json_pack("{s:s}", "name", queue), json_integer(count));
}

void workqueue_metrics_families(json_t *families, const char *name, const struct workqueue_metrics *metrics)
{
	add_value(families, name, "workqueue_depth", "gauge", "Keys waiting in the queue.",
		  json_integer(metrics->depth));
	add_value(families, name, "workqueue_adds_total", "counter", "Keys added to the queue.",
		  json_integer(metrics->adds));
	add_histogram(families, name, "workqueue_queue_duration_seconds", "Time that keys waited for a worker.",
		      &metrics->queue_duration);
	add_histogram(families, name, "workqueue_work_duration_seconds", "Time that workers took for a key.",
		      &metrics->work_duration);
	add_value(families, name, "workqueue_unfinished_work_seconds", "gauge",
		  "Time spent so far on all keys in progress.", json_real(seconds(metrics->unfinished_work_ns)));
	add_value(families, name, "workqueue_longest_running_processor_seconds", "gauge",
		  "Time spent so far on the key longest in progress.", json_real(seconds(metrics->longest_running_ns)));
	add_value(families, name, "workqueue_retries_total", "counter", "Keys added again after a failure.",
		  json_integer(metrics->retries));
}
