/* SPDX-License-Identifier: GPL-2.0 */
/* What is known of a work queue, under the names of client-go's metrics. */
#ifndef WEIR_USER_QUEUE_METRICS_H
#define WEIR_USER_QUEUE_METRICS_H

#include <jansson.h>

#include "weir/base/types.h"

/* Kubernetes' buckets: up to 10 ns, 100 ns, ... 1000 s, and above. */
#define WORKQUEUE_BUCKETS 13

/* counts: of each bucket alone, without those below it. */
struct workqueue_histogram {
	__u64 counts[WORKQUEUE_BUCKETS];
	__u64 sum_ns;
};

struct workqueue_metrics {
	__u64 depth;   /* keys that wait, also those that were added again while a worker has them */
	__u64 adds;    /* that were not of keys which were there already */
	__u64 retries; /* adds for later, rate-limited ones among them */
	struct workqueue_histogram queue_duration; /* from being added to being taken */
	struct workqueue_histogram work_duration;  /* from being taken to being done */
	__u64 unfinished_work_ns;		   /* how long all that workers have now has been theirs */
	__u64 longest_running_ns;		   /* and the one that has been so for longest */
};

void workqueue_histogram_observe(struct workqueue_histogram *histogram, __u64 ns);

/* Adds the families of a queue called `name` to those of metrics.h. */
void workqueue_metrics_families(json_t *families, const char *name, const struct workqueue_metrics *metrics);

#endif
