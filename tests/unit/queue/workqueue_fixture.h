/* SPDX-License-Identifier: GPL-2.0 */
/* A work queue with one thread and a clock that is set by hand. */
#ifndef WEIR_TESTS_WORKQUEUE_FIXTURE_H
#define WEIR_TESTS_WORKQUEUE_FIXTURE_H

#include "queue/workqueue.h"

#define US 1000ULL
#define MS 1000000ULL
#define SECOND WEIR_NS_PER_S

extern __u64 now;

__u64 read_now(void *context);

/* cmocka's setup and teardown: a queue that tries again after 1 ms, and then twice as long each time, up to 1 s. */
int open_queue(void **state);
int close_queue(void **state);
#define WITH_QUEUE(test) cmocka_unit_test_setup_teardown(test, open_queue, close_queue)

/* Takes the next key, which has to be this one, and is done with it. */
void work(struct workqueue *queue, const char *expected);
/* The key comes after so long, and not before. */
void comes_after(struct workqueue *queue, const char *key, __u64 delay_ns);

struct workqueue_metrics metrics_of(struct workqueue *queue);

#endif
